//! Why background work is not done.

use std::path::{Path, PathBuf};

/// Why background work was not taken, or ended.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// It cannot be done here.
    #[error("{0}")]
    Refused(String),
    /// What it is for is not at its path, and may be there again.
    #[error("{0}")]
    Absent(String),
    /// The kernel refused.
    #[error("failed to {operation} {}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
}

impl WorkError {
    /// For `map_err`.
    pub(crate) fn io<E: Into<std::io::Error>>(operation: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source: source.into() }
    }

    /// For people, on one line: what happened, and why.
    pub fn in_full(&self) -> String {
        match self {
            Self::Refused(_) | Self::Absent(_) => plain(&self.to_string()),
            Self::Io { source, .. } => plain(&format!("{self}: {source}")),
        }
    }
}

/// A sentence in which names that others chose make no line of their own and give no orders to a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{FFFD}")
}
