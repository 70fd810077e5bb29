//! `strict_guarantees` of BFQ by what the tenants of a disk do (docs/adr/0023).
//!
//! With it BFQ keeps one request inside the disk. Whoever waits for a flush, as each commit does, then waits for one request of a
//! scanner and not for several, and weights cannot do that: a file system's journal writes in the name of nobody. But a disk that
//! turns serves random requests of great depth best in an order of its own, which it cannot with one at a time. So it is set while
//! somebody commits beside readers of large blocks, and not while anybody has many random requests under way.

use minerva_model::{DeviceSignals, IoSignals};
use serde::{Deserialize, Serialize};

/// Slices in a row in which it would help before it is set.
const SLICES_TO_SET: u32 = 3;
/// Slices in a row in which nobody commits beside large readers before it is put back.
const SLICES_TO_PUT_BACK: u32 = 10;
/// Slices in a row with deep random requests before it is put back.
const SLICES_DEEP: u32 = 2;
/// After that it is not set again for so many slices.
const SLICES_SHY: u32 = 30;
/// A tenant's requests of this mean size are large, in bytes.
const LARGE_BYTES: u64 = 64 << 10;
/// Who moves so many large requests in a slice reads all the time.
const LARGE_OPS_MIN: u64 = 4;
/// A commit writes no more at once, in the mean: a page or a few, and the journal's block.
const COMMIT_BYTES_MAX: u64 = 32 << 10;
/// So many small requests under way, in the mean, are deep.
const DEEP: f64 = 16.0;

/// What a slice shows of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    /// Flushes; where the disk has no cache to flush, small writes.
    pub(crate) commits: u64,
    /// Tenants that read large blocks.
    pub(crate) large_readers: usize,
    /// Small reads under way, in the mean.
    small_depth: f64,
}

/// Whether it is to be set, and for how long things have been as they are.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StrictByUse {
    is_set: bool,
    /// Slices in a row that spoke for the other state.
    against: u32,
    deep: u32,
    shy: u32,
}

impl StrictByUse {
    pub(crate) const fn is_set(self) -> bool {
        self.is_set
    }

    /// One slice of the disk, with its tenants' rows. The answer is why it is switched, if it is.
    pub(crate) fn slice<'a>(
        &mut self,
        disk: &DeviceSignals,
        rows: impl Iterator<Item = &'a IoSignals>,
    ) -> Option<String> {
        let shown = Shown::of(disk, rows);
        let is_deep = shown.small_depth >= DEEP;
        self.deep = if is_deep { self.deep + 1 } else { 0 };
        self.shy = self.shy.saturating_sub(1);
        let helps = shown.commits > 0 && shown.large_readers > 0 && !is_deep && self.shy == 0;
        self.against = if helps == self.is_set { 0 } else { self.against + 1 };
        let Shown { commits, large_readers, small_depth } = shown;
        let why = match self.is_set {
            false if self.against >= SLICES_TO_SET => format!(
                "is set: {commits} commits wait beside {large_readers} readers of large blocks, and would for several of \
                 their requests each"
            ),
            true if self.deep >= SLICES_DEEP => {
                self.shy = SLICES_SHY;
                format!(
                    "is put back: some {small_depth:.0} random reads wait at once, which the disk serves best in an order of its \
                     own"
                )
            }
            true if self.against >= SLICES_TO_PUT_BACK => {
                format!("is put back: nobody has committed beside readers of large blocks for {} slices", self.against)
            }
            _ => return None,
        };
        self.is_set = !self.is_set;
        (self.against, self.deep) = (0, 0);
        Some(why)
    }
}

impl Shown {
    pub(crate) fn of<'a>(disk: &DeviceSignals, rows: impl Iterator<Item = &'a IoSignals>) -> Self {
        let (moved, elapsed) = (disk.transferred, disk.elapsed.as_secs_f64().max(1e-9));
        let small_writes = if moved.write_bytes <= moved.write_ops * COMMIT_BYTES_MAX { moved.write_ops } else { 0 };
        let (mut large_readers, mut small_depth) = (0, 0.0);
        for row in rows {
            let reads = row.transferred;
            if reads.read_bytes >= LARGE_BYTES * LARGE_OPS_MIN && reads.read_bytes >= LARGE_BYTES * reads.read_ops {
                large_readers += 1;
            } else if reads.read_ops > 0 {
                // Little (1961): how many are under way is how many come a second, times how long each takes.
                let latency = row.latency.or(disk.read_latency).map_or(0.0, |latency| latency.as_secs_f64());
                small_depth += reads.read_ops as f64 / elapsed * latency;
            }
        }
        Self { commits: if disk.flushes > 0 { disk.flushes } else { small_writes }, large_readers, small_depth }
    }
}

#[cfg(test)]
mod tests {
    use super::StrictByUse;
    use minerva_model::{DeviceId, DeviceSignals, IoCounters, IoSignals, Nanos, TenantId};

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    /// What a tenant did in a second: reads and their size; writes of 4 KiB.
    type Row = (u64, u64, u64);
    const SCAN: Row = (100, 256 << 10, 0);
    const COMMITS: Row = (0, 0, 20);
    const DATABASE: Row = (60, 8 << 10, 0);
    const DEEP: Row = (110, 8 << 10, 0);
    const LOAD: Row = (0, 0, 0);

    /// Slices with flushes and the mean time of a read in milliseconds; the slices after which it was set, and put back.
    fn switched(slices: &[(u32, &[Row], u64, u64)]) -> Vec<u32> {
        let (mut strict, mut slice, mut switched) = (StrictByUse::default(), 0, Vec::new());
        for (count, rows, flushes, read_ms) in slices {
            for _ in 0..*count {
                slice += 1;
                let row = |(reads, size, writes): &Row| IoSignals {
                    tenant: TenantId(1),
                    device: DISK,
                    elapsed: Nanos::SECOND,
                    transferred: IoCounters {
                        read_bytes: reads * size,
                        read_ops: *reads,
                        write_bytes: writes * 4096,
                        write_ops: *writes,
                    },
                    latency: None,
                    active: true,
                    served: None,
                    disk_time: Nanos::ZERO,
                };
                let rows: Vec<IoSignals> = rows.iter().map(row).collect();
                let mut transferred = IoCounters::default();
                for row in &rows {
                    transferred.read_bytes += row.transferred.read_bytes;
                    transferred.read_ops += row.transferred.read_ops;
                    transferred.write_bytes += row.transferred.write_bytes;
                    transferred.write_ops += row.transferred.write_ops;
                }
                let disk = DeviceSignals {
                    device: DISK,
                    elapsed: Nanos::SECOND,
                    transferred,
                    busy_permille: 1_000,
                    read_latency: Some(Nanos::from_millis(*read_ms)),
                    write_latency: None,
                    contention: rows.len() as u32,
                    unattributed_bytes: 0,
                    flushes: *flushes,
                };
                if let Some(why) = strict.slice(&disk, rows.iter()) {
                    assert!(why.starts_with(if strict.is_set() { "is set" } else { "is put back" }), "{why}");
                    switched.push(slice);
                }
            }
        }
        switched
    }

    #[test]
    fn it_is_set_while_somebody_commits_beside_large_readers_and_nobody_reads_deep() {
        // Slices, in each what the tenants do, flushes, and the time of a read; when it switches.
        type Scene<'a> = (&'a [(u32, &'a [Row], u64, u64)], &'a [u32]);
        let table: [Scene<'_>; 8] = [
            (&[(20, &[SCAN, SCAN], 0, 50)], &[]),
            (&[(20, &[COMMITS], 40, 0)], &[]),
            (&[(20, &[SCAN, COMMITS], 40, 50)], &[3]),
            // No flushes are counted where the disk has no cache.
            (&[(20, &[SCAN, COMMITS], 0, 50)], &[3]),
            (&[(2, &[SCAN, COMMITS], 40, 50), (1, &[SCAN], 0, 50), (2, &[SCAN, COMMITS], 40, 50)], &[]),
            // Pauses are no end, ten slices are.
            (
                &[
                    (5, &[SCAN, COMMITS], 40, 50),
                    (9, &[SCAN], 0, 50),
                    (1, &[SCAN, COMMITS], 1, 50),
                    (20, &[SCAN], 0, 50),
                ],
                &[3, 25],
            ),
            // A database reads one at a time, whatever it waits for.
            (&[(20, &[SCAN, COMMITS, DATABASE], 40, 100)], &[3]),
            // 110 reads a second of 290 ms each are 32 at once; after them it is not set again for half a minute.
            (
                &[(5, &[SCAN, COMMITS], 40, 50), (4, &[SCAN, COMMITS, DEEP], 40, 290), (40, &[SCAN, COMMITS], 40, 50)],
                &[3, 7, 39],
            ),
        ];
        for (slices, expected) in table {
            assert_eq!(switched(slices), expected, "{slices:?}");
        }
        assert_eq!(switched(&[(20, &[LOAD], 0, 0)]), Vec::<u32>::new());
    }
}
