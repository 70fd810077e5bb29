//! Credits are conserved whatever happens, in any order: a property.

use super::tests::{id, purchase};
use super::{Credits, Earning};
use minerva_model::{
    CreditLot, CreditSettings, EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos, Purchase, RequestId,
};
use proptest::prelude::{Strategy, TestCaseError, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::collections::{BTreeMap, BTreeSet};

/// What needs a tenant of the account does nothing while there is none.
#[derive(Clone, Debug)]
enum Move {
    /// By an account, beside so many others, with so much demand, and on terms by which credits last so many seconds: its
    /// tenants may have different ones, and a new file may change them.
    Earn(u8, u8, u32, u64),
    /// The cache reports under a key what it moved for an account, beside so many others and with so much demand.
    Report(u8, u8, u8, u32),
    /// A slice ends.
    Slice,
    Enter(bool),
    /// By a tenant of an account, under a key.
    Buy(u8, u8, u8, u32),
    /// The operator gives an account so many credits, or takes them.
    Adjust(u8, bool, u64),
    Commit(bool),
    Fail,
    Pass(u32),
    /// The driver's clock leaps so many seconds, forward or back: a suspension, or a clock that is set.
    Leap(i32),
    /// The daemon dies: what the store has not committed never was.
    Crash,
    /// The last tenant of an account goes.
    Leave(u8),
    /// A tenant comes that has the account, and what the store has of it by now is told.
    Return(u8),
}

const EXPIRIES_SECONDS: [u64; 3] = [20, 60, 150];

impl Move {
    /// Whose tenant makes it.
    fn needs(&self) -> Option<u8> {
        match self {
            Self::Earn(account, ..)
            | Self::Report(account, ..)
            | Self::Buy(account, ..)
            | Self::Adjust(account, ..)
            | Self::Leave(account) => Some(*account),
            _ => None,
        }
    }
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        6 => (0..3_u8, 0..6_u8, 0..1_500_000_u32, 0..EXPIRIES_SECONDS.len())
            .prop_map(|(account, others, demand, expiry)| Move::Earn(account, others, demand, EXPIRIES_SECONDS[expiry])),
        4 => (0..3_u8, 0..8_u8, 0..6_u8, 0..1_500_000_u32)
            .prop_map(|(account, key, others, demand)| Move::Report(account, key, others, demand)),
        4 => proptest::strategy::Just(Move::Slice),
        3 => any::<bool>().prop_map(Move::Enter),
        4 => (0..3_u8, 0..2_u8, 0..4_u8, 1..4_u32).prop_map(|(account, tenant, key, slices)| Move::Buy(account, tenant, key, slices)),
        2 => (0..3_u8, any::<bool>(), 1..60_u64).prop_map(|(account, gives, amount)| Move::Adjust(account, gives, amount)),
        5 => any::<bool>().prop_map(Move::Commit),
        1 => proptest::strategy::Just(Move::Fail),
        2 => (0..50_u32).prop_map(Move::Pass),
        1 => (-300_000..300_000_i32).prop_map(Move::Leap),
        1 => proptest::strategy::Just(Move::Crash),
        2 => (0..3_u8).prop_map(Move::Leave),
        3 => (0..3_u8).prop_map(Move::Return),
    ]
}

/// A ledger as the store keeps it.
#[derive(Default)]
struct Ledger {
    rows: Vec<(LedgerEntry, Nanos)>,
    /// By account, tenant and key.
    purchases: BTreeMap<(String, String, RequestId), Purchase>,
    /// By account and key.
    reported: BTreeSet<(String, RequestId)>,
}

impl Ledger {
    /// The purchase that was made before, if one was.
    fn commit(&mut self, now: Nanos, entry: &LedgerEntry, purchase: Option<&(String, Purchase)>) -> Option<Purchase> {
        if let Some((tenant, purchase)) = purchase {
            let key = (entry.account.clone(), tenant.clone(), purchase.request.clone());
            if let Some(known) = self.purchases.get(&key) {
                return Some(known.clone());
            }
            self.purchases.insert(key, purchase.clone());
        }
        self.rows.push((entry.clone(), now + entry.expires_in.unwrap_or_default()));
        None
    }

    /// Whether a report was not entered before.
    fn commit_report(&mut self, now: Nanos, entry: &LedgerEntry, key: &RequestId) -> bool {
        let is_fresh = self.reported.insert((entry.account.clone(), key.clone()));
        if is_fresh {
            self.rows.push((entry.clone(), now + entry.expires_in.unwrap_or_default()));
        }
        is_fresh
    }

    /// As when a tenant is seen; a purchase may be too old to be told of.
    fn tell<'a>(&self, credits: &mut Credits, now: Nanos, names: impl Iterator<Item = &'a &'a str>) {
        for name in names {
            credits.join(name);
            for tenant in ["0", "1"] {
                let bought = self.purchases.iter().filter(|((account, by, _), _)| account == name && by == tenant);
                let bought: Vec<Purchase> = bought.map(|(_, purchase)| purchase.clone()).skip(1).collect();
                credits.recall(now, (name, tenant), &self.lots(name, now), &bought);
            }
        }
    }

    fn sum(&self, account: &str, kind: EntryKind) -> u64 {
        self.rows
            .iter()
            .filter(|(row, _)| row.account == account && row.kind == kind)
            .map(|(row, _)| row.amount.0)
            .sum()
    }

    fn added(&self, account: &str) -> u64 {
        self.sum(account, EntryKind::Earned) + self.sum(account, EntryKind::Given)
    }

    fn removed(&self, account: &str) -> u64 {
        let kinds = [EntryKind::Spent, EntryKind::Expired, EntryKind::Taken];
        kinds.into_iter().map(|kind| self.sum(account, kind)).sum()
    }

    /// The newest credits that make up the balance, as `store` derives them.
    fn lots(&self, account: &str, now: Nanos) -> Vec<CreditLot> {
        let mut left = self.added(account) - self.removed(account);
        let mut lots = Vec::new();
        for (row, expires_at) in self.rows.iter().rev().filter(|(row, _)| row.account == account && row.kind.adds()) {
            let amount = MicroCredits(row.amount.0.min(left));
            left -= amount.0;
            if amount > MicroCredits::ZERO {
                lots.push(CreditLot { amount, expires_in: expires_at.since(now) });
            }
        }
        lots.reverse();
        lots
    }
}

/// Plays a script and checks after every move what the property says.
fn play(moves: Vec<Move>) -> Result<(), TestCaseError> {
    let names = ["a", "b", "group:c"];
    let settings = CreditSettings {
        expiry: Nanos::from_secs(60),
        slices_between_entries: 3,
        held_max: MicroCredits::credits(200),
        ..CreditSettings::default()
    };
    let fresh = || {
        let mut credits = Credits::default();
        credits.configure(settings);
        credits
    };
    let (mut credits, mut ledger, mut now) = (fresh(), Ledger::default(), Nanos::ZERO);
    let mut waiting: Vec<(LedgerEntry, Option<(String, Purchase)>)> = Vec::new();
    let mut clock = 0_i64;
    let mut boosts: BTreeMap<(String, String, RequestId), u32> = BTreeMap::new();
    let mut there: BTreeSet<&str> = names.into_iter().collect();
    ledger.tell(&mut credits, now, there.iter());
    for one in moves {
        if one.needs().is_some_and(|account| !there.contains(names[usize::from(account)])) {
            continue;
        }
        match one {
            Move::Earn(account, others, demand_ppm, expiry_seconds) => {
                let earning = Earning {
                    accounts_active: u32::from(others),
                    points: 9,
                    demand_ppm,
                    held_max: settings.held_max,
                    expiry: Nanos::from_secs(expiry_seconds),
                };
                credits.earn([(names[usize::from(account)], earning)].into_iter());
            }
            Move::Report(account, key, others, demand_ppm) => {
                let account = names[usize::from(account)];
                let earning = Earning {
                    accounts_active: u32::from(others),
                    points: 9,
                    demand_ppm,
                    held_max: settings.held_max,
                    expiry: settings.expiry,
                };
                let key = id(&format!("moved-{key}"));
                if let Some(entry) = credits.earn_reported(now, account, earning) {
                    prop_assert!(entry.kind == EntryKind::Earned && entry.amount <= credits.worth(earning));
                    waiting.push((LedgerEntry { request: Some(key), ..entry }, None));
                }
                prop_assert_eq!(credits.earn_reported(now, account, earning), None, "a slice counts once");
            }
            Move::Slice => credits.slice_ended(),
            Move::Enter(at_once) => {
                waiting.extend(credits.entries(now, at_once).into_iter().map(|entry| (entry, None)));
                let mut lots = credits.accounts.values().flat_map(|account| &account.lots);
                prop_assert!(lots.all(|lot| lot.expires_at > now), "held after its time");
            }
            Move::Buy(account, tenant, key, slices) => {
                let (account, tenant, key) = (names[usize::from(account)], tenant.to_string(), id(&key.to_string()));
                let price = settings.boosted_slice_price.times(u64::from(slices));
                let purchase = Purchase { request: key.clone(), slices: Some(slices), device: None, price };
                match credits.bought(account, &tenant, &key) {
                    // What is told of a purchase is what was bought, whatever is asked for under its key later.
                    Some(known) => prop_assert_eq!(
                        Some(known),
                        ledger.purchases.get(&(account.to_owned(), tenant.clone(), key.clone()))
                    ),
                    None if credits.being_bought(account, &tenant, &key).is_some() => {}
                    None => {
                        waiting.extend(credits.expire(now, account).map(|entry| (entry, None)));
                        if let Ok(entry) = credits.spend(now, (account, &tenant), purchase.clone()) {
                            let lots = &credits.under_way[&entry.number].lots;
                            prop_assert!(
                                lots.iter().all(|lot| lot.expires_at > now),
                                "spent after its time: {:?}",
                                lots
                            );
                            waiting.push((entry, Some((tenant, purchase))));
                        }
                    }
                }
            }
            Move::Adjust(account, gives, amount) => {
                let (account, amount) = (names[usize::from(account)], MicroCredits::credits(amount));
                waiting.extend(credits.expire(now, account).map(|entry| (entry, None)));
                let held = credits.held(account);
                match gives {
                    true => {
                        let expiry = Nanos::from_secs(EXPIRIES_SECONDS[amount.0 as usize % EXPIRIES_SECONDS.len()]);
                        waiting.push((credits.give(now, account, amount, expiry), None));
                    }
                    false => match credits.take(now, account, amount) {
                        Ok(entry) => waiting.push((entry, None)),
                        Err(told) => prop_assert!(told == held && held < amount),
                    },
                }
            }
            // The store's acknowledgement, and sometimes the crash just before it arrives.
            Move::Commit(heard) if !waiting.is_empty() => {
                let (entry, purchase) = waiting.remove(0);
                let reported = entry.request.as_ref().filter(|_| entry.kind == EntryKind::Earned);
                let (known, fresh_entry) = match reported {
                    Some(key) => (None, ledger.commit_report(now, &entry, key)),
                    None => {
                        let known = ledger.commit(now, &entry, purchase.as_ref());
                        let is_fresh = known.is_none();
                        (known, is_fresh)
                    }
                };
                if !heard {
                    waiting.clear();
                    credits = fresh();
                    ledger.tell(&mut credits, now, there.iter());
                } else if let Some(settled) = credits.committed(now, entry.number, fresh_entry, known) {
                    let key = (settled.account, settled.tenant, settled.request);
                    *boosts.entry(key).or_default() += u32::from(fresh_entry);
                }
            }
            Move::Fail if !waiting.is_empty() => {
                let (entry, _) = waiting.remove(0);
                credits.failed(entry.number);
            }
            Move::Commit(_) | Move::Fail => {}
            Move::Pass(seconds) => clock += i64::from(seconds),
            Move::Leap(seconds) => clock = (clock + i64::from(seconds)).max(0),
            Move::Crash => {
                waiting.clear();
                credits = fresh();
                ledger.tell(&mut credits, now, there.iter());
            }
            Move::Leave(account) => {
                let name = names[usize::from(account)];
                there.remove(name);
                credits.leave(name);
            }
            Move::Return(account) => {
                let name = names[usize::from(account)];
                there.insert(name);
                ledger.tell(&mut credits, now, [name].iter());
            }
        }
        // As the decider takes it: its time does not go back.
        now = now.max(Nanos::from_secs(clock.unsigned_abs()));
        for name in names {
            let out = ledger.removed(name);
            let under_way = waiting.iter().map(|(entry, _)| entry);
            let taken: u64 = under_way.filter(|e| e.account == name && !e.kind.adds()).map(|e| e.amount.0).sum();
            if !there.contains(name) && !credits.accounts.contains_key(name) {
                prop_assert!(waiting.iter().all(|(entry, _)| entry.account != name), "forgotten too soon: {}", name);
                continue;
            }
            prop_assert_eq!(ledger.added(name), out + taken + credits.held(name).0, "{}", name);
            // The operator may give more than can be earned.
            let given = MicroCredits(ledger.sum(name, EntryKind::Given));
            prop_assert!(credits.held(name) <= settings.held_max.plus(given));
            let lots = credits.accounts.get(name).into_iter().flat_map(|account| &account.lots);
            prop_assert!(lots.map(|lot| lot.expires_at).is_sorted(), "one expires behind one that does not: {}", name);
        }
    }
    prop_assert!(boosts.values().all(|count| *count <= 1), "bought twice: {:?}", boosts);
    // Everything ends: what is held is gone an expiry after the last of it was earned.
    waiting.into_iter().for_each(|(entry, _)| drop(credits.committed(now, entry.number, true, None)));
    let end = now + Nanos::from_secs(EXPIRIES_SECONDS.into_iter().max().unwrap_or(0));
    let last = credits.entries(end, false);
    prop_assert!(names.iter().all(|name| credits.held(name) == MicroCredits::ZERO));
    last.into_iter().for_each(|entry| drop(credits.committed(end, entry.number, true, None)));
    credits.entries(end, false);
    prop_assert!(credits.accounts.keys().all(|name| there.contains(name.as_str())), "kept without tenants");
    Ok(())
}

/// A lot whose expiry failed came back behind one of a purchase that failed after it, and so was kept from expiring. Found at
/// random; shrunk.
#[test]
fn what_is_given_back_stands_where_it_stood_among_what_expires_later() {
    let script = vec![
        Move::Earn(0, 0, 2, 20),
        Move::Enter(true),
        Move::Commit(false),
        Move::Pass(20),
        Move::Adjust(0, true, 36),
        Move::Adjust(0, true, 39),
        Move::Fail,
        Move::Commit(true),
        Move::Commit(false),
        Move::Buy(0, 0, 0, 1),
        Move::Fail,
        Move::Fail,
    ];
    play(script).expect("the property holds");
}

proptest! {
    /// Earned + given = spent + expired + taken + held + under way, whatever is committed, refused, sent again, or lost in a crash, and in
    /// whatever order, and on whatever terms, and nothing outlives its time; and what is held can be told
    /// from the ledger alone.
    #[test]
    fn credits_are_conserved(moves in proptest::collection::vec(any_move(), 1..120)) {
        play(moves)?;
    }

    /// Acknowledgements of nothing, twice, or in any order change nothing else.
    #[test]
    fn stray_acknowledgements_are_ignored(numbers in proptest::collection::vec((0..20_u64, any::<bool>()), 0..40)) {
        let mut credits = Credits::default();
        credits.configure(CreditSettings::default());
        let lot = CreditLot { amount: MicroCredits::credits(60), expires_in: Nanos::from_secs(60) };
        credits.recall(Nanos::ZERO, ("a", "t"), &[lot], &[]);
        let entry = credits.spend(Nanos::ZERO, ("a", "t"), purchase("x", 25)).expect("enough");
        for (number, committed) in numbers.into_iter().filter(|(number, _)| EntryNumber(*number) != entry.number) {
            match committed {
                true => drop(credits.committed(Nanos::ZERO, EntryNumber(number), true, None)),
                false => drop(credits.failed(EntryNumber(number))),
            }
        }
        credits.committed(Nanos::ZERO, entry.number, true, None);
        credits.committed(Nanos::ZERO, entry.number, true, None);
        prop_assert_eq!(credits.held("a"), MicroCredits::credits(35));
    }
}
