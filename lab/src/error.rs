//! What can go wrong in the laboratory. A message says what happened, where, and what to do.

use crate::guest::GuestError;
use std::io;
use std::path::{Path, PathBuf};

/// A laboratory operation failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The machine lacks something that the laboratory cannot do without.
    #[error("{what} needs {needs}: {remedy}")]
    Missing {
        /// What was attempted.
        what: &'static str,
        /// What it takes.
        needs: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// No profile has that name.
    #[error("there is no disk profile `{name}`: choose one of {known}")]
    UnknownProfile {
        /// What was asked for.
        name: String,
        /// The profiles there are, as a list for people.
        known: String,
    },
    /// A name that cannot serve as a file name.
    #[error("`{name}` cannot name a disk: use 1 to 64 letters, digits, `-` or `_`")]
    BadName {
        /// What was asked for.
        name: String,
    },
    /// A disk of that name is in use.
    #[error("an emulated disk `{name}` exists already: choose another name, or run `minerva-lab disk destroy {name}`")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No disk of that name is running.
    #[error("there is no emulated disk `{name}`: `minerva-lab disk list` shows those there are")]
    NoSuchDisk {
        /// The name.
        name: String,
    },
    /// The kernel does not know that elevator, or not for this device.
    #[error("{device} offers no elevator `{elevator}`, only {available}")]
    UnknownElevator {
        /// Device name.
        device: String,
        /// What was asked for.
        elevator: String,
        /// What the kernel lists.
        available: String,
    },
    /// A guest failed, or this machine can have none.
    #[error("guest `{name}`")]
    Guest {
        /// Which.
        name: String,
        /// Why.
        source: Box<GuestError>,
    },
    /// A plan that makes no sense, told before anything is done.
    #[error("{0}")]
    BadPlan(String),
    /// A worker process failed or said something that is no report.
    #[error("worker `{tenant}` failed: {message}")]
    Worker {
        /// Whose worker.
        tenant: String,
        /// What it said.
        message: String,
    },
    /// The controller under test did not start, or ended early.
    #[error("{program} {message}")]
    Controller {
        /// The program.
        program: String,
        /// What happened.
        message: String,
    },
    /// Someone asked to stop.
    #[error("interrupted: everything that was set up has been removed")]
    Interrupted,
    /// A plot could not be drawn.
    #[error("failed to draw {plot}: {message}")]
    Plot {
        /// Which.
        plot: &'static str,
        /// What the plotting library said.
        message: String,
    },
    /// The kernel or the file system refused something.
    #[error("failed to {operation} {path}", path = .path.display())]
    Io {
        /// What was attempted, as a verb.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

/// What laboratory operations return.
pub type Result<T> = std::result::Result<T, LabError>;

/// Adds the place to an error of the kernel: `File::open(p).at("open", p)?`.
pub(crate) trait At<T> {
    fn at(self, operation: &'static str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: Into<io::Error>> At<T> for std::result::Result<T, E> {
    fn at(self, operation: &'static str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|error| LabError::Io { operation, path: path.as_ref().to_owned(), source: error.into() })
    }
}
