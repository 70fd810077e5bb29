//! What the loop asks of the store's thread, and what comes back.

use minerva_model::{AccessKind, Declaration, DeviceId, Event, LearntBandwidth, Purchase, TenantHistory};
use minerva_store::{AuditRow, Posting, RequestRow, StandingClaim, Store};
use std::collections::BTreeMap;

/// Audit rows of either kind that are kept while the store fails: some minutes of a busy host, some 30 MB.
const AUDIT_ROWS_MAX: usize = 50_000;

/// Rows of one slice, or of several while the store fails.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) histories: BTreeMap<(String, DeviceId), TenantHistory>,
    pub(super) declarations: BTreeMap<String, Declaration>,
    pub(super) claims: BTreeMap<String, StandingClaim>,
    pub(super) learnt: BTreeMap<(DeviceId, AccessKind), LearntBandwidth>,
    pub(super) audit: Vec<AuditRow>,
    pub(super) requests: Vec<RequestRow>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.histories.is_empty()
            && self.declarations.is_empty()
            && self.claims.is_empty()
            && self.learnt.is_empty()
            && self.audit.is_empty()
            && self.requests.is_empty()
    }

    /// Adds what is newer; the answer is how many audit rows were given up.
    pub(super) fn merge(&mut self, newer: Self) -> u64 {
        self.histories.extend(newer.histories);
        self.declarations.extend(newer.declarations);
        self.claims.extend(newer.claims);
        self.learnt.extend(newer.learnt);
        self.audit.extend(newer.audit);
        self.requests.extend(newer.requests);
        let excess = self.audit.len().saturating_sub(AUDIT_ROWS_MAX);
        self.audit.drain(..excess);
        let excess_requests = self.requests.len().saturating_sub(AUDIT_ROWS_MAX);
        self.requests.drain(..excess_requests);
        (excess + excess_requests) as u64
    }
}

/// What is to be committed and acknowledged.
#[derive(Debug, Default)]
pub(super) struct Commits {
    pub(super) postings: Vec<Posting>,
    pub(super) claims: Vec<ClaimCommit>,
}

impl Commits {
    pub(super) fn is_empty(&self) -> bool {
        self.postings.is_empty() && self.claims.is_empty()
    }

    pub(super) fn extend(&mut self, newer: Self) {
        self.postings.extend(newer.postings);
        self.claims.extend(newer.claims);
    }
}

/// What a tenant claims, by the key of its declaration.
#[derive(Debug)]
pub(super) struct ClaimCommit {
    pub(super) number: u64,
    pub(super) key: String,
    pub(super) claim: StandingClaim,
}

/// What became of an entry.
#[derive(Clone, Debug)]
pub(super) enum Entered {
    Fresh,
    /// Nothing was added; of a purchase, the one that was made before.
    Known(Option<Purchase>),
}

/// What came of a commit. An error is a sentence.
#[derive(Debug)]
pub(super) enum Acknowledged {
    Entry { posting: Posting, posted: Result<Entered, String> },
    Claims { number: u64, kept: Result<(), String> },
}

/// The same, for the loop.
#[derive(Debug)]
pub(crate) enum Kept {
    /// For the engine.
    Entry(Event),
    /// The answer to [`Memory::claim`], by its number.
    Claims(u64, Result<(), String>),
}

/// A look into the store, or why there is none.
pub(super) type Look = Box<dyn FnOnce(Result<&Store, &str>) + Send>;

/// What the thread is asked to do.
pub(super) enum Job {
    Keep(Box<Batch>),
    Commit(Commits),
    Look(Look),
    End,
}
