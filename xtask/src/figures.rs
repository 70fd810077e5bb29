//! The figures of docs/figures.md: each is measured by one command that prints JSON lines.

use crate::demo::{build_release, release_folder, wait_through_interrupts};
use crate::figure_line::{End, Line};
use crate::proof::{self, Tried};
use crate::python;
use crate::shell::{cargo, display, program, root, succeeds};
use crate::{figure_structure, packages};
use anyhow::{Context, Result, bail};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::atomic::Ordering;

/// Which figures, and how to say them.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Ids; none means all.
    ids: Vec<String>,
    /// JSON lines: id, value, unit, goal, met, detail.
    #[arg(long)]
    json: bool,
    /// How many cases the tests behind a figure draw; instead of as many as docs/figures.md says.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    cases: Option<u32>,
}

/// How a figure is measured.
enum Source {
    /// `minerva-lab figure ID --json`.
    Lab,
    /// `minerva-sim figure ID --json`.
    Sim,
    /// `cargo bench` of this package and bench, which prints JSON lines when `MINERVA_FIGURE` is set.
    Bench(&'static str, &'static str),
    /// `minerva-conformance figure ID --json`.
    Conformance,
    /// `cargo xtask fuzz --json`.
    Fuzz,
    /// Counted in the sources, and a build from nothing.
    Structure,
    /// Tests that prove it: `cargo test --release` with these arguments, once with each of these filters (an empty one is for all tests),
    /// and how often they try is in this variable.
    Test(&'static [&'static str], &'static [&'static str], (&'static str, u32)),
}

/// So many of the last lines that a program printed say why it failed: an error, and what caused it.
const DETAIL_LINES: usize = 4;

const FIGURES: &[(&str, Source)] = &[
    ("weights-bite", Source::Lab),
    ("noisy-neighbour", Source::Lab),
    ("rise", Source::Lab),
    ("against-kernel", Source::Lab),
    ("tick-cost", Source::Bench("minerva-engine", "tick")),
    ("slice-cost", Source::Lab),
    ("memory", Source::Lab),
    ("idle-writes", Source::Lab),
    ("kill-restore", Source::Lab),
    ("undo-bites", Source::Lab),
    ("idle", Source::Lab),
    ("gaps", Source::Lab),
    ("makespan", Source::Lab),
    ("characterise", Source::Lab),
    ("clients", Source::Lab),
    ("endogenic", Source::Lab),
    (
        "credits-conserved",
        Source::Test(&["--package", "minerva-decide", "--lib"], &["credits"], ("PROPTEST_CASES", 1_000_000)),
    ),
    (
        "deadlines",
        Source::Test(&["--package", "minerva-decide", "--test", "deadlines"], &[""], ("PROPTEST_CASES", 10_000)),
    ),
    (
        "kill-ledger",
        Source::Test(&["--package", "minervad", "--test", "daemon"], &["no_purchase_is_lost"], ("MINERVA_KILLS", 200)),
    ),
    ("power-cut", Source::Test(&["--package", "minerva-lab-cli", "--test", "power_cut"], &[""], ("MINERVA_CUTS", 20))),
    (
        "guest-tests",
        // All of the daemon's tests once, in place of some of them.
        Source::Test(&["--package", "minervad", "--test", "daemon"], &["unified::"], ("MINERVA_GUEST_TESTS", 1)),
    ),
    ("blk-kill", Source::Test(&["--package", "minerva-blk-cli", "--test", "blk"], &["kill::"], ("MINERVA_KILLS", 200))),
    (
        "blk-hostile",
        Source::Test(&["--package", "minerva-blk", "--test", "hostile"], &["random"], ("PROPTEST_CASES", 1_000_000)),
    ),
    (
        "blk-handover",
        Source::Test(&["--package", "minerva-blk-cli", "--test", "blk"], &["hand_over::"], ("MINERVA_HANDOVERS", 100)),
    ),
    (
        "blk-guest",
        Source::Test(
            &["--package", "minerva-blk-cli", "--test", "blk"],
            &["guest_under_load::"],
            ("MINERVA_GUEST_EVENTS", 50),
        ),
    ),
    ("mapreduce", Source::Sim),
    ("worth", Source::Lab),
    ("vm-contracts", Source::Lab),
    (VM_ENDOGENIC, Source::Lab),
    ("vm-mix", Source::Lab),
    ("vm-tags", Source::Lab),
    ("vm-urgent", Source::Lab),
    (
        "vm-beside-host",
        // The second package for its program, which the test starts.
        Source::Test(
            &["--package", "minervad", "--package", "minerva-blk-cli", "--test", "daemon", "--test", "blk"],
            &["beside_host_processes"],
            ("MINERVA_BESIDE_ROUNDS", 5),
        ),
    ),
    (
        "cache-kill",
        Source::Test(&["--package", "minerva-fs", "--test", "fs"], &["kill::nothing"], ("MINERVA_KILLS", 1000)),
    ),
    (
        "cache-posix",
        Source::Test(
            &["--package", "minerva-fs", "--test", "fs"],
            &["posix::", "differential::", "databases::"],
            ("MINERVA_OPERATIONS", 10_000_000),
        ),
    ),
    ("cache-migration", Source::Lab),
    ("cache-throughput", Source::Lab),
    ("cache-tenants", Source::Lab),
    ("blk-speed", Source::Bench("minerva-blk", "speed")),
    ("sim-agrees", Source::Conformance),
    ("blk-agrees", Source::Conformance),
    ("fuzz", Source::Fuzz),
    ("structure", Source::Structure),
    ("decision-cost", Source::Bench("minerva-blocksched", "decision")),
    ("htbs-contracts", Source::Sim),
    ("htbs-elsewhere", Source::Sim),
    ("htbs-throughput", Source::Sim),
    ("tag-inversions", Source::Sim),
    ("queueing", Source::Sim),
    ("background", Source::Sim),
    ("plan-cost", Source::Bench("minerva-background", "plan")),
    ("sim-speed", Source::Sim),
    ("disk-time", Source::Sim),
    ("disk-model", Source::Sim),
    ("trace-memory", Source::Sim),
    ("golden", Source::Bench("minerva-forecast", "golden")),
    ("skill", Source::Bench("minerva-forecast", "skill")),
    (FORECAST_COST, Source::Bench("minerva-forecast", "cost")),
    ("forecast-slice", Source::Bench("minerva-engine", "forecasts")),
];

/// Measured with agents in guests, whose vsocks a program of crates.io serves.
const VM_ENDOGENIC: &str = "vm-endogenic";
/// Measured beside Python packages, by the Python that this variable names, or else by one that has them installed.
const FORECAST_COST: &str = "forecast-cost";
const FORECAST_PYTHON: &str = "MINERVA_FORECAST_PYTHON";
const FORECAST_PEERS: &str = "core/forecast/tests/golden-generate/requirements.txt";

/// The ids that can be measured.
pub(crate) fn ids() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|(id, _)| *id)
}

/// Measures; whether every goal was met.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(unknown) = options.ids.iter().find(|id| !ids().any(|known| known == id.as_str())) {
        bail!("there is no figure `{unknown}`; there are: {}", ids().collect::<Vec<_>>().join(", "));
    }
    let is_wanted = |id: &str| options.ids.is_empty() || options.ids.iter().any(|wanted| wanted == id);
    let wanted = || FIGURES.iter().filter(|(id, _)| is_wanted(id));
    // What runs by `cargo test` or `cargo bench` builds what it needs.
    if wanted().any(|(_, source)| !matches!(source, Source::Test(..) | Source::Bench(..) | Source::Structure)) {
        build_release()?;
    }
    // What measures removes what it set up, and is waited for.
    let is_interrupted = wait_through_interrupts()?;
    let mut met = true;
    for (id, source) in wanted() {
        // One that cannot be measured here says so, and the others are measured all the same.
        for line in measure(id, source, options.cases)
            .unwrap_or_else(|error| vec![Line::not_measured(id, &format!("{error:#}"))])
        {
            met &= line.met;
            print(&line, options.json)?;
        }
        if is_interrupted.load(Ordering::Relaxed) {
            bail!("interrupted: what comes after `{id}` was not measured");
        }
    }
    Ok(met)
}

fn measure(id: &str, source: &Source, cases: Option<u32>) -> Result<Vec<Line>> {
    if let Source::Test(arguments, filters, (variable, tries)) = source {
        let tried = Tried { tries: cases.unwrap_or(*tries), asked: *tries };
        return proof::run(arguments, filters, (variable, tried.tries))?.lines(id, tried);
    }
    if let Source::Structure = source {
        return figure_structure::lines();
    }
    let mut command = match source {
        Source::Lab => {
            let mut command = Command::new(release_folder()?.join("minerva-lab"));
            command.args(["figure", id, "--json"]).arg("--binaries").arg(release_folder()?);
            // Where it cannot be had the figure says so.
            if id == VM_ENDOGENIC && packages::has(&packages::VSOCK_DEVICE)? {
                command.env("PATH", packages::path_with_tools()?);
            }
            command
        }
        Source::Conformance => {
            let mut command = cargo();
            let package = "minerva-conformance";
            command.args(["run", "--quiet", "--release", "--package", package, "--", "figure", id, "--json"]);
            command
        }
        Source::Sim => {
            let mut command = Command::new(release_folder()?.join("minerva-sim"));
            command.args(["figure", id, "--json"]).arg("--disks").arg(root().join("../shared/data/disks"));
            command
        }
        Source::Bench(package, bench) => {
            let mut command = cargo();
            command.args(["bench", "--quiet", "--package", package, "--bench", bench]).env("MINERVA_FIGURE", "1");
            if id == FORECAST_COST && std::env::var_os(FORECAST_PYTHON).is_none() {
                let peers = python::environment(&root().join("target/tools/forecast-peers"), FORECAST_PEERS)?;
                command.envs(peers.map(|python| (FORECAST_PYTHON, python)));
            }
            command
        }
        Source::Test(..) | Source::Structure => bail!("no program measures `{id}`"),
        Source::Fuzz => {
            let mut command = program(&std::env::current_exe()?.to_string_lossy());
            command.args(["fuzz", "--json"]);
            command
        }
    };
    judge(id, &mut command, matches!(source, Source::Conformance | Source::Fuzz))
}

/// Runs what measures a figure, and reads what it says. Some programs fail where a goal is missed.
fn judge(id: &str, command: &mut Command, fails_on_a_miss: bool) -> Result<Vec<Line>> {
    let line = display(command);
    eprintln!("> {line}");
    let mut program =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().with_context(|| format!("start `{line}`"))?;
    let told = program.stderr.take().map(|errors| std::thread::spawn(|| pass_on(errors)));
    let output = program.wait_with_output().with_context(|| format!("wait for `{line}`"))?;
    let told = told.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let end = End::of(output.status.success(), fails_on_a_miss);
    Ok(Line::judged(id, &String::from_utf8_lossy(&output.stdout), end, &told))
}

/// Passes on what a program says to people; the answer is the end of it, in one line.
fn pass_on(errors: ChildStderr) -> String {
    let mut last: VecDeque<String> = VecDeque::new();
    for line in BufReader::new(errors).split(b'\n').map_while(std::io::Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        eprintln!("{line}");
        if !line.trim().is_empty() {
            last.push_back(line.trim().to_owned());
        }
        if last.len() > DETAIL_LINES {
            last.pop_front();
        }
    }
    Vec::from(last).join("; ")
}

fn print(line: &Line, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(line)?);
    } else {
        let word = match line.met {
            true => "met   ",
            false if line.value.is_null() => "ABSENT",
            false => "MISSED",
        };
        println!("{word} {:<16} {} {} (goal {}): {}", line.id, line.value, line.unit, line.goal, line.detail);
    }
    Ok(())
}

/// Runs the benchmarks of `packages`, or of all.
pub(crate) fn bench(packages: &[String]) -> Result<bool> {
    let mut command = cargo();
    command.args(["bench", "--benches"]);
    if packages.is_empty() {
        command.arg("--workspace");
    }
    for package in packages {
        command.args(["--package", package]);
    }
    succeeds(&mut command)
}
