//! A load from block traces, such as those of SYSTOR '17: one file an hour and volume, or any other that the simulator reads.

use crate::load::{Load, Second};
use minerva_blocksched::Kind;
use minerva_forecast::seasonal::{BIN_SECONDS, BINS_PER_WEEK};
use minerva_sim_workload::trace::{ReadOptions, TraceError, TraceReader};
use std::collections::BTreeMap;
use std::path::Path;

const BLOCK_BYTES: u32 = 4096;
/// From the epoch, a Thursday, to the first Monday.
const FIRST_MONDAY_SECONDS: u64 = 4 * 86_400;

/// Reads traces whose times are Unix seconds, in any order of files. A request is an operation; a written one as many blocks of
/// 4 KiB as it touches at least. `zone_seconds` is added to bring days to where the users live (SYSTOR '17: nine hours). Everything
/// before the last `days` days, from the first whole bin on, is what forecasters saw before.
///
/// # Errors
/// A file that is no trace, or damaged.
pub fn from_traces<P: AsRef<Path>>(paths: &[P], zone_seconds: i64, days: usize) -> Result<Load, TraceError> {
    let mut by_second: BTreeMap<u64, Second> = BTreeMap::new();
    for path in paths {
        let mut reader = TraceReader::open(path.as_ref(), ReadOptions::default())?;
        while let Some(record) = reader.next() {
            let record = record?;
            let origin = reader.first_ns().unwrap_or(0);
            let unix = (origin.saturating_add(record.at.0) / 1_000_000_000).saturating_add_signed(zone_seconds);
            let second = by_second.entry(unix.saturating_sub(FIRST_MONDAY_SECONDS)).or_default();
            second.ops += 1.0;
            if record.kind == Kind::Write {
                second.written_blocks += f64::from(record.length_bytes.div_ceil(BLOCK_BYTES));
            }
        }
    }
    Ok(load(&by_second, days))
}

fn load(by_second: &BTreeMap<u64, Second>, days: usize) -> Load {
    let (Some((first, _)), Some((last, _))) = (by_second.first_key_value(), by_second.last_key_value()) else {
        return Load { bins: Vec::new(), first_bin: 0, seconds: Vec::new() };
    };
    let week_seconds = BINS_PER_WEEK as u64 * BIN_SECONDS;
    let monday = first / week_seconds * week_seconds;
    let start = (last + 1).saturating_sub(days as u64 * 86_400).max(*first).div_ceil(BIN_SECONDS) * BIN_SECONDS;
    let second = |at: u64| by_second.get(&at).copied().unwrap_or_default();
    let seconds: Vec<Second> = (start..=*last).map(second).collect();
    let first_bin = ((start - monday) / BIN_SECONDS) as usize;
    let mut bins = vec![Second::default(); first_bin + seconds.len().div_ceil(BIN_SECONDS as usize)];
    for (at, second) in by_second.range(..start) {
        let bin = &mut bins[((at - monday) / BIN_SECONDS) as usize];
        bin.ops += second.ops / BIN_SECONDS as f64;
        bin.written_blocks += second.written_blocks / BIN_SECONDS as f64;
    }
    let mut load = Load { bins, first_bin, seconds };
    load.settle();
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_hours_and_volumes_become_one_load_in_the_zone_of_the_users() {
        let folder = tempfile::tempdir().expect("a folder");
        // Monday 2016-02-22 00:00 in Japan is 15:00 UTC of the day before.
        let monday = 1_456_066_800;
        let file = |name: &str, lines: &[(i64, &str, u32, u32)]| {
            let rows = lines.iter().map(|(second, kind, volume, bytes)| {
                format!("{}.500000000,0.0008,{kind},{volume},4096,{bytes}\n", monday + second)
            });
            let path = folder.path().join(name);
            let text = format!("Timestamp,Response,IOType,LUN,Offset,Size\n{}", rows.collect::<String>());
            std::fs::write(&path, text).expect("written");
            path
        };
        let later = file("2016022200-LUN1.csv", &[(1200, "W", 1, 8192), (1200, "R", 1, 4096), (1799, "", 1, 512)]);
        let earlier = file("2016022200-LUN0.csv", &[(0, "R", 0, 131_072), (0, "W", 0, 512), (1799, "W", 0, 4097)]);
        let load = from_traces(&[later, earlier], 9 * 3600, 6).expect("traces");
        assert_eq!((load.first_bin, load.bins.len(), load.seconds.len()), (0, 3, 1800));
        assert_eq!(load.seconds[0], Second { ops: 2.0, written_blocks: 1.0 });
        assert_eq!(load.seconds[1200], Second { ops: 2.0, written_blocks: 2.0 });
        assert_eq!(load.seconds[1799], Second { ops: 1.0, written_blocks: 2.0 });
        assert_eq!(load.bins[2].ops, 3.0 / 600.0);
    }
}
