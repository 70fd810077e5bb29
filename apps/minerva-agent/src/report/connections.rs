//! Established connections over TCP, of all the network namespaces in which processes are.

use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::Process;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// Namespaces that are looked into for one report.
const NAMESPACES_MAX: usize = 64;

/// Inodes of the sockets with an established connection, read once for each namespace.
#[derive(Debug, Default)]
pub(super) struct Connections(BTreeMap<Option<OsString>, BTreeSet<u64>>);

impl Connections {
    /// How many of the sockets are connected.
    pub(super) fn of(&mut self, process: &Process, sockets: &[u64]) -> u32 {
        if sockets.is_empty() {
            return 0;
        }
        // Of another user's process not even the namespace is told; then there were no sockets to see either.
        let namespace = std::fs::read_link(format!("/proc/{}/ns/net", process.pid())).ok().map(OsString::from);
        if !self.0.contains_key(&namespace) && self.0.len() >= NAMESPACES_MAX {
            return 0;
        }
        let established = self.0.entry(namespace).or_insert_with(|| established(process));
        let count = sockets.iter().filter(|socket| established.contains(socket)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// All of them, also those whose process may not be looked at.
    pub(super) fn count(&mut self) -> u32 {
        if let Ok(own) = Process::myself() {
            let namespace = std::fs::read_link("/proc/self/ns/net").ok().map(OsString::from);
            self.0.entry(namespace).or_insert_with(|| established(&own));
        }
        // The numbers of sockets are the kernel's, one series for all namespaces.
        let count = self.0.values().flatten().collect::<BTreeSet<_>>().len();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

fn established(process: &Process) -> BTreeSet<u64> {
    let of = |table: procfs::ProcResult<Vec<TcpNetEntry>>| table.unwrap_or_default();
    let entries = of(process.tcp()).into_iter().chain(of(process.tcp6()));
    entries.filter(|entry| entry.state == TcpState::Established).map(|entry| entry.inode).collect()
}
