//! What each connection and each request takes of what there is, and gives back by being dropped.

use crate::quota::{QuotaExceeded, Quotas};
use crate::source::Source;
use crate::status::Denial;
use crate::unauthenticated::Unauthenticated;
use minerva_clock::boottime;
use minerva_config::TenantLimits;
use minerva_model::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// Whoever connects has to show within this who it is: longer than a cgroup that is new may take to be seen.
const AUTHENTICATION_MAX: Nanos = Nanos::from_secs(10);
/// Unauthenticated connections are at most one part in so many of all, so that they never keep a tenant out.
const UNAUTHENTICATED_PART: u32 = 4;

/// Who is told to go.
type Dropped = (Source, Option<AbortHandle>);

/// The quotas, and what is counted against them: for the server and for whoever changes them.
#[derive(Clone, Debug)]
pub(crate) struct SharedQuotas(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    settings: TenantLimits,
    limits: Quotas,
    unauthenticated: Unauthenticated<AbortHandle>,
}

impl Counts {
    /// Makes room for one more of a source, at the cost of an idle unauthenticated one. There is none when tenants hold all slots.
    fn make_room(&mut self, source: &Source) -> Result<Option<Dropped>, QuotaExceeded> {
        let TenantLimits { connections_max, connections_per_account_max, .. } = self.settings;
        if self.unauthenticated.count_of(source) >= connections_per_account_max as usize {
            return Ok(self.unauthenticated.drop_one_of(source));
        }
        let unauthenticated = self.unauthenticated.count();
        let is_full = unauthenticated + self.limits.connections() as usize >= connections_max as usize;
        if !is_full && unauthenticated < (connections_max / UNAUTHENTICATED_PART).max(1) as usize {
            return Ok(None);
        }
        self.unauthenticated.drop_one().map(Some).ok_or(QuotaExceeded::Server)
    }
}

impl SharedQuotas {
    pub(crate) fn new(settings: TenantLimits) -> Self {
        let (limits, unauthenticated) = (Quotas::new(settings), Unauthenticated::default());
        Self(Arc::new(Mutex::new(Counts { settings, limits, unauthenticated })))
    }

    /// New limits hold from the next request on.
    pub(crate) fn set(&self, settings: TenantLimits) {
        let mut counts = self.lock();
        counts.settings = settings;
        counts.limits.set(settings);
    }

    #[cfg(test)]
    pub(crate) fn settings(&self) -> TenantLimits {
        self.lock().settings
    }

    /// Looks at the counts; a denial names the limit.
    pub(crate) fn with<T>(
        &self,
        look: impl FnOnce(&mut Quotas, Nanos) -> Result<T, QuotaExceeded>,
    ) -> Result<T, Denial> {
        let now = boottime();
        let mut counts = self.lock();
        let settings = counts.settings;
        look(&mut counts.limits, now).map_err(|excess| Denial::excess(excess, &settings))
    }

    /// Admits a connection: its slot, and whose slot it takes. Refused only when tenants need all there are.
    pub(crate) fn admit(&self, source: Source) -> Result<(ConnectionSlot, Option<Source>), Denial> {
        let mut counts = self.lock();
        let settings = counts.settings;
        let dropped = counts.make_room(&source).map_err(|excess| Denial::excess(excess, &settings))?;
        let number = counts.unauthenticated.enter(boottime(), source);
        drop(counts);
        let slot = ConnectionSlot { limits: self.clone(), owner: SlotOwner::Unauthenticated(number) };
        Ok((slot, dropped.map(hang_up)))
    }

    /// Hangs up on those who have not shown in time who they are.
    pub(crate) fn drop_overdue(&self) -> Vec<Source> {
        let overdue = self.lock().unauthenticated.drop_overdue(boottime(), AUTHENTICATION_MAX);
        overdue.into_iter().map(hang_up).collect()
    }

    /// Whether nobody is connected and nothing under way.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn is_unused(&self) -> bool {
        let counts = self.lock();
        counts.limits.is_unused() && counts.unauthenticated.count() == 0
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

/// The slot of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    limits: SharedQuotas,
    owner: SlotOwner,
}

#[derive(Debug)]
enum SlotOwner {
    /// Nobody knows yet who it is.
    Unauthenticated(u64),
    /// Among the connections of an account. Beyond what that may have it is refused until there is room.
    Account { name: String, is_beyond: bool },
}

impl ConnectionSlot {
    /// Nobody knows yet who it is.
    pub(crate) const fn is_unauthenticated(&self) -> bool {
        matches!(self.owner, SlotOwner::Unauthenticated(_))
    }

    /// How it is hung up on, as long as nobody knows who it is.
    pub(crate) fn eviction(&self) -> Eviction {
        let number = match self.owner {
            SlotOwner::Unauthenticated(number) => Some(number),
            SlotOwner::Account { .. } => None,
        };
        Eviction { limits: self.limits.clone(), number }
    }

    /// Its request is being authenticated; meanwhile the connection is not idle.
    pub(crate) fn asking(&self) -> Option<Authentication> {
        let SlotOwner::Unauthenticated(number) = self.owner else { return None };
        self.limits.lock().unauthenticated.ask(number);
        Some(Authentication { limits: self.limits.clone(), number })
    }

    /// Assigns it to the account that was found. Far above the account's limit it stays an unauthenticated one.
    pub(crate) fn assign(&mut self, account: &str) -> Result<(), Denial> {
        let now = boottime();
        let mut counts = self.limits.lock();
        let settings = counts.settings;
        let Counts { limits, unauthenticated, .. } = &mut *counts;
        let excess = |excess| Denial::excess(excess, &settings);
        match &mut self.owner {
            SlotOwner::Unauthenticated(number) => {
                limits.connect(now, account).map_err(excess)?;
                unauthenticated.leave(*number);
                self.owner = SlotOwner::Account { name: account.to_owned(), is_beyond: true };
            }
            SlotOwner::Account { name, is_beyond } if name != account => {
                limits.move_connection(now, name, account);
                account.clone_into(name);
                *is_beyond = true;
            }
            SlotOwner::Account { .. } => {}
        }
        if let SlotOwner::Account { is_beyond, .. } = &mut self.owner
            && *is_beyond
        {
            limits.check_connections(account).map_err(excess)?;
            *is_beyond = false;
        }
        Ok(())
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.limits.lock();
        match &self.owner {
            SlotOwner::Unauthenticated(number) => drop(counts.unauthenticated.leave(*number)),
            SlotOwner::Account { name, .. } => counts.limits.disconnect(name),
        }
    }
}

/// How an unauthenticated connection is closed.
#[derive(Debug)]
pub(crate) struct Eviction {
    limits: SharedQuotas,
    number: Option<u64>,
}

impl Eviction {
    /// By ending this task, at once if it was to go already.
    pub(crate) fn is(&self, task: AbortHandle) {
        let Some(number) = self.number else { return };
        let late = self.limits.lock().unauthenticated.can_be_hung_up_on(number, task);
        if let Some(late) = late {
            late.abort();
        }
    }
}

/// It is being found out who asks while this is there.
#[derive(Debug)]
pub(crate) struct Authentication {
    limits: SharedQuotas,
    number: u64,
}

impl Drop for Authentication {
    fn drop(&mut self) {
        self.limits.lock().unauthenticated.asked(self.number);
    }
}

/// A request or stream that is counted while this is there.
#[derive(Debug)]
pub(crate) struct RequestSlot {
    limits: SharedQuotas,
    account: String,
    is_authentication: bool,
}

impl RequestSlot {
    /// A request of an account, if there is room for it.
    pub(crate) fn begin(limits: &SharedQuotas, account: &str) -> Result<Self, Denial> {
        limits.with(|limits, now| limits.begin(now, account))?;
        Ok(Self { limits: limits.clone(), account: account.to_owned(), is_authentication: false })
    }

    /// A request of which it is to be found out who asks.
    pub(crate) fn begin_authentication(limits: &SharedQuotas, source: Source) -> Result<Self, Denial> {
        let account = source.to_string();
        limits.with(|limits, now| limits.begin_authentication(now, &account))?;
        Ok(Self { limits: limits.clone(), account, is_authentication: true })
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        let mut counts = self.limits.lock();
        if self.is_authentication {
            counts.limits.end_authentication(&self.account);
        } else {
            counts.limits.end(&self.account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SharedQuotas;
    use crate::source::Source;
    use minerva_config::TenantLimits;

    #[test]
    fn unauthenticated_connections_make_room_for_each_other_and_for_tenants() {
        let limits = TenantLimits { connections_max: 16, connections_per_account_max: 3, ..TenantLimits::default() };
        let handle = SharedQuotas::new(limits);
        let admit = |uid| handle.admit(Source::User(uid));
        let mut crowd: Vec<_> = (0..3).map(|_| admit(1).expect("room").0).collect();
        let (slot, dropped) = admit(1).expect("its own make room");
        assert_eq!(dropped, Some(Source::User(1)));
        crowd.push(slot);
        assert!(admit(2).expect("a quarter is theirs").1.is_none());
        let lonely = admit(2).expect("room").0;
        let (mut newcomer, dropped) = admit(3).expect("the crowd makes room");
        assert_eq!(dropped, Some(Source::User(1)));
        newcomer.assign("a").expect("it is known");
        // Tenants may have all slots.
        let tenants: Vec<_> = (0..15)
            .map(|number| {
                let mut slot = admit(3).expect("room").0;
                slot.assign(&format!("account {number}")).expect("it is known");
                slot
            })
            .collect();
        assert!(lonely.is_unauthenticated());
        let denial = admit(4).expect_err("tenants need all there is");
        assert_eq!(denial.word, "busy");
        drop((tenants, lonely));
        drop(crowd);
        assert!(admit(4).is_ok());
    }

    #[test]
    fn far_above_its_limit_a_connection_stays_unauthenticated() {
        let handle = SharedQuotas::new(TenantLimits { connections_per_account_max: 1, ..TenantLimits::default() });
        let admit = |uid| handle.admit(Source::User(uid)).expect("room").0;
        let mut places: Vec<_> = (0..6).map(admit).collect();
        let told: Vec<_> = places.iter_mut().map(|slot| slot.assign("a").map_err(|denial| denial.word)).collect();
        assert_eq!(told[0], Ok(()));
        assert!(told[1..].iter().all(|told| *told == Err("too-many-connections")));
        assert!(!places[4].is_unauthenticated() && places[5].is_unauthenticated());
        drop(places);
        assert_eq!(admit(1).assign("a"), Ok(()));
    }
}
