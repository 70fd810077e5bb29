//! Whether who asks for a file sees the tree that the link would lead to: a container that has the destination but not the tenant's mount
//! would get a link to nothing, and its program an error where the cache's absence should cost it nothing.
//!
//! The tables of mounts are compared, which may be read without `CAP_SYS_PTRACE`, and never the trees: this service does not touch its own
//! mounts.

use super::asker::Peer;
use anyhow::{Context, bail, ensure};
use minerva_linux_observe::parse::{MountRow, parse_mountinfo};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A user can make a table of gigabytes in a namespace of its own, and ask again and again: a longer one than this is not read.
const TABLE_BYTES_MAX: u64 = 4 << 20;

/// Refuses who does not see at a path what this service sees there.
pub(super) fn judge_namespace(peer: Option<&Peer>, path: &Path) -> anyhow::Result<()> {
    let untold = "which mounts the program that asks sees cannot be told";
    let peer = peer.context(untold)?;
    let seen = mount_at(table_of(&peer.pid.to_string()).context(untold)?, TABLE_BYTES_MAX, path)?;
    // If it lives now, the number was its own all the time.
    ensure!(peer.is_alive(), untold);
    // That of the host is the operator's.
    let own = table_of("self").and_then(|table| mount_at(table, u64::MAX, path));
    if !shows_same(seen.as_ref(), own.context("failed to read the table of mounts")?.as_ref()) {
        bail!(
            "the program that asks does not see {0} as it is mounted for minerva-fs, and a link to it would lead nowhere; give its mount \
             namespace the tenant's directory, with propagation `rslave`, or write to the destination itself",
            path.display()
        );
    }
    Ok(())
}

/// The mounts that a process sees.
fn table_of(process: &str) -> anyhow::Result<BufReader<File>> {
    Ok(BufReader::new(File::open(format!("/proc/{process}/mountinfo"))?))
}

/// What is seen at a path, by a table of at most so many bytes. A mount hides those before it on the same path and below.
fn mount_at(table: impl BufRead, bytes_max: u64, path: &Path) -> anyhow::Result<Option<MountRow>> {
    let mut table = table.take(bytes_max);
    let (mut found, mut line) = (None, Vec::new());
    while table.read_until(b'\n', &mut line).context("failed to read a table of mounts")? > 0 {
        let rows = parse_mountinfo(&line).rows;
        found = rows.into_iter().rfind(|mount| path.starts_with(&mount.mount_point)).or(found);
        line.clear();
    }
    if table.limit() == 0 {
        bail!(
            "the program that asks sees so many mounts that their table has more than {} MiB; write to the destination itself, or run the \
             program in a mount namespace with fewer",
            bytes_max >> 20
        );
    }
    Ok(found)
}

fn shows_same(one: Option<&MountRow>, other: Option<&MountRow>) -> bool {
    let what = |mount: &MountRow| (mount.device, mount.root.clone(), mount.mount_point.clone());
    one.map(what) == other.map(what)
}

#[cfg(test)]
mod tests {
    use super::{TABLE_BYTES_MAX, mount_at, shows_same};
    use minerva_linux_observe::parse::MountRow;
    use std::io::{BufReader, Read, repeat};
    use std::path::Path;

    const TREE: &str = "/minerva/web/stable";

    fn seen(rows: &[&str]) -> Option<MountRow> {
        let line = |(id, row): (usize, &&str)| {
            let (device, rest) = row.split_once(' ').unwrap();
            format!("{id} 1 {device} {rest} rw - fuse minerva rw\n")
        };
        let table: String = rows.iter().enumerate().map(line).collect();
        mount_at(table.as_bytes(), TABLE_BYTES_MAX, Path::new(TREE)).unwrap()
    }

    #[test]
    fn a_namespace_shows_a_tree_only_where_nothing_is_in_its_place() {
        let host = seen(&["8:1 / /", "0:40 / /minerva/web/temporary", "0:41 / /minerva/web/stable"]);
        let bound = seen(&["0:90 / /", "8:1 /minerva/web /minerva/web", "0:41 / /minerva/web/stable"]);
        assert!(host.is_some() && shows_same(bound.as_ref(), host.as_ref()));
        for others in [
            seen(&["0:90 / /"]),
            seen(&["0:90 / /", "8:1 /minerva/web /minerva/web", "0:40 / /minerva/web/temporary"]),
            // Of an earlier service, which is gone.
            seen(&["0:90 / /", "0:39 / /minerva/web/stable"]),
            seen(&["8:1 / /", "0:41 / /minerva/web/stable", "0:50 / /minerva"]),
            seen(&["8:1 / /", "0:41 /directory /minerva/web/stable"]),
            seen(&[]),
        ] {
            assert!(!shows_same(others.as_ref(), host.as_ref()), "{others:?}");
        }
    }

    #[test]
    fn a_table_of_mounts_without_end_is_refused_and_read_no_further() {
        let row = "1 1 8:1 / /minerva rw - ext4 /dev/sda1 rw\n";
        let many = BufReader::new(row.as_bytes().chain(repeat(b'x')));
        let refused = mount_at(many, TABLE_BYTES_MAX, Path::new(TREE)).unwrap_err();
        assert!(refused.to_string().contains("more than 4 MiB"), "{refused}");
    }
}
