//! `minerva-ctl audit`: what tenants asked for and were answered, merged with the entries of the ledger.

use minerva_api::v1;
use minerva_store::{LedgerRow, RequestRow, StoreError, Whose};
use minerva_store_thread::Questions;
use std::collections::BTreeMap;
use tonic::Status;

/// Entries of one answer unless the request says otherwise, and the most that one can have.
const ENTRIES_DEFAULT: u32 = 1_000;
const ENTRIES_MAX: u32 = 100_000;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// The entries that a request asks for, the oldest first. `tenants` are those that are there now.
pub(crate) async fn entries(
    questions: &Questions,
    request: v1::AuditRequest,
    tenants: Vec<v1::Tenant>,
) -> Result<Vec<v1::AuditEntry>, Status> {
    let most = match request.entries_max {
        0 => ENTRIES_DEFAULT,
        most => most.min(ENTRIES_MAX),
    };
    // Rounded up, so that nothing before the instant is shown.
    let since = request.since_unix_ns.map_or(i64::MIN, |nanos| {
        nanos.div_euclid(NANOSECONDS_PER_MILLISECOND) + i64::from(nanos.rem_euclid(NANOSECONDS_PER_MILLISECOND) > 0)
    });
    let names = Names::new(&tenants);
    let (whose, account) = names.find(&request.tenant);
    let looked = questions.look(move |store| -> Result<_, StoreError> {
        let requests = store.requests(&whose, since, most)?;
        let ledger = match (&whose, account) {
            (Whose::All, _) => store.ledger(None, since, most)?,
            (_, Some(account)) => store.ledger(Some(&account), since, most)?,
            // A tenant that is gone: its name leads to its accounts.
            (_, None) => {
                let mut accounts: Vec<&String> = requests.iter().map(|row| &row.account).collect();
                accounts.sort();
                accounts.dedup();
                let rows = accounts.into_iter().map(|account| store.ledger(Some(account), since, most));
                rows.collect::<Result<Vec<_>, _>>()?.concat()
            }
        };
        Ok((requests, ledger))
    });
    let (requests, ledger) = looked.await.map_err(Status::unavailable)?;
    if requests.is_empty() && ledger.is_empty() && !names.knows(&request.tenant) {
        let tenant = request.tenant;
        return Err(Status::not_found(format!(
            "no tenant has the name, id or cgroup path '{tenant}', and no account is it"
        )));
    }
    let mut entries: Vec<v1::AuditEntry> = requests.into_iter().map(answered).collect();
    entries.extend(ledger.into_iter().map(|row| names.entered(row)));
    // Stable: of one instant, the answer stands before the entry that it led to.
    entries.sort_by_key(|entry| entry.unix_ns);
    let excess = entries.len().saturating_sub(most as usize);
    entries.drain(..excess);
    Ok(entries)
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

    fn knows(&self, text: &str) -> bool {
        text.is_empty() || self.tenant(text).is_some()
    }

    /// Whose rows are meant, and which account's where that is known.
    fn find(&self, text: &str) -> (Whose, Option<String>) {
        if text.is_empty() {
            return (Whose::All, None);
        }
        if text.starts_with("group:") {
            return (Whose::Account(text.to_owned()), Some(text.to_owned()));
        }
        match self.tenant(text) {
            Some(tenant) if !tenant.group.is_empty() => {
                (Whose::Tenant(tenant.name.clone()), Some(format!("group:{}", tenant.group)))
            }
            Some(tenant) => (Whose::Tenant(tenant.name.clone()), None),
            None => (Whose::Tenant(text.to_owned()), None),
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
    use super::{Names, shown};
    use minerva_api::v1;
    use minerva_store::Whose;

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
        let of = |name: &str| Whose::Tenant(name.to_owned());
        for text in ["t1", "a", "/x/a"] {
            assert_eq!(names.find(text), (of("a"), Some("group:batch".to_owned())), "{text}");
        }
        assert_eq!(names.find("c"), (of("c"), None));
        assert_eq!(names.find("gone"), (of("gone"), None));
        assert_eq!(names.find("group:x"), (Whose::Account("group:x".to_owned()), Some("group:x".to_owned())));
        assert_eq!(names.of_account.get("group:batch").map(String::as_str), Some(""), "two tenants are nobody");
        assert_eq!(names.of_account.get("x/c").map(String::as_str), Some("c"));
    }

    #[test]
    fn accounts_are_shown_without_numbers_of_directories() {
        assert_eq!([shown("cgroup:a/b#7"), shown("group:x"), shown("")], ["a/b", "group:x", ""]);
    }
}
