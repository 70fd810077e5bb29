//! What the cache moved for tenants: when that earns credits, how much, and that no trick earns more.

use minerva_decide::{DecideInput, Decider};
use minerva_model::{
    AccessKind, Boost, CgroupRef, CreditLot, Declaration, DeviceId, DeviceSignals, Effect, EngineConfig, EntryNumber,
    IoCounters, IoSignals, Level, LevelClaims, MicroCredits, MigrationOutcome, MigrationReason, MigrationReport, Mode,
    MovedBytes, Nanos, Operation, Outlook, Recalled, RequestId, Role, SetClaim, Signals, Tenant, TenantId, TenantKind,
    TenantRequest, Terms, Wish,
};
use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::collections::{BTreeMap, BTreeSet};

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const OTHER_DISK: DeviceId = DeviceId { major: 8, minor: 16 };
const MIB: u64 = 1 << 20;
/// The tenant, another of its group, two neighbours, and the cache.
const OWN: u64 = 1;
const SAME_GROUP: u64 = 2;
const NEIGHBOUR: u64 = 3;
const SECOND_NEIGHBOUR: u64 = 4;
const CACHE: u64 = 5;

struct World {
    decider: Decider,
    now: Nanos,
    signals: Signals,
    reports: u32,
}

fn tenant(number: u64, terms: Terms) -> Tenant {
    Tenant {
        id: TenantId(number),
        name: format!("t{number}"),
        kind: TenantKind::Service,
        cgroup: CgroupRef { path: format!("t{number}"), inode: number },
        group: [OWN, SAME_GROUP].contains(&number).then(|| "own".to_owned()),
        weight_percent: 100,
        excluded: false,
        job: None,
        terms,
        origin: minerva_model::Origin::default(),
    }
}

impl World {
    fn new(mode: Mode) -> Self {
        let mut decider = Decider::default();
        decider.configure(Nanos::ZERO, &EngineConfig { mode, ..EngineConfig::default() });
        decider.device_seen(DISK);
        decider.device_seen(OTHER_DISK);
        for number in [OWN, SAME_GROUP, NEIGHBOUR, SECOND_NEIGHBOUR, CACHE] {
            decider.tenant_seen(Nanos::ZERO, &tenant(number, Terms::default()), &[]);
        }
        Self { decider, now: Nanos::ZERO, signals: Signals::default(), reports: 0 }
    }

    /// A slice in which these tenants read so much each, by disk.
    fn slice(&mut self, used: &[(u64, DeviceId, u64)]) {
        self.now += Nanos::SECOND;
        let row = |(number, device, bytes): &(u64, DeviceId, u64)| IoSignals {
            tenant: TenantId(*number),
            device: *device,
            elapsed: Nanos::SECOND,
            transferred: IoCounters { read_bytes: *bytes, read_ops: bytes / 65_536, ..IoCounters::default() },
            latency: None,
            active: *bytes > 0,
            served: None,
            disk_time: Nanos::ZERO,
        };
        let mut io: Vec<IoSignals> = used.iter().map(row).collect();
        io.sort_by_key(|row| (row.tenant, row.device));
        let device = |device: DeviceId| {
            let of_it = io.iter().filter(|row| row.device == device);
            DeviceSignals {
                device,
                elapsed: Nanos::SECOND,
                transferred: IoCounters {
                    read_bytes: of_it.clone().map(|row| row.transferred.read_bytes).sum(),
                    ..IoCounters::default()
                },
                busy_permille: 500,
                read_latency: None,
                write_latency: None,
                contention: of_it.count() as u32,
                unattributed_bytes: 0,
                flushes: 0,
            }
        };
        let devices = [DISK, OTHER_DISK].map(device).to_vec();
        self.signals = Signals { devices, io, ..Signals::default() };
        let input = DecideInput { signals: &self.signals, outlook: Outlook::default() };
        for effect in self.decider.slice(self.now, input).effects {
            if let Effect::Ledger(entry) = effect {
                self.decider.committed(self.now, entry.number, true, None);
            }
        }
    }

    fn set_level(&mut self, number: u64, level: Level) {
        let claims = LevelClaims { set: Some(SetClaim { level, until: None }), ..LevelClaims::default() };
        self.decider.claims_changed(self.now, TenantId(number), claims);
    }

    fn report_of(&mut self, moved: &[(DeviceId, u64)]) -> MigrationReport {
        self.reports += 1;
        MigrationReport {
            id: RequestId(format!("{}{}", RequestId::MOVED_PREFIX, self.reports)),
            tenant: TenantId(OWN),
            service: Some(TenantId(CACHE)),
            moved: moved.iter().map(|(device, bytes)| MovedBytes { device: *device, bytes: *bytes }).collect(),
        }
    }

    fn report(&mut self, moved: &[(DeviceId, u64)]) -> (MicroCredits, MigrationReason) {
        let report = self.report_of(moved);
        self.send(report, true)
    }

    /// Sends a report; the store has what it enters, or had it before.
    fn send(&mut self, report: MigrationReport, is_fresh: bool) -> (MicroCredits, MigrationReason) {
        let effects = self.decider.migration_reported(self.now, report, &self.signals);
        let mut answers = Vec::new();
        for effect in effects {
            match effect {
                Effect::Ledger(entry) => {
                    answers.extend(self.decider.committed(self.now, entry.number, is_fresh, None).0)
                }
                other => answers.push(other),
            }
        }
        match answers.as_slice() {
            [Effect::MigrationCounted(answer)] => match answer.outcome {
                MigrationOutcome::Counted { earned, reason } => (earned, reason),
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn held(&self) -> MicroCredits {
        self.decider.part(TenantId(OWN)).map_or(MicroCredits::ZERO, |part| part.held)
    }

    fn has(&self) -> MicroCredits {
        self.decider.part(TenantId(OWN)).map_or(MicroCredits::ZERO, |part| part.held.plus(part.accruing))
    }
}

#[test]
fn only_what_moves_beside_others_earns_and_the_answer_says_why() {
    let busy = 50 * MIB;
    let nobody: &[(u64, DeviceId, u64)] = &[];
    let neighbour = (NEIGHBOUR, DISK, busy);
    let second = (SECOND_NEIGHBOUR, DISK, busy);
    type Case<'a> = (&'a str, &'a [(u64, DeviceId, u64)], &'a [(DeviceId, u64)], u64, MigrationReason);
    // Malensek et al. 2016: two credits for two accounts at the disk, one for stepping back to `idle`.
    let table: &[Case<'_>] = &[
        ("a quiet disk", nobody, &[(DISK, 64 * MIB)], 0, MigrationReason::Alone),
        ("only the cache used it", &[(CACHE, DISK, busy)], &[(DISK, 64 * MIB)], 0, MigrationReason::Alone),
        ("a neighbour used it", &[neighbour], &[(DISK, 64 * MIB)], 3, MigrationReason::Beside(1)),
        (
            "and the cache is no further neighbour",
            &[neighbour, (CACHE, DISK, busy)],
            &[(DISK, 64 * MIB)],
            3,
            MigrationReason::Beside(1),
        ),
        ("two neighbours", &[neighbour, second], &[(DISK, 64 * MIB)], 4, MigrationReason::Beside(2)),
        (
            "the neighbour used another disk",
            &[(NEIGHBOUR, OTHER_DISK, busy)],
            &[(DISK, 64 * MIB)],
            0,
            MigrationReason::Alone,
        ),
        ("the tenant used it itself", &[(OWN, DISK, MIB), neighbour], &[(DISK, 64 * MIB)], 0, MigrationReason::OwnUse),
        (
            "another of its account used it",
            &[(SAME_GROUP, DISK, MIB), neighbour],
            &[(DISK, 64 * MIB)],
            0,
            MigrationReason::OwnUse,
        ),
        (
            "its own use of one disk does not touch another",
            &[(OWN, OTHER_DISK, MIB), (NEIGHBOUR, OTHER_DISK, busy), neighbour],
            &[(OTHER_DISK, 64 * MIB), (DISK, 64 * MIB)],
            3,
            MigrationReason::Beside(1),
        ),
        (
            "of several disks the best counts",
            &[neighbour, (NEIGHBOUR, OTHER_DISK, busy), (SECOND_NEIGHBOUR, OTHER_DISK, busy)],
            &[(DISK, 64 * MIB), (OTHER_DISK, 64 * MIB)],
            4,
            MigrationReason::Beside(2),
        ),
        ("nothing was moved", &[neighbour], &[(DISK, 0)], 0, MigrationReason::Alone),
    ];
    for (what, used, moved, credits, reason) in table {
        let mut world = World::new(Mode::Enforce);
        world.slice(used);
        assert_eq!(world.report(moved), (MicroCredits::credits(*credits), *reason), "{what}");
        assert_eq!(world.held(), MicroCredits::credits(*credits), "{what}");
    }
}

#[test]
fn a_little_earns_a_little() {
    let earned = |bytes| {
        let mut world = World::new(Mode::Enforce);
        world.slice(&[(NEIGHBOUR, DISK, 100 * MIB)]);
        world.report(&[(DISK, bytes)]).0
    };
    // Of what the least share was due.
    let (once, twice) = (earned(MIB / 8), earned(MIB / 4));
    assert!(once > MicroCredits::ZERO && twice.0.abs_diff(2 * once.0) <= 6, "{once} and {twice}");
    assert_eq!(earned(100 * MIB), MicroCredits::credits(3), "and no more than a slice");
}

#[test]
fn an_account_earns_once_a_slice_however_it_does() {
    let mut world = World::new(Mode::Enforce);
    let used = [(NEIGHBOUR, DISK, 50 * MIB)];
    world.slice(&used);
    assert_eq!(world.report(&[(DISK, 64 * MIB)]).0, MicroCredits::credits(3));
    assert_eq!(world.report(&[(DISK, 64 * MIB)]), (MicroCredits::ZERO, MigrationReason::NoMore));
    world.set_level(OWN, Level::Idle);
    world.slice(&used);
    assert_eq!(world.report(&[(DISK, 64 * MIB)]).0, MicroCredits::credits(3), "the next slice counts anew");
    // A tenant that steps back and reads on another disk earns there; the report adds what it is worth beyond that.
    let before = world.has();
    let used = [
        (OWN, OTHER_DISK, MIB),
        (NEIGHBOUR, OTHER_DISK, 50 * MIB),
        (NEIGHBOUR, DISK, 50 * MIB),
        (SECOND_NEIGHBOUR, DISK, 50 * MIB),
    ];
    world.slice(&used);
    let own = MicroCredits(world.has().0 - before.0);
    assert_eq!(own, MicroCredits::credits(3));
    assert_eq!(world.report(&[(DISK, 64 * MIB)]).0, MicroCredits::credits(1), "four beside two, of which it has three");
    // Coming back to `normal` after the slice changes nothing of what the slice was worth.
    world.slice(&used);
    world.set_level(OWN, Level::Normal);
    assert_eq!(world.report(&[(DISK, 64 * MIB)]).0, MicroCredits::credits(1));
}

#[test]
fn its_own_use_at_idle_does_not_count_against_it_and_raised_use_does() {
    let mut world = World::new(Mode::Enforce);
    world.set_level(OWN, Level::Idle);
    let used = [(OWN, DISK, 65_536), (NEIGHBOUR, DISK, 500 * MIB)];
    world.slice(&used);
    assert_eq!(world.report(&[(DISK, 64 * MIB)]).1, MigrationReason::OwnUse, "it was at `normal` in it, too");
    world.slice(&used);
    let (earned, reason) = world.report(&[(DISK, 64 * MIB)]);
    assert!(earned > MicroCredits::ZERO && reason == MigrationReason::Beside(1), "{earned} {reason}");
    // A boost lets it go ahead, whatever its level.
    let lot = CreditLot { amount: MicroCredits::credits(100), expires_in: Nanos::from_secs(3600) };
    let boost = Boost { request: RequestId("b".to_owned()), device: None, slices_left: 10 };
    world = World::new(Mode::Enforce);
    let declaration = Declaration { level: Level::Idle, boosts: vec![boost], ..Declaration::default() };
    let recalled =
        Recalled { tenant: TenantId(OWN), lots: vec![lot], purchases: Vec::new(), declaration: Some(declaration) };
    world.decider.recalled(Nanos::ZERO, &recalled);
    world.slice(&used);
    assert_eq!(world.report(&[(DISK, 64 * MIB)]).1, MigrationReason::OwnUse);
}

#[test]
fn nothing_is_earned_where_nothing_is_steered_and_by_who_takes_no_part() {
    let used = [(NEIGHBOUR, DISK, 50 * MIB)];
    for mode in [Mode::Observe, Mode::Shadow] {
        let mut world = World::new(mode);
        world.slice(&used);
        assert_eq!(world.report(&[(DISK, 64 * MIB)]), (MicroCredits::ZERO, MigrationReason::NotHere), "{mode:?}");
    }
    let mut world = World::new(Mode::Enforce);
    world.decider.tenant_seen(Nanos::ZERO, &tenant(OWN, Terms { role: Role::Silent, ..Terms::default() }), &[]);
    world.slice(&used);
    assert_eq!(world.report(&[(DISK, 64 * MIB)]).1, MigrationReason::NotHere);
    world.decider.tenant_gone(TenantId(OWN));
    assert_eq!(world.report(&[(DISK, 64 * MIB)]).1, MigrationReason::NotHere);
}

#[test]
fn a_report_that_was_entered_before_earns_nothing_and_one_that_failed_may_be_sent_again() {
    let mut world = World::new(Mode::Enforce);
    let used = [(NEIGHBOUR, DISK, 50 * MIB)];
    world.slice(&used);
    let report = world.report_of(&[(DISK, 64 * MIB)]);
    let effects = world.decider.migration_reported(world.now, report.clone(), &world.signals);
    let Some(Effect::Ledger(entry)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(entry.request.as_ref(), Some(&report.id));
    // Whoever asks again meanwhile is answered with the commit.
    assert_eq!(world.decider.migration_reported(world.now, report.clone(), &world.signals), []);
    let answers = world.decider.commit_failed(entry.number, "the disk is full");
    assert!(
        matches!(&answers[..], [Effect::MigrationCounted(answer)] if matches!(answer.outcome, MigrationOutcome::NotCommitted { .. })),
        "{answers:?}"
    );
    assert_eq!(world.has(), MicroCredits::ZERO, "nothing of it accrues: it is sent again");
    world.slice(&used);
    assert_eq!(world.send(report.clone(), true).0, MicroCredits::credits(3));
    // The daemon that entered it was killed before it could answer: the store knows the key.
    world.slice(&used);
    assert_eq!(world.send(report, false), (MicroCredits::ZERO, MigrationReason::Again));
    assert_eq!(world.held(), MicroCredits::credits(3));
    world.decider.committed(world.now, EntryNumber(99), true, None);
}

/// A program asks for coordination between the report and the slice: whom it meets is as without the report.
#[test]
fn a_report_does_not_change_whom_a_request_meets() {
    let ask = |with_report: bool| {
        let mut world = World::new(Mode::Enforce);
        world.slice(&[(NEIGHBOUR, DISK, 50 * MIB), (SECOND_NEIGHBOUR, DISK, 50 * MIB)]);
        if with_report {
            world.report(&[(DISK, 64 * MIB)]);
        }
        let operation = Operation { device: DISK, access: AccessKind::SequentialRead, bytes: 1 << 30, deadline: None };
        let wish = Wish::Coordinate(operation.into());
        let request = TenantRequest { id: RequestId("o".to_owned()), tenant: TenantId(OWN), wish };
        world.decider.requested(world.now, &request, &world.signals).0
    };
    assert_eq!(ask(true), ask(false));
}

#[derive(Clone, Debug)]
enum Trick {
    /// A slice in which these of the tenants use the disk: own, same group, neighbour.
    Slice(bool, bool, bool),
    Level(u64, Level),
    Report(u64),
    /// One of the reports so far once more.
    Again(usize),
}

fn any_trick() -> impl proptest::strategy::Strategy<Value = Trick> {
    use proptest::strategy::Strategy;
    let level = prop_oneof![
        proptest::strategy::Just(Level::Normal),
        proptest::strategy::Just(Level::Low),
        proptest::strategy::Just(Level::Idle)
    ];
    prop_oneof![
        3 => (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(own, same, other)| Trick::Slice(own, same, other)),
        2 => (OWN..=SAME_GROUP, level).prop_map(|(number, level)| Trick::Level(number, level)),
        4 => (0..u64::MAX).prop_map(Trick::Report),
        2 => (0..20_usize).prop_map(Trick::Again),
    ]
}

proptest! {
    /// Whatever a tenant does, and whatever is sent again: a slice never earns more than one at `idle` beside the same others, a report
    /// without others or beside its own use at a higher level nothing, and a key earns once.
    #[test]
    fn no_trick_earns_more_than_a_slice_at_idle(tricks in proptest::collection::vec(any_trick(), 1..60)) {
        let mut world = World::new(Mode::Enforce);
        let (mut sent, mut earned_by_key): (Vec<MigrationReport>, BTreeMap<RequestId, u32>) = (Vec::new(), BTreeMap::new());
        let (mut entered, mut others, mut before): (BTreeSet<RequestId>, u64, MicroCredits) =
            (BTreeSet::new(), 0, MicroCredits::ZERO);
        for trick in tricks {
            match trick {
                Trick::Slice(own, same, other) => {
                    others = u64::from(other);
                    before = world.has();
                    let users = [(own, OWN), (same, SAME_GROUP), (other, NEIGHBOUR)];
                    let used: Vec<_> = users.iter().filter(|(uses, _)| *uses).map(|(_, id)| (*id, DISK, 50 * MIB)).collect();
                    world.slice(&used);
                }
                Trick::Level(number, level) => world.set_level(number, level),
                Trick::Report(_) | Trick::Again(_) => {
                    let report = match trick {
                        Trick::Again(index) if index < sent.len() => sent[index].clone(),
                        Trick::Report(bytes) => world.report_of(&[(DISK, bytes)]),
                        _ => continue,
                    };
                    let is_fresh = !entered.contains(&report.id);
                    let held = world.has();
                    let (earned, reason) = world.send(report.clone(), is_fresh);
                    prop_assert_eq!(world.has(), held.plus(earned), "what was said is what is held");
                    if earned > MicroCredits::ZERO {
                        entered.insert(report.id.clone());
                        *earned_by_key.entry(report.id.clone()).or_default() += 1;
                        prop_assert!(others > 0 && matches!(reason, MigrationReason::Beside(_)), "{}", reason);
                    }
                    sent.push(report);
                }
            }
            // Malensek et al. 2016: one credit for each of the accounts at a shared disk, one for stepping back to `idle`.
            let most = if others > 0 { 3 } else { 1 };
            prop_assert!(world.has() <= before.plus(MicroCredits::credits(most)), "{} after {}", world.has(), before);
        }
        prop_assert!(earned_by_key.values().all(|count| *count == 1));
    }
}
