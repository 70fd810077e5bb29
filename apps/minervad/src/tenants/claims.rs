//! A tenant's claims on a level: one that it set, those that its connections hold, and its schedule. What they come to is the
//! engine's to say; here is what they hang on, who is to hear what is in force, and what the store has of them. Instants are
//! arguments, and whether a process has ended is asked by a function.

use crate::tenants::schedule::TimeTable;
use minerva_model::{Level, LevelClaims, Nanos, RefusalKind, SetClaim};
use minerva_store::{BoundProcess, SetLevel, StoredClaim};
use minerva_tenant_server::process::{Process, ProcessHandle};
use minerva_tenant_server::request::{Call, Refusal};
use tokio::sync::mpsc::Sender;

/// Levels that one tenant may hold at once.
const HELD_MAX: usize = 64;

/// A level that was set.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) level: Level,
    pub(crate) end: End,
}

/// What ends it.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Release,
    At(Nanos),
    /// The end of this process.
    Process(ProcessHandle),
}

/// What outlives the daemon.
#[derive(Clone, Debug, Default)]
pub(crate) struct PersistentClaim {
    pub(crate) set: Option<Set>,
    pub(crate) table: Option<TimeTable>,
}

/// A level that is held while somebody listens.
#[derive(Debug)]
struct Held {
    level: Level,
    changes: Sender<Result<Level, Refusal>>,
    /// What the holder last heard.
    told: Option<Level>,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    pub(crate) persistent: PersistentClaim,
    /// What the store has.
    durable: PersistentClaim,
    /// The store could not be read, or not be written to: `durable` is not known.
    pub(crate) doubtful: bool,
    /// Commits under way.
    committing: u32,
    held: Vec<Held>,
    /// What the engine was told; absent when that is not known.
    pub(crate) told: Option<LevelClaims>,
    /// What the engine said that they come to.
    pub(crate) in_force: Level,
}

impl PersistentClaim {
    /// What was kept of a tenant's claims. A schedule whose zone is gone is dropped, and a level whose process has ended:
    /// `bind` finds the one that still runs.
    pub(crate) fn recalled(kept: StoredClaim, bind: impl FnOnce(Process) -> Option<ProcessHandle>) -> Self {
        let end = |kept: &SetLevel| match (kept.process, kept.until) {
            (Some(BoundProcess { pid, start_ticks }), _) => bind(Process { pid, start_ticks }).map(End::Process),
            (None, Some(until)) => Some(End::At(until)),
            (None, None) => Some(End::Release),
        };
        Self {
            set: kept.set.and_then(|set| Some(Set { level: set.level, end: end(&set)? })),
            table: kept.schedule.and_then(|schedule| TimeTable::new(schedule).ok()),
        }
    }

    /// What is to be kept.
    pub(crate) fn kept(&self) -> StoredClaim {
        let set = self.set.as_ref().map(|set| {
            let kept = SetLevel { level: set.level, until: None, process: None };
            match &set.end {
                End::Release => kept,
                End::At(until) => SetLevel { until: Some(*until), ..kept },
                End::Process(ProcessHandle { process: Process { pid, start_ticks }, .. }) => {
                    SetLevel { process: Some(BoundProcess { pid: *pid, start_ticks: *start_ticks }), ..kept }
                }
            }
        });
        StoredClaim { set, schedule: self.table.as_ref().map(|table| table.schedule().clone()) }
    }

    /// The level that it comes to without the levels that are held, at an instant in nanoseconds since 1970.
    fn level(&self, unix_ns: i64) -> Level {
        let set = self.set.as_ref().map_or(Level::Normal, |set| set.level);
        set.max(self.table.as_ref().map_or(Level::Normal, |table| table.level_at(unix_ns)))
    }

    fn is_empty(&self) -> bool {
        self.set.is_none() && self.table.is_none()
    }
}

impl Claims {
    /// The claims of a tenant of which the store has this.
    pub(crate) fn recalled(persistent: PersistentClaim) -> Self {
        Self { durable: persistent.clone(), persistent, ..Self::default() }
    }

    /// The store can be read at last. What the tenant has set meanwhile stays.
    pub(crate) fn recall_late(&mut self, persistent: PersistentClaim) {
        self.doubtful = false;
        self.durable = persistent.clone();
        let PersistentClaim { set, table } = persistent;
        self.persistent.set = self.persistent.set.take().or(set);
        self.persistent.table = self.persistent.table.take().or(table);
    }

    /// Nothing is claimed, nothing is in force, and the store has nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let durable = self.durable.is_empty() && self.committing == 0 && !self.doubtful;
        durable && self.persistent.is_empty() && self.held.is_empty() && self.in_force == Level::Normal
    }

    /// The store has it already.
    pub(crate) fn is_durable(&self) -> bool {
        self.committing == 0 && !self.doubtful && self.durable.kept() == self.persistent.kept()
    }

    /// What stands now is on its way to the store.
    pub(crate) fn commit(&mut self) {
        self.committing += 1;
    }

    /// The store has what was on its way.
    pub(crate) fn committed(&mut self, persistent: PersistentClaim) {
        self.committing = self.committing.saturating_sub(1);
        self.durable = persistent;
        self.doubtful = false;
    }

    /// The store does not have what was on its way: all is as before the tenant asked, unless it has asked for something else
    /// meanwhile. Coming back is never undone; what the store has is behind then.
    pub(crate) fn not_committed(&mut self, unix_ns: i64) {
        self.committing = self.committing.saturating_sub(1);
        if self.committing > 0 {
            return;
        }
        self.doubtful |= self.durable.level(unix_ns) > self.persistent.level(unix_ns);
        if !self.doubtful {
            self.persistent = self.durable.clone();
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.held.len() + usize::from(self.persistent.set.is_some()) + usize::from(self.persistent.table.is_some())
    }

    pub(crate) fn table(&self) -> Option<&TimeTable> {
        self.persistent.table.as_ref()
    }

    /// Another one holds a level; at the limit it is told why not.
    pub(crate) fn hold(&mut self, level: Level, changes: Sender<Result<Level, Refusal>>) -> Result<(), Refusal> {
        self.held.retain(|held| !held.changes.is_closed());
        if self.held.len() >= HELD_MAX {
            let message =
                format!("This tenant holds {HELD_MAX} levels already, which is the limit. End one of them first.");
            let refusal = Refusal::new(RefusalKind::TooMany, message);
            Call::HoldLevel { level, changes }.refuse(&refusal);
            return Err(refusal);
        }
        self.held.push(Held { level, changes, told: None });
        Ok(())
    }

    /// Takes back the latest one that holds, and tells it why.
    pub(crate) fn unhold(&mut self, refusal: &Refusal) {
        if let Some(Held { level, changes, .. }) = self.held.pop() {
            Call::HoldLevel { level, changes }.refuse(refusal);
        }
    }

    /// Ends what has ended; whether what is to be kept changed.
    pub(crate) fn end(&mut self, now: Nanos, has_ended: impl Fn(&ProcessHandle) -> bool) -> bool {
        self.held.retain(|held| !held.changes.is_closed());
        let over = self.persistent.set.as_ref().is_some_and(|set| match &set.end {
            End::Release => false,
            End::At(at) => *at <= now,
            End::Process(process) => has_ended(process),
        });
        if over {
            self.persistent.set = None;
        }
        over
    }

    /// All of them as the engine is to know them, at an instant of both clocks.
    pub(crate) fn all(&self, now: Nanos, unix_ns: i64) -> LevelClaims {
        let set = self.persistent.set.as_ref().map(|Set { level, end }| {
            let until = if let End::At(at) = end { Some(*at) } else { None };
            SetClaim { level: *level, until }
        });
        let held = self.held.iter().map(|held| held.level).collect();
        let scheduled = self.persistent.table.as_ref().map(|table| table.claim_at(now, unix_ns));
        LevelClaims { set, held, scheduled }
    }

    /// The engine was told something else, or is not known to know anything.
    pub(crate) fn is_news(&self, all: &LevelClaims) -> bool {
        match &self.told {
            None => *all != LevelClaims::default() || self.in_force != Level::Normal,
            Some(told) => !is_same(told, all),
        }
    }

    /// Tells those who hold a level what is in force, if they have not heard. One that does not read is told the next time.
    pub(crate) fn tell(&mut self) {
        for held in &mut self.held {
            if held.told != Some(self.in_force) && held.changes.try_send(Ok(self.in_force)).is_ok() {
                held.told = Some(self.in_force);
            }
        }
    }

    /// The tenant is gone, or the daemon ends: those who hold a level are told.
    pub(crate) fn close(mut self, refusal: &Refusal) {
        while !self.held.is_empty() {
            self.unhold(refusal);
        }
    }
}

/// The same claims. Between two looks the clocks drift by less than a second, unless the one on the wall was set.
fn is_same(told: &LevelClaims, all: &LevelClaims) -> bool {
    let scheduled = match (told.scheduled, all.scheduled) {
        (Some(told), Some(now)) => {
            let near = |one: Nanos, other: Nanos| one.since(other).max(other.since(one)) < Nanos::SECOND;
            let next = match (told.next, now.next) {
                (Some((one, to)), Some((other, level))) => to == level && near(one, other),
                (one, other) => one == other,
            };
            told.level == now.level && next
        }
        (one, other) => one == other,
    };
    scheduled && (told.set, &told.held) == (all.set, &all.held)
}

#[cfg(test)]
mod tests;
