//! Whether who asks for a file sees the tree that the link would lead to: a container that has the destination but not the tenant's mount
//! would get a link to nothing, and its program an error where the cache's absence should cost it nothing.
//!
//! The tables of mounts are compared, which may be read without `CAP_SYS_PTRACE`, and never the trees: this service does not touch its own
//! mounts.

use super::asker::Peer;
use anyhow::{Context, bail};
use minerva_linux_observe::parse::{MountRow, parse_mountinfo};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The mounts that a process sees.
#[derive(Debug)]
pub(crate) struct Mounts(Vec<MountRow>);

impl Mounts {
    /// Of the process at the other end of a connection; nothing where that cannot be told for sure.
    pub(crate) fn of_peer(stream: &UnixStream) -> Option<Self> {
        let peer = Peer::of(stream)?;
        let mounts = Self::read(&peer.pid.to_string()).ok()?;
        // If it lives now, the number was its own all the time.
        peer.is_alive().then_some(mounts)
    }

    fn read(process: &str) -> std::io::Result<Self> {
        let text = fs::read(format!("/proc/{process}/mountinfo"))?;
        Ok(Self(parse_mountinfo(&text).rows))
    }

    /// What is seen at a path. A mount hides those before it on the same path and below.
    fn at(&self, path: &Path) -> Option<&MountRow> {
        self.0.iter().rfind(|mount| path.starts_with(&mount.mount_point))
    }

    fn shows_as(&self, own: &Self, path: &Path) -> bool {
        let what =
            |mounts: &Self| mounts.at(path).map(|mount| (mount.device, mount.root.clone(), mount.mount_point.clone()));
        what(self) == what(own)
    }
}

/// Refuses who does not see at a path what this service sees there.
pub(super) fn judge_namespace(seen: Option<&Mounts>, path: &Path) -> anyhow::Result<()> {
    let own = Mounts::read("self").context("failed to read the table of mounts")?;
    if !seen.context("which mounts the program that asks sees cannot be told")?.shows_as(&own, path) {
        bail!(
            "the program that asks does not see {0} as it is mounted for minerva-fs, and a link to it would lead nowhere; give its mount \
             namespace the tenant's directory, with propagation `rslave`, or write to the destination itself",
            path.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Mounts;
    use minerva_linux_observe::parse::parse_mountinfo;
    use std::path::Path;

    fn mounts(rows: &[&str]) -> Mounts {
        let line = |(id, row): (usize, &&str)| {
            let (device, rest) = row.split_once(' ').unwrap();
            format!("{id} 1 {device} {rest} rw - fuse minerva rw\n")
        };
        Mounts(parse_mountinfo(rows.iter().enumerate().map(line).collect::<String>().as_bytes()).rows)
    }

    #[test]
    fn a_namespace_shows_a_tree_only_where_nothing_is_in_its_place() {
        let tree = Path::new("/minerva/web/stable");
        let host = mounts(&["8:1 / /", "0:40 / /minerva/web/temporary", "0:41 / /minerva/web/stable"]);
        let bound = mounts(&["0:90 / /", "8:1 /minerva/web /minerva/web", "0:41 / /minerva/web/stable"]);
        assert!(host.shows_as(&host, tree) && bound.shows_as(&host, tree));
        for others in [
            mounts(&["0:90 / /"]),
            mounts(&["0:90 / /", "8:1 /minerva/web /minerva/web", "0:40 / /minerva/web/temporary"]),
            // Of an earlier service, which is gone.
            mounts(&["0:90 / /", "0:39 / /minerva/web/stable"]),
            mounts(&["8:1 / /", "0:41 / /minerva/web/stable", "0:50 / /minerva"]),
            mounts(&["8:1 / /", "0:41 /directory /minerva/web/stable"]),
            mounts(&[]),
        ] {
            assert!(!others.shows_as(&host, tree), "{others:?}");
        }
    }
}
