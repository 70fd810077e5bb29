//! What is measured of background work in gaps, and how long that takes.

use minerva_model::Nanos;
use std::path::PathBuf;

/// Bursts and pauses of the reader, drawn.
pub(super) const BURST_MS: std::ops::Range<u64> = 2_000..6_000;
pub(super) const PAUSE_MS: std::ops::Range<u64> = 2_000..6_000;
/// The daemon has seen a slice, and what others wrote before is on the disk.
pub(super) const SETTLE: Nanos = Nanos::from_secs(3);

/// For how long a reader that never pauses is looked at without work.
pub(super) const STEADY_ALONE: Nanos = Nanos::from_secs(120);

/// Within how many seconds work is to be done: in the gaps of a reader that pauses far more than it needs, and so little beside one that never
/// does that it has to take time from it.
pub const GAPS_DEADLINE_S: u64 = 600;

/// A kind of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapsWork {
    /// Reads a file in order.
    Backup,
    /// Deletes a tree of many files.
    Delete,
    /// Reads all of a btrfs and compares it with its checksums.
    Scrub,
}

impl GapsWork {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Backup => "a backup (reads of 256 KiB in order)",
            Self::Delete => "a big delete",
            Self::Scrub => "a scrub of a btrfs",
        }
    }
}

/// What the reader does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapsReader {
    /// It reads in bursts, and pauses after each.
    Pauses,
    /// It reads without a pause until the work is done.
    Steady,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct GapsPlan {
    /// The kinds of background work, one after the other.
    pub work: Vec<GapsWork>,
    /// Readers, each beside each kind.
    pub readers: Vec<GapsReader>,
    /// The emulated disk's profile.
    pub profile: String,
    /// Its elevator.
    pub elevator: String,
    /// Bursts, with a pause after each, of every window.
    pub bursts: u32,
    /// How often each pair of windows, with background work and without, is measured.
    pub rounds: u32,
    /// Seed of bursts, pauses and orders.
    pub seed: u64,
    /// `minervad`.
    pub daemon: PathBuf,
    /// `minerva-ctl`.
    pub tool: PathBuf,
}

impl GapsPlan {
    /// About how long all of it takes at most, in seconds, without what is written before: windows by the mean length of what is drawn.
    pub fn seconds(&self) -> f64 {
        let mean = |range: &std::ops::Range<u64>| (range.start + range.end) as f64 / 2e3;
        let window_s = f64::from(self.bursts) * (mean(&BURST_MS) + mean(&PAUSE_MS));
        let measured = |reader: &GapsReader| match reader {
            // Two windows, and work that was not done in its own is done within as much time again.
            GapsReader::Pauses => 3.0 * window_s,
            // Work is done as late as it may be.
            GapsReader::Steady => GAPS_DEADLINE_S as f64 + STEADY_ALONE.as_secs_f64(),
        };
        // Of each pair both windows settle, and the one with work is looked at once more and is removed.
        let pair = |reader| measured(reader) + 4.0 * SETTLE.as_secs_f64();
        let rounds = self.work.len() as f64 * f64::from(self.rounds);
        rounds * self.readers.iter().map(pair).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::{GapsPlan, GapsReader, GapsWork};

    #[test]
    fn how_long_it_takes_grows_with_pairs_kinds_and_readers() {
        let plan = GapsPlan {
            work: vec![GapsWork::Delete],
            readers: vec![GapsReader::Pauses],
            profile: String::new(),
            elevator: String::new(),
            bursts: 4,
            rounds: 1,
            seed: 1,
            daemon: "minervad".into(),
            tool: "minerva-ctl".into(),
        };
        assert_eq!(plan.seconds(), 3.0 * 4.0 * 8.0 + 12.0);
        let both = GapsPlan { readers: vec![GapsReader::Pauses, GapsReader::Steady], ..plan.clone() };
        assert_eq!(both.seconds(), plan.seconds() + 600.0 + 120.0 + 12.0);
        let all = [GapsWork::Backup, GapsWork::Delete, GapsWork::Scrub].to_vec();
        assert_eq!(GapsPlan { work: all, rounds: 10, ..plan.clone() }.seconds(), 30.0 * plan.seconds());
    }
}
