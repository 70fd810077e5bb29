//! Until when limits are valid without being renewed, as an instant of `CLOCK_BOOTTIME`. A daemon that is stuck stops
//! renewing, and after a grace the guard puts everything back.
//!
//! The file is one line with the number twice, so that a reader who comes in the middle of a renewal sees two different
//! numbers and looks again, and a renewal is one small write with no sync: a lease means nothing after a power cut.

use crate::error::ActuateError;
use crate::runtime_dir::RuntimeDir;
use minerva_model::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::os::unix::fs::FileExt;

const LEASE_FILE: &str = "lease";

/// A renewal lasts less than a microsecond; a file that differs in itself this often is broken, not being written.
const READ_TRIES: u32 = 100;

/// Now, on the clock that leases are measured with: it runs on while the machine sleeps and never jumps.
pub fn boottime_now() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Nanos::from_secs(seconds) + Nanos(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Reads the text of a lease file; `None` if it is being written, or broken.
pub fn parse_lease(text: &[u8]) -> Option<Nanos> {
    let line = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let (first, second) = line.split_once(' ')?;
    (first == second).then(|| first.parse().ok().map(Nanos))?
}

/// The lease as the writer holds it.
#[derive(Debug)]
pub(crate) struct Lease {
    until: Nanos,
    /// Made with the journal, and not again until the journal is gone.
    file: Option<File>,
}

impl Lease {
    pub(crate) fn new() -> Self {
        Self { until: Nanos::ZERO, file: None }
    }

    /// Makes the lease valid until `until`. While nothing is held that is only noted, for [`Lease::begin`].
    pub(crate) fn renew(&mut self, dir: &RuntimeDir, until: Nanos) -> Result<(), ActuateError> {
        self.until = until;
        match &self.file {
            Some(file) => write(file, until).map_err(ActuateError::io("renew", &dir.path_of(LEASE_FILE))),
            None => Ok(()),
        }
    }

    /// Puts the lease in force. The writer does so before it journals the first knob, so that a journal without a lease
    /// is never a young one.
    pub(crate) fn begin(&mut self, dir: &RuntimeDir) -> Result<(), ActuateError> {
        let file = dir.open_or_create(LEASE_FILE)?;
        write(&file, self.until).map_err(ActuateError::io("write", &dir.path_of(LEASE_FILE)))?;
        self.file = Some(file);
        Ok(())
    }

    /// Whether there is a lease for what is held.
    pub(crate) fn is_in_force(&self) -> bool {
        self.file.is_some()
    }

    /// Somebody else put everything back and removed the lease, perhaps.
    pub(crate) fn forget(&mut self) {
        self.file = None;
    }
}

fn write(file: &File, until: Nanos) -> std::io::Result<()> {
    // Of fixed width, so that a later number never leaves digits of an earlier one behind.
    file.write_all_at(format!("{0:020} {0:020}\n", until.0).as_bytes(), 0)
}

/// Until when limits are valid. No lease, or a broken one, has run out at the start of the clock.
pub(crate) fn valid_until(dir: &RuntimeDir) -> Result<Nanos, ActuateError> {
    for _ in 0..READ_TRIES {
        let Some(bytes) = dir.read(LEASE_FILE)? else { return Ok(Nanos::ZERO) };
        if let Some(until) = parse_lease(&bytes) {
            return Ok(until);
        }
    }
    Ok(Nanos::ZERO)
}

pub(crate) fn remove(dir: &RuntimeDir) -> Result<(), ActuateError> {
    dir.remove(LEASE_FILE)
}
