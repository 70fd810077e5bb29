//! The seed's numbers, and what holds of every account.

use super::{Credits, Earning};
use minerva_model::{
    ContentionCounting, CreditLot, CreditSettings, EntryKind, EntryNumber, LedgerEntry, LevelSettings, MicroCredits,
    Nanos, RequestId,
};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::collections::{BTreeMap, BTreeSet};

fn earning(accounts_active: u32) -> Earning {
    Earning { accounts_active, points: LevelSettings::default().idle.points, demand_ppm: 1_000_000 }
}

fn id(name: &str) -> RequestId {
    RequestId(name.to_owned())
}

/// Boosted minutes that an hour of a slice's worth buys.
fn minutes_an_hour(settings: CreditSettings, accounts: u32) -> f64 {
    let mut credits = Credits::default();
    credits.configure(settings);
    let hour = credits.worth(earning(accounts)).times(3600);
    hour.0 as f64 / settings.boosted_slice_price.0 as f64 / 60.0
}

/// Seed 000 section 3.1: about 2.5 minutes an hour with little or no contention, 14 when four access the same disk.
#[test]
fn both_examples_of_the_seed_hold() {
    let settings = CreditSettings::default();
    assert!((minutes_an_hour(settings, 1) - 2.4).abs() < 1e-9);
    assert!((minutes_an_hour(settings, 5) - 14.4).abs() < 1e-9);
    // The other readings: neither meets both.
    let all = CreditSettings { counting: ContentionCounting::All, ..settings };
    assert!((minutes_an_hour(all, 1) - 4.8).abs() < 1e-9 && (minutes_an_hour(all, 4) - 12.0).abs() < 1e-9);
    let others = CreditSettings { counting: ContentionCounting::Others, ..settings };
    assert!((minutes_an_hour(others, 1) - 2.4).abs() < 1e-9 && (minutes_an_hour(others, 4) - 9.6).abs() < 1e-9);
}

/// The store that commits everything at once.
fn commit(credits: &mut Credits, now: Nanos, entries: Vec<LedgerEntry>) {
    for entry in entries {
        credits.committed(now, entry.number, true);
    }
}

#[test]
fn who_steps_back_without_using_the_disk_earns_nothing_and_holdings_are_capped() {
    let mut credits = Credits::default();
    let settings = CreditSettings { held_max: MicroCredits::credits(10), ..CreditSettings::default() };
    credits.configure(settings);
    for second in 0..600 {
        let now = Nanos::from_secs(second);
        let idle = Earning { demand_ppm: 0, ..earning(5) };
        let members = [("group:sybil", earning(2)), ("group:sybil", earning(2)), ("group:idle", idle)];
        credits.earn(members.into_iter());
        let entries = credits.entries(now, false);
        commit(&mut credits, now, entries);
        if second == 59 {
            // Two members at 3 credits a slice would have earned the cap in two slices either way; one entry a minute.
            assert_eq!(credits.held("group:sybil"), MicroCredits::credits(10));
        }
    }
    assert_eq!(credits.held("group:sybil"), MicroCredits::credits(10));
    assert_eq!(credits.held("group:idle"), MicroCredits::ZERO);
}

#[test]
fn the_members_of_an_account_earn_once() {
    let mut credits = Credits::default();
    credits.configure(CreditSettings::default());
    let members = [("a", earning(2)), ("a", earning(3)), ("a", earning(2))];
    credits.earn(members.into_iter());
    assert_eq!(credits.accruing("a"), MicroCredits::credits(4));
}

#[test]
fn a_purchase_that_failed_gives_everything_back_and_old_credits_go_first() {
    let mut credits = Credits::default();
    credits.configure(CreditSettings::default());
    let lot = |amount, hours: u64| CreditLot {
        amount: MicroCredits::credits(amount),
        expires_in: Nanos::from_secs(hours * 3600),
    };
    credits.recall(Nanos::ZERO, "a", &[lot(20, 1), lot(30, 2)], &[]);
    credits.recall(Nanos::ZERO, "a", &[lot(20, 1), lot(30, 2)], &[]);
    let first = credits.spend(Nanos::ZERO, "a", MicroCredits::credits(25), &id("x")).expect("enough");
    assert_eq!(credits.spend(Nanos::ZERO, "a", MicroCredits::credits(26), &id("y")), Err(MicroCredits::credits(25)));
    credits.failed(first.number);
    assert_eq!(credits.held("a"), MicroCredits::credits(50));
    let again = credits.spend(Nanos::ZERO, "a", MicroCredits::credits(25), &id("x")).expect("enough");
    credits.committed(Nanos::ZERO, again.number, true);
    let expired = credits.entries(Nanos::from_secs(3600), false);
    assert!(expired.is_empty(), "the oldest lot was spent: {expired:?}");
    let expired = credits.entries(Nanos::from_secs(7200), false);
    assert_eq!((expired[0].kind, expired[0].amount), (EntryKind::Expired, MicroCredits::credits(25)));
}

#[derive(Clone, Debug)]
enum Move {
    Earn(u8, u8, u32),
    Enter(bool),
    Buy(u8, u8, u32),
    Commit(bool),
    Fail,
    Pass(u32),
    /// The daemon dies: what the store has not committed never was.
    Crash,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        6 => (0..3_u8, 0..6_u8, 0..1_500_000_u32).prop_map(|(account, others, demand)| Move::Earn(account, others, demand)),
        3 => any::<bool>().prop_map(Move::Enter),
        4 => (0..3_u8, 0..6_u8, 1..4_u32).prop_map(|(account, key, slices)| Move::Buy(account, key, slices)),
        5 => any::<bool>().prop_map(Move::Commit),
        1 => proptest::strategy::Just(Move::Fail),
        2 => (0..50_u32).prop_map(Move::Pass),
        1 => proptest::strategy::Just(Move::Crash),
    ]
}

/// A ledger as the store keeps it.
#[derive(Default)]
struct Ledger {
    rows: Vec<(LedgerEntry, Nanos)>,
    keys: BTreeSet<(String, RequestId)>,
}

impl Ledger {
    fn commit(&mut self, now: Nanos, entry: &LedgerEntry) -> bool {
        let fresh = entry.request.as_ref().is_none_or(|key| self.keys.insert((entry.account.clone(), key.clone())));
        if fresh {
            self.rows.push((entry.clone(), now + entry.expires_in.unwrap_or_default()));
        }
        fresh
    }

    fn sum(&self, account: &str, kind: EntryKind) -> u64 {
        self.rows
            .iter()
            .filter(|(row, _)| row.account == account && row.kind == kind)
            .map(|(row, _)| row.amount.0)
            .sum()
    }

    /// The newest credits that make up the balance, as `store` derives them.
    fn lots(&self, account: &str, now: Nanos) -> Vec<CreditLot> {
        let mut left = self.sum(account, EntryKind::Earned)
            - self.sum(account, EntryKind::Spent)
            - self.sum(account, EntryKind::Expired);
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

proptest! {
    /// Earned = spent + expired + held + under way, whatever is committed, refused, sent again, or lost in a crash, and in
    /// whatever order; and what is held can be told from the ledger alone.
    #[test]
    fn credits_are_conserved(moves in proptest::collection::vec(any_move(), 1..120)) {
        let names = ["a", "b", "group:c"];
        let settings = CreditSettings {
            expiry: Nanos::from_secs(60), slices_between_entries: 3, held_max: MicroCredits::credits(200),
            ..CreditSettings::default()
        };
        let fresh = || { let mut credits = Credits::default(); credits.configure(settings); credits };
        let (mut credits, mut ledger, mut now) = (fresh(), Ledger::default(), Nanos::ZERO);
        let mut waiting: Vec<LedgerEntry> = Vec::new();
        let mut boosts: BTreeMap<(String, RequestId), u32> = BTreeMap::new();
        for one in moves {
            match one {
                Move::Earn(account, others, demand_ppm) => {
                    let earning = Earning { accounts_active: u32::from(others), points: 9, demand_ppm };
                    credits.earn([(names[usize::from(account)], earning)].into_iter());
                }
                Move::Enter(at_once) => waiting.extend(credits.entries(now, at_once)),
                Move::Buy(account, key, slices) => {
                    let (account, key) = (names[usize::from(account)], id(&key.to_string()));
                    if !credits.is_bought(account, &key) && !credits.is_being_bought(account, &key) {
                        let price = settings.boosted_slice_price.times(u64::from(slices));
                        waiting.extend(credits.spend(now, account, price, &key));
                    }
                }
                // The store's acknowledgement, and sometimes the crash just before it arrives.
                Move::Commit(heard) if !waiting.is_empty() => {
                    let entry = waiting.remove(0);
                    let fresh_entry = ledger.commit(now, &entry);
                    if !heard {
                        waiting.clear();
                        credits = fresh();
                        for name in names {
                            let bought: Vec<RequestId> =
                                ledger.keys.iter().filter(|(account, _)| account == name).map(|(_, key)| key.clone()).collect();
                            credits.recall(now, name, &ledger.lots(name, now), &bought);
                        }
                    } else if let Some(settled) = credits.committed(now, entry.number, fresh_entry) {
                        *boosts.entry((settled.account, settled.request)).or_default() += u32::from(fresh_entry);
                    }
                }
                Move::Fail if !waiting.is_empty() => {
                    let entry = waiting.remove(0);
                    credits.failed(entry.number);
                }
                Move::Commit(_) | Move::Fail => {}
                Move::Pass(seconds) => now += Nanos::from_secs(u64::from(seconds)),
                Move::Crash => {
                    waiting.clear();
                    credits = fresh();
                    for name in names {
                        let bought: Vec<RequestId> =
                            ledger.keys.iter().filter(|(account, _)| account == name).map(|(_, key)| key.clone()).collect();
                        credits.recall(now, name, &ledger.lots(name, now), &bought);
                    }
                }
            }
            for name in names {
                let out = ledger.sum(name, EntryKind::Spent) + ledger.sum(name, EntryKind::Expired);
                let taken: u64 = waiting.iter().filter(|e| e.account == name && !e.kind.adds()).map(|e| e.amount.0).sum();
                prop_assert_eq!(ledger.sum(name, EntryKind::Earned), out + taken + credits.held(name).0, "{}", name);
                prop_assert!(credits.held(name) <= settings.held_max);
            }
        }
        prop_assert!(boosts.values().all(|count| *count <= 1), "bought twice: {:?}", boosts);
    }

    /// Acknowledgements of nothing, twice, or in any order change nothing else.
    #[test]
    fn stray_acknowledgements_are_ignored(numbers in proptest::collection::vec((0..20_u64, any::<bool>()), 0..40)) {
        let mut credits = Credits::default();
        credits.configure(CreditSettings::default());
        let lot = CreditLot { amount: MicroCredits::credits(60), expires_in: Nanos::from_secs(60) };
        credits.recall(Nanos::ZERO, "a", &[lot], &[]);
        let entry = credits.spend(Nanos::ZERO, "a", MicroCredits::credits(25), &id("x")).expect("enough");
        for (number, committed) in numbers.into_iter().filter(|(number, _)| EntryNumber(*number) != entry.number) {
            match committed {
                true => drop(credits.committed(Nanos::ZERO, EntryNumber(number), true)),
                false => drop(credits.failed(EntryNumber(number))),
            }
        }
        credits.committed(Nanos::ZERO, entry.number, true);
        credits.committed(Nanos::ZERO, entry.number, true);
        prop_assert_eq!(credits.held("a"), MicroCredits::credits(35));
    }
}
