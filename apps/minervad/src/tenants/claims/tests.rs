use super::{Claims, End, PersistentClaim, Set};
use crate::tenants::schedule::TimeTable;
use minerva_model::{Level, LevelClaims, Nanos, RefusalKind, ScheduledClaim, SetClaim};
use minerva_store::{Schedule, SetLevel, Span, StoredClaim};
use minerva_tenant_server::process::{Process, ProcessHandle};
use minerva_tenant_server::request::Refusal;
use std::sync::Arc;
use tokio::sync::mpsc;

const NEVER: fn(&ProcessHandle) -> bool = |_| false;

fn set(level: Level, end: End) -> Option<Set> {
    Some(Set { level, end })
}

fn bound(process: Process) -> ProcessHandle {
    let descriptor = std::fs::File::open("/dev/null").expect("a descriptor");
    ProcessHandle { process, descriptor: Arc::new(descriptor.into()) }
}

fn whole_day(level: Level) -> Schedule {
    let span = Span { begin_minute: 0, end_minute: 0, days: 0, level };
    Schedule { time_zone: "UTC".to_owned(), spans: vec![span] }
}

/// The furthest step back, as the engine has it.
fn level(claims: &Claims) -> Level {
    let all = claims.all(Nanos::ZERO, 0);
    let levels = all.set.iter().map(|set| set.level).chain(all.held).chain(all.scheduled.map(|one| one.level));
    levels.max().unwrap_or_default()
}

#[test]
fn who_holds_a_level_hears_once_what_is_in_force_and_each_claim_ends_with_what_it_hangs_on() {
    let mut claims = Claims::default();
    let (changes, mut heard) = mpsc::channel(4);
    claims.persistent.set = set(Level::Low, End::At(Nanos(100)));
    claims.hold(Level::Idle, changes).expect("room");
    let all = claims.all(Nanos(10), 0);
    let set = Some(SetClaim { level: Level::Low, until: Some(Nanos(100)) });
    let expected = LevelClaims { set, held: vec![Level::Idle], scheduled: None };
    assert_eq!((&all, claims.count(), claims.is_news(&all)), (&expected, 2, true));
    claims.told = Some(all);
    claims.in_force = Level::Idle;
    claims.tell();
    claims.tell();
    assert_eq!(heard.try_recv().expect("heard").expect("a level"), Level::Idle);
    assert!(heard.try_recv().is_err(), "once is enough");
    drop(heard);
    assert!(!claims.end(Nanos(99), NEVER), "what is kept is the same");
    let all = claims.all(Nanos(99), 0);
    assert_eq!((&all.held[..], claims.is_news(&all)), (&[][..], true));
    assert!(claims.end(Nanos(100), NEVER));
    assert_eq!(claims.all(Nanos(100), 0), LevelClaims::default());
    // In force until the engine was told.
    assert!(!claims.is_empty());
}

#[test]
fn a_schedule_is_news_when_it_goes_on_or_the_clock_was_set_and_not_when_clocks_drift() {
    let span = Span { begin_minute: 60, end_minute: 120, days: 0, level: Level::Low };
    let schedule = Schedule { time_zone: "UTC".to_owned(), spans: vec![span] };
    let table = TimeTable::new(schedule).ok();
    let mut claims = Claims { persistent: PersistentClaim { set: None, table }, ..Claims::default() };
    let at = |claims: &Claims, boot_seconds: u64, unix_ms: i64| {
        claims.all(Nanos::from_secs(boot_seconds), unix_ms * 1_000_000)
    };
    let told = at(&claims, 1_000, 0);
    let next = Some((Nanos::from_secs(1_000 + 3_600), Level::Low));
    assert_eq!(told.scheduled, Some(ScheduledClaim { level: Level::Normal, next }));
    claims.told = Some(told);
    for (boot_seconds, unix_ms, news) in
        [(1_500, 500_000, false), (1_500, 500_400, false), (1_500, 560_000, true), (4_600, 3_600_000, true)]
    {
        assert_eq!(claims.is_news(&at(&claims, boot_seconds, unix_ms)), news, "{boot_seconds} {unix_ms}");
    }
}

#[test]
fn a_level_ends_with_its_process_also_when_that_ends_while_the_daemon_is_away() {
    let process = Process { pid: 7, start_ticks: 9 };
    let mut claims = Claims::default();
    claims.persistent.set = set(Level::Lowest, End::Process(bound(process)));
    assert!(!claims.end(Nanos(1), NEVER));
    let kept = claims.persistent.kept();
    let again = PersistentClaim::recalled(kept.clone(), |asked| (asked == process).then(|| bound(asked)));
    assert_eq!((again.kept(), again.level(0)), (kept.clone(), Level::Lowest));
    assert_eq!(PersistentClaim::recalled(kept, |_| None).kept(), StoredClaim::default());
    assert!(claims.end(Nanos(1), |_| true));
    assert!(claims.is_empty());
}

#[test]
fn what_is_kept_comes_back() {
    let kept = StoredClaim {
        set: Some(SetLevel { level: Level::Low, until: Some(Nanos(50)), process: None }),
        schedule: Some(whole_day(Level::Idle)),
    };
    let mut claims = Claims::recalled(PersistentClaim::recalled(kept.clone(), |_| None));
    assert_eq!((claims.persistent.kept(), level(&claims)), (kept, Level::Idle));
    assert!(claims.is_durable());
    claims.persistent.table = None;
    assert_eq!((level(&claims), claims.is_durable()), (Level::Low, false));
    assert!(claims.end(Nanos(50), NEVER));
    assert!(claims.persistent.kept().is_empty());
    assert!(!claims.is_empty(), "the store has it still");
}

#[test]
fn what_the_store_did_not_take_is_as_before_unless_the_tenant_came_back() {
    let mut claims = Claims::default();
    claims.persistent.set = set(Level::Low, End::Release);
    claims.commit();
    claims.committed(claims.persistent.clone());
    // Two steps further back, neither of them kept.
    for level in [Level::Lowest, Level::Idle] {
        claims.persistent.set = set(level, End::Release);
        claims.commit();
    }
    claims.not_committed(0);
    assert_eq!(level(&claims), Level::Idle, "the later one is still on its way");
    claims.not_committed(0);
    assert_eq!((level(&claims), claims.is_durable()), (Level::Low, true));
    claims.persistent.set = None;
    claims.commit();
    claims.not_committed(0);
    assert_eq!((level(&claims), claims.doubtful), (Level::Normal, true));
    claims.commit();
    claims.committed(claims.persistent.clone());
    assert!(claims.is_empty());
}

#[test]
fn what_is_read_late_does_not_replace_what_was_set_meanwhile() {
    let mut claims = Claims { doubtful: true, ..Claims::default() };
    claims.persistent.set = set(Level::Low, End::Release);
    let table = TimeTable::new(whole_day(Level::Lowest)).ok();
    claims.recall_late(PersistentClaim { set: set(Level::Idle, End::Release), table });
    assert_eq!((level(&claims), claims.is_durable()), (Level::Lowest, false));
}

#[test]
fn one_too_many_and_one_that_is_refused_are_told_why() {
    let mut claims = Claims::default();
    let mut listeners = Vec::new();
    for _ in 0..64 {
        let (changes, heard) = mpsc::channel(1);
        claims.hold(Level::Low, changes).expect("room");
        listeners.push(heard);
    }
    let (changes, mut heard) = mpsc::channel(1);
    let refusal = claims.hold(Level::Low, changes).expect_err("too many");
    assert_eq!(heard.try_recv().expect("heard"), Err(refusal));
    // Who has gone makes room.
    listeners.truncate(1);
    let (changes, mut heard) = mpsc::channel(1);
    claims.hold(Level::Low, changes).expect("room");
    let refusal = Refusal::new(RefusalKind::NotAllowed, "no".to_owned());
    claims.unhold(&refusal);
    assert_eq!(heard.try_recv().expect("heard"), Err(refusal));
    assert_eq!(claims.count(), 1);
}
