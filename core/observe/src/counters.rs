//! How a row of cumulative counters moved between two readings.

use minerva_model::{DeviceSignals, IoCounters, WaitCounters};
use serde::{Deserialize, Serialize};

/// A disk's counters and its tenants' are not read at one instant, so a newcomer may be seen to have moved a little more
/// than its disk: as much again by half, and this.
const READING_SKEW_BYTES: u64 = 1 << 20;
/// A 32-bit kernel keeps its counts in 32 bits.
const COUNT_WRAP: u64 = 1 << 32;
/// `/proc/diskstats` prints times as 32-bit milliseconds on every kernel (`block/genhd.c`), so they come round once in 50
/// days of waiting.
const TIME_WRAP_NS: u64 = (1 << 32) * 1_000_000;

/// One row of counters, of a disk or of a tenant on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) io: IoCounters,
    pub(crate) wait: Option<WaitCounters>,
    pub(crate) served_ns: Option<u64>,
    pub(crate) busy_ns: u64,
    /// Of a disk.
    #[serde(default)]
    pub(crate) flushes: u64,
}

/// The difference of two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Difference {
    /// The counters went on.
    Moved(Row),
    /// The counters began again, at zero, some time between the two readings. A change of the elevator does this.
    Restarted,
}

/// What happened between `old` and `new`.
///
/// Counts decide whether the row began again, because a kernel that starts a row starts all of it. Times alone may slip
/// back by a little, as they are sums of approximations; that is no time passed.
pub(crate) fn difference(old: &Row, new: &Row) -> Difference {
    let io = (|| {
        Some(IoCounters {
            read_bytes: count_step(old.io.read_bytes, new.io.read_bytes)?,
            write_bytes: count_step(old.io.write_bytes, new.io.write_bytes)?,
            read_ops: count_step(old.io.read_ops, new.io.read_ops)?,
            write_ops: count_step(old.io.write_ops, new.io.write_ops)?,
        })
    })();
    let Some(io) = io else {
        return Difference::Restarted;
    };
    let wait = old.wait.zip(new.wait).map(|(old, new)| WaitCounters {
        read_ns: step(old.read_ns, new.read_ns, TIME_WRAP_NS).unwrap_or(0),
        write_ns: step(old.write_ns, new.write_ns, TIME_WRAP_NS).unwrap_or(0),
    });
    let busy_ns = step(old.busy_ns, new.busy_ns, TIME_WRAP_NS).unwrap_or(0);
    let served_ns = old.served_ns.zip(new.served_ns).map(|(old, new)| new.saturating_sub(old));
    let flushes = new.flushes.saturating_sub(old.flushes);
    Difference::Moved(Row { io, wait, served_ns, busy_ns, flushes })
}

/// Counters that are new hold no more than the disk moved in this slice.
pub(crate) fn began_in_this_slice(counters: &IoCounters, disk: &DeviceSignals) -> bool {
    let moved = disk.transferred.bytes();
    counters.bytes() <= moved.saturating_add(moved / 2).saturating_add(READING_SKEW_BYTES)
}

fn count_step(old: u64, new: u64) -> Option<u64> {
    step(old, new, COUNT_WRAP)
}

/// How far a counter went, or nothing if it went back. A counter that was in the upper half of its narrow range and is
/// now in the lower half came round.
fn step(old: u64, new: u64, wrap: u64) -> Option<u64> {
    if new >= old {
        Some(new - old)
    } else if old < wrap && old >= wrap / 2 && new < wrap / 2 {
        Some(wrap - old + new)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT_WRAP, Difference, Row, TIME_WRAP_NS, difference, step};
    use minerva_model::{IoCounters, WaitCounters};

    #[test]
    fn a_counter_goes_on_comes_round_or_begins_again() {
        let cases = [
            (0, 0, Some(0)),
            (5, 12, Some(7)),
            (COUNT_WRAP - 1, 0, Some(1)),
            (COUNT_WRAP / 2, 10, Some(COUNT_WRAP / 2 + 10)),
            // The lower half of 32 bits: too far from the end to have come round.
            (COUNT_WRAP / 2 - 1, 10, None),
            // Both in the upper half.
            (COUNT_WRAP - 1, COUNT_WRAP - 2, None),
            // Wider than 32 bits.
            (COUNT_WRAP, 10, None),
            (u64::MAX, 0, None),
        ];
        for (old, new, expected) in cases {
            assert_eq!(step(old, new, COUNT_WRAP), expected, "{old} -> {new}");
        }
        assert_eq!(step(TIME_WRAP_NS - 1_000_000, 2_000_000, TIME_WRAP_NS), Some(3_000_000));
    }

    #[test]
    fn one_count_that_begins_again_takes_the_row_with_it() {
        // Read bytes are in the wrap window, but the requests say that the row began again.
        let old = Row {
            io: IoCounters { read_bytes: 3_000_000_000, read_ops: 700, ..IoCounters::default() },
            ..Row::default()
        };
        let new = Row { io: IoCounters { read_bytes: 8_192, read_ops: 2, ..IoCounters::default() }, ..Row::default() };
        assert_eq!(difference(&old, &new), Difference::Restarted);
    }

    #[test]
    fn a_time_that_slips_back_is_no_time() {
        let old = Row { wait: Some(WaitCounters { read_ns: 50, write_ns: 5 }), busy_ns: 100, ..Row::default() };
        let new = Row { wait: Some(WaitCounters { read_ns: 49, write_ns: 8 }), busy_ns: 99, ..Row::default() };
        let expected = Row { wait: Some(WaitCounters { read_ns: 0, write_ns: 3 }), ..Row::default() };
        assert_eq!(difference(&old, &new), Difference::Moved(expected));
    }
}
