//! What the slice loop keeps for tenants that take part: their claims, who waits for which answer, and their agents' reports.

use crate::tenants::claims::{Claims, PersistentClaim};
use crate::tenants::held_debts::Debts;
use crate::tenants::reports::Reports;
use minerva_api::v1;
use minerva_config::ParticipationSettings;
use minerva_linux_observe::AsideThreads;
use minerva_model::{Grant, LedgerEntry, Level, MigrationAnswer, RefusalKind, RequestId, TenantId};
use minerva_tenant_server::directory::Directory;
use minerva_tenant_server::live_settings::LiveSettings;
use minerva_tenant_server::refusals::Refusals;
use minerva_tenant_server::request::{Answer, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc::Sender;

/// Answers to one key that are waited for at once: a client that came back before its old connection was missed.
const WAITING_PER_KEY_MAX: usize = 8;

/// Threads that may wait at once for processes to which recalled levels are bound: each holds up the loop for a quarter of a second, once.
const BINDING_THREADS: usize = 8;

/// How the engine answered.
pub(crate) type EngineAnswer = Result<Grant, Refusal>;

/// What the engine says to those who asked, while it handles one event. The driver hands it back, and does not interpret it.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) answers: Vec<Answered>,
    /// Answers to the cache.
    pub(crate) migrations: Vec<MigrationAnswer>,
    /// What is to go into the ledger.
    pub(crate) entries: Vec<LedgerEntry>,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) tenant: TenantId,
    pub(crate) id: RequestId,
    pub(crate) result: EngineAnswer,
}

/// Who waits for an answer that comes later.
#[derive(Debug)]
pub(crate) enum Waiting {
    Boost {
        slices: u32,
        answer: Answer<v1::BoostResponse>,
    },
    Operation(Sender<Result<v1::CoordinateResponse, Refusal>>),
    /// An operator, for what `text` says.
    Adjustment {
        text: String,
        answer: Answer<v1::AdjustCreditsResponse>,
    },
    /// The cache, for what it moved.
    Migration(Answer<v1::ReportMigrationResponse>),
}

impl Waiting {
    /// Nobody waits any more.
    fn is_over(&self) -> bool {
        match self {
            Self::Boost { answer, .. } => answer.is_closed(),
            Self::Operation(answers) => answers.is_closed(),
            Self::Migration(answer) => answer.is_closed(),
            // The audit has what becomes of it, whoever has gone.
            Self::Adjustment { .. } => false,
        }
    }

    pub(crate) fn refuse(self, refusal: &Refusal) {
        // Whoever waited may have gone.
        match self {
            Self::Boost { answer, .. } => drop(answer.send(Err(refusal.clone()))),
            Self::Operation(answers) => drop(answers.try_send(Err(refusal.clone()))),
            Self::Adjustment { answer, .. } => drop(answer.send(Err(refusal.clone()))),
            Self::Migration(answer) => drop(answer.send(Err(refusal.clone()))),
        }
    }

    /// What came of it will not be heard.
    fn give_up(self, refusal: &Refusal) {
        match self {
            // It may be on its way to the ledger.
            Self::Adjustment { .. } => {
                let message = format!("{} `minerva-ctl audit` tells whether it was done before.", refusal.message);
                self.refuse(&Refusal::new(RefusalKind::NotCommitted, message));
            }
            Self::Boost { .. } | Self::Operation(_) | Self::Migration(_) => self.refuse(refusal),
        }
    }
}

/// What a tenant set and scheduled, on its way to the store.
pub(crate) struct Committing {
    pub(crate) tenant: TenantId,
    pub(crate) persistent: PersistentClaim,
    /// Absent when it ended by itself.
    pub(crate) answer: Option<Answer<Level>>,
}

/// See the file's documentation.
pub(crate) struct Parts {
    /// The tenants, for their server.
    pub(crate) directory: Directory,
    /// What that server takes from a new file.
    pub(crate) live_settings: LiveSettings,
    pub(crate) refusals: Refusals,
    pub(crate) claims: BTreeMap<TenantId, Claims>,
    /// Ask for the processes to which recalled levels are bound.
    pub(crate) binding: AsideThreads,
    /// By the number of the commit.
    pub(crate) committing: BTreeMap<u64, Committing>,
    /// Tenants of which the store could not be asked what it knows.
    pub(crate) unread: BTreeSet<TenantId>,
    pub(crate) reports: Reports,
    /// What tenants owe.
    pub(crate) debts: Debts,
    waiting: BTreeMap<(TenantId, RequestId), Vec<Waiting>>,
    /// Counts the requests that the loop makes itself.
    own_requests: u64,
}

impl Parts {
    /// Nobody takes part yet.
    pub(crate) fn new(refusals: Refusals, live_settings: LiveSettings) -> Self {
        Self {
            directory: Directory::default(),
            live_settings,
            refusals,
            claims: BTreeMap::new(),
            binding: AsideThreads::new(BINDING_THREADS),
            committing: BTreeMap::new(),
            unread: BTreeSet::new(),
            reports: Reports::default(),
            debts: Debts::default(),
            waiting: BTreeMap::new(),
            own_requests: 0,
        }
    }

    /// Tenants of `[[identities]]` that are not there; each is told once.
    pub(crate) fn missing_tenants(&mut self, settings: &ParticipationSettings, slice: u64) -> Vec<String> {
        self.live_settings.missing(settings, slice, &self.directory)
    }

    /// A key for a request without one of a client's: `minerva:origin-N`, which no client can choose.
    pub(crate) fn own_key(&mut self, origin: &str) -> RequestId {
        self.own_requests += 1;
        RequestId(format!("{}{origin}-{}", RequestId::OWN_PREFIX, self.own_requests))
    }

    /// Somebody waits for an answer that comes later. Of too many under one key the oldest is let go.
    pub(crate) fn wait(&mut self, tenant: TenantId, id: RequestId, waiting: Waiting) {
        let same = self.waiting.entry((tenant, id)).or_default();
        same.retain(|one| !one.is_over());
        if same.len() >= WAITING_PER_KEY_MAX {
            same.remove(0);
        }
        same.push(waiting);
    }

    /// Those who waited for an answer.
    pub(crate) fn waited(&mut self, tenant: TenantId, id: &RequestId) -> Vec<Waiting> {
        self.waiting.remove(&(tenant, id.clone())).unwrap_or_default()
    }

    /// Forgets those who wait no more.
    pub(crate) fn sweep(&mut self) {
        self.waiting.retain(|_, same| {
            same.retain(|one| !one.is_over());
            !same.is_empty()
        });
    }

    /// Everyone who waits, or holds a level, is told that it is in vain: of one tenant, or of all.
    pub(crate) fn give_up(&mut self, only: Option<TenantId>, refusal: &Refusal) {
        let concerned = |tenant: TenantId| only.is_none_or(|only| only == tenant);
        let (gone, stay) =
            std::mem::take(&mut self.waiting).into_iter().partition(|((tenant, _), _)| concerned(*tenant));
        self.waiting = stay;
        let gone: BTreeMap<(TenantId, RequestId), Vec<Waiting>> = gone;
        gone.into_values().flatten().for_each(|waiting| waiting.give_up(refusal));
        let (gone, stay) = std::mem::take(&mut self.committing).into_iter().partition(|(_, one)| concerned(one.tenant));
        self.committing = stay;
        let gone: BTreeMap<u64, Committing> = gone;
        let answers = gone.into_values().filter_map(|one| one.answer);
        answers.for_each(|answer| drop(answer.send(Err(refusal.clone()))));
        let (gone, stay) = std::mem::take(&mut self.claims).into_iter().partition(|(tenant, _)| concerned(*tenant));
        self.claims = stay;
        let gone: BTreeMap<TenantId, Claims> = gone;
        gone.into_values().for_each(|claims| claims.close(refusal));
        self.debts.give_up(only, refusal);
    }
}
