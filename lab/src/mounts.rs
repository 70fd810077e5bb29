//! What is mounted where (`/proc/self/mountinfo`).

use std::path::PathBuf;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) mount_point: PathBuf,
    pub(crate) kind: String,
    pub(crate) source: String,
    /// Options of the file system itself, such as `rw,blkio`.
    pub(crate) options: String,
}

/// Everything mounted in this process's namespace; nothing where `/proc` is missing.
pub(crate) fn read_mounts() -> Vec<Mount> {
    parse_mounts(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// Lines that do not have the documented form are skipped.
pub(crate) fn parse_mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<Mount> {
    let (place, rest) = line.split_once(" - ")?;
    let mount_point = place.split(' ').nth(4)?;
    let mut rest = rest.split(' ');
    Some(Mount {
        mount_point: PathBuf::from(unescape(mount_point)),
        kind: rest.next()?.to_owned(),
        source: unescape(rest.next()?),
        options: rest.next().unwrap_or_default().to_owned(),
    })
}

/// The kernel writes blank, tab, newline and backslash as `\` and three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{Mount, parse_mounts};

    #[test]
    fn optional_fields_and_escapes_are_understood_and_garbage_is_skipped() {
        let text = "36 35 98:0 / /mnt\\0402 rw,noatime master:1 shared:2 - fuse.lab a\\040b rw,max_read=1\n\
                    garbage\n29 24 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n30 24 0:2 /";
        let mounts = parse_mounts(text);
        let first = Mount {
            mount_point: "/mnt 2".into(),
            kind: "fuse.lab".into(),
            source: "a b".into(),
            options: "rw,max_read=1".into(),
        };
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0], first);
        assert_eq!(mounts[1].options, "rw,blkio");
    }
}
