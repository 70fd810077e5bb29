//! Where answers go: data to standard output, everything for people to standard error.

use anyhow::Context;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};

/// What a command found. It becomes the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandStatus {
    /// All is well.
    Well,
    /// The command did its work and found something that a person should act on.
    Found,
    /// The command that was run ended with this code.
    Exited(i32),
    /// It, or the wait for it, was ended by this signal.
    Signalled(i32),
}

impl CommandStatus {
    /// [`CommandStatus::Found`] if `found`.
    pub(crate) const fn found_if(found: bool) -> Self {
        if found { Self::Found } else { Self::Well }
    }

    /// A command that could not be started, as shells tell it: 127 if there is none, 126 if it cannot be run.
    pub(crate) fn not_started(error: &io::Error) -> Self {
        Self::Exited(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
    }

    /// The exit status.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Well => 0,
            Self::Found => 1,
            // Codes are bytes.
            Self::Exited(code) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
            Self::Signalled(signal) => u8::try_from(128 + (signal & 0x7f)).unwrap_or(u8::MAX),
        }
    }
}

/// Whoever read standard output has gone, as `head` does when it has enough.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads standard output any more")
    }
}

impl std::error::Error for Closed {}

/// Prints text as it is.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        result => result.context("failed to write to standard output"),
    }
}

/// Prints one JSON object on a line of its own.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(value).context("failed to turn the answer into JSON")?;
    text(&format!("{line}\n"))
}
