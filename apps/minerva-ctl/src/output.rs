//! Where answers go: data to standard output, everything for people to standard error.

use anyhow::Context;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

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

/// Whoever read what is printed has gone, as `head` does when it has enough.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads what is printed any more")
    }
}

impl std::error::Error for Closed {}

/// Prints text. What of it others chose, such as the name of a group that a user made, does not reach the terminal as an order to it.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    styled(&printable(text))
}

/// Says something to people beside the results; as in [`text`], nothing of it is an order to the terminal. Where nobody reads it the exit
/// status still says how the command went.
pub(crate) fn note(text: &str) {
    say(&format!("minerva-ctl: {text}"));
}

/// The same without the program's name before it: what a command found or did, where that is no data.
pub(crate) fn say(text: &str) {
    let _ = warning(text);
}

/// A path for people. A name in it that others chose makes no line of its own.
pub(crate) fn path(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// Text in a line or in a cell of a table. What others chose of it makes no line and no column of its own.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(char::is_control, "\u{FFFD}")
}

/// Prints a line to standard error, as [`text`] prints text.
pub(crate) fn warning(line: &str) -> anyhow::Result<()> {
    match writeln!(io::stderr(), "{}", printable(line)) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        result => result.context("failed to write to standard error"),
    }
}

/// The text with a mark in the place of each control character but those of lines and columns.
fn printable(text: &str) -> Cow<'_, str> {
    let is_order = |one: char| one.is_control() && !matches!(one, '\n' | '\t');
    if text.contains(is_order) { text.replace(is_order, "\u{FFFD}").into() } else { text.into() }
}

/// Prints text as it is: nothing of it is anybody's choice but ours, or it is for programs.
pub(crate) fn styled(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        result => result.context("failed to write to standard output"),
    }
}

/// Prints one JSON object on a line of its own.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(value).context("failed to turn the answer into JSON")?;
    styled(&format!("{line}\n"))
}

#[cfg(test)]
mod tests {
    use super::{path, printable};
    use std::path::Path;

    #[test]
    fn names_that_others_chose_give_a_terminal_no_orders() {
        // Clears the screen, sets the window's title, overwrites the line; the same in the second set of control characters.
        let names = ["a\x1b[2Jb", "a\x1b]0;x\x07b", "a\rb", "a\u{9b}2Jb", "a\x7fb"];
        for name in names {
            let shown = printable(name);
            assert!(
                shown.starts_with("a\u{FFFD}") && shown.ends_with('b') && !shown.contains(char::is_control),
                "{shown:?}"
            );
        }
        assert_eq!(printable("Größe\t3\n"), "Größe\t3\n");
        assert_eq!(path(Path::new("a\x1b[2J\nb")), "a\u{FFFD}[2J\u{FFFD}b");
    }
}
