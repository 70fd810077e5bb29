//! Standard output, whose reader may go away before all is said, as `head` does when it has enough.

use anyhow::Context as _;
use std::fmt;
use std::io::{self, ErrorKind, Write as _};

/// Nobody reads standard output any more.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for Closed {}

/// Prints a line, or several.
pub(crate) fn line(text: impl fmt::Display) -> anyhow::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Closed.into()),
        result => result.context("failed to write to standard output"),
    }
}
