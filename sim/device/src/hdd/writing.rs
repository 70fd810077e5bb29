//! Writes: into the buffer, onto the medium, and back from the one to the other.

use super::Hdd;
use crate::device::SECTOR_BYTES;
use crate::mechanism::Run;
use crate::profile::WriteBack;
use minerva_model::Nanos;

/// Runs of dirty sectors the disk keeps track of. Bounds the time of a flush, and of one look through them.
pub(super) const DIRTY_RUNS_MAX: usize = 64;

/// A run of sectors that must still be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    first: u64,
    count: u64,
    /// When the arm may start on it, and when its data is complete in the buffer.
    ready_ns: u64,
    received_ns: u64,
}

impl Hdd {
    pub(super) fn write(&mut self, at_ns: u64, first: u64, count: u64) -> u64 {
        self.statistics.writes += 1;
        self.statistics.write_bytes += count * SECTOR_BYTES;
        let after = std::mem::replace(&mut self.last_was_write, 1);
        self.follow(at_ns);
        self.cache.forget(first, first + count);
        if let Some(ahead) = &self.ahead
            && first < ahead.limit
            && first + count > self.cache.get(ahead.segment).start
        {
            // What is being read ahead is about to be stale.
            self.ahead = None;
        }
        let cable_ns = self.timing.cable_write_ns(count);
        self.statistics.transfer_time += Nanos(cable_ns);
        if self.policy.write_back == WriteBack::Off {
            let arm_ns = at_ns + self.timing.write_miss_ns[after];
            let received_ns = arm_ns + self.timing.write_prepare_ns + cable_ns;
            let write = Dirty { first, count, ready_ns: arm_ns, received_ns };
            let done_ns = self.write_medium(&write);
            self.keep_written(first, first + count);
            return done_ns.max(received_ns) + self.timing.write_completion_ns;
        }
        let room_ns = self.make_room(at_ns, count);
        let ready_ns = room_ns + self.timing.write_hit_ns[after];
        let received_ns = ready_ns + self.timing.write_prepare_ns + cable_ns;
        match self.dirty.last_mut() {
            Some(last) if last.first + last.count == first => {
                last.count += count;
                last.received_ns = received_ns;
            }
            _ => self.dirty.push(Dirty { first, count, ready_ns, received_ns }),
        }
        self.dirty_sectors += count;
        self.keep_written(first, first + count);
        received_ns + self.timing.write_completion_ns
    }

    fn keep_written(&mut self, first: u64, end: u64) {
        if self.policy.read_hits_on_writes && !self.policy.separate_write_segment {
            if let Some(ahead) = &self.ahead {
                // The segment being filled must not be taken from under the reading.
                self.cache.touch(ahead.segment);
            }
            self.cache.keep_written(first, end);
        }
    }

    /// Writes until the buffer has room for `count` sectors. Answers when it has.
    fn make_room(&mut self, at_ns: u64, count: u64) -> u64 {
        let mut room_ns = at_ns;
        let sectors_max = self.policy.write_sectors_max.max(1);
        let serial = self.policy.write_back == WriteBack::Single && self.arm_free_ns > at_ns;
        while !self.dirty.is_empty()
            && (serial || self.dirty.len() == DIRTY_RUNS_MAX || self.dirty_sectors + count > u64::from(sectors_max))
        {
            room_ns = room_ns.max(self.write_oldest_back(room_ns));
        }
        if serial { room_ns.max(self.arm_free_ns) } else { room_ns }
    }

    fn write_oldest_back(&mut self, at_ns: u64) -> u64 {
        let oldest = self.dirty.remove(0);
        self.dirty_sectors -= oldest.count;
        self.write_medium(&Dirty { ready_ns: oldest.ready_ns.max(at_ns), ..oldest })
    }

    /// Moves the arm and writes. Answers when the last sector is on the medium.
    fn write_medium(&mut self, write: &Dirty) -> u64 {
        let start_ns = self.take_arm(write.ready_ns);
        let (mut run, reach, position) = Run::start(&mut self.mechanism, start_ns, write.first, true);
        self.statistics.seeks += u64::from(reach.moves);
        self.statistics.seek_time += Nanos(reach.seek_ns);
        let on_track = write.count.min(u64::from(position.left_on_track));
        let begin_ns = self.begin_writing_ns(write, on_track, position.sector_angle);
        let least_ns = start_ns + self.timing.write_reach_ns_min;
        let late_ns = run.not_before(&self.mechanism, begin_ns.max(least_ns));
        self.statistics.rotation_time += Nanos(reach.rotation_ns + late_ns);
        let begun_ns = start_ns + reach.total_ns() + late_ns;
        let mut passed_ns = run.passed_ns(&mut self.mechanism, write.first + write.count);
        if self.policy.zero_latency_write && on_track == write.count && late_ns == 0 {
            passed_ns = passed_ns.min(start_ns + reach.seek_ns + self.mechanism.turn_ns()).max(write.received_ns);
        }
        self.statistics.transfer_time += Nanos(passed_ns.saturating_sub(begun_ns));
        self.arm_free_ns = passed_ns;
        passed_ns
    }

    /// When enough of a write is in the buffer for the medium to begin: the first sectors must be there, and each
    /// other one of the first track when its place comes by; a sector that is late costs a turn.
    fn begin_writing_ns(&self, write: &Dirty, on_track: u64, sector_angle: u32) -> u64 {
        let behind_ns =
            |sectors: u64| write.received_ns.saturating_sub(self.timing.cable_write_ns(write.count - sectors));
        let first = u64::from(self.policy.write_begin_sectors).clamp(1, write.count);
        let pass_ns = self.mechanism.sectors_ns(on_track - 1, sector_angle);
        behind_ns(first).max(behind_ns(on_track).saturating_sub(pass_ns))
    }

    pub(super) fn flush(&mut self, at_ns: u64) -> u64 {
        self.statistics.flushes += 1;
        let mut done_ns = at_ns + self.timing.write_miss_ns[self.last_was_write];
        while !self.dirty.is_empty() {
            done_ns = done_ns.max(self.write_oldest_back(at_ns));
        }
        // A write-back that had begun must be over as well.
        if self.ahead.is_none() { done_ns.max(self.arm_free_ns) } else { done_ns }
    }

    /// Writes back what fits before `now_ns` while nobody waits. What has begun is not broken off.
    pub(super) fn work_in_background(&mut self, now_ns: u64) {
        while let Some(oldest) = self.dirty.first().copied() {
            self.follow(now_ns);
            let start_ns = self.arm_free_ns.max(oldest.ready_ns);
            if self.ahead.is_some() || start_ns >= now_ns {
                return;
            }
            self.write_oldest_back(start_ns);
        }
    }
}
