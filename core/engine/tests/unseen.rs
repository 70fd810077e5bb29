//! What a user's groups did that came and went between two looks counts against the user, whatever group it uses next.

#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod disk;

use disk::{DISK, bfq_disk};
use minerva_engine::Engine;
use minerva_model::{
    CgroupRef, DeviceSample, Effect, EngineConfig, Event, IoCounters, Mode, Nanos, Origin, Sample, SubtreeIo, Tenant,
    TenantId, TenantIo, TenantKind, Terms, WaitCounters,
};

const MEGABYTE: u64 = 1_000_000;
const USER: &str = "user.slice/user-1000.slice";

fn reads(bytes: u64) -> IoCounters {
    IoCounters { read_bytes: bytes, read_ops: bytes >> 18, ..IoCounters::default() }
}

fn delegated() -> CgroupRef {
    CgroupRef { path: USER.to_owned(), inode: 40 }
}

fn tenant(number: u64, of_user: bool) -> Tenant {
    let path = if of_user { format!("{USER}/g{number}") } else { format!("g{number}") };
    Tenant {
        id: TenantId(number),
        name: path.clone(),
        kind: TenantKind::Cgroup,
        cgroup: CgroupRef { path, inode: 100 + number },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin { delegated_from: of_user.then(delegated), ..Origin::default() },
    }
}

/// So many megabytes ever: of tenants by number, and below the delegated group.
fn sample(second: u64, tenants: &[(u64, u64)], below: Option<u64>) -> Sample {
    let rows = tenants.iter().map(|(number, megabytes)| TenantIo {
        tenant: TenantId(*number),
        device: DISK,
        counters: reads(megabytes * MEGABYTE),
        wait: None,
        served_ns: None,
    });
    let subtree = |megabytes: u64| SubtreeIo {
        group: delegated(),
        history_key: delegated().history_key(None),
        weight_percent: 100,
        own: None,
        device: DISK,
        counters: reads(megabytes * MEGABYTE),
    };
    let disk = DeviceSample {
        device: DISK,
        counters: reads(second * 100 * MEGABYTE),
        wait: WaitCounters::default(),
        busy_ns: second * 900_000_000,
        in_flight: 0,
        flushes: 0,
    };
    Sample {
        devices: vec![disk],
        io: rows.collect(),
        subtrees: below.map(subtree).into_iter().collect(),
        ..Sample::default()
    }
}

/// Groups of the user that nobody sees move 60 MB a second for half a minute, and after that nothing. Then two groups read a little: a
/// new one of the user's, which an idle one of its own came before and left, and one of nobody's. Their shares, and what was remembered.
fn shares(is_counted: bool) -> ([u32; 2], Vec<Effect>) {
    let mut engine = Engine::new();
    let config = EngineConfig { mode: Mode::Shadow, ..EngineConfig::default() };
    engine.handle(Nanos::SECOND, Event::Configured(Box::new(config)));
    engine.handle(Nanos::SECOND, Event::DeviceSeen(bfq_disk()));
    let seen = |engine: &mut Engine, number, of_user| {
        engine.handle(Nanos::SECOND, Event::TenantSeen { tenant: tenant(number, of_user), history: Vec::new() });
    };
    seen(&mut engine, 1, true);
    let mut effects = Vec::new();
    for second in 1..=32_u64 {
        let below = 60 * second.min(30);
        if second == 31 {
            // For a moment the user has no group at all.
            engine.handle(Nanos::SECOND, Event::TenantGone(TenantId(1)));
            seen(&mut engine, 2, true);
            seen(&mut engine, 3, false);
        }
        let little = second.saturating_sub(30);
        let tenants = if second > 30 { vec![(2, little), (3, little)] } else { Vec::new() };
        let sample = sample(second, &tenants, is_counted.then_some(below + little));
        engine.handle(Nanos::from_secs(second), Event::Sampled(Box::new(sample)));
        effects.extend(std::iter::from_fn(|| engine.poll_effect()));
    }
    ([2, 3].map(|number| engine.decision(TenantId(number), DISK).expect("it used the disk").share.get()), effects)
}

#[test]
fn whoever_goes_from_one_brief_group_to_the_next_has_no_clean_history() {
    let ([users, others], effects) = shares(true);
    assert!(users * 5 < others, "{users} and {others}");
    let remembered = |effect: &&Effect| matches!(effect, Effect::Remember(row) if row.key.contains(USER));
    assert!(effects.iter().any(|effect| remembered(&effect)), "it outlives a restart");
    let ([users, others], _) = shares(false);
    assert_eq!(users, others, "nothing is known of them where their counters are not");
}
