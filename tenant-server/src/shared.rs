//! What all connections share: the way to the slice loop, who is who, and the limits.

use crate::authenticate::starts::Starts;
use crate::authenticate::table::SharedIdentities;
use crate::bounds::ANSWER_WAIT_MAX;
use crate::directory::{Directory, ListedTenant};
use crate::live_settings::{LiveSettings, SharedPeriod};
use crate::refusals::{Refusals, Refused, Who};
use crate::request::{Answer, Call, NotTaken, RequestSink, TenantCall};
use crate::slots::{RequestSlot, SharedQuotas};
use crate::source::Source;
use crate::status::Denial;
use crate::waiting_slot::WaitingSlot;
use minerva_api::v1;
use minerva_clock::boottime;
use minerva_linux_observe::Roots;
use minerva_model::{Nanos, TenantId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Requests that may wait for their answer at once, and reports that may wait to be taken. The loop's queue is longer, so that operators still find a place in it.
const REQUESTS_WAITING_MAX: usize = 512;
/// One maker's ([`ListedTenant::maker`]) are at most one part in so many: where the store is slow, the requests of a few who change things would
/// take all slots.
const MAKER_PART: usize = 8;
/// A cgroup is seen within two slices; where slices are long nobody is kept waiting for so long.
const LISTED_WAIT_MAX: Nanos = Nanos::from_secs(5);
/// How often one that waits for its cgroup to be seen looks again.
const LOOK: Duration = Duration::from_millis(20);

/// Shared by all connections.
#[derive(Debug)]
pub struct Shared {
    requests: Arc<dyn RequestSink>,
    pub(crate) directory: Directory,
    pub(crate) roots: Roots,
    pub(crate) identities: SharedIdentities,
    pub(crate) starts: Starts,
    refusals: Refusals,
    period: SharedPeriod,
    waiting: Arc<Semaphore>,
    waiting_of: Arc<Mutex<BTreeMap<String, usize>>>,
    limits: SharedQuotas,
}

/// Who asks, found out.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: ListedTenant,
    /// `cgroup`, `vsock`, `certificate` or `token`.
    pub(crate) identified_by: &'static str,
}

impl Shared {
    /// `directory` and `refusals` are the loop's as well, `settings` can be changed while connections are served.
    pub fn new(
        requests: Arc<dyn RequestSink>,
        directory: Directory,
        refusals: Refusals,
        roots: Roots,
        settings: &LiveSettings,
    ) -> Self {
        let LiveSettings { identities, limits, period, .. } = settings;
        let (identities, limits, period) = (identities.clone(), limits.clone(), period.clone());
        let (waiting, waiting_of) = (Arc::new(Semaphore::new(REQUESTS_WAITING_MAX)), Arc::default());
        let starts = Starts::default();
        Self { requests, directory, roots, identities, starts, refusals, period, waiting, waiting_of, limits }
    }

    pub(crate) fn limits(&self) -> &SharedQuotas {
        &self.limits
    }

    /// Counts a request of the account, if there is room for it.
    pub(crate) fn begin(&self, account: &str) -> Result<RequestSlot, Denial> {
        RequestSlot::begin(&self.limits, account)
    }

    /// Says what a tenant was refused, unless the loop has.
    pub(crate) fn refused(&self, tenant: &ListedTenant, request: &str, what: &str, denial: &Denial) {
        if denial.is_told {
            return;
        }
        let Denial { word, message, .. } = denial;
        let who = Who::Tenant { name: &tenant.name, account: &tenant.account };
        self.refusals.note(&Refused { who, request, what, word, message });
    }

    /// Says what somebody was refused of whom nobody knows which tenant it is.
    pub(crate) fn refused_unauthenticated(&self, source: Source, described: &str, what: &str, denial: &Denial) {
        let Denial { word, message, .. } = denial;
        self.refusals.note(&Refused {
            who: Who::Unauthenticated { source, described },
            request: "",
            what,
            word,
            message,
        });
    }

    /// How long the loop may need to see a tenant, as far as anybody is kept waiting.
    fn patience(&self) -> Nanos {
        Nanos(self.period.get().0.saturating_mul(2)).min(LISTED_WAIT_MAX)
    }

    /// Looks until the tenant is listed, for as long as the loop may need to see it.
    pub(crate) async fn await_listed(&self, cgroup: &str) -> Result<ListedTenant, Denial> {
        let (patience, begin) = (self.patience(), boottime());
        loop {
            let is_complete = self.directory.is_complete();
            if let Some(listed) = self.directory.of_cgroup(cgroup) {
                return Ok(listed);
            }
            if boottime().since(begin) < patience {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            // Slices are longer than anybody is kept waiting, or the first look at the host is.
            let slice = self.period.get();
            if slice.0.saturating_mul(2) > LISTED_WAIT_MAX.0 || !is_complete {
                return Err(Denial::not_seen_yet(&format!("cgroup {cgroup}"), slice));
            }
            break;
        }
        Err(Denial::unknown_tenant(format!(
            "The cgroup {cgroup} is no tenant of Minerva: the operator's file leaves it out (daemon.include), or it has no \
             disk controller."
        )))
    }

    /// The tenant of a name that the operator's file gives. Nobody is that before the loop has looked for the first time, and a client
    /// that was known before a restart is not to be refused for good.
    pub(crate) async fn await_named(&self, name: &str) -> Result<ListedTenant, Denial> {
        let begin = boottime();
        while !self.directory.is_complete() {
            if boottime().since(begin) >= self.patience() {
                return Err(Denial::not_seen_yet(&format!("tenant {name}"), self.period.get()));
            }
            tokio::time::sleep(LOOK).await;
        }
        self.directory.of_name(name).ok_or_else(|| {
            Denial::unknown_tenant(format!(
                "The operator's file says that this is the tenant {name}, and there is none, or more than one, of this name now."
            ))
        })
    }

    /// Sends what is asked to the loop and waits for the answer.
    pub(crate) async fn ask<T>(
        &self,
        tenant: &ListedTenant,
        call: impl FnOnce(Answer<T>) -> Call,
    ) -> Result<T, Denial> {
        let slot = self.slot(tenant)?;
        let (sender, receiver) = oneshot::channel();
        self.send(tenant.id, call(sender))?;
        let patience = Duration::from_nanos(ANSWER_WAIT_MAX.0);
        let answer = tokio::time::timeout(patience, receiver).await;
        drop(slot);
        match answer {
            Err(_) => Err(Denial::no_answer(ANSWER_WAIT_MAX)),
            Ok(Err(_)) => Err(Denial::stopping()),
            Ok(Ok(Err(refusal))) => Err(Denial::of_loop(refusal)),
            Ok(Ok(Ok(answer))) => Ok(answer),
        }
    }

    /// Whether a source may begin a TLS handshake; a refusal is told.
    pub(crate) fn may_begin_handshake(&self, source: Source) -> bool {
        let name = source.to_string();
        let begun = self.limits.with(|limits, now| limits.handshake(now, &name));
        if let Err(denial) = &begun {
            self.refused_unauthenticated(source, &name, "handshake", denial);
        }
        begun.is_ok()
    }

    /// Room among the requests that wait for an answer.
    pub(crate) fn slot(&self, tenant: &ListedTenant) -> Result<WaitingSlot, Denial> {
        let slot = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| Denial::busy())?;
        let maker = tenant.maker.clone();
        let mut waiting_of = self.waiting_of.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting_of.entry(maker.clone()).or_default();
        if *count >= REQUESTS_WAITING_MAX / MAKER_PART {
            return Err(Denial::too_many_waiting(*count));
        }
        *count += 1;
        Ok(WaitingSlot::new(slot, maker, Arc::clone(&self.waiting_of)))
    }

    /// Sends a report to the loop. Nobody waits for an answer, so it has its slot until the loop takes it: else the reports of a few,
    /// sent while a slice takes long, would fill the queue.
    pub(crate) fn report(&self, tenant: &ListedTenant, report: v1::ReportRequest) -> Result<(), Denial> {
        let slot = self.slot(tenant)?;
        self.send(tenant.id, Call::Report { report: Box::new(report), slot })
    }

    /// Sends what is asked to the loop, which answers by itself.
    pub(crate) fn send(&self, tenant: TenantId, call: Call) -> Result<(), Denial> {
        self.requests.send(TenantCall { tenant, call }).map_err(|error| match error {
            NotTaken::Full => Denial::busy(),
            NotTaken::Ended => Denial::stopping(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{REQUESTS_WAITING_MAX, Shared};
    use crate::directory::Directory;
    use crate::live_settings::LiveSettings;
    use crate::refusals::Refusals;
    use crate::request::RequestSink;
    use crate::status::Denial;
    use crate::test_server::tenant;
    use minerva_api::v1;
    use minerva_config::ParticipationSettings;
    use minerva_linux_observe::Roots;
    use minerva_model::{CgroupVersion, Nanos, Role, TenantId};
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use tonic::Code;

    /// Whose loop looks so often.
    fn shared(slice: Nanos) -> Shared {
        live(slice).1
    }

    fn live(slice: Nanos) -> (LiveSettings, Shared) {
        over(Arc::new(sync_channel(1).0), slice)
    }

    fn over(requests: Arc<dyn RequestSink>, slice: Nanos) -> (LiveSettings, Shared) {
        let (cgroup, proc, sys) = (PathBuf::new(), PathBuf::new(), PathBuf::new());
        let roots = Roots { cgroup, version: CgroupVersion::V2, proc, sys };
        let settings = LiveSettings::new(&ParticipationSettings::default(), slice, None);
        let shared = Shared::new(requests, Directory::default(), Refusals::default(), roots, &settings);
        (settings, shared)
    }

    #[tokio::test]
    async fn a_slice_that_a_reload_makes_longer_is_waited_for() {
        let (mut settings, shared) = live(Nanos(1));
        shared.directory.complete();
        let word = |denial: Denial| denial.word;
        assert_eq!(shared.await_listed("new").await.map_err(word), Err("unknown-tenant"));
        settings.set(&ParticipationSettings::default(), Nanos::from_secs(60), 1);
        tokio::time::pause();
        assert_eq!(shared.await_listed("new").await.map_err(word), Err("not-seen-yet"));
    }

    #[tokio::test]
    async fn nobody_is_refused_for_good_before_the_loop_has_looked() {
        let shared = shared(Nanos(1));
        let word = |denial: Denial| (denial.code, denial.word);
        let (not_yet, nobody) = ((Code::Unavailable, "not-seen-yet"), (Code::NotFound, "unknown-tenant"));
        for expected in [not_yet, nobody] {
            assert_eq!(shared.await_named("a").await.map_err(word), Err(expected));
            assert_eq!(shared.await_listed("a").await.map_err(word), Err(expected));
            shared.directory.complete();
        }
        shared.directory.enter(&tenant(1, "a", Role::Participant));
        assert_eq!(shared.await_named("a").await.map(|listed| listed.id).map_err(word), Ok(TenantId(1)));
        assert_eq!(shared.await_listed("a/below").await.map(|listed| listed.id).map_err(word), Ok(TenantId(1)));
    }

    #[test]
    fn no_maker_takes_all_slots_of_requests_that_wait() {
        let shared = shared(Nanos::SECOND);
        let listed = |number: u64, name: &str| {
            shared.directory.enter(&tenant(number, name, Role::Participant));
            shared.directory.of_cgroup(name).expect("it is listed")
        };
        let (one, other) = (listed(1, "one"), listed(2, "other"));
        let mut slots: Vec<_> = (0..64).map(|_| shared.slot(&one).expect("room")).collect();
        let denial = shared.slot(&one).expect_err("an eighth of all");
        assert_eq!((denial.code, denial.word), (Code::ResourceExhausted, "too-many-streams"));
        assert!(shared.slot(&other).is_ok());
        slots.pop();
        assert!(shared.slot(&one).is_ok());
    }

    #[test]
    fn reports_that_the_loop_does_not_take_leave_half_of_its_queue_to_operators() {
        let (sender, queue) = sync_channel(2 * REQUESTS_WAITING_MAX);
        let shared = over(Arc::new(sender), Nanos::SECOND).1;
        let mut report = |number: u64| {
            let name = format!("t{}", number % 10);
            shared.directory.enter(&tenant(number % 10, &name, Role::Participant));
            let listed = shared.directory.of_cgroup(&name).expect("it is listed");
            shared.report(&listed, v1::ReportRequest::default()).map_err(|denial| denial.word)
        };
        let told: Vec<_> = (0..600).map(&mut report).collect();
        let taken = told.iter().take_while(|told| told.is_ok()).count();
        assert_eq!((taken, told[taken]), (REQUESTS_WAITING_MAX, Err("busy")));
        assert_eq!(told.iter().filter(|told| told.is_ok()).count(), REQUESTS_WAITING_MAX);
        drop(queue.recv().expect("a report"));
        assert_eq!([report(1), report(1)], [Ok(()), Err("busy")]);
    }

    #[tokio::test]
    async fn a_name_that_is_asked_for_too_early_is_waited_for() {
        let shared = shared(Nanos::from_secs(60));
        let come = async {
            shared.directory.enter(&tenant(1, "a", Role::Participant));
            tokio::task::yield_now().await;
            shared.directory.enter(&tenant(2, "b", Role::Participant));
            shared.directory.complete();
        };
        let (found, ()) = tokio::join!(shared.await_named("b"), come);
        assert_eq!(found.map(|listed| listed.id).map_err(|denial| denial.message), Ok(TenantId(2)));
    }
}
