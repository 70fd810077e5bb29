//! Why a guest could not do its work.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A guest failed, or could not be started.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A program of the host is missing.
    #[error("guests need the program `{program}`: install it with `apt-get install {package}`")]
    MissingProgram {
        /// Its name.
        program: &'static str,
        /// The Debian package that holds it.
        package: &'static str,
    },
    /// A guest with other processors than this host's was to have what runs on this host's only.
    #[error("a guest with {architecture} processors runs neither this host's programs nor Debian's root file system")]
    OtherArchitecture {
        /// Which.
        architecture: &'static str,
    },
    /// The program that serves a guest's vsock is missing.
    #[error(
        "guests with a vsock need the program `vhost-device-vsock`: install it with `cargo install --locked vhost-device-vsock`"
    )]
    MissingVsockDevice,
    /// The program that serves a guest's vsock does not do so.
    #[error("vhost-device-vsock does not serve the guest's vsock: {detail}")]
    VsockDevice {
        /// What it said.
        detail: String,
    },
    /// The packages with the kernel and the shell could not be had.
    #[error("guests need Debian's package `{package}`: {detail}; try `apt-get update`, on Debian with its own archive")]
    MissingPackage {
        /// Which.
        package: String,
        /// What the package manager said.
        detail: String,
    },
    /// A program of the host failed.
    #[error("`{program}` failed: {detail}")]
    Program {
        /// Which.
        program: &'static str,
        /// What it said.
        detail: String,
    },
    /// The kernel package has no such module.
    #[error("the guest's kernel {kernel} has no module `{module}`")]
    NoSuchModule {
        /// The kernel's release.
        kernel: String,
        /// What was asked for.
        module: String,
    },
    /// A shared library of a program is not on this host.
    #[error("{} needs the shared library {library}, which is not in the loader's directories", program.display())]
    NoSuchLibrary {
        /// The library.
        library: String,
        /// Who needs it.
        program: PathBuf,
    },
    /// A file that is no program or module for this machine.
    #[error("{} is not an ELF file that can be read", path.display())]
    NotElf {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: goblin::error::Error,
    },
    /// The guest ended without saying how the script did.
    #[error("the guest ended before the script did; the end of its console:\n{console}")]
    Died {
        /// The last lines.
        console: String,
    },
    /// The guest took too long and was killed.
    #[error(
        "the guest did not end within {after:?} and was killed; the end of what its script printed:\n{stdout}\n{stderr}\n\
         the end of its console:\n{console}"
    )]
    TimedOut {
        /// The limit.
        after: Duration,
        /// The last lines of the script's standard output.
        stdout: String,
        /// The last lines of its standard error.
        stderr: String,
        /// The last lines.
        console: String,
    },
    /// The file system refused something.
    #[error("failed to {operation} {}", path.display())]
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

impl GuestError {
    /// The machine lacks what guests need: a test prints this and is skipped.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::MissingProgram { .. } | Self::MissingPackage { .. } | Self::MissingVsockDevice)
    }

    /// Adds the place to an error of the kernel.
    pub(crate) fn at(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }
}
