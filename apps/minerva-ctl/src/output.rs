//! Where answers go: data to standard output, everything for people to standard error.

use anyhow::Context;
use serde::Serialize;
use std::io::Write;

/// What a command found. It becomes the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Well,
    /// The command did its work and found something that a person should act on.
    Found,
}

impl Verdict {
    /// [`Verdict::Found`] if `found`.
    pub(crate) const fn found_if(found: bool) -> Self {
        if found { Self::Found } else { Self::Well }
    }
}

/// Prints text as it is.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("failed to write to standard output")
}

/// Prints one JSON object on a line of its own.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(value).context("failed to turn the answer into JSON")?;
    text(&format!("{line}\n"))
}
