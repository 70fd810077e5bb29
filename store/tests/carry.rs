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
    assert_eq!(store.carry_forward(day).expect("carried"), 0, "it is young");
    clock.fetch_add(2 * 86_400_000, Ordering::Relaxed);
    assert_eq!(store.carry_forward(day).expect("carried"), 0, "there is nothing else to tell the time by");
    store.post(&[entry(0, EntryKind::Earned, 1, None)]).expect("written");
    assert_eq!(store.carry_forward(day).expect("carried"), 0, "a clock that leaps makes nothing old");
    clock.fetch_add(86_400_000, Ordering::Relaxed);
    assert_eq!(store.carry_forward(2 * day).expect("carried"), 6);
    assert_eq!(store.carry_forward(2 * day).expect("carried"), 0);
    assert_eq!([held(&store, 0), held(&store, 1)], [22, 15]);
    let other = rusqlite::Connection::open(&path).expect("opens");
    let refused = other.execute("DELETE FROM ledger", []).expect_err("refused");
    assert!(refused.to_string().contains("append-only"));
}
