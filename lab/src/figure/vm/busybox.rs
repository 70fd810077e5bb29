//! What a guest runs that has no program of the host: `ionice` and `dd` of its busybox, each request by a process of its own.

use super::VmReader;
use std::fmt::Write as _;

/// A reader that has so many requests under way at random places, reports like `minerva-lab worker` once each of its loops has done a
/// request, and never ends. `start` is where the guest's disk begins on the one below, in bytes.
pub(super) fn reader(number: usize, reader: &VmReader, start: u64, device: &str) -> String {
    let bytes = u64::from(reader.block_bytes);
    let first = (reader.region_start - start) / bytes;
    let blocks = reader.region_bytes / bytes;
    let request = match reader.access.is_write() {
        true => format!("dd if=/dev/zero of={device} bs={bytes} count=1 seek=$block oflag=direct conv=notrunc"),
        false => format!("dd if={device} of=/dev/null bs={bytes} count=1 skip=$block iflag=direct"),
    };
    // The class is best effort; what else the priority holds is its level to `ionice`.
    let priority = reader.ioprio.map_or_else(String::new, |ioprio| format!("ionice -c 2 -n {} ", ioprio & 0x1fff));
    // The shell draws 15 bits at a time.
    let one = format!("block=$(({first} + (RANDOM * 32768 + RANDOM) % {blocks})); {request} 2> /dev/null");
    let report = format!(
        r#"echo "{number} {{\"progress\":{{\"at\":$(cut -d. -f1 /proc/uptime)000000000,\"bytes\":{bytes}}}}}""#
    );
    let mut script = String::new();
    for _ in 0..reader.depth {
        // Writing into a string cannot fail.
        let _ = writeln!(script, "({one} && {report}; while {one}; do :; done) &");
    }
    let commands = script.replace('\'', r"'\''");
    format!("{priority}sh -c '{commands}wait' &\n")
}

#[cfg(test)]
mod tests {
    use super::reader;
    use crate::figure::VmReader;
    use crate::workload::Access;
    use minerva_model::Nanos;

    #[test]
    fn requests_lie_within_the_region_and_have_their_priority() {
        let one = VmReader {
            access: Access::RandomRead,
            block_bytes: 4096,
            depth: 2,
            think: Nanos::ZERO,
            region_start: 3 << 20,
            region_bytes: 1 << 20,
            ioprio: Some(2 << 13 | 200),
        };
        let script = reader(1, &one, 1 << 20, "/dev/vda");
        assert!(script.starts_with("ionice -c 2 -n 200 sh -c '"), "{script}");
        assert_eq!(script.matches("; while ").count(), 2, "{script}");
        assert!(script.contains("block=$((512 + (RANDOM * 32768 + RANDOM) % 256))"), "{script}");
        let writes = reader(1, &VmReader { access: Access::RandomWrite, ..one }, 1 << 20, "/dev/vda");
        assert!(writes.contains("of=/dev/vda bs=4096 count=1 seek=$block oflag=direct"), "{writes}");
    }
}
