//! What the kernel reads by itself: each file below is registered with it once, for as long as anybody has the file open.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the kernel answers where it will have no file of this tree: it has no passthrough, or not for the file system below.
const NEVER: [i32; 6] = [libc::EPERM, libc::EINVAL, libc::ENOTTY, libc::ENOSYS, libc::EOPNOTSUPP, libc::ELOOP];

/// What the kernel calls a node's file, where it took it, and how often the file is open.
type Backing<I> = (Option<Arc<I>>, u64);

/// The files of one tree, by node. The kernel wants the same of all who have a file open: where
/// it did not take the file from the first, it is not asked again before the last has closed it.
#[derive(Debug)]
pub(super) struct Backings<I>(Mutex<HashMap<u64, Backing<I>>>);

/// How a file was opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Registered<I> {
    /// The kernel reads it by this.
    WithKernel(Arc<I>),
    /// The kernel asks us, until everybody has closed it.
    Here,
}

/// What was met the first time that the kernel did not take a file.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It will take none.
    Never(io::Error),
    /// It may take the next.
    ThisOne(io::Error),
}

impl<I> Default for Backings<I> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<I> Backings<I> {
    /// Registers a node's file, or counts it once more. Each is to be taken back by [`Self::release`].
    pub(super) fn register(
        &self,
        node: u64,
        register: impl FnOnce() -> io::Result<I>,
    ) -> (Registered<I>, Option<Refusal>) {
        let mut backings = self.lock();
        let (id, refusal) = match backings.entry(node) {
            Entry::Occupied(mut known) => {
                let (id, count) = known.get_mut();
                *count += 1;
                (id.clone(), None)
            }
            Entry::Vacant(new) => {
                let (id, refusal) = match register() {
                    Ok(id) => (Some(Arc::new(id)), None),
                    Err(error) if error.raw_os_error().is_some_and(|number| NEVER.contains(&number)) => {
                        (None, Some(Refusal::Never(error)))
                    }
                    Err(error) => (None, Some(Refusal::ThisOne(error))),
                };
                (new.insert((id, 1)).0.clone(), refusal)
            }
        };
        (id.map_or(Registered::Here, Registered::WithKernel), refusal)
    }

    /// One who had it open closed it, which `close` tells the file system. It is taken back before that: once the file system knows that nobody
    /// has the file open, it may move the data, and who opens it then must not be given what the kernel called the file that is empty now.
    pub(super) fn release<T>(&self, node: u64, close: impl FnOnce() -> T) -> T {
        self.unregister(node);
        close()
    }

    fn unregister(&self, node: u64) {
        let mut backings = self.lock();
        if let Some((_, count)) = backings.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                backings.remove(&node);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Backing<I>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Backings, Refusal, Registered};
    use std::io;
    use std::sync::Arc;

    fn refused(number: i32) -> io::Result<u32> {
        Err(io::Error::from_raw_os_error(number))
    }

    #[test]
    fn a_file_that_the_kernel_did_not_take_is_read_here_until_it_is_closed_and_the_next_is_offered() {
        let backings = Backings::default();
        let (first, refusal) = backings.register(7, || refused(libc::ENOMEM));
        assert_eq!(first, Registered::Here);
        assert!(matches!(refusal, Some(Refusal::ThisOne(_))), "{refusal:?}");
        let (second, refusal) = backings.register(7, || Ok(1));
        assert!(second == Registered::Here && refusal.is_none(), "the kernel wants the same of both");
        assert_eq!(backings.register(8, || Ok(2)).0, Registered::WithKernel(Arc::new(2)));
        backings.unregister(7);
        assert_eq!(backings.register(7, || Ok(3)).0, Registered::Here);
        backings.unregister(7);
        backings.unregister(7);
        assert_eq!(backings.register(7, || Ok(4)).0, Registered::WithKernel(Arc::new(4)));
        assert_eq!(backings.register(7, || Ok(5)).0, Registered::WithKernel(Arc::new(4)));
    }

    #[test]
    fn who_opens_a_file_while_the_last_closes_it_has_it_registered_anew_and_others_keep_theirs() {
        let backings = Backings::default();
        let open = |id| backings.register(7, || Ok::<u32, io::Error>(id)).0;
        assert_eq!(open(1), Registered::WithKernel(Arc::new(1)));
        assert_eq!(open(2), Registered::WithKernel(Arc::new(1)));
        // One of two closes it.
        assert_eq!(backings.release(7, || open(3)), Registered::WithKernel(Arc::new(1)));
        backings.release(7, || ());
        // The last does: its data may lie elsewhere by now.
        assert_eq!(backings.release(7, || open(4)), Registered::WithKernel(Arc::new(4)));
        assert_eq!(open(5), Registered::WithKernel(Arc::new(4)));
    }

    #[test]
    fn what_no_file_of_a_tree_can_get_past_is_told_from_what_may_pass() {
        let backings = Backings::default();
        for (node, number, is_for_ever) in [
            (1, libc::EPERM, true),
            (2, libc::ELOOP, true),
            (3, libc::EOPNOTSUPP, true),
            (4, libc::ENOMEM, false),
            (5, libc::EMFILE, false),
            (6, libc::EIO, false),
        ] {
            let (_, refusal) = backings.register(node, || refused(number));
            assert_eq!(matches!(refusal, Some(Refusal::Never(_))), is_for_ever, "{number}");
        }
    }
}
