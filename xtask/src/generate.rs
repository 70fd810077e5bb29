//! Man pages and completions, from the programs' own definitions.

use crate::shell::{cargo, root, succeeds};
use anyhow::Result;

/// Programs that can write their own documents.
const PROGRAMS: &[&str] = &["minervad", "minerva-ctl", "minerva-lab"];

/// Writes docs/man and packaging/completions; whether every program could.
pub(crate) fn run() -> Result<bool> {
    let mut done = true;
    for program in PROGRAMS {
        done &= succeeds(cargo().args(["run", "--quiet", "--bin", program, "--", "generate"]).arg(root()))?;
    }
    Ok(done)
}
