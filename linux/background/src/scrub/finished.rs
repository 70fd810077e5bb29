//! What a scrub has finished of a device: extents of it, that is chunks' parts on it, as a whole. From there it would go on.

use crate::spec::Found;
use std::ops::Range;

/// So much the kernel counts at most before it says that it is past it (`SCRUB_TOTAL_STRIPES` of 64 KiB each in fs/btrfs/scrub.c).
const COUNTED_AHEAD: u64 = 8 << 20;

/// See the file's documentation.
#[derive(Debug)]
pub(super) struct Finished {
    /// The device's, in order.
    extents: Vec<Range<u64>>,
    /// Up to this byte of it all is finished.
    pub(super) at: u64,
    /// Where the call began.
    begun: u64,
    /// What was found up to there. Of bytes rather fewer, so that none is counted twice; of errors rather more, so that none is lost.
    pub(super) found: Found,
    /// Where the kernel was at the last look, with so many bytes.
    last: u64,
    bytes: u64,
    /// No fewer bytes were read before it came there.
    bytes_before: u64,
    /// The kernel told where it is within an extent. Some (5.18 to 6.10) tell at most where extents end, and of one that is full not that.
    is_told_within: bool,
}

impl Finished {
    /// Before a call that begins at a byte of a device with these extents, with what was found until then.
    pub(super) fn new(extents: Vec<Range<u64>>, at: u64, found: Found) -> Self {
        let next = extents.iter().find(|extent| extent.end > at);
        let at = next.map_or(at, |extent| extent.start.max(at));
        let bytes = found.bytes;
        Self { extents, at, begun: at, found, last: at, bytes, bytes_before: bytes, is_told_within: false }
    }

    /// The end of the next extent.
    pub(super) fn end(&self) -> Option<u64> {
        self.extents.iter().map(|extent| extent.end).find(|end| *end > self.at)
    }

    /// The kernel says that it is at a byte, with so much found in all. At the end of an extent it may still be reading the rest of it
    /// (`scrub_simple_mirror` says so before `flush_scrub_stripes` waits for that and says where it was); in the next one it is through.
    pub(super) fn look(&mut self, last: u64, now: Found) {
        if last != self.last {
            // Kernels that say nothing but where extents end have read of the next one since.
            if !self.is_end(self.last) {
                self.bytes_before = self.bytes;
            }
            self.last = last;
        }
        self.bytes = now.bytes;
        let extent = self.extents.iter().find(|extent| extent.start < last && last <= extent.end);
        if let Some(Range { start, .. }) = extent.filter(|extent| extent.start > self.at) {
            // Of this one it has read no more than there is up to there.
            let before = now.bytes.saturating_sub(last - start).max(self.bytes_before).saturating_sub(COUNTED_AHEAD);
            (self.at, self.found) = (*start, Found { bytes: before.max(self.found.bytes), ..now });
        }
        self.is_told_within |= self.extents.iter().any(|extent| extent.start < last && last < extent.end);
        self.keep_corrected(now);
    }

    /// Of what is begun again all is found again but what was corrected.
    fn keep_corrected(&mut self, now: Found) {
        let more = now.corrected.saturating_sub(self.found.corrected);
        self.found.errors += more;
        self.found.corrected += more;
    }

    /// The next call may be for the rest of the device: by what this one was told it got on, and will wherever the next one ends. Of a stripe
    /// across several devices some kernels (5.18 to 6.10) tell where a hole in it is, and nothing of the full ones behind that.
    pub(super) const fn tells_where_it_is(&self) -> bool {
        self.is_told_within && self.at > self.begun
    }

    /// The call came to its end, or to that of the device.
    pub(super) fn done(&mut self, end: Option<u64>, now: Found) {
        (self.at, self.found) = (end.unwrap_or(self.at), now);
    }

    /// The call ended before its end, and nothing is being read any more. On kernels that say nothing but where extents end, errors of the
    /// next one may have been counted and will be once more.
    pub(super) fn ended(&mut self, last: u64, now: Found) {
        self.look(last, now);
        if last > self.at && self.is_end(last) {
            (self.at, self.found) = (last, Found { bytes: self.bytes_before.max(self.found.bytes), ..now });
        }
    }

    fn is_end(&self, byte: u64) -> bool {
        self.extents.iter().any(|extent| extent.end == byte)
    }
}

#[cfg(test)]
mod tests {
    use super::Finished;
    use crate::spec::Found;

    const MIB: u64 = 1 << 20;

    /// Mebibytes that were read, and errors.
    fn found(mebibytes: u64, errors: u64) -> Found {
        Found { bytes: mebibytes * MIB, errors, ..Found::default() }
    }

    /// A device with extents of 100 MiB from 1 MiB on, of which the third is away from the others; with 1,000 MiB and 5 errors of before.
    fn finished() -> Finished {
        let extents = [1, 101, 301].map(|start| start * MIB..(start + 100) * MIB);
        Finished::new(extents.to_vec(), 0, found(1_000, 5))
    }

    fn state(finished: &Finished) -> (u64, u64, u64) {
        (finished.at / MIB, finished.found.bytes / MIB, finished.found.errors)
    }

    #[test]
    fn what_ends_within_an_extent_stands_at_its_beginning_with_what_was_found_up_to_there() {
        let mut scrub = finished();
        scrub.look(0, found(1_003, 5));
        scrub.look(60 * MIB, found(1_062, 6));
        scrub.ended(90 * MIB, found(1_092, 7));
        assert_eq!(state(&scrub), (1, 1_000, 5), "in the first");
        let corrected = |count| Found { corrected: count, ..found(1_092, 5 + count) };
        scrub.look(90 * MIB, corrected(2));
        scrub.ended(95 * MIB, corrected(3));
        assert_eq!((state(&scrub), scrub.found.corrected), ((1, 1_000, 8), 3), "what was corrected is not found again");
        let mut scrub = finished();
        scrub.look(90 * MIB, found(1_092, 7));
        scrub.look(120 * MIB, found(1_122, 8));
        assert_eq!(state(&scrub), (101, 1_095, 8), "all but what may be of the second");
        scrub.look(150 * MIB, found(1_152, 9));
        scrub.ended(180 * MIB, found(1_182, 10));
        assert_eq!(state(&scrub), (101, 1_095, 8), "in the second");
        scrub.look(390 * MIB, found(1_282, 10));
        assert_eq!(state(&scrub), (301, 1_185, 10), "in the third");
    }

    /// Little of it is used: what was read of it is less than it is long.
    #[test]
    fn of_an_extent_that_is_used_little_no_less_counts_than_at_the_look_before_it() {
        let mut scrub = finished();
        scrub.look(90 * MIB, found(1_092, 5));
        scrub.look(190 * MIB, found(1_105, 5));
        assert_eq!(state(&scrub), (101, 1_084, 5));
    }

    #[test]
    fn at_an_extents_end_the_rest_of_it_may_still_be_read_and_its_errors_are_not_lost() {
        let mut scrub = finished();
        scrub.look(80 * MIB, found(1_080, 5));
        // It found no more in it, waits for the last 6 MiB, and says where they end.
        scrub.look(101 * MIB, found(1_084, 5));
        assert_eq!(state(&scrub), (1, 1_000, 5));
        scrub.look(86 * MIB, found(1_086, 6));
        assert_eq!(state(&scrub), (1, 1_000, 5));
        scrub.ended(109 * MIB, found(1_094, 6));
        assert_eq!(state(&scrub), (101, 1_078, 6));
    }

    #[test]
    fn where_only_ends_of_extents_are_told_what_ended_stays_finished() {
        let mut scrub = finished();
        assert_eq!(scrub.end(), Some(101 * MIB));
        scrub.look(0, found(1_090, 5));
        scrub.look(101 * MIB, found(1_110, 6));
        scrub.look(101 * MIB, found(1_190, 6));
        scrub.look(201 * MIB, found(1_205, 7));
        assert_eq!(state(&scrub), (101, 1_097, 7), "the second may still be read");
        assert!(!scrub.is_told_within && scrub.end() == Some(201 * MIB));
        scrub.look(250 * MIB, found(1_205, 7));
        assert!(!scrub.is_told_within);
        scrub.look(202 * MIB - 2 * MIB, found(1_205, 7));
        assert!(scrub.is_told_within);
        let mut scrub = finished();
        scrub.look(0, found(1_090, 5));
        scrub.look(101 * MIB, found(1_110, 6));
        scrub.look(101 * MIB, found(1_140, 7));
        scrub.ended(101 * MIB, found(1_150, 8));
        assert_eq!(state(&scrub), (101, 1_090, 8));
        let mut scrub = Finished::new(scrub.extents.clone(), scrub.at, scrub.found);
        scrub.look(0, found(1_120, 9));
        scrub.ended(0, found(1_180, 9));
        assert_eq!(state(&scrub), (101, 1_090, 8), "nothing of the next call is");
        scrub.ended(201 * MIB, found(1_190, 9));
        assert_eq!(state(&scrub), (201, 1_180, 9), "also where none comes next");
    }

    #[test]
    fn what_lies_in_no_extent_that_was_known_is_not_finished() {
        let mut scrub = finished();
        scrub.look(150 * MIB, found(1_152, 5));
        scrub.ended(250 * MIB, found(1_230, 9));
        assert_eq!(state(&scrub), (101, 1_095, 5));
    }

    /// Of the first two extents of four a kernel tells where the hole in each is, and of the others nothing. Each gap is long enough for one and a half.
    #[test]
    fn where_only_holes_are_told_a_device_is_scrubbed_to_its_end_in_gaps_that_are_shorter_than_two_extents() {
        let extents: Vec<_> = (0..4).map(|at| 100 * at * MIB..100 * (at + 1) * MIB).collect();
        let (mut at, mut before, mut is_told, mut calls) = (0, found(0, 0), false, 0);
        while at < 400 * MIB {
            let mut scrub = Finished::new(extents.clone(), at, before);
            let end = if is_told { None } else { scrub.end() };
            let until = (at + 150 * MIB).min(end.unwrap_or(400 * MIB));
            let now = found(until / MIB, 0);
            let told = [0, 50 * MIB, 150 * MIB].into_iter().filter(|hole| *hole <= until).max().unwrap_or(0);
            let told = if at < told { told } else { 0 };
            scrub.look(told, now);
            if until == end.unwrap_or(400 * MIB) {
                scrub.done(Some(until), now)
            } else {
                scrub.ended(told, now)
            }
            (at, before, is_told, calls) = (scrub.at, scrub.found, scrub.tells_where_it_is(), calls + 1);
            assert!(calls < 20, "{at}");
        }
        assert_eq!(before, found(400, 0));
    }

    /// A hard disk with 100 MiB a second and extents of 1 GiB, in calls of so many looks.
    fn scrubbed_in_calls_of(looks: &[u64]) -> Vec<Found> {
        let extents: Vec<_> = (0..3).map(|at| (1 + 1_024 * at) * MIB..(1_025 + 1_024 * at) * MIB).collect();
        let (mut at, mut told) = (0, vec![Found::default()]);
        for call in looks {
            let before = told[told.len() - 1];
            let mut scrub = Finished::new(extents.clone(), at, before);
            let begin = at.max(MIB);
            let mut read = 0;
            for _ in 0..*call {
                read = (read + 30 * MIB).min(3_073 * MIB - begin);
                scrub.look(begin + read - read % (8 * MIB), Found { bytes: before.bytes + read, ..before });
            }
            scrub.ended(begin + read, Found { bytes: before.bytes + read, ..before });
            at = scrub.at;
            told.push(scrub.found);
        }
        told
    }

    #[test]
    fn nothing_is_counted_twice_however_often_it_is_begun_again() {
        let told = scrubbed_in_calls_of(&[20, 34, 20, 40, 10, 30, 60, 35]);
        let mebibytes: Vec<_> = told.iter().map(|found| found.bytes / MIB).collect();
        assert!(mebibytes.is_sorted() && mebibytes[8] <= 3_072 && mebibytes[8] > 3_000, "{mebibytes:?}");
        assert_eq!(mebibytes[5], mebibytes[4], "a call that ended in the extent in which it began");
        let told = scrubbed_in_calls_of(&[20; 100]);
        assert_eq!(told[100], Found::default(), "no call is long enough for one");
    }
}
