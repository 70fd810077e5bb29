use super::*;
use minerva_model::AccessKind;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const TENANT: TenantId = TenantId(1);

/// Another tenant uses the disk.
struct Beside;

impl Surroundings for Beside {
    fn competitors(&self, _: DeviceId) -> u32 {
        1
    }

    fn is_watched(&self, _: DeviceId) -> bool {
        true
    }

    fn is_shared(&self, _: DeviceId, _: TenantId) -> bool {
        true
    }

    fn account(&self, _: TenantId) -> &'static str {
        "account"
    }

    fn estimate(&self, _: TenantId, _: &Operation) -> Nanos {
        Nanos::from_millis(100)
    }

    fn history_factor(&self, _: TenantId, _: DeviceId) -> f64 {
        1.0
    }

    fn is_measured(&self, _: &Operation) -> bool {
        false
    }
}

fn operation(bytes: u64) -> Operation {
    Operation { device: DISK, access: AccessKind::SequentialRead, bytes, deadline: None }
}

fn key(tenant: TenantId, name: &str) -> OperationKey {
    (tenant, RequestId(name.to_owned()))
}

/// Where one other is no reason to wait.
fn coordination(counts_what_it_had: bool, slice: Nanos) -> Coordination {
    let mut coordination = Coordination::default();
    let settings = CoordinationSettings { counts_what_it_had, running_max: 2, ..CoordinationSettings::default() };
    coordination.configure(settings, slice, true);
    coordination
}

fn begin(coordination: &mut Coordination, now: Nanos, name: &str, bytes: u64) {
    assert_eq!(coordination.ask(now, key(TENANT, name), operation(bytes), &Beside), Grant::Now);
}

#[test]
fn what_is_held_back_is_charged_only_while_somebody_waits_for_its_place() {
    let left = |counts_what_it_had, waits: bool| {
        let mut coordination = coordination(counts_what_it_had, Nanos::SECOND);
        coordination.settings.running_max = 1;
        begin(&mut coordination, Nanos::ZERO, "long", 1 << 50);
        if let Some(Asked { stage: Stage::Running(running), .. }) =
            coordination.operations.get_mut(&key(TENANT, "long"))
        {
            running.done_at = Nanos::from_secs(1_000_000);
        }
        coordination.hold_back(BTreeSet::from([DISK]));
        if waits {
            coordination.settings.hold_max = Nanos::from_secs(3_600);
            coordination.ask(Nanos::ZERO, key(TenantId(2), "waits"), operation(1), &Beside);
        }
        for second in 1..=30 {
            coordination.slice(Nanos::from_secs(second), |_, _| 1 << 20, &Beside);
            assert!(coordination.precedence(TENANT, DISK).is_some());
        }
        let left = coordination.precedence_time.left(Nanos::from_secs(30), "account");
        left == coordination.settings.precedence_max
    };
    assert!(left(true, false), "the allowance is whole");
    assert!(!left(true, true), "the place is waited for");
    assert!(!left(false, false), "as in recordings of earlier versions");
}

#[test]
fn a_second_without_bytes_ends_no_operation_however_short_slices_are() {
    for counts_what_it_had in [true, false] {
        let slice = Nanos::from_millis(125);
        let mut coordination = coordination(counts_what_it_had, slice);
        begin(&mut coordination, Nanos::ZERO, "slow", 1 << 30);
        let at = |slices: u64| Nanos(slices * slice.0);
        // Its first bytes come after two seconds.
        (1..=16).for_each(|slices| drop(coordination.slice(at(slices), |_, _| 0, &Beside)));
        coordination.slice(at(17), |_, _| 1 << 20, &Beside);
        assert_eq!(coordination.precedence(TENANT, DISK).is_some(), counts_what_it_had);
        (18..=96).for_each(|slices| drop(coordination.slice(at(slices), |_, _| 0, &Beside)));
        assert_eq!(coordination.is_empty(), !counts_what_it_had, "just not ten seconds");
        coordination.slice(at(97), |_, _| 0, &Beside);
        assert!(coordination.is_empty(), "ten seconds after the last bytes");
    }
}

#[test]
fn what_a_tenant_moved_is_one_of_its_operations() {
    let under_way =
        |coordination: &Coordination| -> Vec<String> { coordination.of(TENANT).map(|(id, _)| id.0.clone()).collect() };
    for (counts_what_it_had, later) in [(true, vec!["a"]), (false, vec![])] {
        let mut coordination = coordination(counts_what_it_had, Nanos::SECOND);
        begin(&mut coordination, Nanos::ZERO, "z", 100);
        begin(&mut coordination, Nanos(1), "a", 100);
        let mut slice = |second, bytes| {
            coordination.slice(Nanos::from_secs(second), |_, _| bytes, &Beside);
            under_way(&coordination)
        };
        assert_eq!(slice(1, 100).len(), 2);
        assert_eq!(slice(2, 26 + 99), later, "the one that began first is done, {counts_what_it_had}");
        assert_eq!(slice(3, 27), Vec::<String>::new(), "{counts_what_it_had}");
    }
}

#[test]
fn nobody_goes_ahead_and_no_time_is_charged_while_coordination_is_switched_off() {
    for holds_only_while_it_steers in [true, false] {
        let mut coordination = coordination(true, Nanos::SECOND);
        let settings = CoordinationSettings { holds_only_while_it_steers, running_max: 3, ..coordination.settings };
        coordination.configure(settings, Nanos::SECOND, true);
        begin(&mut coordination, Nanos::ZERO, "before", 1 << 50);
        coordination.configure(CoordinationSettings { enabled: false, ..settings }, Nanos::SECOND, true);
        begin(&mut coordination, Nanos::ZERO, "after", 1 << 50);
        let ahead = |coordination: &Coordination| coordination.running_on(DISK).count();
        assert_eq!(ahead(&coordination), if holds_only_while_it_steers { 1 } else { 2 });
        coordination.slice(Nanos::SECOND, |_, _| 1, &Beside);
        assert_eq!(ahead(&coordination), if holds_only_while_it_steers { 0 } else { 2 });
        let left = coordination.precedence_time.left(Nanos::SECOND, "account");
        assert_eq!(left == settings.precedence_max, holds_only_while_it_steers, "{left}");
        // Once it is on again those that begin then go ahead.
        coordination.configure(settings, Nanos::SECOND, true);
        begin(&mut coordination, Nanos::SECOND, "later", 1 << 50);
        assert_eq!(ahead(&coordination), if holds_only_while_it_steers { 1 } else { 3 });
    }
}

#[test]
fn those_that_wait_begin_when_coordination_is_switched_off_or_enforce_is_left() {
    for holds_only_while_it_steers in [true, false] {
        for (enabled, enforces) in [(false, true), (true, false)] {
            let mut coordination = coordination(true, Nanos::SECOND);
            let mut settings = coordination.settings;
            (settings.running_max, settings.holds_only_while_it_steers) = (1, holds_only_while_it_steers);
            coordination.configure(settings, Nanos::SECOND, true);
            begin(&mut coordination, Nanos::ZERO, "first", 1 << 40);
            let waits = key(TenantId(2), "waits");
            let asked = coordination.ask(Nanos::ZERO, waits.clone(), operation(1 << 40), &Beside);
            assert_ne!(asked, Grant::Now);
            coordination.configure(CoordinationSettings { enabled, ..settings }, Nanos::SECOND, enforces);
            let ready = coordination.slice(Nanos::SECOND, |_, _| 1, &Beside).ready;
            assert_eq!(ready == [waits], holds_only_while_it_steers);
        }
    }
}
