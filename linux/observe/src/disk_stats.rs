//! The disks' own counters, with the kernel's 32-bit milliseconds made whole.

use crate::parse::{DiskStatsRow, parse_diskstats};
use crate::read::Reader;
use crate::skips::Skips;
use minerva_model::{DeviceId, DeviceSample, DeviceSpace, WaitCounters};
use std::collections::BTreeMap;
use std::path::Path;

/// Remembers what was read last, to see a clock wrap.
#[derive(Debug, Default)]
pub(crate) struct DiskStats {
    last: BTreeMap<DeviceId, Clocks>,
}

/// A disk's three clocks. Each goes on where its 32 bits end, once in 49.7 days of waiting.
#[derive(Clone, Debug)]
struct Clocks {
    ops: u64,
    raw_ms: [u32; 3],
    whole_ms: [u64; 3],
}

impl DiskStats {
    /// Reads `/proc/diskstats` for those disks that are `known`; partitions are left out. Of discards there is a row for each disk
    /// if the kernel counts them.
    pub(crate) fn read(
        &mut self,
        proc: &Path,
        known: impl Fn(DeviceId) -> bool,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> (Vec<DeviceSample>, Vec<DeviceSpace>) {
        let rows = match reader.path(&proc.join("diskstats")) {
            Ok(text) => {
                let parsed = parse_diskstats(text);
                skips.malformed("diskstats", "the host", &parsed.malformed);
                parsed.rows
            }
            Err(error) => {
                skips.unreadable("diskstats", "the host", error);
                return (Vec::new(), Vec::new());
            }
        };
        let mut last = BTreeMap::new();
        let (mut samples, mut spaces) = (BTreeMap::new(), BTreeMap::new());
        for row in rows.into_iter().filter(|row| known(row.device)) {
            let clocks = advance(self.last.get(&row.device), &row);
            samples.insert(row.device, sample(&row, &clocks));
            last.insert(row.device, clocks);
            if row.discarded_bytes.is_some() {
                let (device, discarded_bytes) = (row.device, row.discarded_bytes);
                spaces.insert(device, DeviceSpace { device, discarded_bytes, free_bytes: None });
            }
        }
        self.last = last;
        (samples.into_values().collect(), spaces.into_values().collect())
    }
}

fn advance(before: Option<&Clocks>, row: &DiskStatsRow) -> Clocks {
    let ops = row.counters.ops();
    let raw_ms = [row.read_ms, row.write_ms, row.busy_ms];
    let whole_ms = match before {
        // Fewer requests than before: the disk's counters began again, and so did its clocks.
        Some(before) if ops >= before.ops => {
            std::array::from_fn(|i| before.whole_ms[i] + u64::from(raw_ms[i].wrapping_sub(before.raw_ms[i])))
        }
        _ => raw_ms.map(u64::from),
    };
    Clocks { ops, raw_ms, whole_ms }
}

fn sample(row: &DiskStatsRow, clocks: &Clocks) -> DeviceSample {
    let [read_ns, write_ns, busy_ns] = clocks.whole_ms.map(|ms| ms.saturating_mul(1_000_000));
    DeviceSample {
        device: row.device,
        counters: row.counters,
        wait: WaitCounters { read_ns, write_ns },
        busy_ns,
        in_flight: row.in_flight,
        flushes: row.flushes,
    }
}

#[cfg(test)]
mod tests {
    use super::{Clocks, advance};
    use crate::parse::{DiskStatsRow, parse_diskstats};

    fn row(ops: u64, ms: u32) -> DiskStatsRow {
        parse_diskstats(format!("8 0 sda {ops} 0 8 {ms} 0 0 0 0 0 {ms} 0").as_bytes()).rows.remove(0)
    }

    #[test]
    fn a_clock_that_wraps_goes_on() {
        let first = advance(None, &row(10, u32::MAX - 4));
        let second: Clocks = advance(Some(&first), &row(11, 5));
        assert_eq!(second.whole_ms, [u64::from(u32::MAX) + 6, 0, u64::from(u32::MAX) + 6]);
    }

    #[test]
    fn counters_that_begin_again_take_the_clocks_with_them() {
        let first = advance(None, &row(10, 1_000));
        assert_eq!(advance(Some(&first), &row(2, 7)).whole_ms, [7, 0, 7]);
    }
}
