//! Every test, from cheap to dear.

use crate::lanes::{Plan, Step};
use crate::shell::{cargo, limited};
use crate::skips::Skips;
use crate::{fuzz, generate, lanes, lint, packages, sdk, test_programs};
use anyhow::Result;

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

/// Runs all of them, even when one fails; whether all passed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    packages::ensure(packages::TEST)?;
    let (mut skips, mut failed) = (Skips::default(), Vec::new());
    if !options.no_lint && !lint::read_sources()? {
        failed.push("lint");
    }
    // One build for all that follows: another choice of packages would choose other features, and build most of it again.
    match test_programs::build()? {
        Some(programs) => {
            failed.extend((!generate::check()?).then_some("generated files"));
            let path = packages::path_for_tests()?;
            // Whole pieces: `print` holds the lock for each.
            let show = |text: &str| print!("{text}");
            let mut python = None;
            let sharing: Vec<Step<'_>> =
                vec![("libraries for tenants", Box::new(|skips| sdk::check(skips, Some(&programs), &mut python)))];
            let plan = Plan { programs: &programs, sharing, compiling: compiling(options), path: &path, show: &show };
            failed.extend(lanes::run(plan, &mut skips)?);
            // Now nothing runs beside them.
            if let Some(tests) = python {
                failed.extend((!tests.passed_alone(&mut skips)?).then_some("the Python package's tests"));
            }
        }
        None => failed.push("build"),
    }
    if !options.no_fuzz && !fuzz::run(&fuzz::Options::short())? {
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
    tests.args(["test", "--quiet", "--workspace", "--doc", "--", "--show-output"]);
    let ended = skips.test(&mut limited(&tests, lint::COMPILING_S))?;
    let passed = ended.status.success();
    print!("{}", ended.shown(passed));
    Ok(passed)
}
