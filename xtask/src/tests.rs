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
    let mut skips = Skips::default();
    let mut passed = options.no_lint || lint::run(&mut skips)?;
    // One build for all that follows: another choice of packages would choose other features, and build most of it again.
    match test_programs::build()? {
        Some(programs) => {
            passed &= generate::check()?;
            let mut examples = cargo();
            examples.args(["test", "--quiet", "--workspace", "--doc", "--", "--show-output"]);
            let others = vec![("the examples in documentation", examples)];
            // Whole pieces: `print` holds the lock for each.
            let show = |text: &str| print!("{text}");
            passed &= test_programs::run(&programs, others, &packages::path_for_tests()?, &mut skips, &show)?;
            passed &= sdk::check(&mut skips, Some(&programs))?;
        }
        None => passed = false,
    }
    if !options.no_fuzz {
        passed &= fuzz::run(&fuzz::Options::short())?;
    }
    skips.tell();
    passed &= skips.refused() == 0 || !options.no_skips;
    eprintln!("{}", if passed { "all tests passed that were not skipped" } else { "some tests failed, see above" });
    Ok(passed)
}
