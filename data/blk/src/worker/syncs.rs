//! Syncs of an image that is written through the page cache.
//!
//! The kernel tells each error of writing pages back to an open file once: to whichever sync or durable write looks first, though it was
//! another's page. An image has one open file, so of several at once one would be told of an error, and the others that what they stand for
//! is on the disk. Therefore there is one sync at a time. Requests that come meanwhile share the next one, and a durable write is a plain
//! one with such a sync behind it. All rings of a disk are served by one worker, so it alone has to know.
//!
//! A sync that fails may have written back what was written while it was under way, and been told of that error too. So it counts
//! for whoever overlaps with it: what was being written then, and flushes that the guest sent before it could know.

use super::{RingKey, Worker};
use crate::failure::Failure;
use minerva_model::Nanos;

/// Those of one disk.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    /// Requests that share the one under way. The first of them is its job.
    sharing: Vec<u32>,
    /// Requests that share the next one.
    waiting: Vec<u32>,
    /// How many the kernel failed so far, and the last error.
    failed: u64,
    failure: Option<Failure>,
    /// How many had failed when the first of what the one under way stands for began, and the same of the next one.
    shared_from: Option<u64>,
    next_from: Option<u64>,
}

impl Syncs {
    /// How many failed so far. What begins now has nothing to do with them.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// Something was written, which began when so many had failed. The next sync stands for it.
    pub(super) fn wrote(&mut self, from: u64) {
        self.next_from = Some(self.next_from.map_or(from, |next| next.min(from)));
    }

    /// A request, which began when so many had failed, is done with the next sync; the job, if that begins now.
    fn join(&mut self, number: u32, from: u64) -> Option<u32> {
        self.wrote(from);
        self.waiting.push(number);
        if self.sharing.is_empty() { self.begin(Vec::new()) } else { None }
    }

    /// The one under way has ended; what came of it for those who shared it, which is also an error of one before that they overlap with.
    fn end(&mut self, failure: Option<Failure>) -> (Option<Failure>, Vec<u32>) {
        if failure.is_some() {
            self.failed += 1;
            self.failure = failure;
        }
        let has_missed = self.shared_from.is_some_and(|from| from < self.failed);
        (self.failure.filter(|_| has_missed), std::mem::take(&mut self.sharing))
    }

    /// Begins the next one, if somebody waits for it; its job. The list is kept for who comes then.
    fn begin(&mut self, mut list: Vec<u32>) -> Option<u32> {
        list.clear();
        self.sharing = std::mem::replace(&mut self.waiting, list);
        self.shared_from = self.next_from.take_if(|_| !self.sharing.is_empty());
        self.sharing.first().copied()
    }
}

impl Worker {
    /// How many syncs of its disk had failed, as far as its guest could know, when it sent what was just taken from its ring.
    pub(super) fn syncs_failed(&mut self, key: RingKey) -> u64 {
        let disk = &mut self.disks[key.disk];
        let (Some(syncs), Some(served)) = (&disk.syncs, &mut disk.rings[key.queue]) else { return 0 };
        let is_early = served.early > 0;
        served.early = served.early.saturating_sub(1);
        syncs.failed - u64::from(is_early)
    }

    /// A request has come to its sync. Past the page cache it has one of its own.
    pub(super) fn sync(&mut self, number: u32) {
        let Some(slot) = self.slots.get(number) else { return };
        let job = match &mut self.disks[slot.key.disk].syncs {
            Some(syncs) => syncs.join(number, slot.syncs_failed),
            None => Some(number),
        };
        job.into_iter().for_each(|number| self.give(number));
    }

    /// A sync that requests shared has ended.
    pub(super) fn end_sync(&mut self, disk: usize, failure: Option<Failure>, now: Nanos) {
        let Some(syncs) = &mut self.disks[disk].syncs else { return };
        let (missed, sharing) = syncs.end(failure);
        for number in &sharing {
            match missed {
                Some(failure) => self.finish(*number, Some(failure), now),
                None => self.end_part(*number, now),
            }
        }
        if failure.is_some() {
            // What its guest makes available before it sees the failure was sent before it could know. It is counted before the guest is
            // told: one that answers the signal at once is not to hear of the failure again.
            self.publish_answers();
            self.disks[disk].rings.iter_mut().flatten().for_each(|served| served.early = served.ring.available());
        }
        let next = self.disks[disk].syncs.as_mut().and_then(|syncs| syncs.begin(sharing));
        next.into_iter().for_each(|number| self.give(number));
    }
}

#[cfg(test)]
mod tests {
    use super::Syncs;
    use crate::failure::Failure;

    const BROKEN: Option<Failure> = Some(Failure::Error(libc::EIO));

    /// The one under way ends; what came of it, for whom, and the job of the next.
    fn end(syncs: &mut Syncs, failure: Option<Failure>) -> (Option<Failure>, Vec<u32>, Option<u32>) {
        let (told, sharing) = syncs.end(failure);
        (told, sharing.clone(), syncs.begin(sharing))
    }

    #[test]
    fn there_is_one_at_a_time_and_who_comes_meanwhile_shares_the_next() {
        let mut syncs = Syncs::default();
        assert_eq!([1, 2, 3].map(|number| syncs.join(number, 0)), [Some(1), None, None]);
        assert_eq!(end(&mut syncs, None), (None, vec![1], Some(2)));
        assert_eq!(syncs.join(4, 0), None);
        assert_eq!(end(&mut syncs, None), (None, vec![2, 3], Some(4)));
        assert_eq!(end(&mut syncs, None), (None, vec![4], None));
        assert_eq!(syncs.join(5, 0), Some(5));
    }

    #[test]
    fn a_failure_is_told_to_all_who_share_it_and_to_who_came_before_it_was_known() {
        let mut syncs = Syncs::default();
        assert_eq!([1, 2, 3].map(|number| syncs.join(number, 0)), [Some(1), None, None]);
        assert_eq!(end(&mut syncs, BROKEN), (BROKEN, vec![1], Some(2)));
        // This one comes later, and the kernel has nothing more to tell.
        assert_eq!(syncs.join(4, syncs.failed()), None);
        assert_eq!(end(&mut syncs, None), (BROKEN, vec![2, 3], Some(4)));
        assert_eq!(end(&mut syncs, None), (None, vec![4], None));
    }

    #[test]
    fn what_was_being_written_during_a_sync_that_failed_is_told_with_the_next() {
        let mut syncs = Syncs::default();
        let [before, during] = [syncs.failed(); 2];
        assert_eq!(syncs.join(1, 0), Some(1));
        syncs.wrote(before);
        assert_eq!(end(&mut syncs, BROKEN), (BROKEN, vec![1], None));
        let after = syncs.failed();
        assert_eq!(syncs.join(2, after), Some(2), "for what was answered and is not on the disk");
        syncs.wrote(during);
        assert_eq!(end(&mut syncs, None), (BROKEN, vec![2], None));
        assert_eq!(syncs.join(3, after), Some(3), "for what ended after the next one had begun");
        syncs.wrote(after);
        assert_eq!(end(&mut syncs, None), (BROKEN, vec![3], None));
        assert_eq!(syncs.join(4, after), Some(4));
        assert_eq!(end(&mut syncs, None), (None, vec![4], None), "once");
    }
}
