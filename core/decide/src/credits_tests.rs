//! The paper's numbers, and what holds of every account.

use super::{Credits, Earning};
use minerva_model::{
    ContentionCounting, CreditLot, CreditSettings, EntryKind, LedgerEntry, LevelSettings, MicroCredits, Nanos,
    Purchase, RequestId,
};

fn earning(accounts_active: u32) -> Earning {
    let CreditSettings { held_max, expiry, .. } = CreditSettings::default();
    Earning { accounts_active, points: LevelSettings::default().idle.points, demand_ppm: 1_000_000, held_max, expiry }
}

pub(super) fn id(name: &str) -> RequestId {
    RequestId(name.to_owned())
}

/// Boosted minutes that an hour of a slice's worth buys.
fn minutes_an_hour(settings: CreditSettings, accounts: u32) -> f64 {
    let mut credits = Credits::default();
    credits.configure(settings);
    let hour = credits.worth(earning(accounts)).times(3600);
    hour.0 as f64 / settings.boosted_slice_price.0 as f64 / 60.0
}

/// Malensek et al. 2016, section 3.1: about 2.5 minutes an hour with little or no contention, 14 when four access the same disk.
#[test]
fn both_examples_of_the_paper_hold() {
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
        credits.committed(now, entry.number, true, None);
    }
}

#[test]
fn who_steps_back_without_using_the_disk_earns_nothing_and_holdings_are_capped() {
    let mut credits = Credits::default();
    let settings = CreditSettings { held_max: MicroCredits::credits(10), ..CreditSettings::default() };
    credits.configure(settings);
    let earning = |accounts| Earning { held_max: settings.held_max, ..earning(accounts) };
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

pub(super) fn purchase(key: &str, credits: u64) -> Purchase {
    Purchase { request: id(key), slices: Some(1), device: None, price: MicroCredits::credits(credits) }
}

#[test]
fn a_purchase_that_failed_gives_everything_back_and_old_credits_go_first() {
    let mut credits = Credits::default();
    credits.configure(CreditSettings::default());
    let lot = |amount, hours: u64| CreditLot {
        amount: MicroCredits::credits(amount),
        expires_in: Nanos::from_secs(hours * 3600),
    };
    credits.recall(Nanos::ZERO, ("a", "t"), &[lot(20, 1), lot(30, 2)], &[]);
    credits.recall(Nanos::ZERO, ("a", "t"), &[lot(20, 1), lot(30, 2)], &[]);
    let first = credits.spend(Nanos::ZERO, ("a", "t"), purchase("x", 25)).expect("enough");
    assert_eq!(credits.spend(Nanos::ZERO, ("a", "t"), purchase("y", 26)), Err(MicroCredits::credits(25)));
    credits.failed(first.number);
    assert_eq!(credits.held("a"), MicroCredits::credits(50));
    let again = credits.spend(Nanos::ZERO, ("a", "t"), purchase("x", 25)).expect("enough");
    credits.committed(Nanos::ZERO, again.number, true, None);
    let expired = credits.entries(Nanos::from_secs(3600), false);
    assert!(expired.is_empty(), "the oldest lot was spent: {expired:?}");
    let expired = credits.entries(Nanos::from_secs(7200), false);
    assert_eq!((expired[0].kind, expired[0].amount), (EntryKind::Expired, MicroCredits::credits(25)));
}

/// An account earns, and enters it.
fn earn_and_enter(credits: &mut Credits, now: Nanos, earning: Earning) -> Option<Nanos> {
    credits.earn([("a", earning)].into_iter());
    let entries = credits.entries(now, true);
    let expires_in = entries.iter().find_map(|entry| entry.expires_in);
    commit(credits, now, entries);
    expires_in
}

#[test]
fn credits_last_as_long_as_the_terms_of_their_entry_say_and_no_shorter_than_older_ones() {
    let mut credits = Credits::default();
    credits.configure(CreditSettings::default());
    let hour = |count: u64| Nanos::from_secs(3600 * count);
    let on = |hours| Earning { expiry: hour(hours), ..earning(5) };
    // Of the members of an account the one with the longest time sets it.
    credits.earn([("a", on(1)), ("a", on(4))].into_iter());
    assert_eq!(earn_and_enter(&mut credits, hour(0), on(4)), Some(hour(4)));
    // A new file with a shorter time: those that are there keep theirs, and what is earned now goes with them.
    assert_eq!(earn_and_enter(&mut credits, hour(1), on(1)), Some(hour(3)));
    assert_eq!(earn_and_enter(&mut credits, hour(3), on(1)), Some(hour(1)));
    assert!(credits.entries(hour(4) - Nanos(1), false).is_empty());
    let expired = credits.entries(hour(4), false);
    assert_eq!((expired.len(), expired[0].kind, credits.held("a")), (1, EntryKind::Expired, MicroCredits::ZERO));
    // Without older ones it holds from the first entry on; also of an account that is read back out of order.
    assert_eq!(earn_and_enter(&mut credits, hour(5), on(1)), Some(hour(1)));
    let lot = |hours| CreditLot { amount: MicroCredits::credits(10), expires_in: hour(hours) };
    credits.recall(hour(5), ("b", "t"), &[lot(3), lot(1)], &[]);
    credits.entries(hour(7), false);
    assert_eq!(credits.held("b"), MicroCredits::credits(20));
    credits.entries(hour(8), false);
    assert_eq!(credits.held_in_all(), MicroCredits::ZERO);
}

/// What the store knows of an account may arrive while the first entry of it is under way.
#[test]
fn an_entry_committed_after_the_account_was_recalled_does_not_expire_before_what_was_there() {
    let mut credits = Credits::default();
    credits.configure(CreditSettings::default());
    credits.earn([("a", Earning { expiry: Nanos::from_secs(60), ..earning(5) })].into_iter());
    let entries = credits.entries(Nanos::ZERO, true);
    let older = CreditLot { amount: MicroCredits::credits(10), expires_in: Nanos::from_secs(90) };
    credits.recall(Nanos::ZERO, ("a", "t"), &[older], &[]);
    commit(&mut credits, Nanos::ZERO, entries);
    let lots = &credits.accounts["a"].lots;
    assert!(lots.len() == 2 && lots.iter().map(|lot| lot.expires_at).is_sorted(), "{lots:?}");
}

/// Groups come and go for as long as the store fails, and nobody may ever have their accounts again.
#[test]
fn an_account_that_is_left_does_not_wait_for_a_store_that_fails() {
    let mut credits = Credits::default();
    credits.configure(CreditSettings::default());
    credits.earn([("left", earning(5)), ("there", earning(5))].into_iter());
    credits.leave("left");
    let entries = credits.entries(Nanos::ZERO, true);
    assert_eq!(entries.len(), 2);
    credits.entries(Nanos::ZERO, false);
    assert!(credits.accounts.contains_key("left"), "its entry may come to stand in the ledger");
    entries.iter().for_each(|entry| drop(credits.failed(entry.number)));
    credits.entries(Nanos::ZERO, false);
    assert_eq!(credits.accounts.keys().collect::<Vec<_>>(), ["there"]);
    assert!(credits.accruing("there") > MicroCredits::ZERO, "it is entered later");
}
