//! What tenants use besides the disk, from `/proc`: for forecasts (Malensek et al. 2016, section 4.1), when somebody wants it.
//!
//! Looking at a process costs tens of system calls, so that a slice looks at [`PROCESSES_A_SLICE`] of them: first for tenants that begin,
//! whose counters moved and had not in the slice before, as what they open tells of the session that begins; then for others whose
//! counters moved, both together half of them; then for those that did something within [`RECENT_ROUNDS`], who may be about to. Beside
//! them, of all the others, of whom nothing is forecast, [`IDLE_PROCESSES`] are looked at. Each kind has its turns, and whoever has more
//! processes than are left for it takes nothing from the others. A tenant is looked at whole or not at all. Cumulative numbers
//! are summed over processes by their growth, so that they stand still when a process ends and do not fall. A pid that was
//! given to another process is told by its start time. Open files have turns of their own (`open_files.rs`).
//!
//! The processes of a round are chosen first, and then asked for at once (`process_asker.rs`). A round waits for them so long and no longer:
//! one that does not answer costs the tenants of whoever runs it that anybody looks at them, until it does, and those after it this round.

use crate::guests::{guest_in, may_be_guest};
use crate::parse::parse_pressure;
use crate::pids::pids_of;
use crate::process_asker::{Outcome, ProcessAsker, Request};
use crate::process_files::{Answer, Found, Last, Procfs, Question};
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

/// Looks at processes in turns.
#[derive(Debug)]
pub(crate) struct Processes {
    proc: PathBuf,
    /// Groups of v1 have no file of pressure.
    groups_have_pressure: bool,
    totals: BTreeMap<TenantId, Totals>,
    /// The last tenant of each of the queues that had its turn: of those that begin, moved, did lately, and are at rest.
    turns: [TenantId; AT_REST + 1],
    /// The round in which each tenant last moved.
    moved: BTreeMap<TenantId, u64>,
    /// Tenants that began and have gone on since, and were not looked at yet.
    begun: BTreeSet<TenantId>,
    guest_turns: [TenantId; 2],
    asker: ProcessAsker,
    request: Request,
    answers: Vec<Answer>,
    chosen: Vec<Chosen>,
}

#[derive(Debug, Default)]
struct Totals {
    cpu_ns: u64,
    read_bytes: u64,
    write_bytes: u64,
    processes: BTreeMap<u32, Last>,
}

/// A tenant that is looked at in this round.
#[derive(Debug)]
struct Chosen {
    tenant: TenantId,
    is_beginning: bool,
    processes: usize,
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
            totals: BTreeMap::new(),
            turns: [TenantId(0); AT_REST + 1],
            moved: BTreeMap::new(),
            begun: BTreeSet::new(),
            guest_turns: [TenantId(0); 2],
            asker: ProcessAsker::new(Procfs::new(proc)),
            request: Request::default(),
            answers: Vec::new(),
            chosen: Vec::new(),
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
        self.begin_round(tenants, active, skips);
        let mut round = Round::default();
        let (mut done, mut used) = (BTreeSet::new(), 0);
        let mut look = |this: &mut Self, id: TenantId, last: Option<&mut Vec<TenantId>>| {
            let Some(known) = tenants.get(&id).filter(|_| last.is_none() || done.insert(id)) else { return 0 };
            if this.asker.is_left_out(known.tenant.maker()) {
                return 0;
            }
            if let Some(last) = last.filter(|_| this.asker.is_last(known.tenant.maker())) {
                last.push(id);
                return 0;
            }
            // Also of one that is reached in another turn, as too many begin.
            let is_beginning = this.begun.remove(&id);
            this.choose(root, known, is_beginning, &mut round, reader, skips).max(1)
        };
        let (recent, at_rest): (BTreeSet<TenantId>, BTreeSet<TenantId>) =
            tenants.keys().copied().partition(|id| self.moved.contains_key(id));
        let (begun, mut last) = (self.begun.clone(), Vec::new());
        let (half, whole) = (PROCESSES_A_SLICE / 2, PROCESSES_A_SLICE);
        let queues = [(&begun, half), (active, half), (&recent, whole), (&at_rest, whole)];
        for (queue, (members, budget)) in queues.into_iter().enumerate() {
            let budget = if queue == AT_REST { used + IDLE_PROCESSES } else { budget };
            for id in in_turns(members.iter().copied(), self.turns[queue]) {
                if used >= budget {
                    break;
                }
                self.turns[queue] = id;
                used += look(self, id, Some(&mut last));
            }
            // Who exceeds it takes nothing from the next ones.
            used = used.min(budget);
        }
        for id in last {
            used += if used < whole { look(self, id, None) } else { 0 };
        }
        self.ask(tenants, &mut round, reader, skips);
        round.usage.sort_by_key(|row| row.tenant);
        round.pressure.sort_by_key(|row| row.tenant);
        round
    }

    fn begin_round(&mut self, tenants: &BTreeMap<TenantId, Known>, active: &BTreeSet<TenantId>, skips: &mut Skips) {
        self.totals.retain(|id, _| tenants.contains_key(id));
        self.asker.begin_round(skips);
        self.request.file_turns.begin_slice();
        self.request.round += 1;
        self.note_moved(tenants, active);
    }

    /// Notes who moved in this round, and who of them begins.
    fn note_moved(&mut self, tenants: &BTreeMap<TenantId, Known>, active: &BTreeSet<TenantId>) {
        let round = self.request.round;
        self.begun.retain(|id| active.contains(id));
        for id in active {
            if self.moved.insert(*id, round).is_none_or(|last| last + 1 < round) {
                self.begun.insert(*id);
            }
        }
        self.moved.retain(|id, last| *last + RECENT_ROUNDS > round && tenants.contains_key(id));
    }

    /// Chooses one tenant; the answer is how many processes that are.
    fn choose(
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
        let last = self.totals.get(&id).map(|totals| &totals.processes);
        self.request.questions.extend(pids.iter().map(|pid| {
            let before = last.and_then(|last| last.get(pid)).copied();
            Question { tenant: id, pid: *pid, before, is_beginning }
        }));
        self.chosen.push(Chosen { tenant: id, is_beginning, processes: pids.len() });
        pids.len()
    }

    /// Looks at all that were chosen.
    fn ask(&mut self, tenants: &BTreeMap<TenantId, Known>, round: &mut Round, reader: &mut Reader, skips: &mut Skips) {
        let pids: Vec<u32> = self.request.questions.iter().map(|question| question.pid).collect();
        let outcome = self.asker.ask(&mut self.request, &mut self.answers);
        self.request.questions.clear();
        let answered = self.answers.len();
        round.processes += answered as u64;
        let mut pids = pids.into_iter();
        let mut answers = std::mem::take(&mut self.answers);
        let (mut given, mut first) = (answers.drain(..), 0);
        for chosen in std::mem::take(&mut self.chosen) {
            let after = first + chosen.processes;
            let own = given.by_ref().take(chosen.processes).zip(pids.by_ref());
            if after <= answered {
                round.usage.push(self.add_up(chosen.tenant, own, reader, skips));
            } else {
                own.for_each(drop);
                if matches!(outcome, Outcome::Silent | Outcome::UnderWay)
                    && first <= answered
                    && let Some(known) = tenants.get(&chosen.tenant)
                {
                    let pid = pids.next().unwrap_or_default();
                    self.asker.suspect(&known.tenant, pid);
                } else if chosen.is_beginning {
                    // It is looked at first in the next round.
                    self.begun.insert(chosen.tenant);
                }
            }
            first = after;
        }
        drop(given);
        self.answers = answers;
        self.asker.tell(&outcome, skips);
    }

    /// What a tenant uses, by what each of its processes answered.
    fn add_up(
        &mut self,
        tenant: TenantId,
        answers: impl Iterator<Item = (Answer, u32)>,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> TenantUsage {
        let mut usage = empty_usage(tenant);
        let totals = self.totals.entry(tenant).or_default();
        totals.processes.clear();
        for (answer, pid) in answers {
            reader.files_read += answer.files.0;
            reader.files_opened += answer.files.1;
            skips.add(answer.skips);
            let Some(Found { now, before, memory_bytes, network_bytes }) = answer.found else { continue };
            usage.processes += 1;
            usage.memory_bytes += memory_bytes;
            usage.open_files += now.files.open;
            usage.open_sockets += now.files.sockets;
            usage.open_file_bytes = usage.open_file_bytes.saturating_add(now.files.bytes);
            usage.network_bytes = usage.network_bytes.or(network_bytes);
            totals.cpu_ns += now.cpu_ns.saturating_sub(before.cpu_ns);
            totals.read_bytes += now.read_bytes.saturating_sub(before.read_bytes);
            totals.write_bytes += now.write_bytes.saturating_sub(before.write_bytes);
            totals.processes.insert(pid, now);
        }
        usage.cpu_ns = totals.cpu_ns;
        usage.process_read_bytes = totals.read_bytes;
        usage.process_write_bytes = totals.write_bytes;
        usage
    }
}
