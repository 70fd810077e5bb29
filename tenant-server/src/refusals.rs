//! Whatever is refused to a tenant, in the log and on its way to the audit: each refusal, as long as they are few. A flood is
//! counted and told as one line, and hides nobody else's: each account has lines of its own, and so has each source
//! of unauthenticated connections.

use crate::source::Source;
use minerva_clock::{boottime, unix_ns};
use minerva_model::Nanos;
use prometheus_client::metrics::counter::Counter;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Lines of one account in one period.
const LINES_MAX: u64 = 50;
const PERIOD: Nanos = Nanos::from_secs(10);
/// Refusals that may wait for the end of a slice. What comes on top is counted only.
const WAITING_MAX: usize = 1_000;
/// And those of unauthenticated connections, which can have many sources.
const UNAUTHENTICATED_WAITING_MAX: usize = WAITING_MAX / 2;
/// Accounts and sources whose lines are counted at once.
const PERIODS_MAX: usize = 4_096;
/// And of these, sources: who has a network of IPv6 has any number of them.
const UNAUTHENTICATED_PERIODS_MAX: usize = PERIODS_MAX / 2;
/// A key is no longer than this; of one that is, the audit has the beginning.
const KEY_LENGTH_MAX: usize = 64;
/// The same for what was asked for: the name of a call is the client's word, and may be as long as its headers.
const WHAT_LENGTH_MAX: usize = 256;

/// Who was refused something.
#[derive(Clone, Copy, Debug)]
pub enum Who<'a> {
    /// A tenant.
    Tenant {
        /// Its name.
        name: &'a str,
        /// Its account.
        account: &'a str,
    },
    /// Nobody could tell which tenant it is.
    Unauthenticated {
        /// Where it comes from.
        source: Source,
        /// What is known of it, for people.
        described: &'a str,
    },
}

/// What was refused, and why.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// Who asked.
    pub who: Who<'a>,
    /// The request's key; empty when it has none.
    pub request: &'a str,
    /// What was asked for, in a few words.
    pub what: &'a str,
    /// Why, for programs.
    pub word: &'a str,
    /// Why, for people.
    pub message: &'a str,
}

/// A refusal, or the sum of many, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// When, in milliseconds since 1970.
    pub at_unix_ms: i64,
    /// Whose; empty where it is not known who asked.
    pub tenant_name: String,
    /// The tenant's account; empty likewise.
    pub account: String,
    /// The request's key; empty when it has none.
    pub request: String,
    /// What was refused, and why.
    pub text: String,
}

/// Shared between the server and the loop. Each access is short.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    book: Arc<Mutex<Book>>,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct Book {
    waiting: Vec<RefusedRequest>,
    unauthenticated_waiting: usize,
    periods: BTreeMap<String, Period>,
    unauthenticated_periods: usize,
}

/// The lines of one account or source.
#[derive(Debug)]
struct Period {
    began_at: Nanos,
    count: u64,
    /// The tenant's; absent where nobody knows whose it is.
    name: Option<String>,
}

impl Refusals {
    /// `dropped` counts refusals that found no room.
    pub fn new(dropped: Counter) -> Self {
        Self { book: Arc::default(), dropped }
    }

    /// Something was refused. This is the one way into the log and the audit, whoever refused it.
    pub fn note(&self, refused: &Refused<'_>) {
        // What a client chose is in the key and may be in the others: none may look like a line of its own, or fill the audit.
        let (request, what) = (printable(refused.request, KEY_LENGTH_MAX), printable(refused.what, WHAT_LENGTH_MAX));
        let message = printable(refused.message, usize::MAX);
        let refused = Refused { request: &request, what: &what, message: &message, ..*refused };
        if !self.enter(boottime(), &refused) {
            return;
        }
        let Refused { who, what, word, .. } = refused;
        let who = match who {
            Who::Tenant { name, .. } => name,
            Who::Unauthenticated { described, .. } => described,
        };
        tracing::info!(who, request, what, word, "refused a request: {message}");
    }

    /// What was refused since this was last asked, and what floods that are over came to.
    pub fn take(&self) -> Vec<RefusedRequest> {
        self.take_at(boottime())
    }

    /// Whether it is to be said.
    fn enter(&self, now: Nanos, refused: &Refused<'_>) -> bool {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unauthenticated = matches!(refused.who, Who::Unauthenticated { .. });
        let is_full = book.waiting.len() >= WAITING_MAX
            || is_unauthenticated && book.is_full_of_unauthenticated()
            || book.periods.len() >= PERIODS_MAX;
        if is_full {
            self.dropped.inc();
            return false;
        }
        let is_said = book.count(now, &refused.who);
        if is_said {
            book.unauthenticated_waiting += usize::from(is_unauthenticated);
            book.waiting.push(row(refused));
        }
        is_said
    }

    fn take_at(&self, now: Nanos) -> Vec<RefusedRequest> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.unauthenticated_waiting = 0;
        let mut rows = std::mem::take(&mut book.waiting);
        book.periods.retain(|account, period| {
            let is_over = now.since(period.began_at) >= PERIOD;
            if is_over && period.count > LINES_MAX {
                rows.push(period.summary(account));
            }
            !is_over
        });
        book.unauthenticated_periods = book.periods.values().filter(|period| period.name.is_none()).count();
        rows
    }
}

impl Book {
    fn is_full_of_unauthenticated(&self) -> bool {
        self.unauthenticated_waiting >= UNAUTHENTICATED_WAITING_MAX
            || self.unauthenticated_periods >= UNAUTHENTICATED_PERIODS_MAX
    }

    /// Counts a refusal; whether it is said.
    fn count(&mut self, now: Nanos, who: &Who<'_>) -> bool {
        let (account, name) = match who {
            Who::Tenant { name, account } => ((*account).to_owned(), Some((*name).to_owned())),
            Who::Unauthenticated { source, .. } => (source.to_string(), None),
        };
        let unauthenticated = &mut self.unauthenticated_periods;
        let period = self.periods.entry(account).or_insert_with(|| {
            *unauthenticated += usize::from(name.is_none());
            Period { began_at: now, count: 0, name }
        });
        period.count += 1;
        period.count <= LINES_MAX
    }
}

impl Period {
    fn summary(&self, account: &str) -> RefusedRequest {
        let unsaid = self.count - LINES_MAX;
        let text = format!("{unsaid} more requests were refused than are told one by one.");
        tracing::info!(who = account, "{text}");
        match &self.name {
            None => refused_row("", "", "", format!("{account}: {text}")),
            Some(name) => refused_row(name, account, "", text),
        }
    }
}

fn row(refused: &Refused<'_>) -> RefusedRequest {
    let Refused { who, request, what, word, message } = *refused;
    match who {
        Who::Tenant { name, account } => refused_row(name, account, request, format!("{what}: {message} ({word})")),
        Who::Unauthenticated { described, .. } => {
            refused_row("", "", request, format!("{what} of {described}: {message} ({word})"))
        }
    }
}

fn printable(text: &str, length_max: usize) -> String {
    text.chars().take(length_max).map(|one| if one.is_control() { '?' } else { one }).collect()
}

fn refused_row(tenant_name: &str, account: &str, request: &str, text: String) -> RefusedRequest {
    RefusedRequest {
        at_unix_ms: unix_ns() / 1_000_000,
        tenant_name: tenant_name.to_owned(),
        account: account.to_owned(),
        request: request.to_owned(),
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        LINES_MAX, PERIOD, Refusals, Refused, UNAUTHENTICATED_PERIODS_MAX, UNAUTHENTICATED_WAITING_MAX, WAITING_MAX,
        Who,
    };
    use crate::source::Source;
    use minerva_model::Nanos;

    const NOW: Nanos = Nanos::SECOND;

    fn refused(who: Who<'_>) -> Refused<'_> {
        Refused { who, request: "k1", what: "Boost", word: "too-many-requests", message: "Too many." }
    }

    fn tenant(account: &str) -> Who<'_> {
        Who::Tenant { name: "a", account }
    }

    #[test]
    fn a_flood_is_one_line_in_the_end_and_hides_nobody_elses() {
        let refusals = Refusals::default();
        let flood = LINES_MAX + 30;
        let said = (0..flood).filter(|_| refusals.enter(NOW, &refused(tenant("group:a")))).count();
        assert_eq!(said as u64, LINES_MAX);
        assert!(refusals.enter(NOW, &refused(tenant("group:b"))), "another account has lines of its own");
        let unauthenticated = Who::Unauthenticated { source: Source::User(7), described: "somebody" };
        assert!(refusals.enter(NOW, &refused(unauthenticated)));
        let rows = refusals.take_at(NOW);
        assert_eq!(rows.len() as u64, LINES_MAX + 2);
        let last = &rows[rows.len() - 1];
        assert_eq!((last.tenant_name.as_str(), last.request.as_str()), ("", "k1"));
        assert_eq!(last.text, "Boost of somebody: Too many. (too-many-requests)");
        let rows = refusals.take_at(NOW + PERIOD);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!((rows[0].tenant_name.as_str(), rows[0].account.as_str()), ("a", "group:a"));
        assert_eq!(rows[0].text, "30 more requests were refused than are told one by one.");
        assert!(refusals.take_at(NOW + PERIOD).is_empty());
    }

    #[test]
    fn the_name_of_a_call_is_cut_short_and_is_no_line_of_its_own() {
        let refusals = Refusals::default();
        let what = format!("Boost\nrefused: {}", "x".repeat(8 << 10));
        for who in [tenant("group:a"), Who::Unauthenticated { source: Source::User(7), described: "somebody" }] {
            refusals.note(&Refused { what: &what, ..refused(who) });
        }
        let rows = refusals.take();
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert!(row.text.starts_with("Boost?refused: x") && row.text.len() < 400, "{}", row.text);
        }
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let refusals = Refusals::default();
        let crowd = u32::try_from(WAITING_MAX).expect("few");
        let described = "somebody";
        for uid in 0..crowd {
            refusals.enter(NOW, &refused(Who::Unauthenticated { source: Source::User(uid), described }));
        }
        let names: Vec<String> = (0..WAITING_MAX).map(|number| format!("group:{number}")).collect();
        for name in &names {
            refusals.enter(NOW, &refused(tenant(name)));
        }
        let rows = refusals.take_at(NOW);
        let of_tenants = rows.iter().filter(|row| !row.account.is_empty()).count();
        assert_eq!((rows.len(), of_tenants), (WAITING_MAX, WAITING_MAX - UNAUTHENTICATED_WAITING_MAX));
        assert_eq!(refusals.dropped.get(), WAITING_MAX as u64);
    }

    #[test]
    fn however_many_sources_there_are_a_tenants_refusal_is_said() {
        let refusals = Refusals::default();
        let described = "somebody";
        for uid in 0..5_000 {
            refusals.enter(NOW, &refused(Who::Unauthenticated { source: Source::User(uid), described }));
            if uid % 400 == 0 {
                // A slice has ended.
                refusals.take_at(NOW);
            }
        }
        assert_eq!(refusals.dropped.get(), 5_000 - UNAUTHENTICATED_PERIODS_MAX as u64);
        assert!(refusals.enter(NOW, &refused(tenant("group:a"))));
        refusals.take_at(NOW + PERIOD);
        let unauthenticated = Who::Unauthenticated { source: Source::User(6_000), described };
        assert!(refusals.enter(NOW + PERIOD, &refused(unauthenticated)), "and theirs again when that is over");
    }
}
