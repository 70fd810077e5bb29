//! cgroup v2 `io.stat`: `MAJ:MIN rbytes= wbytes= rios= wios= dbytes= dios=`, to which other parts of the kernel add keys
//! (`cost.*` of iocost, `depth=` and more of iolatency).

use super::{GONE, Parsed, parse_lines};
use minerva_model::{DeviceId, IoCounters};

/// One device's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoStatRow {
    /// The whole disk.
    pub device: DeviceId,
    /// What the group and everything below it transferred.
    pub counters: IoCounters,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Device time that iocost charged to the group, in microseconds.
    pub cost_usage_us: Option<u64>,
    /// Time that iocost made the group wait, in microseconds; only with `blkcg_debug_stats`.
    pub cost_wait_us: Option<u64>,
}

/// Reads `io.stat`.
///
/// A bare `7:0 ` is what the kernel prints for a device that the group has not used in a way that counts, and other parts of the
/// kernel may add their keys to it; `(unknown)` is a disk that is gone while groups still have counters for it. None of these is a
/// row or an error. A line with some and not all of `rbytes`, `wbytes`, `rios` and `wios` was cut, and is passed over, for half a line
/// would look like a counter that went backwards. Unknown keys are ignored.
pub fn parse_io_stat(text: &[u8]) -> Parsed<IoStatRow> {
    let Parsed { rows, malformed } = parse_lines(text, parse_line);
    Parsed { rows: rows.into_iter().flatten().collect(), malformed }
}

/// `Some(None)` is a line that is right and says nothing.
fn parse_line(line: &str) -> Option<Option<IoStatRow>> {
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    if first == GONE {
        return Some(None);
    }
    let device: DeviceId = first.parse().ok()?;
    let mut row = IoStatRow {
        device,
        counters: IoCounters::default(),
        discarded_bytes: 0,
        cost_usage_us: None,
        cost_wait_us: None,
    };
    let mut seen = 0_u8;
    let mut whole = true;
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            whole = false;
            continue;
        };
        let number = value.parse::<u64>();
        let field = match key {
            "rbytes" => Some((&mut row.counters.read_bytes, 1)),
            "wbytes" => Some((&mut row.counters.write_bytes, 2)),
            "rios" => Some((&mut row.counters.read_ops, 4)),
            "wios" => Some((&mut row.counters.write_ops, 8)),
            "dbytes" => Some((&mut row.discarded_bytes, 0)),
            "cost.usage" => Some((row.cost_usage_us.insert(0), 0)),
            "cost.wait" => Some((row.cost_wait_us.insert(0), 0)),
            _ => None,
        };
        if let Some((place, bit)) = field {
            *place = number.ok()?;
            seen |= bit;
        }
    }
    match seen {
        15 => Some(Some(row)),
        // Nothing was transferred; iocost, iolatency and what holds a group up add their keys all the same.
        0 if whole => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_io_stat;
    use minerva_model::IoCounters;

    #[test]
    fn real_texts() {
        // From a 6.1 guest with iocost enabled on 254:0, and a loop device that was only opened.
        let text = b"7:0 \n254:0 rbytes=4210688 wbytes=8192 rios=75 wios=2 dbytes=0 dios=0 cost.usage=190 cost.wait=7 cost.indebt=0 cost.indelay=0\n8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6 use_delay=0 delay_nsec=0 depth=max";
        let parsed = parse_io_stat(text);
        assert_eq!(parsed.malformed.count, 0);
        let devices: Vec<String> = parsed.rows.iter().map(|row| row.device.to_string()).collect();
        assert_eq!(devices, ["254:0", "8:16"]);
        assert_eq!(parsed.rows[0].cost_usage_us, Some(190));
        assert_eq!(parsed.rows[0].cost_wait_us, Some(7));
        assert_eq!(parsed.rows[1].counters, IoCounters { read_bytes: 1, write_bytes: 2, read_ops: 3, write_ops: 4 });
        assert_eq!(parsed.rows[1].discarded_bytes, 5);
    }

    #[test]
    fn a_disk_that_is_gone_and_keys_beside_no_transfer_are_no_malformed_lines() {
        // Made up, in the form of blk-cgroup.c and blk-iolatency.c; the second and third come with blkcg_debug_stats.
        let text = b"(unknown) rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n8:0  use_delay=1 delay_nsec=5000\n8:32  missed=0 total=0 depth=4294967295\n8:48  cost.usage=0\n8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n";
        let parsed = parse_io_stat(text);
        assert_eq!(parsed.malformed.count, 0, "{:?}", parsed.malformed.first);
        let devices: Vec<String> = parsed.rows.iter().map(|row| row.device.to_string()).collect();
        assert_eq!(devices, ["8:16"]);
        assert_eq!(parse_io_stat(b"8:0 use_del").malformed.count, 1, "the end of a line that was cut");
    }

    #[test]
    fn a_cut_last_line_is_passed_over_and_the_rest_kept() {
        let parsed = parse_io_stat(b"8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n8:16 rbytes=9999 wby");
        assert_eq!(parsed.rows.len(), 1);
        assert_eq!(parsed.malformed.count, 1);
        assert_eq!(parsed.malformed.first.as_deref(), Some("8:16 rbytes=9999 wby"));
    }

    #[test]
    fn nonsense_is_counted() {
        let parsed = parse_io_stat(b"8:0 rbytes=-1 wbytes=2 rios=3 wios=4\n\xff\xfe\nrbytes=1\n\n8:0");
        assert!(parsed.rows.is_empty());
        assert_eq!(parsed.malformed.count, 3);
        assert_eq!(parsed.malformed.first.as_deref(), Some("8:0 rbytes=-1 wbytes=2 rios=3 wios=4"));
    }
}
