//! What can go wrong, in words that say what to do.

use minerva_model::{KnobFile, Outcome};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why the writer cannot work at all. What goes wrong with a single knob is an [`Outcome`] or a line of a report.
#[derive(Debug, thiserror::Error)]
pub enum ActuateError {
    /// A system call on one of Minerva's own files failed.
    #[error("{operation} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The runtime directory could be tampered with, so what it holds must not be written to the kernel.
    #[error("use {} as the runtime directory: {why}", path.display())]
    UnsafeRuntimeDir {
        /// The directory.
        path: PathBuf,
        /// What is wrong and how to mend it.
        why: String,
    },
    /// Another daemon holds the lock.
    #[error(
        "start: minervad already runs as process {pid} with {}; stop it first (systemctl stop minervad), or give this one \
         another runtime directory",
        path.display()
    )]
    AlreadyRunning {
        /// The lock file.
        path: PathBuf,
        /// The holder's process id as it wrote it, or a word when it has not yet.
        pid: String,
    },
    /// A writer or a restore holds the undo lock.
    #[error(
        "get hold of {} within 5 s: a process is in the middle of a write or a restore (fuser -v names it); if it is stuck, \
         kill it and try again",
        path.display()
    )]
    JournalBusy {
        /// The lock's file.
        path: PathBuf,
    },
}

impl ActuateError {
    /// For `map_err`.
    pub(crate) fn io<E: Into<io::Error>>(operation: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_path_buf();
        move |error| Self::Io { operation, path, source: error.into() }
    }

    /// The message with all its causes, for places that can only hold one sentence.
    pub(crate) fn in_full(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// Why one knob could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnobFailure {
    /// The cgroup or disk is gone, or another one stands in its place.
    Vanished {
        /// Which of these.
        why: String,
    },
    /// It is there, but would not.
    Refused {
        /// The kernel's reason, if it was the kernel.
        errno: Option<Errno>,
        /// A sentence for people.
        detail: String,
    },
}

impl KnobFailure {
    /// Minerva's own guard refused.
    pub(crate) fn guard(detail: String) -> Self {
        Self::Refused { errno: None, detail }
    }

    /// The kernel refused `action` on the knob shown as `shown`.
    pub(crate) fn kernel(action: &str, shown: &str, file: KnobFile, errno: Errno) -> Self {
        match errno {
            Errno::NODEV => Self::Vanished { why: format!("{action} {shown}: ENODEV, there is no such disk any more") },
            _ => Self::Refused {
                errno: Some(errno),
                detail: format!("{action} {shown}: {}{}", name_of(errno), remedy(errno, file)),
            },
        }
    }
}

impl From<KnobFailure> for Outcome {
    fn from(failure: KnobFailure) -> Self {
        match failure {
            KnobFailure::Vanished { .. } => Self::Vanished,
            KnobFailure::Refused { errno, detail } => Self::Refused { errno: errno.map(Errno::raw_os_error), detail },
        }
    }
}

/// The symbol and the kernel's words.
pub(crate) fn name_of(errno: Errno) -> String {
    let named = nix::errno::Errno::from_raw(errno.raw_os_error());
    format!("{named:?} ({})", named.desc())
}

/// What an operator can do about it.
fn remedy(errno: Errno, file: KnobFile) -> &'static str {
    match errno {
        Errno::INVAL if file == KnobFile::Elevator => {
            "; the disk does not offer this elevator: see the same file for those that it does"
        }
        Errno::INVAL => "; the kernel does not understand the text: please report it with the kernel's version",
        Errno::RANGE => {
            "; the number is outside what the kernel takes: BFQ weights go from 1 to 1000, io.weight to 10000"
        }
        Errno::OPNOTSUPP if file == KnobFile::IoCostQos => {
            "; iocost takes only disks whose requests go through blk-mq, which have a directory /sys/block/<disk>/mq: unset enable_iocost \
             for this one, and set back_end for caps"
        }
        Errno::OPNOTSUPP => {
            "; the disk does not obey this knob now: it needs the bfq elevator or iocost in force (`minerva-ctl doctor` says \
             which)"
        }
        Errno::ACCESS | Errno::PERM => {
            "; run as root, and without ProtectControlGroups= or ProtectKernelTunables= in the unit"
        }
        Errno::ROFS => {
            "; the file system is mounted read-only here: a container or the unit's sandbox hides the real one"
        }
        Errno::BUSY => "; the kernel is busy with it, and the next slice tries again",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::KnobFailure;
    use minerva_model::KnobFile;
    use rustix::io::Errno;

    #[test]
    fn a_disk_that_cannot_have_iocost_is_told_so_and_not_to_use_it() {
        let detail = |file| match KnobFailure::kernel("writing", "it", file, Errno::OPNOTSUPP) {
            KnobFailure::Refused { detail, .. } => detail,
            KnobFailure::Vanished { why } => why,
        };
        assert!(detail(KnobFile::IoCostQos).contains("unset enable_iocost"), "{}", detail(KnobFile::IoCostQos));
        assert!(detail(KnobFile::BfqWeight).contains("bfq elevator or iocost in force"));
    }
}
