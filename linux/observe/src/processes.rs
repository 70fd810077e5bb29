//! What tenants use besides the disk, from `/proc`: for forecasts (Malensek et al. 2016, section 4.1), when somebody wants it.
//!
//! Looking at a process costs tens of system calls, so that a slice looks at [`PROCESSES_A_SLICE`] of them: first for tenants that begin,
//! whose counters moved and had not in the slice before, as what they open tells of the session that begins; then for others whose
//! counters moved, both together half of them; then for those that did something within [`RECENT_ROUNDS`], who may be about to. Beside
//! them, of all the others, of whom nothing is forecast, [`IDLE_PROCESSES`] are looked at. Each kind has its turns, and whoever has more
//! processes than are left for it takes nothing from the others. A tenant is looked at whole or not at all. Cumulative numbers
//! are summed over processes by their growth, so that they stand still when a process ends and do not fall. A pid that was
//! given to another process is told by its start time. Open files have turns of their own (`open_files.rs`).

use crate::guests::{guest_in, may_be_guest};
use crate::network::network_bytes;
use crate::open_files::{FileTurns, Files};
use crate::parse::{parse_pressure, parse_process_io, parse_process_stat};
use crate::pids::pids_of;
use crate::read::Reader;
use crate::skips::Skips;
use crate::tenants::Known;
use crate::turns::{empty_usage, in_turns};
use minerva_model::{CgroupVersion, TenantId, TenantPressure, TenantUsage};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Processes looked at in one slice, beside [`IDLE_PROCESSES`]; one tenant of each queue may exceed it.
const PROCESSES_A_SLICE: usize = 64;
/// A tenant that did nothing for so many rounds is at rest: a forecaster has forgotten it by then.
const RECENT_ROUNDS: u64 = 900;
/// The last of the queues.
const AT_REST: usize = 3;
/// Processes of tenants at rest that are looked at in one slice.
const IDLE_PROCESSES: usize = 4;
/// Tenants that are looked at in one slice for whether they are QEMU guests: half of them such whose counters just moved.
const GUESTS_A_SLICE: usize = 16;
/// A process in the observer's own network namespace is asked again about it once in so many rounds: few ever leave it.
const NETWORK_ROUNDS: u64 = 4;

/// Looks at processes in turns.
#[derive(Debug)]
pub(crate) struct Processes {
    proc: PathBuf,
    /// Groups of v1 have no file of pressure.
    groups_have_pressure: bool,
    tick_ns: u64,
    page_bytes: u64,
    own_network: Option<PathBuf>,
    totals: BTreeMap<TenantId, Totals>,
    /// The last tenant of each of the queues that had its turn: of those that begin, moved, did lately, and are at rest.
    turns: [TenantId; AT_REST + 1],
    /// The round in which each tenant last moved.
    moved: BTreeMap<TenantId, u64>,
    /// Tenants that began and have gone on since, and were not looked at yet.
    begun: BTreeSet<TenantId>,
    guest_turns: [TenantId; 2],
    file_turns: FileTurns,
    rounds: u64,
}

#[derive(Debug, Default)]
struct Totals {
    cpu_ns: u64,
    read_bytes: u64,
    write_bytes: u64,
    processes: BTreeMap<u32, Last>,
}

/// A process as it was when it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    start_ticks: u64,
    cpu_ns: u64,
    read_bytes: u64,
    write_bytes: u64,
    files: Files,
    /// It was in the observer's own network namespace when it was last asked.
    is_in_own_network: bool,
}

/// What one round gave.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) usage: Vec<TenantUsage>,
    pub(crate) pressure: Vec<TenantPressure>,
    /// Processes looked at, for tests and benchmarks.
    pub(crate) processes: u64,
}

impl Processes {
    pub(crate) fn new(proc: &Path, version: CgroupVersion) -> Self {
        Self {
            proc: proc.to_owned(),
            groups_have_pressure: version == CgroupVersion::V2,
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
            own_network: std::fs::read_link(proc.join("self/ns/net")).ok(),
            totals: BTreeMap::new(),
            turns: [TenantId(0); AT_REST + 1],
            moved: BTreeMap::new(),
            begun: BTreeSet::new(),
            guest_turns: [TenantId(0); 2],
            file_turns: FileTurns::default(),
            rounds: 0,
        }
    }

    /// Nobody wants to know what tenants use: nothing is kept of it.
    pub(crate) fn forget(&mut self) {
        self.totals.clear();
        self.moved.clear();
        self.begun.clear();
    }

    /// Tenants that turned out to be QEMU guests, with the guest's name, of as many as the budget allows. Two files each, and nothing
    /// of who is known to be one.
    pub(crate) fn guests(
        &mut self,
        root: &OwnedFd,
        tenants: &BTreeMap<TenantId, Known>,
        active: &BTreeSet<TenantId>,
        reader: &mut Reader,
    ) -> Vec<(TenantId, String)> {
        let mut guests = Vec::new();
        let may_be = |id: &TenantId| tenants.get(id).is_some_and(|known| may_be_guest(known.tenant.kind));
        let active = in_turns(active.iter().copied(), self.guest_turns[0]).filter(may_be).take(GUESTS_A_SLICE / 2);
        let everyone = in_turns(tenants.keys().copied(), self.guest_turns[1]).filter(may_be).take(GUESTS_A_SLICE);
        let chosen: [Vec<TenantId>; 2] = [active.collect(), everyone.collect()];
        for (queue, chosen) in chosen.into_iter().enumerate() {
            for id in chosen {
                self.guest_turns[queue] = id;
                let Some(known) = tenants.get(&id) else { continue };
                let name = guest_in(root, &self.proc, &known.tenant.cgroup.path, reader);
                guests.extend(name.map(|name| (id, name)));
            }
        }
        guests
    }

    /// Looks at as many tenants as the budget allows.
    pub(crate) fn round(
        &mut self,
        root: &OwnedFd,
        tenants: &BTreeMap<TenantId, Known>,
        active: &BTreeSet<TenantId>,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> Round {
        self.totals.retain(|id, _| tenants.contains_key(id));
        self.file_turns.begin_slice();
        self.rounds += 1;
        self.note_moved(tenants, active);
        let mut round = Round::default();
        let (mut done, mut used) = (BTreeSet::new(), 0);
        let mut look = |this: &mut Self, id: TenantId| {
            let Some(known) = tenants.get(&id).filter(|_| done.insert(id)) else { return 0 };
            // Also of one that is reached in another turn, as too many begin.
            let is_beginning = this.begun.remove(&id);
            this.look(root, known, is_beginning, &mut round, reader, skips).max(1)
        };
        let (recent, at_rest): (BTreeSet<TenantId>, BTreeSet<TenantId>) =
            tenants.keys().copied().partition(|id| self.moved.contains_key(id));
        let begun = self.begun.clone();
        let (half, whole) = (PROCESSES_A_SLICE / 2, PROCESSES_A_SLICE);
        let queues = [(&begun, half), (active, half), (&recent, whole), (&at_rest, whole)];
        for (queue, (members, budget)) in queues.into_iter().enumerate() {
            let budget = if queue == AT_REST { used + IDLE_PROCESSES } else { budget };
            for id in in_turns(members.iter().copied(), self.turns[queue]) {
                if used >= budget {
                    break;
                }
                self.turns[queue] = id;
                used += look(self, id);
            }
            // Who exceeds it takes nothing from the next ones.
            used = used.min(budget);
        }
        round.usage.sort_by_key(|row| row.tenant);
        round.pressure.sort_by_key(|row| row.tenant);
        round
    }

    /// Notes who moved in this round, and who of them begins.
    fn note_moved(&mut self, tenants: &BTreeMap<TenantId, Known>, active: &BTreeSet<TenantId>) {
        let round = self.rounds;
        self.begun.retain(|id| active.contains(id));
        for id in active {
            if self.moved.insert(*id, round).is_none_or(|last| last + 1 < round) {
                self.begun.insert(*id);
            }
        }
        self.moved.retain(|id, last| *last + RECENT_ROUNDS > round && tenants.contains_key(id));
    }

    /// Looks at one tenant; the answer is how many processes that were.
    fn look(
        &mut self,
        root: &OwnedFd,
        known: &Known,
        is_beginning: bool,
        round: &mut Round,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> usize {
        let (id, path) = (known.tenant.id, known.tenant.cgroup.path.as_str());
        if let Some(Ok(text)) =
            self.groups_have_pressure.then(|| reader.below(root.as_fd(), &format!("{path}/io.pressure")))
        {
            let (pressure, malformed) = parse_pressure(text);
            skips.malformed("io.pressure", path, &malformed);
            round.pressure.extend(pressure.map(|pressure| TenantPressure { tenant: id, pressure }));
        }
        let pids = pids_of(root, known, reader, skips);
        round.processes += pids.len() as u64;
        let mut usage = empty_usage(id);
        let mut totals = self.totals.remove(&id).unwrap_or_default();
        let mut still_there = BTreeMap::new();
        for pid in &pids {
            let folder = self.proc.join(pid.to_string());
            let before = totals.processes.get(pid).copied();
            let seen = (*pid, before, is_beginning);
            let Some((mut last, before)) = self.look_at_process(&folder, seen, &mut usage, reader, skips) else {
                continue;
            };
            totals.cpu_ns += last.cpu_ns.saturating_sub(before.cpu_ns);
            totals.read_bytes += last.read_bytes.saturating_sub(before.read_bytes);
            totals.write_bytes += last.write_bytes.saturating_sub(before.write_bytes);
            let is_due = (self.rounds + u64::from(*pid)).is_multiple_of(NETWORK_ROUNDS);
            if usage.network_bytes.is_none() && (is_due || !before.is_in_own_network) {
                let is_own = self.is_in_own_network(&folder);
                last.is_in_own_network = is_own == Some(true);
                if is_own == Some(false) {
                    usage.network_bytes = network_bytes(&folder, reader, skips);
                }
            }
            still_there.insert(*pid, last);
        }
        totals.processes = still_there;
        usage.cpu_ns = totals.cpu_ns;
        usage.process_read_bytes = totals.read_bytes;
        usage.process_write_bytes = totals.write_bytes;
        self.totals.insert(id, totals);
        round.usage.push(usage);
        pids.len()
    }

    /// Adds what one process has now to `usage`, and answers with how it is and was; `None` when it ended. What was `before` is
    /// nothing if that was another process.
    fn look_at_process(
        &mut self,
        folder: &Path,
        (pid, before, is_beginning): (u32, Option<Last>, bool),
        usage: &mut TenantUsage,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> Option<(Last, Last)> {
        let what = |kind: &str| format!("process {pid}{kind}");
        let stat = match reader.path(&folder.join("stat")) {
            Ok(text) => match parse_process_stat(text) {
                Some(stat) => stat,
                None => {
                    skips.note("/proc/<pid>/stat", 1, || format!("not understood, of {}", what("")));
                    return None;
                }
            },
            Err(error) => {
                skips.unreadable("/proc/<pid>/stat", &what(""), error);
                return None;
            }
        };
        let io = match reader.path(&folder.join("io")) {
            Ok(text) => parse_process_io(text).unwrap_or_default(),
            Err(error) => {
                skips.unreadable("/proc/<pid>/io", &what(""), error);
                Default::default()
            }
        };
        usage.processes += 1;
        usage.memory_bytes += stat.resident_pages.saturating_mul(self.page_bytes);
        let before = before.filter(|before| before.start_ticks == stat.start_ticks).unwrap_or_default();
        let files = self.file_turns.look(folder, before.files, is_beginning);
        usage.open_files += files.open;
        usage.open_sockets += files.sockets;
        usage.open_file_bytes = usage.open_file_bytes.saturating_add(files.bytes);
        let now = Last {
            start_ticks: stat.start_ticks,
            cpu_ns: stat.cpu_ticks.saturating_mul(self.tick_ns),
            read_bytes: io.read_bytes,
            write_bytes: io.write_bytes,
            files,
            is_in_own_network: before.is_in_own_network,
        };
        Some((now, before))
    }

    /// Whether a process is in the observer's own network namespace; nothing if that cannot be read.
    fn is_in_own_network(&self, folder: &Path) -> Option<bool> {
        let namespace = std::fs::read_link(folder.join("ns/net")).ok()?;
        Some(Some(&namespace) == self.own_network.as_ref())
    }
}
