//! `minerva-ctl audit`: what tenants asked for and were answered, merged with the entries of the ledger.

use crate::access::Access;
use minerva_api::v1;
use minerva_store::{LedgerRow, RequestRow, Store, StoreError, Whose};
use minerva_store_thread::Questions;
use std::collections::{BTreeMap, BTreeSet};
use tonic::Status;

/// Entries of one answer unless the request says otherwise, and the most that one can have: all are in memory until the client has read
/// them.
const ENTRIES_DEFAULT: u32 = 1_000;
const ENTRIES_MAX: u32 = 100_000;
const ENTRIES_OF_VIEWERS_MAX: u32 = 10_000;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// How many entries a request is to have. The error says how many a viewer may ask for.
pub(crate) fn entries_max(request: &v1::AuditRequest, access: Access) -> Result<u32, Status> {
    match request.entries_max {
        0 => Ok(ENTRIES_DEFAULT),
        most if access == Access::Viewer && most > ENTRIES_OF_VIEWERS_MAX => Err(Status::invalid_argument(format!(
            "members of daemon.viewer_group get at most {ENTRIES_OF_VIEWERS_MAX} entries at a time: ask for no more, with --entries, or \
             as an operator"
        ))),
        most => Ok(most.min(ENTRIES_MAX)),
    }
}

/// More than usual, so that a user has one such answer at a time.
pub(crate) fn is_long(request: &v1::AuditRequest) -> bool {
    request.entries_max > ENTRIES_DEFAULT
}

/// Why another is refused.
pub(crate) fn long_already() -> Status {
    Status::resource_exhausted(format!(
        "a user reads one audit of more than {ENTRIES_DEFAULT} entries at a time, and another of yours is not read to its end yet: end \
         that, or ask for fewer with --entries"
    ))
}

/// The entries that a request asks for, `entries_max` at most, the oldest first. `tenants` are those that are there now.
pub(crate) async fn entries(
    questions: &Questions,
    request: v1::AuditRequest,
    tenants: &[v1::Tenant],
) -> Result<Vec<v1::AuditEntry>, Status> {
    let most = request.entries_max;
    // Rounded up, so that nothing before the instant is shown.
    let since = request.since_unix_ns.map_or(i64::MIN, |nanos| {
        nanos.div_euclid(NANOSECONDS_PER_MILLISECOND) + i64::from(nanos.rem_euclid(NANOSECONDS_PER_MILLISECOND) > 0)
    });
    let names = Names::new(tenants);
    let asked = names.find(&request.tenant);
    let looked = questions.look(move |store| asked.find(store, since, most));
    let Some(Found { requests, ledger }) = looked.await.map_err(Status::unavailable)? else {
        let tenant = request.tenant;
        return Err(Status::not_found(format!(
            "no tenant has the name, id or cgroup path '{tenant}', and no account is it"
        )));
    };
    let mut entries: Vec<v1::AuditEntry> = requests.into_iter().map(answered).collect();
    entries.extend(ledger.into_iter().map(|row| names.entered(row)));
    // Stable: of one instant, the answer stands before the entry that it led to.
    entries.sort_by_key(|entry| entry.unix_ns);
    let excess = entries.len().saturating_sub(most as usize);
    entries.drain(..excess);
    Ok(entries)
}

/// Whose entries are meant.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    whose: Whose,
    /// As it is shown; of everyone empty.
    account: String,
    /// A tenant of now, or everyone.
    is_there: bool,
}

/// What the store has of them, each kind the oldest first.
struct Found {
    requests: Vec<RequestRow>,
    ledger: Vec<LedgerRow>,
}

impl Asked {
    /// Answers, and entries of the ledger; nothing if there never were any, of nobody who is there.
    fn find(&self, store: &Store, since_unix_ms: i64, most: u32) -> Result<Option<Found>, StoreError> {
        let found = self.rows(store, since_unix_ms, most)?;
        let has_any = |found: &Found| !found.requests.is_empty() || !found.ledger.is_empty();
        let is_known = self.is_there || has_any(&found) || has_any(&self.rows(store, i64::MIN, 1)?);
        Ok(is_known.then_some(found))
    }

    fn rows(&self, store: &Store, since_unix_ms: i64, most: u32) -> Result<Found, StoreError> {
        let mut requests = store.requests(&self.whose, since_unix_ms, most)?;
        let mut accounts = BTreeSet::from([self.account.clone()]);
        match &self.whose {
            Whose::All => return Ok(Found { requests, ledger: store.ledger(None, since_unix_ms, most)? }),
            // It may have had others, and of one that is gone nothing else leads to its account.
            Whose::Tenant(name) => accounts.extend(store.accounts_of(name)?.iter().map(|account| shown(account))),
            Whose::Account(_) => {}
        }
        if requests.is_empty() && !self.is_there {
            requests = store.requests(&Whose::Account(self.account.clone()), since_unix_ms, most)?;
        }
        let ledger = accounts.iter().map(|account| store.ledger_as_shown(account, since_unix_ms, most));
        Ok(Found { requests, ledger: ledger.collect::<Result<Vec<_>, _>>()?.concat() })
    }
}

/// The tenants that are there now, by name and by account.
struct Names {
    tenants: Vec<v1::Tenant>,
    /// The name of an account's tenant, where there is just one.
    of_account: BTreeMap<String, String>,
}

impl Names {
    fn new(tenants: &[v1::Tenant]) -> Self {
        let mut of_account: BTreeMap<String, String> = BTreeMap::new();
        for tenant in tenants {
            let same = of_account.entry(tenant.account.clone()).or_insert_with(|| tenant.name.clone());
            if *same != tenant.name {
                same.clear();
            }
        }
        Self { tenants: tenants.to_vec(), of_account }
    }

    fn tenant(&self, text: &str) -> Option<&v1::Tenant> {
        let by = |same: fn(&v1::Tenant, &str) -> bool| self.tenants.iter().find(|known| same(known, text));
        by(|known, text| known.id == text)
            .or_else(|| by(|known, text| known.cgroup == text.trim_start_matches('/')))
            .or_else(|| by(|known, text| known.name == text))
    }

    /// Who is meant. What nobody has now may be the name of a tenant that is gone, or an account.
    fn find(&self, text: &str) -> Asked {
        let asked = |whose, account: &str, is_there| Asked { whose, account: account.to_owned(), is_there };
        if text.is_empty() {
            return asked(Whose::All, "", true);
        }
        if text.starts_with("group:") {
            return asked(Whose::Account(text.to_owned()), text, false);
        }
        match self.tenant(text) {
            Some(tenant) => asked(Whose::Tenant(tenant.name.clone()), &tenant.account, true),
            None => asked(Whose::Tenant(text.to_owned()), text.trim_start_matches('/'), false),
        }
    }

    fn entered(&self, row: LedgerRow) -> v1::AuditEntry {
        let account = shown(&row.account);
        let expires = row.expires_at_unix_ms.map(|at| format!(", until {}", Instant(at))).unwrap_or_default();
        v1::AuditEntry {
            unix_ns: row.at_unix_ms.saturating_mul(NANOSECONDS_PER_MILLISECOND),
            tenant: self.of_account.get(&account).cloned().unwrap_or_default(),
            account,
            kind: row.kind.as_str().to_owned(),
            micro_credits: Some(row.amount.0),
            request_id: row.request.map(|id| id.0).unwrap_or_default(),
            text: format!("{} credits{expires}", row.amount),
        }
    }
}

fn answered(row: RequestRow) -> v1::AuditEntry {
    v1::AuditEntry {
        unix_ns: row.at_unix_ms.saturating_mul(NANOSECONDS_PER_MILLISECOND),
        tenant: row.tenant_name,
        account: shown(&row.account),
        kind: row.kind.as_str().to_owned(),
        micro_credits: None,
        request_id: row.request,
        text: row.text,
    }
}

/// An account as people know it: the group, or the cgroup without the number that tells it from a later one.
pub fn shown(account: &str) -> String {
    match account.strip_prefix("cgroup:") {
        Some(cgroup) => cgroup.rsplit_once('#').map_or(cgroup, |(path, _)| path).to_owned(),
        None => account.to_owned(),
    }
}

/// An instant of the wall clock, in milliseconds since 1970.
struct Instant(i64);

impl std::fmt::Display for Instant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{}", instant.strftime("%F %T UTC")),
            Err(_) => write!(f, "the end of time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Names, shown};
    use minerva_api::v1;
    use minerva_model::{EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos};
    use minerva_store::{AnswerKind, Posting, RequestRow, Store, Whose};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn a_tenant_is_found_by_id_path_name_and_account() {
        let tenant = |id: &str, name: &str, group: &str| v1::Tenant {
            id: id.to_owned(),
            name: name.to_owned(),
            cgroup: format!("x/{name}"),
            group: group.to_owned(),
            account: if group.is_empty() { format!("x/{name}") } else { format!("group:{group}") },
            ..v1::Tenant::default()
        };
        let names = Names::new(&[tenant("t1", "a", "batch"), tenant("t2", "b", "batch"), tenant("t3", "c", "")]);
        let of = |name: &str, account: &str, is_there| Asked {
            whose: Whose::Tenant(name.to_owned()),
            account: account.to_owned(),
            is_there,
        };
        for text in ["t1", "a", "/x/a"] {
            assert_eq!(names.find(text), of("a", "group:batch", true), "{text}");
        }
        assert_eq!(names.find("c"), of("c", "x/c", true));
        assert_eq!(names.find("gone"), of("gone", "gone", false));
        assert_eq!(names.find("/x/gone"), of("/x/gone", "x/gone", false));
        let whose = Whose::Account("group:x".to_owned());
        assert_eq!(names.find("group:x"), Asked { whose, account: "group:x".to_owned(), is_there: false });
        assert_eq!(names.of_account.get("group:batch").map(String::as_str), Some(""), "two tenants are nobody");
        assert_eq!(names.of_account.get("x/c").map(String::as_str), Some("c"));
    }

    /// Asked for at midnight, earned at eight and at nine.
    #[test]
    fn what_an_account_earned_is_shown_however_old_the_request_is_and_of_a_tenant_that_is_gone() {
        let folder = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(AtomicI64::new(0));
        let read = Arc::clone(&clock);
        let clock_of_store = Box::new(move || read.load(Ordering::Relaxed));
        let (mut store, _) = Store::open(&folder.path().join("db"), "boot", clock_of_store).expect("a store");
        let account = "cgroup:machine.slice/vm1.scope#7".to_owned();
        let earn = |store: &mut Store, account: &str, hour: i64| {
            clock.store(hour * HOUR_MS, Ordering::Relaxed);
            let (kind, amount) = (EntryKind::Earned, MicroCredits::credits(5));
            let expires_in = Some(Nanos::from_secs(3600));
            let account = account.to_owned();
            let number = EntryNumber(0);
            let entry = LedgerEntry { number, account, kind, amount, expires_in, request: None };
            store.post(&[Posting::from(entry)]).expect("written");
        };
        let request = RequestRow {
            at_unix_ms: 0,
            tenant_name: "vm1".to_owned(),
            account: account.clone(),
            kind: AnswerKind::Granted,
            request: String::new(),
            text: "idle".to_owned(),
        };
        store.audit_requests(&[request]).expect("written");
        earn(&mut store, &account, 8);
        earn(&mut store, &account, 9);
        earn(&mut store, "cgroup:machine.slice/vm1.scope#6#7", 9);
        let tenant = v1::Tenant {
            name: "vm1".to_owned(),
            cgroup: "machine.slice/vm1.scope".to_owned(),
            account: "machine.slice/vm1.scope".to_owned(),
            ..v1::Tenant::default()
        };
        let there = Names::new(&[tenant]);
        let gone = Names::new(&[]);
        let counts = |names: &Names, text: &str, hour: i64| {
            let found = names.find(text).find(&store, hour * HOUR_MS, 9).expect("read");
            found.map(|found| (found.requests.len(), found.ledger.len()))
        };
        for names in [&there, &gone] {
            for text in ["vm1", "machine.slice/vm1.scope", "/machine.slice/vm1.scope"] {
                let of_hours = [0, 1, 9, 10].map(|hour| counts(names, text, hour));
                assert_eq!(of_hours, [(1, 2), (0, 2), (0, 1), (0, 0)].map(Some), "{text}");
            }
            assert_eq!(counts(names, "vm2", 0), None);
        }
    }

    #[test]
    fn accounts_are_shown_without_numbers_of_directories() {
        assert_eq!([shown("cgroup:a/b#7"), shown("group:x"), shown("")], ["a/b", "group:x", ""]);
    }
}
