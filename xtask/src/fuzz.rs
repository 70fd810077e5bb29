//! Fuzzing with libFuzzer on stable Rust: the coverage passes are compiler flags, the driver is a crate.

use crate::limited;
use crate::lint::COMPILING;
use crate::shell::{cargo, display, program, root};
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
    /// After this time all targets are ended that still run, and fail.
    #[arg(skip = Duration::MAX)]
    limit: Duration,
}

impl Options {
    /// The short run of `cargo xtask test`: the committed corpora and some thousand inputs around them.
    pub(crate) fn short() -> Self {
        Self { targets: Vec::new(), runs: 20_000, json: false, limit: Duration::from_secs(900) }
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
    build.current_dir(&folder).args([
        "build",
        "--quiet",
        "--locked",
        "--release",
        "--target",
        "x86_64-unknown-linux-gnu",
    ]);
    build.env("CARGO_TARGET_DIR", folder.join("target")).env("RUSTFLAGS", COVERAGE);
    limited::succeeds(&mut build, COMPILING)
}

/// Builds and fuzzes; whether no target failed. New inputs go to a scratch corpus, never into the tree.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if !build()? {
        return Ok(false);
    }
    let folder = root().join("fuzz");
    let targets = if options.targets.is_empty() { all_targets(&folder)? } else { options.targets.clone() };
    let mut failed = Vec::new();
    for (target, passed) in fuzz_all(&targets, &folder, options.runs, options.limit)? {
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
fn fuzz_all(targets: &[String], folder: &Path, runs: u64, limit: Duration) -> Result<BTreeMap<String, bool>> {
    let begun = Instant::now();
    let waiting = Mutex::new(targets.iter());
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let worker = || {
        let mut passed = Vec::new();
        // Nothing panics while it holds the lock, and if it did, the list would still be whole.
        while let Some(target) = { waiting.lock().unwrap_or_else(PoisonError::into_inner).next() } {
            passed.push((target.clone(), fuzz_one(target, folder, runs, limit.saturating_sub(begun.elapsed()))?));
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
fn fuzz_one(target: &str, folder: &Path, runs: u64, limit: Duration) -> Result<bool> {
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
    let errors = tempfile::tempfile()?;
    let (ended, mut said) = limited::output(command.stderr(errors.try_clone()?), limit)?;
    said.extend(limited::contents(&errors)?);
    eprintln!("> {}\n{}{}", display(&command), String::from_utf8_lossy(&said), ended.told);
    Ok(ended.has_succeeded())
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

#[cfg(test)]
mod tests {
    use super::all_targets;
    use crate::shell::root;

    #[test]
    fn every_target_has_seeds_and_is_run() {
        let source = std::fs::read_to_string(root().join("fuzz/src/main.rs")).expect("the targets");
        let (_, list) = source.split_once("const TARGETS: ").expect("the list of targets");
        let (list, _) = list.split_once("\n];").expect("its end");
        let mut names: Vec<_> =
            list.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next()).collect();
        names.sort_unstable();
        assert_eq!(all_targets(&root().join("fuzz")).expect("the corpora"), names);
        assert!(!names.is_empty());
    }
}
