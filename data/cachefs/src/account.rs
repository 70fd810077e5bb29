//! How much a tenant uses of one pool, and whether it may use more. Room is reserved before it is used, so that writers at the
//! limit, however many, do not pass it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is used, and how much may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that files occupy.
    pub bytes: u64,
    /// How many they may.
    pub bytes_max: u64,
    /// Files, directories, links and other nodes.
    pub files: u64,
    /// How many there may be.
    pub files_max: u64,
}

/// One tenant's part of one pool.
#[derive(Debug)]
pub struct Account {
    bytes: AtomicU64,
    bytes_max: AtomicU64,
    files: AtomicU64,
    files_max: AtomicU64,
}

impl Account {
    /// An account with nothing on it.
    pub fn new(bytes_max: u64, files_max: u64) -> Self {
        let (bytes_max, files_max) = (AtomicU64::new(bytes_max), AtomicU64::new(files_max));
        Self { bytes: AtomicU64::new(0), bytes_max, files: AtomicU64::new(0), files_max }
    }

    /// From now on so much may be used. Where more is used already nothing is lost, and nothing can be added.
    pub fn set_limits(&self, bytes_max: u64, files_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.files_max.store(files_max, Ordering::Relaxed);
    }

    /// What is used now.
    pub fn usage(&self) -> Usage {
        Usage {
            bytes: self.bytes.load(Ordering::Relaxed),
            bytes_max: self.bytes_max.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            files_max: self.files_max.load(Ordering::Relaxed),
        }
    }

    /// What is left.
    pub fn bytes_left(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed).saturating_sub(self.bytes.load(Ordering::Relaxed))
    }

    /// Takes room for so many bytes, if there is as much.
    #[must_use]
    pub fn reserve_bytes(&self, bytes: u64) -> bool {
        reserve(&self.bytes, bytes, self.bytes_max.load(Ordering::Relaxed))
    }

    /// Takes room for one more file, if there is any.
    #[must_use]
    pub fn reserve_file(&self) -> bool {
        reserve(&self.files, 1, self.files_max.load(Ordering::Relaxed))
    }

    /// One more file is there, also beyond the limit: the service needs it, whatever the tenant has.
    pub fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// What was thought to be occupied, `before`, turned out to be `after`. This may pass the limit: it has happened.
    pub fn correct(&self, before: u64, after: u64) {
        if after >= before {
            self.bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            release(&self.bytes, before - after);
        }
    }

    /// A file is gone, or was not made after all.
    pub fn release_file(&self) {
        release(&self.files, 1);
    }

    /// What a walk found, which is the truth.
    pub fn set(&self, bytes: u64, files: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.files.store(files, Ordering::Relaxed);
    }
}

fn reserve(used: &AtomicU64, more: u64, most: u64) -> bool {
    let take = |used: u64| used.checked_add(more).filter(|sum| *sum <= most);
    // Nothing needs no room, also where more than the quota is used.
    more == 0 || used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
}

/// Never below nothing: what the file system below frees without being asked is noticed late.
fn release(used: &AtomicU64, less: u64) {
    let _ = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used.saturating_sub(less)));
}

#[cfg(test)]
mod tests {
    use super::Account;

    #[test]
    fn many_writers_at_the_limit_do_not_pass_it() {
        let account = Account::new(1000, 10);
        let taken: u64 = std::thread::scope(|scope| {
            let writer = || (0..1000).filter(|_| account.reserve_bytes(7)).count() as u64;
            let writers: Vec<_> = (0..4).map(|_| scope.spawn(writer)).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        assert_eq!(taken, 1000 / 7);
        assert_eq!(account.usage().bytes, taken * 7);
        assert_eq!((0..20).filter(|_| account.reserve_file()).count(), 10);
    }

    #[test]
    fn what_is_released_can_be_used_again_and_never_counts_below_nothing() {
        let account = Account::new(100, 1);
        account.set(150, 1);
        assert!(!account.reserve_bytes(1), "the quota was set below what is used");
        assert!(account.reserve_bytes(0));
        assert_eq!(account.bytes_left(), 0);
        account.correct(150, 40);
        assert!(account.reserve_bytes(60) && !account.reserve_bytes(1));
        account.correct(500, 0);
        assert_eq!(account.usage().bytes, 0);
        account.release_file();
        account.release_file();
        assert!(account.reserve_file());
    }

    #[test]
    fn limits_hold_from_when_they_are_set() {
        let account = Account::new(100, 1);
        assert!(account.reserve_bytes(80) && account.reserve_file() && !account.reserve_file());
        account.set_limits(50, 2);
        assert!(!account.reserve_bytes(1) && account.reserve_file());
        assert_eq!((account.bytes_left(), account.usage().bytes_max), (0, 50));
        account.set_limits(200, 2);
        assert!(account.reserve_bytes(120) && !account.reserve_bytes(1));
    }
}
