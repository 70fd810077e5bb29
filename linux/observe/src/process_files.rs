//! What the files of one process say of it. Reading them may take for ever (`aside.rs`), so that this runs on a thread of its own.

use crate::network::network_bytes;
use crate::open_files::{FileTurns, Files};
use crate::parse::{parse_process_io, parse_process_stat};
use crate::read::Reader;
use crate::skips::Skips;
use minerva_model::TenantId;
use std::path::{Path, PathBuf};

/// A process in the observer's own network namespace is asked again about it once in so many rounds: few ever leave it.
const NETWORK_ROUNDS: u64 = 4;

/// A process as it was when it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    start_ticks: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) files: Files,
    /// It was in the observer's own network namespace when it was last asked.
    is_in_own_network: bool,
}

/// A process that is to be looked at. Those of a tenant stand side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) tenant: TenantId,
    pub(crate) pid: u32,
    pub(crate) before: Option<Last>,
    pub(crate) is_beginning: bool,
}

/// What a look at a process found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) now: Last,
    /// Nothing if that was another process.
    pub(crate) before: Last,
    pub(crate) memory_bytes: u64,
    pub(crate) network_bytes: Option<u64>,
}

/// What became of a look.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Nothing if the process has ended.
    pub(crate) found: Option<Found>,
    pub(crate) skips: Skips,
    /// Files read for it, and opened for that.
    pub(crate) files: (u64, u64),
}

/// Where processes are, and the units in which they are counted.
#[derive(Clone, Debug)]
pub(crate) struct Procfs {
    proc: PathBuf,
    tick_ns: u64,
    page_bytes: u64,
    own_network: Option<PathBuf>,
}

impl Procfs {
    pub(crate) fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
            own_network: std::fs::read_link(proc.join("self/ns/net")).ok(),
        }
    }

    /// Whether a process is in the observer's own network namespace; nothing if that cannot be read.
    fn is_in_own_network(&self, folder: &Path) -> Option<bool> {
        let namespace = std::fs::read_link(folder.join("ns/net")).ok()?;
        Some(Some(&namespace) == self.own_network.as_ref())
    }
}

/// Looks at the processes of one round.
#[derive(Debug)]
pub(crate) struct Looks<'a> {
    pub(crate) procfs: &'a Procfs,
    pub(crate) file_turns: &'a mut FileTurns,
    pub(crate) reader: &'a mut Reader,
    pub(crate) round: u64,
    /// The last tenant of which is known what its network carried.
    pub(crate) network_of: Option<TenantId>,
}

impl Looks<'_> {
    pub(crate) fn look(&mut self, question: &Question) -> Answer {
        let mut skips = Skips::default();
        let before = (self.reader.files_read, self.reader.files_opened);
        let found = self.find(question, &mut skips);
        let files = (self.reader.files_read - before.0, self.reader.files_opened - before.1);
        Answer { found, skips, files }
    }

    fn find(&mut self, question: &Question, skips: &mut Skips) -> Option<Found> {
        let Question { tenant, pid, before, is_beginning } = *question;
        let folder = self.procfs.proc.join(pid.to_string());
        let what = || format!("process {pid}");
        let stat = match self.reader.path(&folder.join("stat")) {
            Ok(text) => match parse_process_stat(text) {
                Some(stat) => stat,
                None => {
                    skips.note("/proc/<pid>/stat", 1, || format!("not understood, of {}", what()));
                    return None;
                }
            },
            Err(error) => {
                skips.unreadable("/proc/<pid>/stat", &what(), error);
                return None;
            }
        };
        let io = match self.reader.path(&folder.join("io")) {
            Ok(text) => parse_process_io(text).unwrap_or_default(),
            Err(error) => {
                skips.unreadable("/proc/<pid>/io", &what(), error);
                Default::default()
            }
        };
        let before = before.filter(|before| before.start_ticks == stat.start_ticks).unwrap_or_default();
        let mut now = Last {
            start_ticks: stat.start_ticks,
            cpu_ns: stat.cpu_ticks.saturating_mul(self.procfs.tick_ns),
            read_bytes: io.read_bytes,
            write_bytes: io.write_bytes,
            files: self.file_turns.look(&folder, before.files, is_beginning),
            is_in_own_network: before.is_in_own_network,
        };
        let is_due = (self.round + u64::from(pid)).is_multiple_of(NETWORK_ROUNDS);
        let mut carried = None;
        if self.network_of != Some(tenant) && (is_due || !before.is_in_own_network) {
            let is_own = self.procfs.is_in_own_network(&folder);
            now.is_in_own_network = is_own == Some(true);
            if is_own == Some(false) {
                carried = network_bytes(&folder, self.reader, skips);
                self.network_of = carried.and(Some(tenant)).or(self.network_of);
            }
        }
        let memory_bytes = stat.resident_pages.saturating_mul(self.procfs.page_bytes);
        Some(Found { now, before, memory_bytes, network_bytes: carried })
    }
}
