//! A tenant's claims on a level: one that it set, those that it holds, and its schedule. In force is the furthest step back of
//! them. Pure but for the ends that they hang on: instants are arguments, and whether a process has ended is asked by a function.

use crate::participation::ask::{Refusal, What};
use crate::participation::schedule::TimeTable;
use minerva_model::{Level, Nanos, RefusalKind};
use minerva_store::{SetLevel, StandingClaim};
use std::os::fd::OwnedFd;
use tokio::sync::mpsc::Sender;

/// Levels that one tenant may hold at once.
const HELD_MAX: usize = 64;

/// A level that was set.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) level: Level,
    pub(crate) end: End,
}

/// What ends it.
#[derive(Debug)]
pub(crate) enum End {
    Release,
    At(Nanos),
    /// The end of this process.
    Process(OwnedFd),
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
    set: Option<Set>,
    held: Vec<Held>,
    table: Option<TimeTable>,
    /// What the engine was told.
    pub(crate) in_force: Level,
}

impl Claims {
    /// What was kept of a tenant's claims. A schedule whose zone is gone is dropped.
    pub(crate) fn recalled(standing: StandingClaim) -> Self {
        let end = |until: Option<Nanos>| until.map_or(End::Release, End::At);
        Self {
            set: standing.set.map(|set| Set { level: set.level, end: end(set.until) }),
            table: standing.schedule.and_then(|schedule| TimeTable::new(schedule).ok()),
            ..Self::default()
        }
    }

    /// What is to be kept: not what ends with the daemon.
    pub(crate) fn standing(&self) -> StandingClaim {
        let set = self.set.as_ref().and_then(|set| match set.end {
            End::Release => Some(SetLevel { level: set.level, until: None }),
            End::At(until) => Some(SetLevel { level: set.level, until: Some(until) }),
            End::Process(_) => None,
        });
        StandingClaim { set, schedule: self.table.as_ref().map(|table| table.schedule().clone()) }
    }

    /// Nothing is claimed, and nothing is in force.
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_none() && self.held.is_empty() && self.table.is_none() && self.in_force == Level::Normal
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.held.len() + usize::from(self.set.is_some()) + usize::from(self.table.is_some())
    }

    /// Replaces what was set, and gives it back.
    pub(crate) fn set(&mut self, set: Option<Set>) -> Option<Set> {
        std::mem::replace(&mut self.set, set)
    }

    /// Replaces the schedule, and gives it back.
    pub(crate) fn schedule(&mut self, table: Option<TimeTable>) -> Option<TimeTable> {
        std::mem::replace(&mut self.table, table)
    }

    pub(crate) fn table(&self) -> Option<&TimeTable> {
        self.table.as_ref()
    }

    /// Another one holds a level; at the limit it is told why not.
    pub(crate) fn hold(&mut self, level: Level, changes: Sender<Result<Level, Refusal>>) -> Result<(), Refusal> {
        self.held.retain(|held| !held.changes.is_closed());
        if self.held.len() >= HELD_MAX {
            let message =
                format!("This tenant holds {HELD_MAX} levels already, which is the limit. End one of them first.");
            let refusal = Refusal { kind: RefusalKind::TooMany, message };
            What::HoldLevel { level, changes }.refuse(&refusal);
            return Err(refusal);
        }
        self.held.push(Held { level, changes, told: None });
        Ok(())
    }

    /// Takes back the latest one that holds, and tells it why.
    pub(crate) fn unhold(&mut self, refusal: &Refusal) {
        if let Some(Held { level, changes, .. }) = self.held.pop() {
            What::HoldLevel { level, changes }.refuse(refusal);
        }
    }

    /// Ends what has ended; whether what is to be kept changed.
    pub(crate) fn end(&mut self, now: Nanos, has_ended: impl Fn(&OwnedFd) -> bool) -> bool {
        self.held.retain(|held| !held.changes.is_closed());
        let over = self.set.as_ref().is_some_and(|set| match &set.end {
            End::Release => false,
            End::At(at) => *at <= now,
            End::Process(process) => has_ended(process),
        });
        if over {
            self.set = None;
        }
        over
    }

    /// The level that all of them come to, at an instant in nanoseconds since 1970.
    pub(crate) fn level(&self, unix_ns: i64) -> Level {
        let without_set = self.level_without_set(unix_ns);
        self.set.as_ref().map_or(without_set, |set| without_set.max(set.level))
    }

    /// How long the level in force lasts, if its end is known.
    pub(crate) fn left(&self, now: Nanos, unix_ns: i64) -> Option<Nanos> {
        match self.set.as_ref()? {
            Set { level, end: End::At(at) } if self.level_without_set(unix_ns) < *level => Some(at.since(now)),
            _ => None,
        }
    }

    fn level_without_set(&self, unix_ns: i64) -> Level {
        let held = self.held.iter().map(|held| held.level).max().unwrap_or_default();
        held.max(self.table.as_ref().map_or(Level::Normal, |table| table.level_at(unix_ns)))
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

#[cfg(test)]
mod tests {
    use super::{Claims, End, Set};
    use crate::participation::ask::Refusal;
    use minerva_model::{Level, Nanos, RefusalKind};
    use minerva_store::{Schedule, SetLevel, Span, StandingClaim};
    use std::os::fd::OwnedFd;
    use tokio::sync::mpsc;

    const NEVER: fn(&OwnedFd) -> bool = |_| false;

    fn set(level: Level, end: End) -> Option<Set> {
        Some(Set { level, end })
    }

    #[test]
    fn the_furthest_step_back_is_in_force_and_each_ends_with_what_it_hangs_on() {
        let mut claims = Claims::default();
        let (changes, mut heard) = mpsc::channel(4);
        claims.set(set(Level::Low, End::At(Nanos(100))));
        claims.hold(Level::Idle, changes).expect("room");
        assert_eq!((claims.level(0), claims.left(Nanos(10), 0), claims.count()), (Level::Idle, None, 2));
        claims.in_force = claims.level(0);
        claims.tell();
        claims.tell();
        assert_eq!(heard.try_recv().expect("heard").expect("a level"), Level::Idle);
        assert!(heard.try_recv().is_err(), "once is enough");
        drop(heard);
        assert!(!claims.end(Nanos(99), NEVER), "what is kept is the same");
        assert_eq!((claims.level(0), claims.left(Nanos(10), 0)), (Level::Low, Some(Nanos(90))));
        assert!(claims.end(Nanos(100), NEVER));
        assert_eq!(claims.level(0), Level::Normal);
        // In force until the engine was told.
        assert!(!claims.is_empty());
    }

    #[test]
    fn a_level_ends_with_its_process() {
        let process: OwnedFd = std::fs::File::open("/dev/null").expect("a descriptor").into();
        let mut claims = Claims::default();
        claims.set(set(Level::Lowest, End::Process(process)));
        assert!(!claims.end(Nanos(1), NEVER));
        assert_eq!((claims.level(0), claims.standing()), (Level::Lowest, StandingClaim::default()));
        assert!(claims.end(Nanos(1), |_| true));
        assert!(claims.is_empty());
    }

    #[test]
    fn what_is_kept_comes_back() {
        let span = Span { begin_minute: 0, end_minute: 0, days: 0, level: Level::Idle };
        let standing = StandingClaim {
            set: Some(SetLevel { level: Level::Low, until: Some(Nanos(50)) }),
            schedule: Some(Schedule { time_zone: "UTC".to_owned(), spans: vec![span] }),
        };
        let mut claims = Claims::recalled(standing.clone());
        assert_eq!((claims.standing(), claims.level(0)), (standing, Level::Idle));
        assert!(claims.schedule(None).is_some());
        assert_eq!(claims.level(0), Level::Low);
        assert!(claims.end(Nanos(50), NEVER));
        assert!(claims.standing().is_empty());
    }

    #[test]
    fn one_too_many_and_one_that_is_refused_are_told_why() {
        let mut claims = Claims::default();
        let mut listeners = Vec::new();
        for _ in 0..64 {
            let (changes, heard) = mpsc::channel(1);
            claims.hold(Level::Low, changes).expect("room");
            listeners.push(heard);
        }
        let (changes, mut heard) = mpsc::channel(1);
        let refusal = claims.hold(Level::Low, changes).expect_err("too many");
        assert_eq!(heard.try_recv().expect("heard"), Err(refusal));
        // Who has gone makes room.
        listeners.truncate(1);
        let (changes, mut heard) = mpsc::channel(1);
        claims.hold(Level::Low, changes).expect("room");
        let refusal = Refusal { kind: RefusalKind::NotAllowed, message: "no".to_owned() };
        claims.unhold(&refusal);
        assert_eq!(heard.try_recv().expect("heard"), Err(refusal));
        assert_eq!(claims.count(), 1);
    }
}
