//! Everything that is wrong with the sources without running them.

use crate::shell::{cargo, succeeds};
use crate::skips::Skips;
use crate::{arrows, packages, tidy};
use anyhow::Result;

/// Runs every check, all of them even when one fails; whether all passed.
pub(crate) fn run(skips: &mut Skips) -> Result<bool> {
    let mut clean = arrows::run()?;
    clean &= tidy::run()?;
    clean &= succeeds(cargo().args(["fmt", "--all", "--check"]))?;
    clean &= succeeds(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
    clean &= licences(skips)?;
    Ok(clean)
}

/// `cargo deny` on licences, bans and sources. Advisories are a database in a git repository, which not every machine can reach:
/// `cargo deny check advisories` judges by them.
fn licences(skips: &mut Skips) -> Result<bool> {
    if !packages::has(&packages::CARGO_DENY)? {
        skips.note("licences, bans and sources need cargo-deny, and crates.io to build it from");
        return Ok(true);
    }
    let mut deny = cargo();
    deny.args([
        "deny",
        "--offline",
        "--log-level",
        "error",
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ]);
    succeeds(deny.env("PATH", packages::path_with_tools()?))
}
