//! Who is answered at the socket at the same time. Anybody may connect, so that a tenant's programs can; nobody may keep the others out by
//! connecting and saying nothing.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections of all users together. Root is answered beyond that.
const ALL_MAX: usize = 128;
/// Connections of one user: many users have to come together to take all.
const USER_MAX: usize = 16;

/// How many connections each user has.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    counts: Mutex<HashMap<u32, usize>>,
}

/// One of them, for as long as it is there.
#[derive(Debug)]
pub(crate) struct CallerGuard {
    callers: Arc<Callers>,
    uid: u32,
}

impl Callers {
    /// Takes in one more; else why not.
    pub(crate) fn enter(self: &Arc<Self>, uid: u32) -> Result<CallerGuard, String> {
        let mut counts = self.counts();
        let all: usize = counts.values().sum();
        let own = counts.get(&uid).copied().unwrap_or(0);
        if uid != 0 && own >= USER_MAX {
            return Err(format!("user {uid} has {own} connections to this socket already: close some, and ask again"));
        }
        if uid != 0 && all >= ALL_MAX {
            return Err(format!("{all} connections are answered already: ask again"));
        }
        *counts.entry(uid).or_default() += 1;
        Ok(CallerGuard { callers: Arc::clone(self), uid })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        let mut counts = self.callers.counts();
        if let Some(count) = counts.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.uid);
            }
        }
    }
}

/// Reads from a connection until a time, however slowly it comes.
#[derive(Debug)]
pub(crate) struct Until<'a> {
    stream: &'a UnixStream,
    end: Instant,
}

impl<'a> Until<'a> {
    pub(crate) fn new(stream: &'a UnixStream, patience: Duration) -> Self {
        Self { stream, end: Instant::now() + patience }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL_MAX, Callers, USER_MAX, Until};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn one_user_takes_no_more_than_its_part_and_root_is_always_answered() {
        let callers = Arc::new(Callers::default());
        let own: Vec<_> = (0..USER_MAX).map(|_| callers.enter(1000).unwrap()).collect();
        assert!(callers.enter(1000).unwrap_err().contains("user 1000"));
        let others: Vec<_> = (USER_MAX..ALL_MAX).map(|number| callers.enter(2000 + number as u32).unwrap()).collect();
        assert!(callers.enter(3000).is_err());
        let root = callers.enter(0).unwrap();
        drop(own);
        let again = callers.enter(1000).unwrap();
        drop((others, root, again));
        assert!(callers.counts().is_empty());
    }

    #[test]
    fn who_sends_a_byte_now_and_then_is_not_waited_for_any_longer() {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        let mut until = Until::new(&ours, Duration::from_millis(200));
        let slow = std::thread::spawn(move || {
            // As long as it is listened to.
            while theirs.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let mut read = Vec::new();
        until.read_to_end(&mut read).unwrap_err();
        assert!(!read.is_empty());
        drop(ours);
        slow.join().unwrap();
    }
}
