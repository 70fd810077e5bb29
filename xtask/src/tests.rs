//! Every test, from cheap to dear.

use crate::shell::cargo;
use crate::skips::Skips;
use crate::{fuzz, generate, lint, packages, sdk, test_programs};
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
    let mut step = |title: &'static str, passed: bool| failed.extend((!passed).then_some(title));
    if !options.no_lint {
        step("lint", lint::run(&mut skips)?);
    }
    // One build for all that follows: another choice of packages would choose other features, and build most of it again.
    match test_programs::build()? {
        Some(programs) => {
            step("generated files", generate::check()?);
            let mut examples = cargo();
            examples.args(["test", "--quiet", "--workspace", "--doc", "--", "--show-output"]);
            let others = vec![("the examples in documentation", examples)];
            // Whole pieces: `print` holds the lock for each.
            let show = |text: &str| print!("{text}");
            let path = packages::path_for_tests()?;
            step("programs of tests", test_programs::run(&programs, others, &path, &mut skips, &show)?);
            step("libraries for tenants", sdk::check(&mut skips, Some(&programs))?);
        }
        None => step("build", false),
    }
    if !options.no_fuzz {
        step("fuzz targets", fuzz::run(&fuzz::Options::short())?);
    }
    skips.tell();
    step("skips", skips.refused() == 0 || !options.no_skips);
    match failed.as_slice() {
        [] => eprintln!("all tests passed that were not skipped"),
        failed => eprintln!("failed, see above: {}", failed.join(", ")),
    }
    Ok(failed.is_empty())
}
