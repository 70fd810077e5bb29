//! Every test, from cheap to dear.

use crate::shell::{cargo, succeeds};
use crate::skips::Skips;
use crate::{fuzz, generate, lint, packages, sdk};
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
    // Tests that need the laboratory's program find it built.
    passed &= succeeds(cargo().args(["build", "--quiet", "--workspace", "--bins"]))?;
    passed &= generate::check()?;
    let mut tests = cargo();
    tests.args(["test", "--quiet", "--workspace", "--no-fail-fast"]).env("PATH", packages::path_for_tests()?);
    passed &= skips.test(&mut tests)?;
    passed &= sdk::check(&mut skips)?;
    if !options.no_fuzz {
        passed &= fuzz::run(&fuzz::Options::short())?;
    }
    passed &= skips.tell() == 0 || !options.no_skips;
    eprintln!("{}", if passed { "all tests passed that were not skipped" } else { "some tests failed, see above" });
    Ok(passed)
}
