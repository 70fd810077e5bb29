//! Everything that is wrong with the sources without running them.

use crate::shell::{cargo, is_installed, succeeds};
use crate::skips::Skips;
use crate::{arrows, tidy};
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

/// `cargo deny` on licences, bans and sources; advisories need a network that not every machine has.
fn licences(skips: &mut Skips) -> Result<bool> {
    if !is_installed("cargo-deny") {
        skips.note("licences and bans need cargo-deny; `cargo install --locked cargo-deny` brings it");
        return Ok(true);
    }
    succeeds(cargo().args(["deny", "--offline", "check", "licenses", "bans", "sources"]))
}
