//! cgroup v1 `blkio.*` counters: lines `MAJ:MIN Read N`, `Write`, `Sync`, `Async`, `Discard`, `Total` for each device, and a
//! last `Total N`. One format for bytes, operations and times, for BFQ's counters and the throttle's.

use super::{GONE, Malformed, Parsed, lines};
use minerva_model::DeviceId;

/// One device's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlkioRow {
    /// The whole disk.
    pub device: DeviceId,
    /// Bytes, requests or nanoseconds of reads, as the file's name says.
    pub read: u64,
    /// The same of writes.
    pub write: u64,
}

/// Reads a `blkio` counter file. A device of which `Read` or `Write` is missing was cut off and is passed over, counted once.
pub fn parse_blkio(text: &[u8]) -> Parsed<BlkioRow> {
    let mut malformed = Malformed::default();
    let mut halves: Vec<(DeviceId, Option<u64>, Option<u64>)> = Vec::new();
    for line in lines(text) {
        match std::str::from_utf8(line).ok().and_then(parse_line) {
            Some(Line::Total | Line::Gone) => {}
            Some(Line::Value(device, direction, value)) => {
                // The kernel prints a device's lines together, so that the last entry is almost always the one.
                let known = halves.last().is_some_and(|last| last.0 == device);
                if !known {
                    halves.push((device, None, None));
                }
                match (halves.last_mut(), direction) {
                    (Some(half), "Read") => half.1 = Some(value),
                    (Some(half), "Write") => half.2 = Some(value),
                    _ => {}
                }
            }
            None => malformed.note(line),
        }
    }
    let mut rows = Vec::with_capacity(halves.len());
    for (device, read, write) in halves {
        match (read, write) {
            (Some(read), Some(write)) => rows.push(BlkioRow { device, read, write }),
            _ => malformed.note(format!("{device} without Read or Write").as_bytes()),
        }
    }
    Parsed { rows, malformed }
}

enum Line<'a> {
    Total,
    Gone,
    Value(DeviceId, &'a str, u64),
}

fn parse_line(line: &str) -> Option<Line<'_>> {
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    if first == "Total" {
        return words.next()?.parse::<u64>().ok().map(|_| Line::Total);
    }
    if first == GONE {
        return Some(Line::Gone);
    }
    let device = first.parse().ok()?;
    let direction = words.next()?;
    Some(Line::Value(device, direction, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{BlkioRow, parse_blkio};
    use minerva_model::DeviceId;

    /// As a 6.18 kernel printed it.
    const BYTES: &[u8] = b"7:5 Read 262144\n7:5 Write 40960\n7:5 Sync 303104\n7:5 Async 0\n7:5 Discard 0\n7:5 Total 303104\n7:0 Read 0\n7:0 Write 0\n7:0 Sync 0\n7:0 Async 0\n7:0 Discard 0\n7:0 Total 0\nTotal 303104\n";

    #[test]
    fn real_text() {
        let parsed = parse_blkio(BYTES);
        assert_eq!(parsed.malformed.count, 0);
        assert_eq!(
            parsed.rows,
            [
                BlkioRow { device: DeviceId { major: 7, minor: 5 }, read: 262_144, write: 40_960 },
                BlkioRow { device: DeviceId { major: 7, minor: 0 }, read: 0, write: 0 },
            ]
        );
    }

    #[test]
    fn an_unarmed_file_holds_only_the_total() {
        let parsed = parse_blkio(b"Total 0\n");
        assert!(parsed.rows.is_empty());
        assert_eq!(parsed.malformed.count, 0);
    }

    #[test]
    fn a_disk_that_has_gone_is_no_malformed_line() {
        let gone =
            b"(unknown) Read 0\n(unknown) Write 0\n(unknown) Total 0\n7:0 Read 1\n7:0 Write 2\n7:0 Total 3\nTotal 3\n";
        let parsed = parse_blkio(gone);
        let device = DeviceId { major: 7, minor: 0 };
        assert_eq!((parsed.malformed.count, parsed.rows), (0, vec![BlkioRow { device, read: 1, write: 2 }]));
    }

    #[test]
    fn every_cut_keeps_what_is_whole() {
        for length in 0..BYTES.len() {
            let parsed = parse_blkio(&BYTES[..length]);
            for row in &parsed.rows {
                // A number that was cut short may be smaller, never larger.
                assert!(row.read <= 262_144 && row.write <= 40_960, "{row:?} at {length}");
            }
        }
    }
}
