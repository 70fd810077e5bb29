//! How much each account may ask: a bucket of tokens for requests, and counts of connections and of what is under way. Pure:
//! the instant is an argument.

use minerva_config::TenantLimits;
use minerva_model::Nanos;
use std::collections::BTreeMap;

/// Accounts that are remembered. Beyond that the idle ones are forgotten, which gives them a full bucket.
const ACCOUNTS_MAX: usize = 16_384;
/// Connections above the limit that are kept only to be told so.
const CONNECTIONS_TOLD: u32 = 4;
/// Requests that are being authenticated are at most one part in so many of all, so that they never keep a tenant out.
const UNAUTHENTICATED_PART: u32 = 4;
/// A token in the unit of the buckets, so that a slow rate loses nothing to rounding.
const TOKEN: u64 = 1_000_000_000;

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    /// The account asked too often; there is a token again after so long.
    Requests(Nanos),
    /// It has this many connections.
    Connections(u32),
    /// It has this many requests and streams under way.
    Streams(u32),
    /// The server has as many as it may.
    Server,
}

/// What one account uses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    /// In billionths of a token.
    tokens: u64,
    filled_at: Nanos,
    connections: u32,
    streams: u32,
}

/// The accounts, and what they use together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    settings: TenantLimits,
    accounts: BTreeMap<String, Account>,
    connections: u32,
    streams: u32,
    /// Of the streams, the requests of which it is being found out who asks.
    authentications: u32,
}

impl Quotas {
    pub(crate) fn new(settings: TenantLimits) -> Self {
        Self { settings, ..Self::default() }
    }

    /// New settings hold from the next request on; what is under way stays.
    pub(crate) fn set(&mut self, settings: TenantLimits) {
        self.settings = settings;
    }

    /// A request of `account`, counted as under way until [`Self::end`].
    pub(crate) fn begin(&mut self, now: Nanos, account: &str) -> Result<(), QuotaExceeded> {
        let settings = self.settings;
        if self.streams >= settings.streams_max {
            return Err(QuotaExceeded::Server);
        }
        let one = self.account(now, account);
        one.take(now, &settings)?;
        if one.streams >= settings.streams_per_account_max {
            return Err(QuotaExceeded::Streams(one.streams));
        }
        one.streams += 1;
        self.streams += 1;
        Ok(())
    }

    /// A request of which it is to be found out who asks, counted for its source until
    /// [`Self::end_authentication`].
    pub(crate) fn begin_authentication(&mut self, now: Nanos, source: &str) -> Result<(), QuotaExceeded> {
        if self.authentications >= (self.settings.streams_max / UNAUTHENTICATED_PART).max(1) {
            return Err(QuotaExceeded::Server);
        }
        self.begin(now, source)?;
        self.authentications += 1;
        Ok(())
    }

    /// A TLS handshake of a source. It costs the server more than a request, and whoever begins one has shown nothing.
    pub(crate) fn handshake(&mut self, now: Nanos, source: &str) -> Result<(), QuotaExceeded> {
        self.further(now, source)
    }

    /// It was found out, or not.
    pub(crate) fn end_authentication(&mut self, source: &str) {
        self.authentications = self.authentications.saturating_sub(1);
        self.end(source);
    }

    /// A further message of a stream that is under way.
    pub(crate) fn further(&mut self, now: Nanos, account: &str) -> Result<(), QuotaExceeded> {
        let settings = self.settings;
        self.account(now, account).take(now, &settings)
    }

    /// It is over.
    pub(crate) fn end(&mut self, account: &str) {
        self.streams = self.streams.saturating_sub(1);
        if let Some(one) = self.accounts.get_mut(account) {
            one.streams = one.streams.saturating_sub(1);
        }
    }

    /// The connections of all accounts.
    pub(crate) const fn connections(&self) -> u32 {
        self.connections
    }

    /// Whether nobody is connected and nothing under way.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn is_unused(&self) -> bool {
        let is_used = |one: &Account| one.connections > 0 || one.streams > 0;
        (self.connections, self.streams, self.authentications) == (0, 0, 0) && !self.accounts.values().any(is_used)
    }

    /// A connection of the account, also of some above its limit, which [`Self::check_connections`] then tells.
    pub(crate) fn connect(&mut self, now: Nanos, account: &str) -> Result<(), QuotaExceeded> {
        let most = self.settings.connections_per_account_max.saturating_add(CONNECTIONS_TOLD);
        let one = self.account(now, account);
        if one.connections >= most {
            return Err(QuotaExceeded::Connections(one.connections));
        }
        one.connections += 1;
        self.connections += 1;
        Ok(())
    }

    /// A connection turns out to be another account's.
    pub(crate) fn move_connection(&mut self, now: Nanos, from: &str, to: &str) {
        if let Some(one) = self.accounts.get_mut(from) {
            one.connections = one.connections.saturating_sub(1);
        }
        let one = self.account(now, to);
        one.connections = one.connections.saturating_add(1);
    }

    /// The account has no more connections than it may.
    pub(crate) fn check_connections(&self, account: &str) -> Result<(), QuotaExceeded> {
        let count = self.accounts.get(account).map_or(0, |one| one.connections);
        if count > self.settings.connections_per_account_max {
            return Err(QuotaExceeded::Connections(count));
        }
        Ok(())
    }

    /// A connection ended.
    pub(crate) fn disconnect(&mut self, account: &str) {
        self.connections = self.connections.saturating_sub(1);
        if let Some(one) = self.accounts.get_mut(account) {
            one.connections = one.connections.saturating_sub(1);
        }
    }

    fn account(&mut self, now: Nanos, name: &str) -> &mut Account {
        if self.accounts.len() >= ACCOUNTS_MAX && !self.accounts.contains_key(name) {
            self.accounts.retain(|_, one| one.connections > 0 || one.streams > 0);
        }
        let full =
            Account { tokens: u64::from(self.settings.burst) * TOKEN, filled_at: now, connections: 0, streams: 0 };
        self.accounts.entry(name.to_owned()).or_insert(full)
    }
}

impl Account {
    /// Takes a token, if there is one.
    fn take(&mut self, now: Nanos, settings: &TenantLimits) -> Result<(), QuotaExceeded> {
        let rate = u64::from(settings.requests_per_second);
        // A rate of tokens a second is a rate of billionths a nanosecond.
        let filled = now.since(self.filled_at).0.saturating_mul(rate);
        self.tokens = self.tokens.saturating_add(filled).min(u64::from(settings.burst) * TOKEN);
        self.filled_at = self.filled_at.max(now);
        if self.tokens < TOKEN {
            return Err(QuotaExceeded::Requests(Nanos((TOKEN - self.tokens).div_ceil(rate))));
        }
        self.tokens -= TOKEN;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS_TOLD, QuotaExceeded, Quotas};
    use minerva_config::TenantLimits;
    use minerva_model::Nanos;
    use proptest::prelude::{any, prop};
    use proptest::{prop_assert, proptest};

    fn limits(requests_per_second: u32, burst: u32) -> Quotas {
        Quotas::new(TenantLimits { requests_per_second, burst, ..TenantLimits::default() })
    }

    #[test]
    fn the_account_that_asks_too_often_is_told_when_it_may_again() {
        let mut limits = limits(10, 3);
        let now = Nanos::from_secs(100);
        let ask = |limits: &mut Quotas, at, who| limits.begin(at, who).inspect(|()| limits.end(who));
        for _ in 0..3 {
            assert_eq!(ask(&mut limits, now, "a"), Ok(()));
        }
        assert_eq!(ask(&mut limits, now, "a"), Err(QuotaExceeded::Requests(Nanos::from_millis(100))));
        assert_eq!(ask(&mut limits, now, "b"), Ok(()), "another account is not touched");
        assert_eq!(
            ask(&mut limits, now + Nanos::from_millis(99), "a"),
            Err(QuotaExceeded::Requests(Nanos::from_millis(1)))
        );
        assert_eq!(ask(&mut limits, now + Nanos::from_millis(100), "a"), Ok(()));
    }

    #[test]
    fn connections_and_streams_are_counted_for_each_account_and_in_all() {
        let settings = TenantLimits {
            connections_per_account_max: 1,
            streams_max: 3,
            streams_per_account_max: 2,
            ..TenantLimits::default()
        };
        let mut limits = Quotas::new(settings);
        let now = Nanos::ZERO;
        for _ in 0..=CONNECTIONS_TOLD {
            assert_eq!(limits.connect(now, "a"), Ok(()));
        }
        assert_eq!(limits.connect(now, "a"), Err(QuotaExceeded::Connections(5)));
        assert_eq!(limits.check_connections("a"), Err(QuotaExceeded::Connections(5)));
        for _ in 0..4 {
            limits.disconnect("a");
        }
        assert_eq!(limits.check_connections("a"), Ok(()));
        assert_eq!([limits.begin(now, "a"), limits.begin(now, "a")], [Ok(()), Ok(())]);
        assert_eq!(limits.begin(now, "a"), Err(QuotaExceeded::Streams(2)));
        assert_eq!([limits.begin(now, "b"), limits.begin(now, "b")], [Ok(()), Err(QuotaExceeded::Server)]);
        limits.end("a");
        assert_eq!(limits.begin(now, "b"), Ok(()));
        limits.end("b");
        assert_eq!(
            [limits.begin_authentication(now, "x"), limits.begin_authentication(now, "y")],
            [Ok(()), Err(QuotaExceeded::Server)],
            "a part of all"
        );
        limits.end_authentication("x");
        assert_eq!((limits.begin_authentication(now, "y"), limits.connections()), (Ok(()), 1));
        limits.move_connection(now, "a", "b");
        assert_eq!((limits.check_connections("a"), limits.check_connections("b")), (Ok(()), Ok(())));
    }

    #[test]
    fn a_source_begins_no_more_handshakes_than_burst_and_rate_allow() {
        let mut limits = limits(100, 200);
        let at = |number: u64| Nanos::from_secs(10) + Nanos::from_millis(number);
        let begun = (0..1_000).filter(|number| limits.handshake(at(*number), "address 10.0.0.1").is_ok()).count();
        assert!((200..=300).contains(&begun), "{begun}");
        assert_eq!(limits.handshake(at(999), "address 10.0.0.2"), Ok(()), "another source is not touched");
    }

    proptest! {
        /// Whatever the rhythm, also with a clock that stands or goes back: within a time no more is let in than the burst and
        /// the rate allow.
        #[test]
        fn no_rhythm_gets_more_than_burst_and_rate(
            rate in 1..1000_u32,
            burst in 1..100_u32,
            steps in prop::collection::vec((0..2_000_000_000_u64, any::<bool>()), 1..300),
        ) {
            let mut limits = limits(rate, burst);
            let (mut now, mut latest, mut passed) = (Nanos::from_secs(10), Nanos::from_secs(10), 0_u64);
            for (step, back) in steps {
                now = if back { Nanos(now.0.saturating_sub(step).max(10_000_000_000)) } else { now + Nanos(step) };
                latest = latest.max(now);
                if limits.begin(now, "a").is_ok() {
                    limits.end("a");
                    passed += 1;
                }
                let most = u128::from(burst)
                    + u128::from(latest.since(Nanos::from_secs(10)).0) * u128::from(rate) / 1_000_000_000;
                prop_assert!(u128::from(passed) <= most + 1, "{passed} of {most}");
            }
        }

        /// Counts return to nothing when all is over, whatever the order.
        #[test]
        fn what_is_over_is_not_counted(steps in prop::collection::vec((0..3_usize, 0..2_u8), 0..400)) {
            let mut limits = limits(1_000_000, 1_000_000);
            let (names, mut open) = (["a", "b", "c"], vec![Vec::new(), Vec::new(), Vec::new()]);
            for (who, what) in steps {
                if what == 0 || open[who].is_empty() {
                    if limits.begin(Nanos::ZERO, names[who]).is_ok() {
                        open[who].push(());
                    }
                } else {
                    open[who].pop();
                    limits.end(names[who]);
                }
                prop_assert!(limits.streams as usize == open.iter().map(Vec::len).sum::<usize>());
            }
            for (who, left) in open.iter().enumerate() {
                left.iter().for_each(|()| limits.end(names[who]));
            }
            prop_assert!(limits.streams == 0 && limits.accounts.values().all(|one| one.streams == 0));
        }
    }
}
