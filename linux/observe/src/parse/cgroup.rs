//! `/proc/<pid>/cgroup` and `cgroup.procs`.

use super::{Parsed, parse_lines};

/// One line of `/proc/<pid>/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMembership {
    /// The controllers of a v1 hierarchy, such as `blkio` or `name=systemd`; empty for v2.
    pub controllers: Vec<String>,
    /// The group, from the root of that hierarchy, with a leading slash.
    pub path: String,
}

/// Reads `/proc/<pid>/cgroup`: `7:blkio:/path`, and `0::/path` for v2. A path may itself hold colons.
pub fn parse_cgroup_membership(text: &[u8]) -> Parsed<CgroupMembership> {
    parse_lines(text, |line| {
        let mut parts = line.splitn(3, ':');
        parts.next()?.parse::<u32>().ok()?;
        let controllers = parts.next()?.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let path = parts.next()?;
        path.starts_with('/').then(|| CgroupMembership { controllers, path: path.to_owned() })
    })
}

/// Reads `cgroup.procs`. A process of another pid namespace is printed as 0, which is passed over in silence.
pub fn parse_pids(text: &[u8]) -> Parsed<u32> {
    let mut parsed = parse_lines(text, |line| line.trim().parse::<u32>().ok());
    parsed.rows.retain(|pid| *pid != 0);
    parsed
}

#[cfg(test)]
mod tests {
    use super::{parse_cgroup_membership, parse_pids};

    #[test]
    fn memberships_of_a_hybrid_host() {
        let parsed = parse_cgroup_membership(b"9:name=systemd:/\n7:blkio,io:/a:b/c\n0::/x\nnonsense\n");
        assert_eq!(parsed.malformed.count, 1);
        assert_eq!(parsed.rows[1].controllers, ["blkio", "io"]);
        assert_eq!(parsed.rows[1].path, "/a:b/c");
        assert!(parsed.rows[2].controllers.is_empty());
    }

    #[test]
    fn pids() {
        let parsed = parse_pids(b"1\n0\n4242\nx\n");
        assert_eq!(parsed.rows, [1, 4242]);
        assert_eq!(parsed.malformed.count, 1);
    }
}
