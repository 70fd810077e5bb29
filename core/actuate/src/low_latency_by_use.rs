//! `low_latency` of BFQ by what the tenants of a disk do (docs/adr/0024).
//!
//! With it BFQ raises who seems to begin something or to be interactive. Between groups weights hold beside it, and two newcomers that
//! meet are done sooner. But on a disk that turns who commits beside readers of large blocks waits longer with it, and on one that does
//! not turn raising takes from weights what they give. So it stays as it was found until that is seen, is taken away for as long as
//! it lasts, and is put back after.

use crate::strict_by_use::Shown;
use minerva_model::{DeviceSignals, IoSignals};
use serde::{Deserialize, Serialize};

/// Slices in a row in which it would help before it is taken away.
const SLICES_TO_TAKE: u32 = 3;
/// Slices in a row without a reason before it is put back.
const SLICES_TO_PUT_BACK: u32 = 10;

/// Whether it is taken away, and for how long the other state has been asked for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LowLatencyByUse {
    is_taken: bool,
    /// Slices in a row that spoke for the other state.
    against: u32,
}

impl LowLatencyByUse {
    pub(crate) const fn is_taken(self) -> bool {
        self.is_taken
    }

    /// One slice of the disk, with its tenants' rows. The answer is why it is switched, if it is.
    pub(crate) fn slice<'a>(
        &mut self,
        rotational: bool,
        disk: &DeviceSignals,
        rows: impl Iterator<Item = &'a IoSignals>,
    ) -> Option<String> {
        let Shown { commits, large_readers, .. } = Shown::of(disk, rows);
        let helps = if rotational { commits > 0 && large_readers > 0 } else { disk.contention > 1 };
        self.against = if helps == self.is_taken { 0 } else { self.against + 1 };
        let needed = if self.is_taken { SLICES_TO_PUT_BACK } else { SLICES_TO_TAKE };
        if self.against < needed {
            return None;
        }
        let against = std::mem::take(&mut self.against);
        self.is_taken = !self.is_taken;
        Some(match (self.is_taken, rotational) {
            (true, true) => format!(
                "is taken away: {commits} commits wait beside {large_readers} readers of large blocks, and longer with it"
            ),
            (true, false) => format!("is taken away: {} tenants use the disk, which does not turn", disk.contention),
            (false, true) => {
                format!("is put back: nobody has committed beside readers of large blocks for {against} slices")
            }
            (false, false) => format!("is put back: at most one tenant has used the disk for {against} slices"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LowLatencyByUse;
    use minerva_model::{DeviceId, DeviceSignals, IoCounters, IoSignals, Nanos, TenantId};

    const NEVER: [u32; 0] = [];
    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    /// Reads of 256 KiB in a second, and writes of 4 KiB.
    const SCAN: (u64, u64) = (100, 0);
    const COMMITS: (u64, u64) = (0, 20);

    fn row((reads, writes): (u64, u64)) -> IoSignals {
        IoSignals {
            tenant: TenantId(1),
            device: DISK,
            elapsed: Nanos::SECOND,
            transferred: IoCounters {
                read_bytes: reads * (256 << 10),
                read_ops: reads,
                write_bytes: writes * 4096,
                write_ops: writes,
            },
            latency: None,
            active: true,
            served: None,
            disk_time: Nanos::ZERO,
        }
    }

    /// Slices of tenants; the slices at whose end it was switched.
    fn switched(rotational: bool, slices: &[(u32, &[(u64, u64)])]) -> Vec<u32> {
        let (mut by_use, mut number, mut switched) = (LowLatencyByUse::default(), 0, Vec::new());
        for (count, tenants) in slices {
            let rows: Vec<IoSignals> = tenants.iter().copied().map(row).collect();
            let mut transferred = IoCounters::default();
            for row in &rows {
                transferred.write_bytes += row.transferred.write_bytes;
                transferred.write_ops += row.transferred.write_ops;
            }
            let disk = DeviceSignals {
                device: DISK,
                elapsed: Nanos::SECOND,
                transferred,
                busy_permille: 1_000,
                read_latency: None,
                write_latency: None,
                contention: rows.len() as u32,
                unattributed_bytes: 0,
                flushes: 0,
            };
            for _ in 0..*count {
                number += 1;
                if let Some(why) = by_use.slice(rotational, &disk, rows.iter()) {
                    assert!(why.starts_with(if by_use.is_taken() { "is taken away" } else { "is put back" }), "{why}");
                    switched.push(number);
                }
            }
        }
        switched
    }

    #[test]
    fn it_is_taken_away_beside_commits_on_a_disk_that_turns_and_beside_anybody_on_another() {
        assert_eq!(switched(true, &[(20, &[SCAN, SCAN])]), NEVER);
        assert_eq!(switched(true, &[(20, &[COMMITS, COMMITS])]), NEVER);
        assert_eq!(switched(true, &[(2, &[SCAN, COMMITS]), (1, &[SCAN]), (2, &[SCAN, COMMITS])]), NEVER);
        assert_eq!(
            switched(true, &[(5, &[SCAN, COMMITS]), (9, &[SCAN]), (1, &[SCAN, COMMITS]), (20, &[SCAN])]),
            [3, 25]
        );
        assert_eq!(switched(false, &[(20, &[SCAN])]), NEVER);
        assert_eq!(switched(false, &[(5, &[SCAN, SCAN]), (20, &[SCAN])]), [3, 15]);
    }
}
