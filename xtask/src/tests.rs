//! Every test, from cheap to dear.

use crate::lanes::{Plan, Step};
use crate::shell::cargo;
use crate::skips::Skips;
use crate::test_programs::TestProgram;
use crate::workspace::target;
use crate::{fuzz, generate, lanes, limited, lint, packages, sdk, test_programs};
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

/// What to leave out.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave out formatting, clippy, arrows and tidiness.
    #[arg(long)]
    no_lint: bool,
    /// Leave out the short fuzz run.
    #[arg(long)]
    no_fuzz: bool,
    /// Fail when a test was skipped for something that this machine lacks.
    #[arg(long)]
    no_skips: bool,
}

/// It looks at what there is and unmounts, which takes seconds.
const SWEEP_LIMIT: Duration = Duration::from_secs(120);

/// Runs all of them, even when one fails; whether all passed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    packages::ensure(packages::TEST)?;
    let (mut skips, mut failed) = (Skips::default(), Vec::new());
    failed.extend((!options.no_lint && !lint::read_sources()).then_some("lint"));
    // One build for all that follows: another choice of packages would choose other features, and build most of it again.
    match test_programs::build() {
        Ok(Some(programs)) => failed.extend(run_programs(options, &programs, &mut skips)?),
        Ok(None) => failed.push("build"),
        Err(error) => {
            eprintln!("build: {error:#}");
            failed.push("build");
        }
    }
    if !options.no_fuzz && !lint::passes("fuzz targets", || fuzz::run(&fuzz::Options::short())) {
        failed.push("fuzz targets");
    }
    skips.tell();
    failed.extend((skips.refused() > 0 && options.no_skips).then_some("skips"));
    match failed.as_slice() {
        [] => eprintln!("all tests passed that were not skipped"),
        failed => eprintln!("failed, see above: {}", failed.join(", ")),
    }
    Ok(failed.is_empty())
}

/// Runs what needs the programs; titles of the steps that failed.
fn run_programs(options: &Options, programs: &[TestProgram], skips: &mut Skips) -> Result<Vec<&'static str>> {
    let mut failed = Vec::new();
    failed.extend((!lint::passes("generated files", generate::check)).then_some("generated files"));
    let path = packages::path_with_tools()?;
    // Whole pieces: `print` holds the lock for each.
    let show = |text: &str| print!("{text}");
    let mut python = None;
    let sharing: Vec<Step<'_>> =
        vec![("libraries for tenants", Box::new(|skips| sdk::check(skips, Some(programs), &mut python)))];
    let tools = Box::new(packages::build_test_tools);
    failed.extend(lanes::run(
        Plan { programs, sharing, compiling: compiling(options), tools, path: &path, show: &show },
        skips,
    ));
    // Now nothing runs beside them.
    if let Some(tests) = python {
        let title = "the Python package's tests";
        failed.extend((!lint::passes(title, || tests.passed_alone(skips))).then_some(title));
    }
    Ok(failed)
}

/// Removes what tests that were interrupted left of disks, mounts and groups. Owners that live keep theirs.
pub(crate) fn sweep() -> Result<()> {
    let lab = target()?.join("debug/minerva-lab");
    if packages::is_root() && lab.is_file() {
        limited::must(Command::new(lab).args(["sweep", "--prefix", "minerva-test-"]), SWEEP_LIMIT)?;
    }
    Ok(())
}

/// What only compiles, and need not be done before the tests begin.
fn compiling(options: &Options) -> Vec<Step<'static>> {
    let mut steps: Vec<Step<'static>> = vec![("the examples in documentation", Box::new(examples))];
    if !options.no_fuzz {
        // Not run here: a target that gets no processor for seconds would be taken for one that hangs.
        steps.push(("the build of the fuzz targets", Box::new(|_| fuzz::build())));
    }
    if !options.no_lint {
        steps.push(("clippy", Box::new(|_| lint::clippy())));
        steps.push(("licences, bans and sources", Box::new(lint::licences)));
    }
    steps
}

fn examples(skips: &mut Skips) -> Result<bool> {
    let mut tests = cargo();
    tests.args(["test", "--quiet", "--locked", "--workspace", "--doc", "--", "--show-output"]);
    let tested = skips.test(&mut tests, lint::COMPILING)?;
    let passed = tested.ended.has_succeeded();
    print!("{}", tested.shown(passed));
    Ok(passed)
}
