//! What an image's file or disk failed, and what to do about it. Guests hear of it as an error of their disk, operators by this. Pure.

use minerva_model::Nanos;
use std::fmt;

/// Of failures that go on, one in this time is told.
const TELL_EVERY: Nanos = Nanos::from_secs(3600);

/// Told with the name of the disk when its image fails a request, by a thread of its own.
pub type TellFailure = fn(&str, Failure);

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It lies behind the end of the image, which somebody made shorter.
    Ended,
    /// With this error number of the kernel.
    Error(i32),
}

impl Failure {
    /// The kernel's error number; 0 where it gave none.
    pub fn errno(self) -> i32 {
        match self {
            Self::Ended => 0,
            Self::Error(errno) => errno,
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Ended => {
                "somebody made the image shorter, and what was there is gone; make it as long as before (`truncate --size=LENGTH IMAGE`, with the \
                 length that `minerva-ctl disk list --json` tells) and restore it"
            }
            Self::Error(libc::ENOSPC) => {
                "the file system of the image is full; make room there or extend it: what the guest writes then is stored again"
            }
            Self::Error(libc::EDQUOT) => {
                "a quota of the file system of the image is used up; raise it, or move the image"
            }
            Self::Error(libc::EFBIG) => {
                "the image may not get so long; raise the file system's or the process's limit (`LimitFSIZE=` of the unit)"
            }
            Self::Error(libc::EROFS) => {
                "the file system of the image is read-only now, as after an error of its disk; look at `dmesg`, mend it (`fsck`) and mount it \
                 to be written"
            }
            Self::Error(libc::ENODEV | libc::ENXIO | libc::ENOTCONN | libc::ESHUTDOWN) => {
                "the disk of this host is gone; attach it, then `minerva-ctl disk remove --force` and `disk add`"
            }
            Self::Error(libc::EINVAL) => {
                "the disk of this host does not take such requests; set `direct = false` for the image, or move it"
            }
            Self::Error(libc::ENOMEM | libc::ENOBUFS) => "the host has too little memory; free some, or end a guest",
            Self::Error(_) => {
                "look at `dmesg` and `smartctl --all` for errors of the disk of this host; copy the image to another one while it can be \
                 read, and replace it"
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => write!(formatter, "the image ends before it: {}", self.remedy()),
            Self::Error(errno) => {
                write!(formatter, "{}: {}", std::io::Error::from_raw_os_error(*errno), self.remedy())
            }
        }
    }
}

/// What of a disk failed.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    last: Option<(Failure, Nanos)>,
    /// Each kind that there was, and when it was told.
    told: Vec<(Failure, Nanos)>,
}

impl Failures {
    /// A request failed; whether to tell it.
    pub(crate) fn note(&mut self, now: Nanos, failure: Failure) -> bool {
        self.last = Some((failure, now));
        match self.told.iter_mut().find(|(told, _)| *told == failure) {
            Some((_, at)) if now.since(*at) < TELL_EVERY => return false,
            Some((_, at)) => *at = now,
            None => self.told.push((failure, now)),
        }
        true
    }

    /// The last one, and when it was.
    pub(crate) fn last(&self) -> Option<(Failure, Nanos)> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Failures};
    use minerva_model::Nanos;

    #[test]
    fn each_kind_is_told_once_an_hour() {
        let mut failures = Failures::default();
        let (full, broken) = (Failure::Error(libc::ENOSPC), Failure::Error(libc::EIO));
        let told: Vec<bool> = [(1, full), (2, full), (3, broken), (4, full), (3000, broken), (3602, full)]
            .map(|(second, failure)| failures.note(Nanos::from_secs(second), failure))
            .to_vec();
        assert_eq!(told, [true, false, true, false, false, true]);
        assert_eq!(failures.last(), Some((full, Nanos::from_secs(3602))));
    }

    #[test]
    fn what_failed_is_told_with_what_to_do() {
        for (failure, cause, remedy) in [
            (Failure::Error(libc::ENOSPC), "No space left on device", "make room there or extend it"),
            (Failure::Error(libc::EIO), "Input/output error", "smartctl"),
            (Failure::Error(libc::EROFS), "Read-only file system", "fsck"),
            (Failure::Error(libc::ENXIO), "No such device", "attach it"),
            (Failure::Ended, "the image ends before it", "truncate --size=LENGTH IMAGE"),
        ] {
            let said = failure.to_string();
            assert!(said.contains(cause) && said.contains(remedy), "{said}");
        }
    }
}
