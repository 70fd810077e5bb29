//! `/proc/<pid>/mountinfo` (`Documentation/filesystems/proc.rst`, section 3.5).

use super::{Parsed, parse_lines};
use minerva_model::DeviceId;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountRow {
    /// `st_dev` of the files in it: a block device, or a number without one (major 0).
    pub device: DeviceId,
    /// The directory of the file system that is mounted.
    pub root: String,
    /// Where.
    pub mount_point: String,
    /// Type of the file system, such as `ext4`, or `fuse.sshfs`.
    pub file_system: String,
    /// What is mounted, such as `/dev/sda1`; anything the file system likes.
    pub source: String,
    /// Options of the file system itself; a v1 hierarchy names its controllers here.
    pub super_options: String,
}

/// Reads `mountinfo`. Blanks in paths stand there as octal escapes and are put back.
pub fn parse_mountinfo(text: &[u8]) -> Parsed<MountRow> {
    parse_lines(text, |line| {
        let (before, after) = line.split_once(" - ")?;
        let mut words = before.split(' ').skip(2);
        let device = words.next()?.parse().ok()?;
        let root = unescape(words.next()?);
        let mount_point = unescape(words.next()?);
        let mut words = after.split(' ');
        let file_system = words.next()?.to_owned();
        let source = unescape(words.next()?);
        let super_options = words.next().unwrap_or_default().to_owned();
        Some(MountRow { device, root, mount_point, file_system, source, super_options })
    })
}

/// `\040` and the like as the bytes they stand for.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\').then(|| tail.get(..3)).flatten();
        let value =
            octal.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|d| u8::from_str_radix(d, 8).ok());
        match value {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::parse_mountinfo;

    #[test]
    fn real_lines() {
        let text = b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime shared:9 master:2 - cgroup cgroup rw,blkio\n99 27 0:50 / /mnt/with\\040blank rw - fuse.x src\\134 rw\nbroken line\n";
        let parsed = parse_mountinfo(text);
        assert_eq!(parsed.malformed.count, 1);
        assert_eq!(parsed.rows[0].source, "/dev/vda");
        assert_eq!(parsed.rows[1].super_options, "rw,blkio");
        assert_eq!(parsed.rows[2].mount_point, "/mnt/with blank");
        assert_eq!(parsed.rows[2].source, "src\\");
    }
}
