//! `/proc/<pid>/stat`, `/proc/<pid>/io`, and what a QEMU command line says of its guest. The process chooses that itself: none of
//! it is to be believed without more.

use super::lines;

/// What `/proc/<pid>/stat` says that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// The program's name, cut to 15 bytes by the kernel. It may hold blanks and parentheses.
    pub name: String,
    /// Processor time in user and kernel mode, in clock ticks.
    pub cpu_ticks: u64,
    /// When it started, in clock ticks since boot: with the pid it tells a process from a later one of the same number.
    pub start_ticks: u64,
    /// Resident memory, in pages.
    pub resident_pages: u64,
}

/// Reads `/proc/<pid>/stat`. The name ends at the last `)`, for it may hold any other.
pub fn parse_process_stat(text: &[u8]) -> Option<ProcessStat> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let name = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    // `rest` starts with field 3 of proc_pid_stat(5): the state.
    let mut fields = rest.split_ascii_whitespace();
    let user: u64 = fields.nth(14 - 3)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let start_ticks = fields.nth(22 - 16)?.parse().ok()?;
    let resident: i64 = fields.nth(24 - 23)?.parse().ok()?;
    Some(ProcessStat {
        name,
        cpu_ticks: user.saturating_add(system),
        start_ticks,
        resident_pages: u64::try_from(resident).unwrap_or(0),
    })
}

/// What `/proc/<pid>/io` says of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes sent to storage, less those of pages that were dropped before they got there.
    pub write_bytes: u64,
}

/// Reads `/proc/<pid>/io`; `None` when a line that matters is missing.
pub fn parse_process_io(text: &[u8]) -> Option<ProcessIo> {
    let value = |key: &str| {
        lines(text).find_map(|line| {
            let (name, number) = std::str::from_utf8(line).ok()?.split_once(": ")?;
            (name == key).then(|| number.trim().parse::<u64>().ok()).flatten()
        })
    };
    Some(ProcessIo {
        read_bytes: value("read_bytes")?,
        write_bytes: value("write_bytes")?.saturating_sub(value("cancelled_write_bytes").unwrap_or(0)),
    })
}

/// The numbers on vsock (CIDs) that the arguments of a QEMU process give its devices, from `/proc/<pid>/cmdline`: `-device
/// vhost-vsock-pci,guest-cid=3`, or as libvirt writes it `-device {"driver":"vhost-vsock-pci","guest-cid":3}`.
pub fn parse_guest_cids(command_line: &[u8]) -> Vec<u32> {
    let mut cids = Vec::new();
    let mut words = command_line.split(|byte| *byte == 0);
    while let Some(word) = words.next() {
        if !matches!(word, b"-device" | b"--device") {
            continue;
        }
        let Some(device) = words.next().and_then(|device| std::str::from_utf8(device).ok()) else { continue };
        cids.extend(if device.trim_start().starts_with('{') { cid_of_json(device) } else { cid_of_options(device) });
    }
    cids
}

fn cid_of_json(device: &str) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Device {
        driver: String,
        #[serde(rename = "guest-cid")]
        guest_cid: Option<u32>,
    }
    let device: Device = serde_json::from_str(device).ok()?;
    device.guest_cid.filter(|_| is_vsock(&device.driver))
}

fn cid_of_options(device: &str) -> Option<u32> {
    let (driver, options) = device.split_once(',')?;
    let driver = driver.strip_prefix("driver=").unwrap_or(driver);
    let cid = options.split(',').rev().find_map(|option| option.strip_prefix("guest-cid="))?;
    let number = match cid.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => cid.parse(),
    };
    number.ok().filter(|_| is_vsock(driver))
}

fn is_vsock(driver: &str) -> bool {
    driver.starts_with("vhost-vsock")
}

#[cfg(test)]
mod tests {
    use super::{ProcessIo, parse_guest_cids, parse_process_io, parse_process_stat};

    #[test]
    fn numbers_on_vsock() {
        let cids = |line: &str| parse_guest_cids(line.replace(' ', "\0").as_bytes());
        assert_eq!(cids("qemu -device vhost-vsock-pci,id=v0,guest-cid=42,vhostfd=7"), [42]);
        assert_eq!(cids("qemu -device driver=vhost-vsock-ccw,guest-cid=0x2a"), [42]);
        assert_eq!(
            cids(
                r#"qemu -device {"driver":"vhost-vsock-pci","id":"vsock0","guest-cid":3,"vhostfd":"24","bus":"pci.7"} -device virtio"#
            ),
            [3]
        );
        let none = [
            "echo guest-cid=42",
            "sh -c x vhost-vsock-pci,guest-cid=42",
            "qemu -device virtio-net,guest-cid=42",
            "qemu -device vhost-vsock-pci,guest-cid=4294967296",
            "qemu -device {\"guest-cid\":3}",
            "qemu -device",
        ];
        assert!(none.iter().all(|line| cids(line).is_empty()));
    }

    #[test]
    fn a_name_may_hold_anything() {
        let text = b"7 (a) R (b) S 1 7 7 0 -1 4194560 100 0 0 0 12 34 0 0 20 0 1 0 987 1000000 55 18446744073709551615 1 1 0\n";
        let stat = parse_process_stat(text).unwrap();
        assert_eq!(stat.name, "a) R (b");
        assert_eq!((stat.cpu_ticks, stat.start_ticks, stat.resident_pages), (46, 987, 55));
        assert_eq!(parse_process_stat(b"7 (x) S 1"), None);
        assert_eq!(parse_process_stat(b")("), None);
    }

    #[test]
    fn io_needs_both_directions() {
        let text = b"rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n";
        assert_eq!(parse_process_io(text), Some(ProcessIo { read_bytes: 4096, write_bytes: 4096 }));
        assert_eq!(parse_process_io(b"read_bytes: 1\n"), None);
    }
}
