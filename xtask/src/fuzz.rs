//! Fuzzing with libFuzzer on stable Rust: the coverage passes are compiler flags, the driver is a crate.

use crate::lint::COMPILING_S;
use crate::shell::{cargo, display, limited, program, root, succeeds};
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What to run, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Targets; none means all.
    targets: Vec<String>,
    /// Inputs a target.
    #[arg(long, default_value_t = 1_000_000)]
    runs: u64,
    /// Print one JSON line with the number of targets that failed (a figure).
    #[arg(long)]
    json: bool,
    /// After so many seconds all targets are ended that still run, and fail.
    #[arg(skip)]
    limit_s: Option<u64>,
}

impl Options {
    /// The short run of `cargo xtask test`: the committed corpora and some thousand inputs around them.
    pub(crate) fn short() -> Self {
        Self { targets: Vec::new(), runs: 20_000, json: false, limit_s: Some(900) }
    }
}

/// Flags that make rustc instrument for libFuzzer.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares \
     -Cdebug-assertions -Coverflow-checks";

/// Builds the program that holds all targets; whether it could be built.
pub(crate) fn build() -> Result<bool> {
    let folder = root().join("fuzz");
    let mut build = cargo();
    build.current_dir(&folder).args(["build", "--quiet", "--release", "--target", "x86_64-unknown-linux-gnu"]);
    build.env("CARGO_TARGET_DIR", folder.join("target")).env("RUSTFLAGS", COVERAGE);
    succeeds(&mut limited(&build, COMPILING_S))
}

/// Builds and fuzzes; whether no target failed. New inputs go to a scratch corpus, never into the tree.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if !build()? {
        return Ok(false);
    }
    let folder = root().join("fuzz");
    let targets = if options.targets.is_empty() { all_targets(&folder)? } else { options.targets.clone() };
    let mut failed = Vec::new();
    let until = options.limit_s.map(|limit_s| Instant::now() + Duration::from_secs(limit_s));
    for (target, passed) in fuzz_all(&targets, &folder, options.runs, until)? {
        if !passed {
            failed.push(target);
        }
    }
    if options.json {
        let detail = format!("{} targets, {} inputs each; failed: {failed:?}", targets.len(), options.runs);
        println!(
            "{}",
            serde_json::json!({"id": "fuzz", "value": failed.len(), "unit": "failing targets", "goal": 0, "met": failed.is_empty(), "detail": detail})
        );
    }
    eprintln!("fuzz: {} targets, {} inputs each, {} failed", targets.len(), options.runs, failed.len());
    Ok(failed.is_empty())
}

/// Fuzzes as many targets at once as there are processors, since each takes one; whether each passed, in order of their names.
fn fuzz_all(targets: &[String], folder: &Path, runs: u64, until: Option<Instant>) -> Result<BTreeMap<String, bool>> {
    let waiting = Mutex::new(targets.iter());
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let worker = || {
        let mut passed = Vec::new();
        // Nothing panics while it holds the lock, and if it did, the list would still be whole.
        while let Some(target) = { waiting.lock().unwrap_or_else(PoisonError::into_inner).next() } {
            passed.push((target.clone(), fuzz_one(target, folder, runs, until)?));
        }
        Ok(passed)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let mut all = BTreeMap::new();
        for worker in workers {
            let passed: Result<Vec<_>> = worker.join().map_err(|_| anyhow!("a thread that fuzzes panicked"))?;
            all.extend(passed?);
        }
        Ok(all)
    })
}

/// Fuzzes one target and then prints at once what it said, so that lines of two never mix; whether it passed.
fn fuzz_one(target: &str, folder: &Path, runs: u64, until: Option<Instant>) -> Result<bool> {
    let target_folder = folder.join("target");
    let scratch = target_folder.join("corpus").join(target);
    std::fs::create_dir_all(&scratch).with_context(|| format!("make {}", scratch.display()))?;
    // One program holds all targets: linking one for each would take most of the build.
    let mut command = program(&target_folder.join("x86_64-unknown-linux-gnu/release/minerva-fuzz").to_string_lossy());
    command
        .env("MINERVA_FUZZ_TARGET", target)
        .arg(format!("-runs={runs}"))
        .args(["-rss_limit_mb=512", "-timeout=10", "-verbosity=0", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", target_folder.display()))
        .args([&scratch, &folder.join("corpus").join(target)]);
    if let Some(until) = until {
        // 0 would be no limit.
        command = limited(&command, until.saturating_duration_since(Instant::now()).as_secs().max(1));
    }
    let line = display(&command);
    let output = command.output().with_context(|| format!("start `{line}`"))?;
    let said = [output.stdout, output.stderr].concat();
    eprintln!("> {line}\n{}", String::from_utf8_lossy(&said));
    Ok(output.status.success())
}

/// Every target has a folder of seeds.
fn all_targets(folder: &Path) -> Result<Vec<String>> {
    let corpus: PathBuf = folder.join("corpus");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&corpus).with_context(|| format!("list {}", corpus.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
