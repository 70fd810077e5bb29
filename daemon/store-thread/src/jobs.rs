//! What the loop asks of the store's thread, and what comes back.

use minerva_model::{
    AccessKind, Declaration, DeviceId, Event, FittedModel, LearntBandwidth, ModelKind, Purchase, TenantHistory,
};
use minerva_store::{AuditRow, Posting, RequestRow, Store, StoredClaim};
use std::collections::{BTreeMap, BTreeSet};

/// Audit rows of either kind that are kept while the store fails: some minutes of a busy host, some 30 MB.
const AUDIT_ROWS_MAX: usize = 50_000;

/// Keys to forget that are kept while the store fails: some 10 MB.
pub(super) const FORGOTTEN_MAX: usize = 50_000;

/// Rows of one slice, or of several while the store fails.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) histories: BTreeMap<(String, DeviceId), TenantHistory>,
    pub(super) declarations: BTreeMap<String, Declaration>,
    pub(super) claims: BTreeMap<String, StoredClaim>,
    pub(super) learnt: BTreeMap<(DeviceId, AccessKind), LearntBandwidth>,
    pub(super) audit: Vec<AuditRow>,
    pub(super) requests: Vec<RequestRow>,
    /// Keys that never come back: what is remembered under them is deleted.
    pub(super) forgotten: BTreeSet<String>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.histories.is_empty()
            && self.declarations.is_empty()
            && self.claims.is_empty()
            && self.learnt.is_empty()
            && self.audit.is_empty()
            && self.requests.is_empty()
            && self.forgotten.is_empty()
    }

    /// What is remembered under the key, declared and claimed, and waits to be, is to be deleted. Of ever more keys, as there are
    /// while the store fails, some are given up: what no boot can use again is deleted anyway after the next.
    pub(super) fn forget(&mut self, key: String) {
        let first = (key.clone(), DeviceId { major: 0, minor: 0 });
        let of_key = self.histories.range(first..).take_while(|((other, _), _)| *other == key);
        let gone: Vec<_> = of_key.map(|(place, _)| place.clone()).collect();
        gone.iter().for_each(|place| drop(self.histories.remove(place)));
        self.declarations.remove(&key);
        self.claims.remove(&key);
        self.forgotten.insert(key);
        if self.forgotten.len() > FORGOTTEN_MAX {
            self.forgotten.pop_first();
        }
    }

    /// Adds what is newer; the answer is how many audit rows were given up.
    pub(super) fn merge(&mut self, newer: Self) -> u64 {
        self.histories.extend(newer.histories);
        self.declarations.extend(newer.declarations);
        self.claims.extend(newer.claims);
        self.learnt.extend(newer.learnt);
        self.audit.extend(newer.audit);
        self.requests.extend(newer.requests);
        newer.forgotten.into_iter().for_each(|key| self.forget(key));
        drop_excess(&mut self.audit, AUDIT_ROWS_MAX, |row| &row.account)
            + drop_excess(&mut self.requests, AUDIT_ROWS_MAX, |row| &row.account)
    }
}

/// Leaves so many rows: each account has its newest, up to an equal part of the room; how many went.
fn drop_excess<T>(rows: &mut Vec<T>, rows_max: usize, account: impl Fn(&T) -> &str) -> u64 {
    if rows.len() <= rows_max {
        return 0;
    }
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *left.entry(account(row).to_owned()).or_default() += 1);
    // Those with least have all that they have, and leave the rest to the others.
    let mut counts: Vec<usize> = left.values().copied().collect();
    counts.sort_unstable();
    let (mut room, mut accounts, mut part) = (rows_max, counts.len(), usize::MAX);
    for count in counts {
        part = room / accounts;
        if count > part {
            break;
        }
        (room, accounts) = (room - count, accounts - 1);
    }
    let before = rows.len();
    rows.retain(|row| {
        let Some(left) = left.get_mut(account(row)) else { return true };
        *left -= 1;
        *left < part
    });
    (before - rows.len()) as u64
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
    pub(super) claim: StoredClaim,
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
pub enum Kept {
    /// For the engine.
    Entry(Box<Event>),
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
    Models(BTreeMap<ModelKind, FittedModel>),
    End,
}

#[cfg(test)]
mod tests {
    use super::drop_excess;

    #[test]
    fn rows_that_wait_are_given_up_by_whoever_has_most() {
        let mut rows: Vec<(&str, usize)> = (0..3).map(|number| ("quiet", number)).collect();
        rows.extend((3..103).map(|number| ("flood", number)));
        rows.extend((103..113).map(|number| ("some", number)));
        assert_eq!(drop_excess(&mut rows, 40, |row| row.0), 113 - 40);
        let of = |name| rows.iter().filter(|row| row.0 == name).map(|row| row.1).collect::<Vec<_>>();
        assert_eq!((of("quiet").len(), of("some").len()), (3, 10));
        assert_eq!(of("flood"), (76..103).collect::<Vec<_>>());
        assert_eq!(drop_excess(&mut rows, 40, |row| row.0), 0);
    }
}
