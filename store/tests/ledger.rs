//! The ledger: entered once, never changed, and all that is known of a balance.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use minerva_model::{
    AccessKind, Boost, CreditLot, Declaration, DeviceId, EntryKind, EntryNumber, LearntBandwidth, LedgerEntry, Level,
    MicroCredits, Nanos, Purchase, RequestId,
};
use minerva_store::{
    AnswerKind, AuditLimits, Posted, Posting, RequestRow, Schedule, SetLevel, Span, Store, StoreNote, StoredClaim,
    Whose,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const NOON: i64 = 1_800_000_000_000;
const HOUR: Nanos = Nanos::from_secs(3600);

fn open(path: &Path, boot_id: &str, clock: &Arc<AtomicI64>) -> (Store, Vec<StoreNote>) {
    let clock = Arc::clone(clock);
    Store::open(path, boot_id, Box::new(move || clock.load(Ordering::Relaxed))).expect("opens")
}

fn entry(account: &str, kind: EntryKind, credits: u64, request: Option<&str>) -> Posting {
    Posting::from(LedgerEntry {
        number: EntryNumber(0),
        account: account.to_owned(),
        kind,
        amount: MicroCredits::credits(credits),
        expires_in: kind.adds().then_some(HOUR),
        request: request.map(|key| RequestId(key.to_owned())),
    })
}

fn lots(store: &Store, account: &str) -> Vec<(u64, u64)> {
    let lots: Vec<CreditLot> = store.lots(account).expect("read");
    lots.iter().map(|lot| (lot.amount.0 / 1_000_000, lot.expires_in.0 / 1_000_000_000)).collect()
}

#[test]
fn balances_and_lots_are_derived_from_the_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let (mut store, _) = open(&path, "boot-a", &clock);
    for (minutes, kind, credits, request) in [
        (0, EntryKind::Earned, 30, None),
        (10, EntryKind::Earned, 40, None),
        (20, EntryKind::Spent, 25, Some("a")),
        (30, EntryKind::Given, 5, Some("gift")),
        (40, EntryKind::Expired, 5, None),
        (40, EntryKind::Spent, 25, Some("b")),
    ] {
        clock.store(NOON + minutes * 60_000, Ordering::Relaxed);
        assert_eq!(store.post(&[entry("group:g", kind, credits, request)]).expect("written"), [Posted::Fresh]);
    }
    assert_eq!(store.balance_micro_credits("group:g").expect("read"), 20_000_000);
    assert_eq!(lots(&store, "group:g"), [(15, 30 * 60), (5, 50 * 60)]);
    assert_eq!(lots(&store, "group:other"), []);
    // The same key again adds nothing, for this account; and what is in one transaction is entered in order.
    let again =
        [entry("group:g", EntryKind::Spent, 25, Some("b")), entry("cgroup:x#1", EntryKind::Given, 1, Some("b"))];
    assert_eq!(store.post(&again).expect("written"), [Posted::Known, Posted::Fresh]);
    let keys = |store: &Store| -> Vec<String> {
        let bought = store.purchases("group:g", "cgroup:a#1", 9).expect("read");
        bought.into_iter().map(|purchase| purchase.request.0).collect()
    };
    assert_eq!(keys(&store), ["b", "a"], "a gift is no purchase");
    let kinds: Vec<EntryKind> =
        store.ledger(Some("group:g"), NOON + 20 * 60_000, 3).expect("read").iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [EntryKind::Given, EntryKind::Expired, EntryKind::Spent], "the newest three");
    let all = store.ledger(None, 0, 100).expect("read");
    assert_eq!((all.len(), all[6].account.as_str()), (7, "cgroup:x#1"));

    // A group is the same after a boot, a cgroup is not. Clocks that jump give what was given, or nothing.
    for (at, seconds) in [(NOON - 1_000_000_000, 3600), (i64::MAX, 0), (i64::MIN, 3600)] {
        clock.store(at, Ordering::Relaxed);
        let (store, _) = open(&path, "boot-b", &clock);
        assert_eq!(lots(&store, "group:g"), [(15, seconds), (5, seconds)]);
        assert_eq!(lots(&store, "cgroup:x#1"), []);
    }
}

#[test]
fn a_row_can_be_neither_changed_nor_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    open(&path, "boot-a", &clock).0.post(&[entry("a", EntryKind::Earned, 3, None)]).expect("written");
    let other = rusqlite::Connection::open(&path).expect("opens");
    for change in ["UPDATE ledger SET micro_credits = 9", "DELETE FROM ledger"] {
        assert!(other.execute(change, []).expect_err("refused").to_string().contains("append-only"));
    }
}

#[test]
fn a_boost_is_durable_with_its_price_and_not_without() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let (mut store, _) = open(&path, "boot-a", &clock);
    let buy = |key: &str| Posting {
        boost: Some(("cgroup:a#1".to_owned(), Boost { request: RequestId(key.into()), device: None, slices_left: 1 })),
        ..entry("group:g", EntryKind::Spent, 25, Some(key))
    };
    assert_eq!(store.post(&[buy("a"), buy("b")]).expect("written"), [Posted::Fresh; 2]);
    assert_eq!(store.post(&[buy("b"), buy("c")]).expect("written"), [Posted::Known, Posted::Fresh]);
    let declared = store.declared("cgroup:a#1").expect("read").expect("there");
    let keys: Vec<&str> = declared.boosts.iter().map(|boost| boost.request.0.as_str()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
}

#[test]
fn a_key_is_of_one_tenant_and_what_it_bought_is_known() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let (mut store, _) = open(&path, "boot-a", &clock);
    let disk = Some(DeviceId { major: 8, minor: 0 });
    let buy = |tenant: &str, device, slices: u32| Posting {
        boost: Some((tenant.to_owned(), Boost { request: RequestId("k".into()), device, slices_left: slices })),
        ..entry("group:g", EntryKind::Spent, u64::from(slices) * 25, Some("k"))
    };
    let (a, b) = ("cgroup:a#1", "cgroup:b#2");
    assert_eq!(
        store.post(&[buy(a, disk, 3), buy(b, None, 1), buy(a, None, 9)]).expect("written"),
        [Posted::Fresh, Posted::Fresh, Posted::Known]
    );
    let bought = |device, slices: u32| Purchase {
        request: RequestId("k".into()),
        slices: Some(slices),
        device,
        price: MicroCredits::credits(u64::from(slices) * 25),
    };
    assert_eq!(store.purchases("group:g", a, 9).expect("read"), [bought(disk, 3)]);
    assert_eq!(store.purchase("group:g", b, &RequestId("k".into())).expect("read"), Some(bought(None, 1)));
    assert_eq!(store.purchase("group:g", b, &RequestId("other".into())).expect("read"), None);
}

/// Before the fourth schema a purchase did not say whose it was: it stands for the one that is asked for, and is not made again.
#[test]
fn a_purchase_of_the_third_version_is_not_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let old = rusqlite::Connection::open(&path).expect("made");
    old.execute_batch(include_str!("schema_3.sql")).expect("written");
    drop(old);
    let (mut store, notes) = open(&path, "boot-a", &clock);
    assert_eq!(notes, [StoreNote::Migrated { from: 3, to: 11 }]);
    let known =
        Purchase { request: RequestId("k".into()), slices: None, device: None, price: MicroCredits::credits(25) };
    assert_eq!(store.purchases("group:g", "cgroup:a#1", 9).expect("read"), [known]);
    let boost = Boost { request: RequestId("k".into()), device: None, slices_left: 1 };
    let again =
        Posting { boost: Some(("cgroup:a#1".to_owned(), boost)), ..entry("group:g", EntryKind::Spent, 25, Some("k")) };
    assert_eq!(store.post(&[again]).expect("written"), [Posted::Known]);
    assert_eq!(store.balance_micro_credits("group:g").expect("read"), 5_000_000);
}

/// A file of the first schema, with a row of each table, as a daemon of that version left it.
#[test]
fn a_file_of_the_first_version_opens_and_keeps_its_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let old = rusqlite::Connection::open(&path).expect("made");
    old.execute_batch(include_str!("schema_1.sql")).expect("written");
    drop(old);
    let (mut store, notes) = open(&path, "boot-a", &clock);
    assert_eq!(notes, [StoreNote::Migrated { from: 1, to: 11 }]);
    assert_eq!(store.recall("group:batch").expect("read").len(), 1);
    assert_eq!(store.explain("web", None, None).expect("read").len(), 1);
    store.post(&[entry("group:batch", EntryKind::Earned, 3, None)]).expect("written");
    drop(store);
    assert_eq!(open(&path, "boot-a", &clock).1, []);
}

#[test]
fn declarations_and_bandwidths_last_for_a_boot() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let boost = Boost { request: RequestId("r".into()), device: None, slices_left: 7 };
    let declaration =
        Declaration { key: "cgroup:a#1".to_owned(), level: Level::Idle, boosts: vec![boost], ..Declaration::default() };
    let device = DeviceId { major: 8, minor: 0 };
    let (access, bytes_per_second) = (AccessKind::RandomRead, 1.25e6);
    let learnt = LearntBandwidth { device, access, bytes_per_second, measured_seconds: 9.0, age: Nanos::ZERO };
    let (mut store, _) = open(&path, "boot-a", &clock);
    store.declare(std::slice::from_ref(&declaration)).expect("written");
    store.learn(&[learnt]).expect("written");
    clock.fetch_add(5_000, Ordering::Relaxed);
    let (mut store, _) = open(&path, "boot-a", &clock);
    assert_eq!(store.declared("cgroup:a#1").expect("read"), Some(declaration));
    assert_eq!(store.learnt(device).expect("read"), [LearntBandwidth { age: Nanos::from_secs(5), ..learnt }]);
    let (elsewhere, _) = open(&path, "boot-b", &clock);
    assert_eq!(elsewhere.declared("cgroup:a#1").expect("read"), None);
    assert_eq!(elsewhere.learnt(device).expect("read"), []);
    store.declare(&[Declaration { key: "cgroup:a#1".to_owned(), ..Declaration::default() }]).expect("written");
    assert_eq!(store.declared("cgroup:a#1").expect("read"), None);
}

#[test]
fn claims_last_for_a_boot_and_go_when_they_say_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let span = Span { begin_minute: 1320, end_minute: 360, days: 0, level: Level::Idle };
    let claim = StoredClaim {
        set: Some(SetLevel { level: Level::Low, until: Some(Nanos::from_secs(9)), process: None }),
        schedule: Some(Schedule { time_zone: "Europe/Berlin".to_owned(), spans: vec![span] }),
    };
    let (mut store, _) = open(&path, "boot-a", &clock);
    store.claim([("cgroup:a#1", &claim)].into_iter()).expect("written");
    assert_eq!(open(&path, "boot-a", &clock).0.claimed("cgroup:a#1").expect("read"), Some(claim));
    assert_eq!(open(&path, "boot-b", &clock).0.claimed("cgroup:a#1").expect("read"), None);
    store.claim([("cgroup:a#1", &StoredClaim::default())].into_iter()).expect("written");
    assert_eq!(store.claimed("cgroup:a#1").expect("read"), None);
}

#[test]
fn requests_are_audited_and_the_old_ones_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let (mut store, _) = open(&path, "boot-a", &clock);
    let row = |minutes: i64, name: &str, kind| RequestRow {
        at_unix_ms: NOON + minutes * 60_000,
        tenant_name: name.to_owned(),
        account: format!("group:{name}"),
        kind,
        request: format!("r{minutes}"),
        text: "a boost of 3 slices".to_owned(),
    };
    let rows = [row(0, "a", AnswerKind::Refused), row(1, "b", AnswerKind::Ready), row(2, "a", AnswerKind::Granted)];
    store.audit_requests(&rows).expect("written");
    assert_eq!(store.requests(&Whose::All, 0, 2).expect("read"), rows[1..]);
    let of_a = [rows[0].clone(), rows[2].clone()];
    assert_eq!(store.requests(&Whose::Tenant("a".into()), 0, 9).expect("read"), of_a);
    assert_eq!(store.requests(&Whose::Account("group:a".into()), NOON + 1, 9).expect("read"), of_a[1..]);
    let limits = AuditLimits { age_max: Duration::from_secs(3600), rows_max: 2 };
    assert_eq!(store.prune(limits).expect("pruned").rows, 1);
    assert_eq!(store.requests(&Whose::All, 0, 9).expect("read"), rows[1..]);
}

#[test]
fn an_account_as_people_know_it_has_the_rows_of_all_its_directories_and_no_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, clock) = (directory.path().join("minerva.db"), Arc::new(AtomicI64::new(NOON)));
    let ours = ["cgroup:a/b#7", "cgroup:a/b#8", "cgroup:a/b#31"];
    let others = ["cgroup:a/b", "cgroup:a/b#c#7", "cgroup:a/b/c#7", "cgroup:a/bc#7", "cgroup:a#7", "group:a/b"];
    for boot in ["boot-a", "boot-b"] {
        let (mut store, _) = open(&path, boot, &clock);
        let all = ours.iter().chain(&others).map(|account| entry(account, EntryKind::Earned, 1, None));
        store.post(&all.collect::<Vec<_>>()).expect("written");
        let rows = ours.iter().chain(&others).map(|account| RequestRow {
            at_unix_ms: NOON,
            tenant_name: "b".to_owned(),
            account: (*account).to_owned(),
            kind: AnswerKind::Granted,
            request: String::new(),
            text: String::new(),
        });
        store.audit_requests(&rows.collect::<Vec<_>>()).expect("written");
    }
    let (store, _) = open(&path, "boot-b", &clock);
    let entered = store.ledger_as_shown("a/b", 0, 99).expect("read");
    let entered: Vec<&str> = entered.iter().map(|row| row.account.as_str()).collect();
    assert_eq!(entered, ours.repeat(2), "of every boot, the oldest first");
    let answered = store.requests(&Whose::Account("a/b".into()), 0, 99).expect("read");
    let answered: Vec<&str> = answered.iter().map(|row| row.account.as_str()).collect();
    assert_eq!(answered, entered);
    assert_eq!(store.ledger_as_shown("group:a/b", 0, 99).expect("read").len(), 2);
    assert_eq!(store.accounts_of("b").expect("read").len(), ours.len() + others.len());
}
