//! Errors of the disk, and who was told. The kernel tells each of them once to every open file; below there is one open file for all who
//! have it open here, so that the first of them to sync would be the only one to hear of it. Pure.

use crate::file_system::Result;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering};

/// Those that a file met, in a sync or on the way to the disk before it.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: u64,
    last: Option<Errno>,
}

impl Failures {
    /// One more.
    pub(crate) fn note(&mut self, error: Errno) {
        self.count += 1;
        self.last = Some(error);
    }
}

/// What a handle was told of them.
#[derive(Debug, Default)]
pub(crate) struct Told(AtomicU64);

impl Told {
    /// Of who opens the file now: earlier ones are for those who had it open then.
    pub(crate) fn all(failures: &Failures) -> Self {
        Self(AtomicU64::new(failures.count))
    }

    /// The last error, if the handle was not told of it.
    pub(crate) fn next(&self, failures: &Failures) -> Result<()> {
        let told = self.0.swap(failures.count, Ordering::Relaxed);
        failures.last.filter(|_| told < failures.count).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::{Failures, Told};
    use rustix::io::Errno;

    #[test]
    fn each_handle_is_told_once_of_what_was_met_while_it_was_open() {
        let mut failures = Failures::default();
        let [one, two] = [(); 2].map(|()| Told::all(&failures));
        assert_eq!(one.next(&failures), Ok(()));
        failures.note(Errno::IO);
        let late = Told::all(&failures);
        let told = |failures: &Failures| [&one, &two, &late].map(|handle| handle.next(failures));
        assert_eq!(told(&failures), [Err(Errno::IO), Err(Errno::IO), Ok(())]);
        assert_eq!(told(&failures), [Ok(()); 3]);
        failures.note(Errno::IO);
        failures.note(Errno::NOSPC);
        assert_eq!(told(&failures), [Err(Errno::NOSPC); 3]);
    }
}
