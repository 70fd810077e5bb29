//! Which requests are at the disk, in memory that the front end keeps: after a crash of this process the next one finds there
//! what was begun and not answered, and does it again (vhost-user protocol, "Inflight I/O tracking", split virtqueues).
//!
//! Layout of one queue, little endian: `features: u64, version: u16, desc_num: u16, last_batch_head: u16, used_idx: u16`, then for each
//! descriptor `inflight: u8, padding: [u8; 5], next: u16, counter: u64`. Queues follow each other at multiples of 64.
//!
//! Front ends keep the region and neither read it nor write to it, so that there is room in the padding for what else the next process has
//! to know and front ends do not say again: in the first byte of it of the first queue's first descriptor, whether the guest has a write-back
//! cache.
//!
//! Answers that a guest sees at once are one batch: each is entered as the head of the last batch before those entered before it, then all are
//! published in the used ring, then taken out, so that whatever the moment of the crash the next process knows which were published.

use crate::memory::holds;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, FileOffset, VolatileMemory};

const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16;
const ALIGNMENT: usize = 64;
const VERSION: u16 = 1;

const AT_VERSION: usize = 8;
const AT_SIZE: usize = 10;
const AT_LAST_BATCH: usize = 12;
const AT_USED: usize = 14;
const AT_NEXT: usize = 6;
const AT_COUNTER: usize = 8;
/// From the start of the region.
const AT_WRITEBACK: usize = HEADER_BYTES + 1;
/// Zero is a new region, or one of a server that noted nothing.
const WRITE_BACK: u8 = 1;
const WRITE_THROUGH: u8 = 2;

/// Bytes of one queue.
const fn queue_bytes(queue_size: u16) -> usize {
    (HEADER_BYTES + queue_size as usize * ENTRY_BYTES).next_multiple_of(ALIGNMENT)
}

/// Where a region lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InflightSource {
    pub(crate) offset: u64,
    pub(crate) queues: u16,
    pub(crate) queue_size: u16,
}

/// The region of one disk.
#[derive(Clone, Debug)]
pub(crate) struct InflightRegion {
    map: Arc<MmapRegion>,
    queues: u16,
    queue_size: u16,
}

impl InflightRegion {
    /// How much a region has for so many queues.
    pub(crate) const fn length_bytes(queues: u16, queue_size: u16) -> usize {
        queues as usize * queue_bytes(queue_size)
    }

    /// Maps the region at `offset` of a file; none where the file is too short for it.
    pub(crate) fn map(file: File, offset: u64, queues: u16, queue_size: u16) -> Option<Self> {
        let length = Self::length_bytes(queues, queue_size);
        if !holds(&file, offset, length as u64) {
            return None;
        }
        let map = MmapRegion::from_file(FileOffset::new(file, offset), length).ok()?;
        let region = Self { map: Arc::new(map), queues, queue_size };
        for queue in 0..queues {
            let mut queue = region.queue(queue)?;
            if queue.get::<u16>(AT_VERSION)? != VERSION {
                queue.put(AT_SIZE, queue_size)?;
                queue.put(AT_VERSION, VERSION)?;
            } else if queue.get::<u16>(AT_SIZE)? != queue_size {
                return None;
            }
        }
        Some(region)
    }

    /// How it lies in its file, and the file.
    pub(crate) fn source(&self) -> Option<(InflightSource, &File)> {
        let offset = self.map.file_offset()?;
        let source = InflightSource { offset: offset.start(), queues: self.queues, queue_size: self.queue_size };
        Some((source, offset.file()))
    }

    /// Whether the guest has a write-back cache, where that was noted.
    pub(crate) fn writeback(&self) -> Option<bool> {
        match self.map.as_volatile_slice().read_obj(AT_WRITEBACK) {
            Ok(WRITE_BACK) => Some(true),
            Ok(WRITE_THROUGH) => Some(false),
            _ => None,
        }
    }

    /// Notes it for whoever serves the guest next.
    pub(crate) fn note_writeback(&self, has_writeback: bool) {
        let noted = if has_writeback { WRITE_BACK } else { WRITE_THROUGH };
        // Within every region: one without queues is not mapped.
        let _ = self.map.as_volatile_slice().write_obj(noted, AT_WRITEBACK);
    }

    /// One queue of it.
    pub(crate) fn queue(&self, number: u16) -> Option<InflightQueue> {
        let start = usize::from(number) * queue_bytes(self.queue_size);
        let (map, size) = (Arc::clone(&self.map), self.queue_size);
        (number < self.queues).then_some(InflightQueue { map, start, size, counter: 0 })
    }
}

/// The part of one queue. Another process can write to it, so whatever is read is judged. What fails is passed over: no request
/// waits for it, and at worst one is done again.
#[derive(Debug)]
pub(crate) struct InflightQueue {
    map: Arc<MmapRegion>,
    start: usize,
    size: u16,
    counter: u64,
}

impl InflightQueue {
    /// A request was taken from the ring.
    pub(crate) fn begin(&mut self, head: u16) {
        self.counter += 1;
        let _ = self.put_at(head, AT_COUNTER, self.counter);
        let _ = self.put_at(head, 0, 1u8);
    }

    /// A request is about to be published as answered, with those since [`InflightQueue::published`].
    pub(crate) fn will_publish(&mut self, head: u16) {
        if let Some(last) = self.get::<u16>(AT_LAST_BATCH) {
            let _ = self.put_at(head, AT_NEXT, last);
        }
        let _ = self.put(AT_LAST_BATCH, head);
    }

    /// They were: the used ring is at `used`.
    pub(crate) fn published(&mut self, heads: impl Iterator<Item = u16>, used: u16) {
        // A crash leaves memory as the program's order has it, which the compiler is to keep.
        compiler_fence(Ordering::SeqCst);
        for head in heads {
            let _ = self.put_at(head, 0, 0u8);
        }
        compiler_fence(Ordering::SeqCst);
        let _ = self.put(AT_USED, used);
    }

    /// After a crash: the requests that were begun and not answered, in the order in which they were begun. `used` is the index
    /// of the used ring.
    pub(crate) fn recover(&mut self, used: u16) -> Vec<u16> {
        self.take_out_published(used);
        let is_begun = |head: &u16| self.get_at::<u8>(*head, 0) == Some(1);
        let mut begun: Vec<(u64, u16)> = (0..self.size)
            .filter(is_begun)
            .map(|head| (self.get_at(head, AT_COUNTER).unwrap_or_default(), head))
            .collect();
        begun.sort_unstable();
        self.counter = begun.last().map_or(0, |(counter, _)| *counter);
        begun.into_iter().map(|(_, head)| head).collect()
    }

    /// What was published and not taken out any more.
    fn take_out_published(&mut self, used: u16) {
        let noted = self.get::<u16>(AT_USED).unwrap_or(used);
        let mut head = self.get::<u16>(AT_LAST_BATCH).unwrap_or_default();
        for _ in 0..used.wrapping_sub(noted).min(self.size) {
            if head >= self.size {
                break;
            }
            let _ = self.put_at(head, 0, 0u8);
            head = self.get_at(head, AT_NEXT).unwrap_or(self.size);
        }
        let _ = self.put(AT_USED, used);
    }

    fn get<T: vm_memory::ByteValued>(&self, at: usize) -> Option<T> {
        self.map.as_volatile_slice().read_obj(self.start + at).ok()
    }

    fn put<T: vm_memory::ByteValued>(&mut self, at: usize, value: T) -> Option<()> {
        self.map.as_volatile_slice().write_obj(value, self.start + at).ok()
    }

    fn get_at<T: vm_memory::ByteValued>(&self, head: u16, at: usize) -> Option<T> {
        self.get(HEADER_BYTES + usize::from(head) * ENTRY_BYTES + at).filter(|_| head < self.size)
    }

    fn put_at<T: vm_memory::ByteValued>(&mut self, head: u16, at: usize, value: T) -> Option<()> {
        if head >= self.size {
            return None;
        }
        self.put(HEADER_BYTES + usize::from(head) * ENTRY_BYTES + at, value)
    }
}

#[cfg(test)]
mod tests {
    use super::{InflightQueue, InflightRegion};
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::fs::File;

    fn file(queues: u16, size: u16) -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("inflight", flags).expect("a file in memory");
        ftruncate(&file, InflightRegion::length_bytes(queues, size) as u64).expect("made longer");
        fcntl_add_seals(&file, SealFlags::SHRINK).expect("sealed");
        File::from(file)
    }

    fn queue(file: &File, number: u16) -> InflightQueue {
        let region = InflightRegion::map(file.try_clone().unwrap(), 0, 2, 8).expect("mapped");
        region.queue(number).expect("there are two")
    }

    #[test]
    fn what_was_begun_and_not_answered_comes_back_in_its_order() {
        let file = file(2, 8);
        let mut one = queue(&file, 1);
        for head in [5, 3, 7, 0] {
            one.begin(head);
        }
        one.will_publish(3);
        one.published([3].into_iter(), 1);
        assert_eq!(queue(&file, 1).recover(1), [5, 7, 0]);
        assert_eq!(queue(&file, 0).recover(0), [0u16; 0], "the other queue knows nothing of it");
    }

    #[test]
    fn a_crash_beside_the_publication_neither_loses_nor_repeats_an_answer() {
        let file = file(2, 8);
        let mut one = queue(&file, 0);
        one.begin(1);
        one.begin(2);
        one.will_publish(1);
        assert_eq!(queue(&file, 0).recover(0), [1, 2], "before it: done again");
        one.will_publish(2);
        assert_eq!(queue(&file, 0).recover(1), [1], "after it: answered");
    }

    #[test]
    fn a_crash_amid_a_batch_neither_loses_nor_repeats_an_answer() {
        // The guest has seen none or all of a batch; what is taken out of it a crash may have left half done.
        for (used, expected) in [(0, &[6, 2, 4, 1][..]), (3, &[4])] {
            let file = file(1, 8);
            let region = || InflightRegion::map(file.try_clone().unwrap(), 0, 1, 8).expect("mapped").queue(0).unwrap();
            let mut one = region();
            [6, 2, 4, 1].into_iter().for_each(|head| one.begin(head));
            [2, 1, 6].into_iter().for_each(|head| one.will_publish(head));
            assert_eq!(region().recover(used), expected, "{used} published");
        }
        let file = file(1, 8);
        let region = || InflightRegion::map(file.try_clone().unwrap(), 0, 1, 8).expect("mapped").queue(0).unwrap();
        let mut one = region();
        [6, 2, 4, 1].into_iter().for_each(|head| one.begin(head));
        [2, 1].into_iter().for_each(|head| one.will_publish(head));
        one.published([2, 1].into_iter(), 2);
        one.will_publish(4);
        assert_eq!(region().recover(3), [6], "a batch after another");
    }

    #[test]
    fn whether_the_guest_has_a_write_back_cache_is_kept_beside_what_is_under_way() {
        let file = file(2, 8);
        let region = || InflightRegion::map(file.try_clone().unwrap(), 0, 2, 8).expect("mapped");
        assert_eq!(region().writeback(), None, "a new region");
        for has_writeback in [false, true] {
            region().note_writeback(has_writeback);
            let mut one = queue(&file, 0);
            one.begin(0);
            assert_eq!((region().writeback(), one.recover(0)), (Some(has_writeback), vec![0]));
            one.will_publish(0);
            one.published([0].into_iter(), 1);
            assert_eq!((region().writeback(), one.recover(1)), (Some(has_writeback), Vec::new()));
            one.put(super::AT_USED, 0u16).unwrap();
        }
    }

    #[test]
    fn a_region_that_makes_no_sense_is_survived() {
        assert!(InflightRegion::map(file(1, 8), 0, 2, 8).is_none(), "too short");
        let file = file(2, 8);
        let mut one = queue(&file, 0);
        one.begin(9);
        one.will_publish(77);
        assert_eq!(one.recover(40_000), [0u16; 0]);
        drop(one);
        assert!(InflightRegion::map(file, 0, 1, 16).is_none(), "of another size");
    }
}
