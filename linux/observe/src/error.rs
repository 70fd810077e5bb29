//! Why an observer cannot be made. Once it is made it does not fail: what cannot be read is passed over and counted.

use std::path::PathBuf;

/// What went wrong while the observer was set up.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A file that is needed to find the way cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        #[source]
        source: std::io::Error,
    },
    /// The kernel lacks `openat2`, without which a directory cannot be opened safely.
    #[error("cannot open {} without following links: Minerva needs openat2, which Linux has since 5.6", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// The kernel's reason.
        #[source]
        source: std::io::Error,
    },
    /// A tenant rule's pattern is not a glob.
    #[error("tenant rule {number} has the pattern {pattern:?}, which is not a glob")]
    Pattern {
        /// Place in the operator's file, from 1.
        number: usize,
        /// The text.
        pattern: String,
        /// What is wrong with it.
        #[source]
        source: globset::Error,
    },
}
