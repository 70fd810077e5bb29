//! What each connection and each request takes of what there is, and gives back by being dropped.

use crate::clock::boottime;
use crate::participation::door_status::Denial;
use crate::participation::limits::{Excess, Limits};
use crate::participation::strangers::{Source, Strangers};
use minerva_config::DoorLimits;
use minerva_model::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// Whoever connects has to show within this who it is: longer than a cgroup that is new may take to be seen.
const STRANGER_PATIENCE: Nanos = Nanos::from_secs(10);
/// Connections of strangers are at most one part in so many of all, so that they never keep a tenant out.
const STRANGERS_PART: u32 = 4;

/// Who is told to go.
type Dropped = (Source, Option<AbortHandle>);

/// The limits, and what is counted against them: for the doors and for whoever changes them.
#[derive(Clone, Debug)]
pub(crate) struct LimitsHandle(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    settings: DoorLimits,
    limits: Limits,
    strangers: Strangers<AbortHandle>,
}

impl Counts {
    /// Makes room for one more of a source, at the cost of one that dawdles. Nobody dawdles when tenants fill the house.
    fn make_room(&mut self, source: &Source) -> Result<Option<Dropped>, Excess> {
        let DoorLimits { connections_max, connections_per_account_max, .. } = self.settings;
        if self.strangers.count_of(source) >= connections_per_account_max as usize {
            return Ok(self.strangers.drop_one_of(source));
        }
        let strangers = self.strangers.count();
        let is_full = strangers + self.limits.connections() as usize >= connections_max as usize;
        if !is_full && strangers < (connections_max / STRANGERS_PART).max(1) as usize {
            return Ok(None);
        }
        self.strangers.drop_one().map(Some).ok_or(Excess::Server)
    }
}

impl LimitsHandle {
    pub(crate) fn new(settings: DoorLimits) -> Self {
        let (limits, strangers) = (Limits::new(settings), Strangers::default());
        Self(Arc::new(Mutex::new(Counts { settings, limits, strangers })))
    }

    /// New limits hold from the next request on.
    pub(crate) fn set(&self, settings: DoorLimits) {
        let mut counts = self.lock();
        counts.settings = settings;
        counts.limits.set(settings);
    }

    /// Looks at the counts; a denial names the limit.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Limits, Nanos) -> Result<T, Excess>) -> Result<T, Denial> {
        let now = boottime();
        let mut counts = self.lock();
        let settings = counts.settings;
        look(&mut counts.limits, now).map_err(|excess| Denial::excess(excess, &settings))
    }

    /// Somebody connected: its place, and whose place it takes. Refused only when tenants need all there are.
    pub(crate) fn arrive(&self, source: Source) -> Result<(Place, Option<Source>), Denial> {
        let mut counts = self.lock();
        let settings = counts.settings;
        let dropped = counts.make_room(&source).map_err(|excess| Denial::excess(excess, &settings))?;
        let number = counts.strangers.enter(boottime(), source);
        drop(counts);
        let place = Place { limits: self.clone(), seat: Seat::Stranger(number) };
        Ok((place, dropped.map(hang_up)))
    }

    /// Hangs up on those who have not shown in time who they are.
    pub(crate) fn drop_overdue(&self) -> Vec<Source> {
        let overdue = self.lock().strangers.drop_overdue(boottime(), STRANGER_PATIENCE);
        overdue.into_iter().map(hang_up).collect()
    }

    /// Whether nobody is connected and nothing under way.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn is_unused(&self) -> bool {
        let counts = self.lock();
        counts.limits.is_unused() && counts.strangers.count() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hang_up((source, handle): Dropped) -> Source {
    if let Some(handle) = handle {
        handle.abort();
    }
    source
}

/// The place of one connection.
#[derive(Debug)]
pub(crate) struct Place {
    limits: LimitsHandle,
    seat: Seat,
}

#[derive(Debug)]
enum Seat {
    /// Nobody knows yet who it is.
    Stranger(u64),
    /// Among the connections of an account. Beyond what that may have it is refused until there is room.
    Account { name: String, is_beyond: bool },
}

impl Place {
    /// Nobody knows yet who it is.
    pub(crate) const fn is_strangers(&self) -> bool {
        matches!(self.seat, Seat::Stranger(_))
    }

    /// How it is hung up on, as long as nobody knows who it is.
    pub(crate) fn ending(&self) -> Ending {
        let number = match self.seat {
            Seat::Stranger(number) => Some(number),
            Seat::Account { .. } => None,
        };
        Ending { limits: self.limits.clone(), number }
    }

    /// It asks, and while that is looked into it does not dawdle.
    pub(crate) fn asking(&self) -> Option<Asking> {
        let Seat::Stranger(number) = self.seat else { return None };
        self.limits.lock().strangers.ask(number);
        Some(Asking { limits: self.limits.clone(), number })
    }

    /// It is known now whose it is. Far above the account's limit it stays a stranger's.
    pub(crate) fn sit(&mut self, account: &str) -> Result<(), Denial> {
        let now = boottime();
        let mut counts = self.limits.lock();
        let settings = counts.settings;
        let Counts { limits, strangers, .. } = &mut *counts;
        let excess = |excess| Denial::excess(excess, &settings);
        match &mut self.seat {
            Seat::Stranger(number) => {
                limits.connect(now, account).map_err(excess)?;
                strangers.leave(*number);
                self.seat = Seat::Account { name: account.to_owned(), is_beyond: true };
            }
            Seat::Account { name, is_beyond } if name != account => {
                limits.move_connection(now, name, account);
                account.clone_into(name);
                *is_beyond = true;
            }
            Seat::Account { .. } => {}
        }
        if let Seat::Account { is_beyond, .. } = &mut self.seat
            && *is_beyond
        {
            limits.check_connections(account).map_err(excess)?;
            *is_beyond = false;
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.limits.lock();
        match &self.seat {
            Seat::Stranger(number) => drop(counts.strangers.leave(*number)),
            Seat::Account { name, .. } => counts.limits.disconnect(name),
        }
    }
}

/// How a stranger is hung up on.
#[derive(Debug)]
pub(crate) struct Ending {
    limits: LimitsHandle,
    number: Option<u64>,
}

impl Ending {
    /// By ending this task, at once if it was to go already.
    pub(crate) fn is(&self, task: AbortHandle) {
        let Some(number) = self.number else { return };
        let late = self.limits.lock().strangers.can_be_hung_up_on(number, task);
        if let Some(late) = late {
            late.abort();
        }
    }
}

/// It is being found out who asks while this is there.
#[derive(Debug)]
pub(crate) struct Asking {
    limits: LimitsHandle,
    number: u64,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.limits.lock().strangers.asked(self.number);
    }
}

/// A request or stream that is counted while this is there.
#[derive(Debug)]
pub(crate) struct UnderWay {
    limits: LimitsHandle,
    account: String,
    is_knock: bool,
}

impl UnderWay {
    /// A request of an account, if there is room for it.
    pub(crate) fn begin(limits: &LimitsHandle, account: &str) -> Result<Self, Denial> {
        limits.with(|limits, now| limits.begin(now, account))?;
        Ok(Self { limits: limits.clone(), account: account.to_owned(), is_knock: false })
    }

    /// A request of which it is to be found out who asks.
    pub(crate) fn knock(limits: &LimitsHandle, source: Source) -> Result<Self, Denial> {
        let account = source.to_string();
        limits.with(|limits, now| limits.knock(now, &account))?;
        Ok(Self { limits: limits.clone(), account, is_knock: true })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = self.limits.lock();
        if self.is_knock {
            counts.limits.end_knock(&self.account);
        } else {
            counts.limits.end(&self.account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LimitsHandle;
    use crate::participation::strangers::Source;
    use minerva_config::DoorLimits;

    #[test]
    fn strangers_make_room_for_each_other_and_for_tenants() {
        let limits = DoorLimits { connections_max: 16, connections_per_account_max: 3, ..DoorLimits::default() };
        let handle = LimitsHandle::new(limits);
        let arrive = |uid| handle.arrive(Source::User(uid));
        let mut crowd: Vec<_> = (0..3).map(|_| arrive(1).expect("room").0).collect();
        let (place, dropped) = arrive(1).expect("its own make room");
        assert_eq!(dropped, Some(Source::User(1)));
        crowd.push(place);
        assert!(arrive(2).expect("a quarter is theirs").1.is_none());
        let lonely = arrive(2).expect("room").0;
        let (mut newcomer, dropped) = arrive(3).expect("the crowd makes room");
        assert_eq!(dropped, Some(Source::User(1)));
        newcomer.sit("a").expect("it is known");
        // Tenants may have the whole house.
        let tenants: Vec<_> = (0..15)
            .map(|number| {
                let mut place = arrive(3).expect("room").0;
                place.sit(&format!("account {number}")).expect("it is known");
                place
            })
            .collect();
        assert!(lonely.is_strangers());
        let denial = arrive(4).expect_err("tenants need all there is");
        assert_eq!(denial.word, "busy");
        drop((tenants, lonely));
        drop(crowd);
        assert!(arrive(4).is_ok());
    }

    #[test]
    fn far_above_its_limit_a_connection_stays_a_strangers() {
        let handle = LimitsHandle::new(DoorLimits { connections_per_account_max: 1, ..DoorLimits::default() });
        let arrive = |uid| handle.arrive(Source::User(uid)).expect("room").0;
        let mut places: Vec<_> = (0..6).map(arrive).collect();
        let told: Vec<_> = places.iter_mut().map(|place| place.sit("a").map_err(|denial| denial.word)).collect();
        assert_eq!(told[0], Ok(()));
        assert!(told[1..].iter().all(|told| *told == Err("too-many-connections")));
        assert!(!places[4].is_strangers() && places[5].is_strangers());
        drop(places);
        assert_eq!(arrive(1).sit("a"), Ok(()));
    }
}
