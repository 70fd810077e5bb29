//! Old entries carried forward: whatever was entered and whenever that is done, every account holds the same to the micro-credit,
//! in the same lots, and the database refuses to delete anything else.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use minerva_model::{EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos, RequestId};
use minerva_store::{Posting, Store};
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const NOON: i64 = 1_800_000_000_000;
const EXPIRY: Nanos = Nanos::from_secs(60);
const ACCOUNTS: [&str; 3] = ["group:a", "group:b", "cgroup:c#1"];

fn open(path: &Path, clock: &Arc<AtomicI64>) -> Store {
    let clock = Arc::clone(clock);
    Store::open(path, "boot-a", Box::new(move || clock.load(Ordering::Relaxed))).expect("opens").0
}

fn entry(account: usize, kind: EntryKind, amount: u64, request: Option<u32>) -> Posting {
    Posting::from(LedgerEntry {
        number: EntryNumber(0),
        account: ACCOUNTS[account].to_owned(),
        kind,
        amount: MicroCredits(amount),
        expires_in: kind.adds().then_some(EXPIRY),
        request: request.map(|number| RequestId(number.to_string())),
    })
}

fn held(store: &Store, account: usize) -> u64 {
    u64::try_from(store.balance_micro_credits(ACCOUNTS[account]).expect("read")).expect("never below zero")
}

#[derive(Clone, Debug)]
enum Move {
    Earn(usize, u64),
    /// A part of what is held, in thousandths.
    Spend(usize, u64),
    /// The wall clock goes on, or leaps.
    Pass(i64),
    Carry(u64),
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        5 => (0..3_usize, 1..1_000_000_u64).prop_map(|(account, amount)| Move::Earn(account, amount)),
        4 => (0..3_usize, 0..=1_000_u64).prop_map(|(account, part)| Move::Spend(account, part)),
        3 => (0..90_000_i64).prop_map(Move::Pass),
        1 => (-400_000..400_000_i64).prop_map(Move::Pass),
        3 => (0..120_u64).prop_map(Move::Carry),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_held_is_the_same_whatever_is_carried_forward(
        moves in proptest::collection::vec(any_move(), 1..60),
        reopen in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(AtomicI64::new(NOON));
        let paths = ["whole.db", "carried.db"].map(|name| directory.path().join(name));
        let [mut whole, mut carried] = [0, 1].map(|index| open(&paths[index], &clock));
        let (mut requests, mut went_back) = (0, false);
        for one in moves {
            let postings = match one {
                Move::Earn(account, amount) => vec![entry(account, EntryKind::Earned, amount, None)],
                Move::Spend(account, part) => {
                    requests += 1;
                    let amount = held(&whole, account) * part / 1_000;
                    vec![entry(account, EntryKind::Spent, amount, Some(requests))]
                }
                Move::Pass(milliseconds) => {
                    clock.fetch_add(milliseconds, Ordering::Relaxed);
                    went_back |= milliseconds < 0;
                    Vec::new()
                }
                Move::Carry(seconds) => {
                    carried.carry_forward(Duration::from_secs(seconds)).expect("carried");
                    if reopen {
                        carried = open(&paths[1], &clock);
                    }
                    Vec::new()
                }
            };
            prop_assert_eq!(whole.post(&postings).expect("written"), carried.post(&postings).expect("written"));
            for (account, name) in ACCOUNTS.iter().enumerate() {
                prop_assert_eq!(held(&carried, account), held(&whole, account), "{}", name);
                // What has expired is one lot; what can be spent is the same.
                let lots = [&whole, &carried].map(|store| {
                    let mut lots = store.lots(name).expect("read");
                    lots.retain(|lot| lot.expires_in > Nanos::ZERO);
                    lots
                });
                // What had expired when it was carried forward stays so, also when the clock goes back.
                prop_assert!(went_back || lots[0] == lots[1], "{}: {:?}", name, lots);
                let all: u64 = carried.lots(name).expect("read").iter().map(|lot| lot.amount.0).sum();
                prop_assert_eq!(all, held(&carried, account));
            }
        }
        prop_assert!(carried.ledger(None, 0, 1_000).expect("read").len() <= whole.ledger(None, 0, 1_000).expect("read").len());
    }
}

#[test]
fn only_what_was_carried_forward_can_be_deleted_and_one_row_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let mut store = open(&path, &clock);
    for _ in 0..3 {
        store.post(&[entry(0, EntryKind::Earned, 7, None), entry(1, EntryKind::Earned, 5, None)]).expect("written");
    }
    let day = Duration::from_secs(86_400);
    let carry = |store: &mut Store, days| store.carry_forward(days * day).expect("carried").rows;
    assert_eq!(carry(&mut store, 1), 0, "it is young");
    clock.fetch_add(2 * 86_400_000, Ordering::Relaxed);
    assert_eq!(carry(&mut store, 1), 0, "there is nothing else to tell the time by");
    store.post(&[entry(0, EntryKind::Earned, 1, None)]).expect("written");
    assert_eq!(carry(&mut store, 1), 0, "a clock that leaps makes nothing old");
    clock.fetch_add(86_400_000, Ordering::Relaxed);
    assert_eq!([carry(&mut store, 2), carry(&mut store, 2)], [6, 0]);
    assert_eq!([held(&store, 0), held(&store, 1)], [22, 15]);
    let other = rusqlite::Connection::open(&path).expect("opens");
    let refused = other.execute("DELETE FROM ledger", []).expect_err("refused");
    assert!(refused.to_string().contains("append-only"));
}

/// So many milliseconds are as old as the ledger's rows become here.
const KEPT: Duration = Duration::from_secs(3_600);

/// Time passes, as it does with entries now and then.
fn pass(store: &mut Store, clock: &AtomicI64, minutes: i64) {
    for _ in 0..minutes {
        clock.fetch_add(60_000, Ordering::Relaxed);
        store.post(&[entry(1, EntryKind::Earned, 1, None)]).expect("written");
    }
}

fn sums(path: &Path) -> Vec<(String, String, i64)> {
    let other = rusqlite::Connection::open(path).expect("opens");
    let mut select = other
        .prepare("SELECT account, boot, micro_credits FROM ledger_carried WHERE account <> 'group:b'")
        .expect("prepared");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("read");
    rows.collect::<rusqlite::Result<_>>().expect("read")
}

#[test]
fn sums_of_cgroups_of_earlier_boots_do_not_stay_and_those_that_count_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let mut store = open(&path, &clock);
    let of = |account: String, kind| Posting::from(LedgerEntry { account, ..entry(0, kind, 7, None).entry });
    let cgroups = (0..1_000).map(|number| of(format!("cgroup:c#{number}"), EntryKind::Earned));
    // One that is left in the boot has nothing.
    let none = [EntryKind::Earned, EntryKind::Expired].map(|kind| of("cgroup:none#1".to_owned(), kind));
    let group = entry(0, EntryKind::Earned, 9, None);
    store.post(&cgroups.chain(none).chain([group]).collect::<Vec<_>>()).expect("written");
    pass(&mut store, &clock, 62);
    assert_eq!(store.carry_forward(KEPT).expect("carried").rows, 1_000 + 3 + 1);
    assert_eq!(sums(&path).len(), 1_000 + 1, "of this boot, but for that of nothing");
    let of_this_boot = store.balance_micro_credits("cgroup:c#999").expect("read");
    assert_eq!((of_this_boot, held(&store, 0)), (7, 9));

    drop(store);
    let clock_of_store = Arc::clone(&clock);
    let clock_of_store = Box::new(move || clock_of_store.load(Ordering::Relaxed));
    let mut store = Store::open(&path, "boot-b", clock_of_store).expect("opens").0;
    // The same path and number are another cgroup in this boot.
    store.post(&[of("cgroup:c#1".to_owned(), EntryKind::Earned)]).expect("written");
    pass(&mut store, &clock, 62);
    store.carry_forward(KEPT).expect("carried");
    let kept = [("cgroup:c#1", "boot-b", 7), ("group:a", "", 9)];
    assert_eq!(sums(&path), kept.map(|(account, boot, sum)| (account.to_owned(), boot.to_owned(), sum)));
    assert_eq!((store.balance_micro_credits("cgroup:c#1").expect("read"), held(&store, 0)), (7, 9));
    assert_eq!(held(&store, 1), 124, "carried forward and not");
}

#[test]
fn an_account_that_is_below_zero_is_told_and_keeps_nobodys_entries_from_being_carried_forward() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let mut store = open(&path, &clock);
    store
        .post(&[
            entry(0, EntryKind::Earned, 25, None),
            entry(0, EntryKind::Spent, 25, Some(1)),
            entry(0, EntryKind::Spent, 25, Some(2)),
            entry(2, EntryKind::Earned, 5, None),
        ])
        .expect("written");
    assert_eq!(store.balance_micro_credits(ACCOUNTS[0]).expect("read"), -25);
    pass(&mut store, &clock, 62);
    let carried = store.carry_forward(KEPT).expect("carried");
    assert_eq!((carried.rows, carried.overdrawn), (4 + 1, vec![ACCOUNTS[0].to_owned()]));
    assert_eq!([held(&store, 0), held(&store, 2)], [0, 5]);
    pass(&mut store, &clock, 1);
    let carried = store.carry_forward(KEPT).expect("carried");
    assert_eq!((carried.rows, carried.overdrawn), (1, Vec::new()), "said once");
}

#[test]
fn rows_of_a_clock_that_was_ahead_are_carried_forward_and_not_before_their_credits_expire() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let mut store = open(&path, &clock);
    let ten_years = 10 * 365 * 86_400_000;
    let two_hours = |account| {
        let of_two_hours = LedgerEntry {
            expires_in: Some(Nanos::from_secs(7_200)),
            ..entry(account, EntryKind::Earned, 5, None).entry
        };
        Posting::from(of_two_hours)
    };
    clock.fetch_add(ten_years, Ordering::Relaxed);
    store.post(&[entry(0, EntryKind::Earned, 7, None), two_hours(2)]).expect("written");
    clock.fetch_sub(ten_years, Ordering::Relaxed);
    pass(&mut store, &clock, 62);
    let carry = |store: &mut Store| store.carry_forward(KEPT).expect("carried").rows;
    assert_eq!(carry(&mut store), 1, "up to those that last two hours");
    // In the middle of the others too; these are younger than an hour when the next is.
    clock.fetch_add(ten_years, Ordering::Relaxed);
    assert_eq!(carry(&mut store), 0, "a clock that leaps makes nothing old");
    store.post(&[entry(0, EntryKind::Earned, 7, None)]).expect("written");
    clock.fetch_sub(ten_years, Ordering::Relaxed);
    pass(&mut store, &clock, 58);
    assert_eq!(carry(&mut store), 0, "two hours have not passed since the row that came next");
    pass(&mut store, &clock, 1);
    assert_eq!(carry(&mut store), 1 + 60, "and those of the first hour");
    pass(&mut store, &clock, 61);
    assert_eq!(carry(&mut store), 2 + 1 + 59, "the other row of the clock that was ahead too");
    assert_eq!([held(&store, 0), held(&store, 2)], [14, 5]);
}
