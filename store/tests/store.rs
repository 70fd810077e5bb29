//! What is remembered, and what becomes of a bad file or a bad clock.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

#[path = "store/damaged.rs"]
mod damaged;
#[path = "store/disks.rs"]
mod disks;
#[path = "store/explained.rs"]
mod explained;

use expect_test::expect;
use minerva_model::{
    Decision, DeviceId, Factor, Level, Nanos, PolicyName, Reason, Share, TenantHistory, TenantId, UsageAverage,
};
use minerva_store::{
    AuditLimits, AuditRow, HISTORY_AGE_MAX, Pruned, SetLevel, Store, StoreError, StoreErrorKind, StoreNote, StoredClaim,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const NOON: i64 = 1_800_000_000_000;
const DAY_MS: i64 = 24 * 3600 * 1000;
const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

/// A store in a directory of its own, and its clock.
struct Fixture {
    directory: tempfile::TempDir,
    now: Arc<AtomicI64>,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory, now: Arc::new(AtomicI64::new(NOON)) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("minerva.db")
    }

    fn try_open(&self, boot_id: &str) -> Result<(Store, Vec<StoreNote>), StoreError> {
        let now = Arc::clone(&self.now);
        Store::open(&self.path(), boot_id, Box::new(move || now.load(Ordering::Relaxed)))
    }

    fn open(&self, boot_id: &str) -> Store {
        let (store, notes) = self.try_open(boot_id).expect("opens");
        assert_eq!(notes, []);
        store
    }

    fn shown(&self, text: impl ToString) -> String {
        text.to_string().replace(self.directory.path().to_str().expect("a text path"), "DIR")
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).expect("a directory");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn history(key: &str, recent: f64) -> TenantHistory {
    TenantHistory {
        key: key.to_owned(),
        device: DISK,
        usage: UsageAverage { recent_bytes_per_second: recent, long_term_bytes_per_second: recent / 3.0 },
        disk_part: 0.25,
        group: 4,
        age: Nanos::ZERO,
    }
}

fn audit_row(at_unix_ms: i64, device_name: &str, share: u32) -> AuditRow {
    let factor = Factor { policy: PolicyName::FENNEL, value: 0.1 + 0.2, reason: Reason::NoHistory };
    let decision = Decision { tenant: TenantId(1), device: DISK, share: Share::new(share), factors: vec![factor] };
    AuditRow {
        at_unix_ms,
        tenant_name: "web".into(),
        cgroup_path: "system.slice/web.service".into(),
        account: "group:web".into(),
        device_name: device_name.into(),
        text: decision.to_string(),
        decision,
    }
}

#[test]
fn histories_survive_a_restart_and_age_by_the_wall_clock() {
    let fixture = Fixture::new();
    fixture.open("boot-a").remember(&[history("group:batch", 1.0), history("cgroup:a#7", 0.1)]).expect("written");
    fixture.now.fetch_add(90_000, Ordering::Relaxed);
    let store = fixture.open("boot-a");
    let expected = TenantHistory { age: Nanos::from_secs(90), ..history("cgroup:a#7", 0.1) };
    assert_eq!(store.recall("cgroup:a#7").expect("read"), [expected]);
    assert_eq!(store.recall("cgroup:b#7").expect("read"), []);
}

#[test]
fn a_cgroup_is_another_one_after_a_boot_and_a_group_is_not() {
    let fixture = Fixture::new();
    fixture.open("boot-a").remember(&[history("group:batch", 1.0), history("cgroup:a#7", 2.0)]).expect("written");
    let mut store = fixture.open("boot-b");
    assert_eq!(store.recall("cgroup:a#7").expect("read"), []);
    assert_eq!(store.recall("group:batch").expect("read").len(), 1);
    assert_eq!(store.prune(AuditLimits::default()).expect("pruned"), Pruned { rows: 1, more: false });
    assert_eq!(fixture.open("boot-a").recall("cgroup:a#7").expect("read"), []);
}

#[test]
fn the_last_row_of_a_key_and_disk_counts() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    let other_disk = TenantHistory { device: DeviceId { major: 8, minor: 16 }, ..history("group:g", 5.0) };
    store.remember(&[history("group:g", 1.0), other_disk.clone()]).expect("written");
    store.remember(&[history("group:g", 2.0)]).expect("written");
    assert_eq!(store.recall("group:g").expect("read"), [history("group:g", 2.0), other_disk]);
}

#[test]
fn a_clock_that_jumps_gives_an_age_between_zero_and_thirty_days() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    store.remember(&[history("group:g", 1.0)]).expect("written");
    for (jumped_to, age) in [(0, Nanos::ZERO), (i64::MIN, Nanos::ZERO), (i64::MAX, HISTORY_AGE_MAX)] {
        fixture.now.store(jumped_to, Ordering::Relaxed);
        assert_eq!(store.recall("group:g").expect("read")[0].age, age);
    }
}

#[test]
fn what_is_not_a_number_does_not_keep_the_slice_from_being_remembered() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    store.remember(&[history("group:bad", f64::NAN), history("group:good", 2.0)]).expect("written");
    assert_eq!(store.recall("group:bad").expect("read")[0].usage, UsageAverage::default());
    assert_eq!(store.recall("group:good").expect("read").len(), 1);
}

#[test]
fn audit_is_bounded_by_age_and_by_rows() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    let rows: Vec<AuditRow> = (0..10).map(|n| audit_row(NOON - (9 - n) * DAY_MS, "sda", n as u32)).collect();
    store.audit(&rows).expect("written");
    let week = AuditLimits::default();
    assert_eq!(store.prune(week).expect("pruned"), Pruned { rows: 2, more: false });
    let three = AuditLimits { age_max: Duration::from_secs(1 << 40), rows_max: 3 };
    assert_eq!(store.prune(three).expect("pruned"), Pruned { rows: 5, more: false });
    assert_eq!(store.explain("web", None, Some(NOON - 3 * DAY_MS)).expect("read"), []);
    assert_eq!(store.explain("web", None, Some(NOON - 2 * DAY_MS)).expect("read").len(), 1);
}

/// Decisions a day in [`live`].
const A_DAY: i64 = 4;

/// A daemon that decides some times a day, prunes before and after, and has a clock that is off by `ahead`. Shares count the
/// decisions, so that they can be told apart. The answer is how many rows were deleted.
fn live(fixture: &Fixture, store: &mut Store, days: std::ops::Range<i64>, ahead: i64) -> i64 {
    let mut deleted = 0;
    for number in days.start * A_DAY..days.end * A_DAY {
        let now = NOON + number * DAY_MS / A_DAY + ahead;
        fixture.now.store(now, Ordering::Relaxed);
        deleted += store.prune(AuditLimits::default()).expect("pruned").rows;
        store.audit(&[audit_row(now, "sda", 1 + number as u32)]).expect("written");
        deleted += store.prune(AuditLimits::default()).expect("pruned").rows;
    }
    deleted as i64
}

#[test]
fn a_clock_that_leaps_deletes_no_audit_and_explains_nothing_stale() {
    let share = |store: &Store, at| {
        store.explain("web", None, at).expect("read").first().map(|row| row.decision.share.get() as i64)
    };
    for ahead in [30 * DAY_MS, 8 * DAY_MS, -8 * DAY_MS, -NOON] {
        let fixture = Fixture::new();
        let mut store = fixture.open("boot-a");
        assert_eq!(live(&fixture, &mut store, 0..6, 0), 0);
        assert_eq!(live(&fixture, &mut store, 6..8, ahead), 0, "{ahead}");
        // A restart knows no more than the file.
        let mut store = fixture.open("boot-b");
        assert_eq!(live(&fixture, &mut store, 8..9, ahead), 0, "{ahead}");
        // The clock is right again: what it said meanwhile is neither in force nor a reason to delete.
        let deleted = live(&fixture, &mut store, 9..10, 0);
        assert_eq!(deleted, 3 * A_DAY - 1, "{ahead}: the seven days before the last decision are kept");
        assert_eq!(share(&store, None), Some(10 * A_DAY));
        assert_eq!(share(&store, Some(NOON + 4 * DAY_MS)), Some(4 * A_DAY + 1));
        // In the end all of it is as old as anything else.
        live(&fixture, &mut store, 10..25, 0);
        assert_eq!(share(&store, None), Some(25 * A_DAY));
        assert_eq!(share(&store, Some(NOON + 17 * DAY_MS)), None, "{ahead}");
    }
}

#[test]
fn pruning_a_great_backlog_takes_several_calls() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    let mut rows: Vec<AuditRow> = (0..12_000).map(|_| audit_row(NOON - 8 * DAY_MS, "sda", 1)).collect();
    rows.push(audit_row(NOON - 2 * DAY_MS, "sda", 1));
    store.audit(&rows).expect("written");
    let calls: Vec<Pruned> = (0..3).map(|_| store.prune(AuditLimits::default()).expect("pruned")).collect();
    let pruned = |rows, more| Pruned { rows, more };
    assert_eq!(calls, [pruned(5_000, true), pruned(5_000, true), pruned(2_000, false)]);
    store.checkpoint().expect("moved");
}

#[test]
fn whoever_fills_the_audit_pushes_out_its_own_rows() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    let row = |number: i64, name: &str| AuditRow {
        tenant_name: name.into(),
        account: format!("group:{name}"),
        ..audit_row(NOON - 1_000 + number, "sda", 1)
    };
    // A quiet one decides first, then a flood comes, then another quiet one.
    let rows = (0..10).map(|number| row(number, "quiet"));
    let rows =
        rows.chain((10..900).map(|number| row(number, "flood"))).chain((900..920).map(|number| row(number, "late")));
    store.audit(&rows.collect::<Vec<_>>()).expect("written");
    let limits = AuditLimits { rows_max: 100, ..AuditLimits::default() };
    assert_eq!(store.prune(limits).expect("pruned"), Pruned { rows: 820, more: false });
    let count = |name: &str| {
        let sql = "SELECT count(*), min(at_unix_ms) FROM audit WHERE tenant = ?1";
        let connection = rusqlite::Connection::open(fixture.path()).expect("opens");
        connection.query_row(sql, [name], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).expect("read")
    };
    let at = |number: i64| NOON - 1_000 + number;
    assert_eq!([count("quiet"), count("late")], [(10, at(0)), (20, at(900))]);
    assert_eq!(count("flood"), (70, at(830)), "and of its own the oldest");
    // When all have as many, they go in turns.
    let limits = AuditLimits { rows_max: 10, ..limits };
    assert_eq!(store.prune(limits).expect("pruned").rows, 90);
    assert!([count("quiet"), count("late"), count("flood")].iter().all(|(rows, _)| *rows <= 10));
}

#[test]
fn what_never_comes_back_can_be_forgotten() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    store
        .remember(&[history("cgroup:a#7", 1.0), history("cgroup:b#8", 1.0), history("group:g", 1.0)])
        .expect("written");
    store.forget(["cgroup:a#7", "cgroup:unknown#1"].into_iter()).expect("forgotten");
    let known = ["cgroup:a#7", "cgroup:b#8", "group:g"].map(|key| store.recall(key).expect("read").len());
    assert_eq!(known, [0, 1, 1]);
}

#[test]
fn a_large_file_is_used_at_once_and_its_damage_found_beside() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    let long = "x".repeat(4_000);
    let rows: Vec<AuditRow> =
        (0..4_500).map(|n| AuditRow { text: long.clone(), ..audit_row(NOON - n, "sda", 1) }).collect();
    store.audit(&rows).expect("written");
    store.remember(&[history("group:g", 1.0)]).expect("written");
    store.checkpoint().expect("moved");
    drop(store);
    let (store, notes) = fixture.try_open("boot-a").expect("opens");
    assert_eq!(notes, [StoreNote::Unchecked]);
    assert_eq!(Store::check(&fixture.path()).expect("checked"), None);
    drop(store);
    let mut bytes = std::fs::read(fixture.path()).expect("read");
    let middle = bytes.len() / 4096 / 2 * 4096;
    bytes[middle..middle + 8192].fill(0xa5);
    std::fs::write(fixture.path(), bytes).expect("written");
    let (store, _) = fixture.try_open("boot-a").expect("opens");
    assert_eq!(store.recall("group:g").expect("read").len(), 1, "what is whole is used meanwhile");
    let damage = Store::check(&fixture.path()).expect("checked").expect("damaged");
    drop(store);
    let note = Store::move_aside(&fixture.path(), damage).expect("moved");
    assert!(matches!(note, StoreNote::MovedAside { .. }), "{note:?}");
    assert_eq!(fixture.open("boot-a").recall("group:g").expect("read"), []);
}

#[test]
fn a_file_that_is_no_database_is_moved_aside_and_told() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path(), vec![b'x'; 8192]).expect("written");
    let (store, notes) = fixture.try_open("boot-a").expect("opens");
    expect!["the store DIR/minerva.db is damaged (file is not a database); it was moved to DIR/minerva.db.corrupt-1, and a new one was made: histories, credits, levels, background work and runs of jobs are lost"]
        .assert_eq(&fixture.shown(&notes[0]));
    assert_eq!(std::fs::read(fixture.directory.path().join("minerva.db.corrupt-1")).expect("kept"), vec![b'x'; 8192]);
    drop(store);
    std::fs::write(fixture.path(), vec![b'y'; 8192]).expect("written");
    drop(fixture.try_open("boot-a").expect("opens"));
    assert_eq!(fixture.names(), ["minerva.db", "minerva.db.corrupt-1", "minerva.db.corrupt-2"]);
    assert_eq!(fixture.open("boot-a").recall("group:g").expect("read"), []);
}

#[test]
fn damage_inside_a_table_is_found_and_moved_aside() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    let rows: Vec<TenantHistory> = (0..2000).map(|n| history(&format!("group:{n}"), 1.0)).collect();
    store.remember(&rows).expect("written");
    store.checkpoint().expect("moved");
    drop(store);
    let mut bytes = std::fs::read(fixture.path()).expect("read");
    let pages = bytes.len() / 4096;
    for page in (pages / 2)..pages {
        bytes[page * 4096..page * 4096 + 64].fill(0xa5);
    }
    std::fs::write(fixture.path(), bytes).expect("written");
    let (_, notes) = fixture.try_open("boot-a").expect("opens");
    assert!(matches!(&notes[..], [StoreNote::MovedAside { .. }]), "{notes:?}");
}

#[test]
fn a_newer_schema_is_refused_and_left_as_it_is() {
    let fixture = Fixture::new();
    drop(fixture.open("boot-a"));
    execute(&fixture.path(), "PRAGMA user_version = 99");
    let before = std::fs::read(fixture.path()).expect("read");
    let error = fixture.try_open("boot-a").err().expect("refused");
    assert_eq!(error.kind, StoreErrorKind::NewerSchema { found: 99, known: 11 });
    expect!["open the store DIR/minerva.db: its schema is version 99, this program knows 11; use the newer program, or move the file away"]
        .assert_eq(&fixture.shown(error));
    assert_eq!(std::fs::read(fixture.path()).expect("read"), before);
}

#[test]
fn another_programs_database_is_refused_and_left_as_it_is() {
    let fixture = Fixture::new();
    execute(&fixture.path(), "CREATE TABLE theirs (x)");
    let before = std::fs::read(fixture.path()).expect("read");
    let error = fixture.try_open("boot-a").err().expect("refused");
    assert_eq!(error.kind, StoreErrorKind::NotOurs { application_id: 0 });
    assert_eq!(std::fs::read(fixture.path()).expect("read"), before);
}

#[test]
fn a_missing_directory_is_an_error_that_names_the_file() {
    let path = Path::new("/nonexistent-minerva-test/minerva.db");
    let error = Store::open(path, "boot-a", Box::new(|| NOON)).err().expect("refused");
    expect!["open the store /nonexistent-minerva-test/minerva.db: the operation failed"].assert_eq(&error.to_string());
}

fn execute(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).expect("opens").execute_batch(sql).expect("executed");
}

#[test]
fn what_is_stored_together_is_one_transaction_and_all_of_it_or_nothing() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-1");
    store.take_commits();
    let audit: Vec<AuditRow> = (0..100).map(|number| audit_row(NOON + number, "sda", 1)).collect();
    let claim = StoredClaim { set: Some(SetLevel { level: Level::Low, until: None, process: None }), schedule: None };
    store
        .together(|store| {
            store.remember(&[history("group:a", 1.0)])?;
            store.claim([("cgroup:a", &claim)].into_iter())?;
            store.forget(["cgroup:b"].into_iter())?;
            store.audit(&audit)
        })
        .expect("stored");
    assert_eq!((store.take_commits(), store.take_commits()), (1, 0));
    assert_eq!(store.recall("group:a").expect("read").len(), 1);
    assert_eq!(store.claimed("cgroup:a").expect("read"), Some(claim));
    // By themselves they are one each.
    store.remember(&[history("group:a", 1.0)]).and_then(|()| store.audit(&audit)).expect("stored");
    assert_eq!(store.take_commits(), 2);
    let failed = store.together(|store| {
        store.remember(&[history("group:b", 1.0)])?;
        store.together(|_| Ok(()))
    });
    failed.expect_err("there is a transaction already");
    assert_eq!((store.recall("group:b").expect("read").len(), store.take_commits()), (0, 0));
    store.remember(&[history("group:b", 1.0)]).expect("it goes on");
}
