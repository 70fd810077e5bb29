//! `/proc/diskstats`, `queue/scheduler` and the root group's `io.cost.qos`.

use super::{Parsed, parse_lines};
use minerva_model::{DeviceId, IoCounters};

/// One line of `/proc/diskstats` (`Documentation/admin-guide/iostats.rst`).
///
/// The times are 32-bit numbers of milliseconds, also on a 64-bit kernel: they wrap after 49.7 days of summed waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskStatsRow {
    /// A whole disk or a partition.
    pub device: DeviceId,
    /// Its kernel name.
    pub name: String,
    /// Transfers. The kernel counts sectors of 512 bytes whatever the disk's own are.
    pub counters: IoCounters,
    /// Time that reads took, in milliseconds, wrapping.
    pub read_ms: u32,
    /// Time that writes took, in milliseconds, wrapping.
    pub write_ms: u32,
    /// Requests in flight.
    pub in_flight: u64,
    /// Time with a request in flight, in milliseconds, wrapping.
    pub busy_ms: u32,
    /// Bytes that the disk was told to forget; absent on kernels before 4.18.
    pub discarded_bytes: Option<u64>,
    /// Flushes completed; 0 before Linux 5.5, which does not count them.
    pub flushes: u64,
}

/// Reads `/proc/diskstats`. Kernels before 4.18 print 14 columns, later ones up to 20, the 15th to 18th being of discards.
pub fn parse_diskstats(text: &[u8]) -> Parsed<DiskStatsRow> {
    parse_lines(text, |line| {
        let mut words = line.split_ascii_whitespace();
        let device = DeviceId { major: words.next()?.parse().ok()?, minor: words.next()?.parse().ok()? };
        let name = words.next()?.to_owned();
        let mut next = || words.next()?.parse::<u64>().ok();
        let (read_ops, _merged, read_sectors, read_ms) = (next()?, next()?, next()?, next()?);
        let (write_ops, _merged, write_sectors, write_ms) = (next()?, next()?, next()?, next()?);
        let (in_flight, busy_ms) = (next()?, next()?);
        let (_weighted_ms, _discards, _merged, discarded_sectors) = (next(), next(), next(), next());
        // Time of discards, and since Linux 5.5 flushes and their time.
        let flushes = next().and_then(|_discards_ms| next()).unwrap_or(0);
        let counters = IoCounters {
            read_bytes: read_sectors.saturating_mul(512),
            write_bytes: write_sectors.saturating_mul(512),
            read_ops,
            write_ops,
        };
        // A kernel that would print more than 32 bits is read modulo 2^32, which the difference of two readings survives.
        let [read_ms, write_ms, busy_ms] = [read_ms, write_ms, busy_ms].map(|ms| ms as u32);
        let discarded_bytes = discarded_sectors.map(|sectors| sectors.saturating_mul(512));
        Some(DiskStatsRow { device, name, counters, read_ms, write_ms, in_flight, busy_ms, discarded_bytes, flushes })
    })
}

/// The elevators of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elevators {
    /// The one in brackets.
    pub current: Option<String>,
    /// All of them.
    pub available: Vec<String>,
}

/// Reads `queue/scheduler`, such as `none mq-deadline [bfq]`. A disk without a choice prints `none` without brackets.
pub fn parse_elevators(text: &[u8]) -> Elevators {
    let mut elevators = Elevators::default();
    let text = std::str::from_utf8(text).unwrap_or_default();
    for word in text.split_ascii_whitespace() {
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        if bare.len() != word.len() {
            elevators.current = Some(bare.to_owned());
        }
        elevators.available.push(bare.to_owned());
    }
    if elevators.current.is_none() && elevators.available.len() == 1 {
        elevators.current = elevators.available.first().cloned();
    }
    elevators
}

/// One line of `io.cost.qos`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoCostQosRow {
    /// The whole disk.
    pub device: DeviceId,
    /// iocost is on for it.
    pub enabled: bool,
}

/// Reads the root group's `io.cost.qos`: `MAJ:MIN enable=1 ctrl=auto rpct=...`.
pub fn parse_io_cost_qos(text: &[u8]) -> Parsed<IoCostQosRow> {
    parse_lines(text, |line| {
        let mut words = line.split_ascii_whitespace();
        let device = words.next()?.parse().ok()?;
        let enable = words.find_map(|word| word.strip_prefix("enable="))?;
        Some(IoCostQosRow { device, enabled: enable.parse::<u32>().ok()? != 0 })
    })
}

/// One line of `io.cost.model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoCostModelRow {
    /// The whole disk.
    pub device: DeviceId,
    /// The kernel chose the coefficients by the kind of the disk; nobody measured them.
    pub guessed: bool,
}

/// Reads the root group's `io.cost.model`: `MAJ:MIN ctrl=auto model=linear rbps=...`.
pub fn parse_io_cost_model(text: &[u8]) -> Parsed<IoCostModelRow> {
    parse_lines(text, |line| {
        let mut words = line.split_ascii_whitespace();
        let device = words.next()?.parse().ok()?;
        let control = words.find_map(|word| word.strip_prefix("ctrl="))?;
        Some(IoCostModelRow { device, guessed: control == "auto" })
    })
}

#[cfg(test)]
mod tests {
    use super::{parse_diskstats, parse_elevators, parse_io_cost_model, parse_io_cost_qos};

    #[test]
    fn diskstats_of_6_18_and_of_4_9() {
        let text = b"   7       0 loop0 256 0 32768 6 10 0 80 1 0 8 6 3 0 40 2 0 0\n 254       0 vda 87876 25985 5115082 27516 13371 19259 1345080 4380 3 15852 32507\n 8 0 sda 1 2 3\n";
        let parsed = parse_diskstats(text);
        assert_eq!(parsed.malformed.count, 1);
        assert_eq!(parsed.rows.len(), 2);
        let loop0 = &parsed.rows[0];
        assert_eq!(
            (loop0.name.as_str(), loop0.counters.read_bytes, loop0.counters.write_ops),
            ("loop0", 16_777_216, 10)
        );
        assert_eq!((loop0.read_ms, loop0.write_ms, loop0.busy_ms, loop0.in_flight), (6, 1, 8, 0));
        assert_eq!(parsed.rows[1].in_flight, 3);
        assert_eq!(parsed.rows.iter().map(|row| row.discarded_bytes).collect::<Vec<_>>(), [Some(20_480), None]);
    }

    #[test]
    fn elevators() {
        let parsed = parse_elevators(b"none mq-deadline kyber [bfq] \n");
        assert_eq!(parsed.current.as_deref(), Some("bfq"));
        assert_eq!(parsed.available, ["none", "mq-deadline", "kyber", "bfq"]);
        assert_eq!(parse_elevators(b"none\n").current.as_deref(), Some("none"));
        assert_eq!(parse_elevators(b"\xff").current, None);
    }

    #[test]
    fn io_cost_qos() {
        let text = b"254:0 enable=1 ctrl=auto rpct=0.00 rlat=250000 wpct=0.00 wlat=250000 min=1.00 max=10000.00\n8:0 enable=0 ctrl=user\nx\n";
        let parsed = parse_io_cost_qos(text);
        assert_eq!(parsed.rows.iter().map(|row| row.enabled).collect::<Vec<_>>(), [true, false]);
        assert_eq!(parsed.malformed.count, 1);
    }

    #[test]
    fn io_cost_model() {
        let text = b"254:0 ctrl=auto model=linear rbps=174019176 rseqiops=41708 rrandiops=370 wbps=178075866 wseqiops=42705 wrandiops=378\n8:0 ctrl=user model=linear rbps=1\n8:16 rbps=1\n";
        let parsed = parse_io_cost_model(text);
        assert_eq!(parsed.rows.iter().map(|row| row.guessed).collect::<Vec<_>>(), [true, false]);
        assert_eq!(parsed.malformed.count, 1);
    }
}
