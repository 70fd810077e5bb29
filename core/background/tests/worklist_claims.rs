//! What tenants say that they owe, and what hangs, beside the operator's work: neither makes that take time from others, nor holds it up.

mod quiet;

use minerva_background::{Foreground, Worklist};
use minerva_model::{
    BackgroundCost, BackgroundHold, BackgroundId, BackgroundPace, BackgroundQueue, BackgroundReport,
    BackgroundSettings, BackgroundState, DeviceId, Effect, FindingKind, Nanos,
};
use quiet::QUIET;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const GIB: u64 = 1 << 30;
const TEN_YEARS_SECONDS: f64 = 3650.0 * 86_400.0;
const HOUR: u64 = 3600;
const HOLD: BackgroundPace = BackgroundPace::Hold;
const GAPS: BackgroundPace = BackgroundPace::Gaps;

/// The operator's.
fn scrub(due: Nanos, seconds: f64) -> BackgroundQueue {
    BackgroundQueue {
        id: BackgroundId(1),
        name: "scrub".to_owned(),
        device: DISK,
        cgroup: "minerva/background-b1".to_owned(),
        priority: 0,
        added: Nanos::ZERO,
        due: Some(due),
        given: None,
        is_paused: false,
        hold: BackgroundHold::Stop,
        cost: BackgroundCost { seconds_per_item: 1.0, measured_seconds: 60.0, slow_down: None },
        done_items: 0.0,
        total_items: Some(seconds),
    }
}

/// A tenant's.
fn debt(due: Nanos, seconds: f64) -> BackgroundQueue {
    let (name, cgroup) = ("debt".to_owned(), "tenant".to_owned());
    BackgroundQueue { id: BackgroundId(2), name, cgroup, hold: BackgroundHold::Told, ..scrub(due, seconds) }
}

fn report(queue: &BackgroundQueue, done_items: f64, ran: Nanos) -> BackgroundReport {
    BackgroundReport {
        id: queue.id,
        state: BackgroundState::Waiting,
        done_items,
        total_items: queue.total_items,
        tied_bytes: 0.0,
        ran,
        used_bytes: 0,
        size_bytes: 0,
        file_system: None,
        processors: None,
        gets_on: None,
        is_beside_others: false,
        ran_beside: Nanos::ZERO,
        beside: None,
    }
}

fn worklist(settings: BackgroundSettings, queues: &[&BackgroundQueue]) -> Worklist {
    let mut worklist = Worklist::default();
    worklist.configure(settings);
    queues.iter().for_each(|queue| worklist.set((*queue).clone()));
    worklist
}

/// A second at whose end these reports come.
fn second(worklist: &mut Worklist, second: u64, busy: f64, reports: &[BackgroundReport]) -> Vec<BackgroundPace> {
    let now = Nanos::from_secs(second);
    reports.iter().for_each(|report| worklist.reported(now, report));
    let foreground = Foreground { busy, bytes_per_second: busy * 1e7, requests_per_second: 100.0, ..QUIET };
    worklist.slice(now, DISK, (foreground, 1.0), (&|_| None, None));
    worklist.views(now).map(|view| view.order.pace).collect()
}

/// As recordings of earlier versions replay.
fn before() -> BackgroundSettings {
    BackgroundSettings {
        takes_for_who_goes: false,
        debts_come_last: false,
        debts_raise_no_false_alarm: false,
        ..BackgroundSettings::default()
    }
}

/// What the scrub has beside a debt of so much service, due in five hours, that ties so much; others take nine tenths of the disk.
fn beside_a_claim(settings: BackgroundSettings, service_seconds: f64, tied_bytes: f64) -> BackgroundPace {
    let (scrub, debt) =
        (scrub(Nanos::from_secs(168 * HOUR), 1000.0), debt(Nanos::from_secs(5 * HOUR), service_seconds));
    let mut worklist = worklist(settings, &[&scrub, &debt]);
    let mut last = Vec::new();
    for at in (1..60).chain(HOUR + 5..HOUR + 10) {
        let of_scrub = report(&scrub, 0.0, Nanos::ZERO);
        let of_scrub =
            BackgroundReport { used_bytes: 50 * GIB, size_bytes: 100 * GIB, file_system: Some(7), ..of_scrub };
        let of_debt = BackgroundReport { tied_bytes, ..report(&debt, 0.0, Nanos::ZERO) };
        last = second(&mut worklist, at, 0.9, &[of_scrub, of_debt]);
    }
    assert_eq!(last[1], HOLD, "the operator's work goes first");
    last[0]
}

#[test]
fn what_a_tenant_says_that_it_owes_takes_nothing_from_others_for_the_operators_work() {
    let claims = [(TEN_YEARS_SECONDS, 0.0), (1000.0, (1_u64 << 60) as f64)];
    for (service_seconds, tied_bytes) in claims {
        let pace = beside_a_claim(before(), service_seconds, tied_bytes);
        assert!(matches!(pace, BackgroundPace::Share(_)), "as in recordings of earlier versions: {pace:?}");
        assert_eq!(beside_a_claim(BackgroundSettings::default(), service_seconds, tied_bytes), GAPS);
    }
}

#[test]
fn what_a_tenant_says_that_its_work_ran_is_not_what_the_operators_had() {
    let (scrub, debt) = (scrub(Nanos::from_secs(2 * HOUR), 3000.0), debt(Nanos::from_secs(9 * HOUR), 5000.0));
    let mut worklist = worklist(BackgroundSettings::default(), &[&scrub, &debt]);
    let mut last = Vec::new();
    for at in (1..60).chain(HOUR + 5..HOUR + 60) {
        let reports = [report(&scrub, 0.0, Nanos::ZERO), report(&debt, 1.0, Nanos::SECOND)];
        last = second(&mut worklist, at, 0.9, &reports);
    }
    assert!(matches!(last[0], BackgroundPace::Share(300..)), "{last:?}");
}

#[test]
fn what_hangs_takes_nothing_from_others_for_the_work_behind_it() {
    let hangs = scrub(Nanos::from_secs(4 * HOUR), 10_000.0);
    let healthy = BackgroundQueue { id: BackgroundId(2), ..scrub(Nanos::from_secs(168 * HOUR), 1000.0) };
    let hangs = BackgroundQueue { priority: 9, ..hangs };
    let after = |settings, seconds| {
        let mut worklist = worklist(settings, &[&hangs, &healthy]);
        let mut last = Vec::new();
        for at in 1..seconds {
            let of_one = report(&hangs, 5.0, Nanos::from_millis(500));
            last = second(&mut worklist, at, 1.0, &[of_one, report(&healthy, 0.0, Nanos::ZERO)]);
        }
        last
    };
    let at_work = after(BackgroundSettings::default(), 1100);
    assert!(matches!(at_work[..], [BackgroundPace::Share(_), BackgroundPace::Hold]), "{at_work:?}");
    // It ran for ten minutes in vain after twenty; the plan follows within a minute.
    let [HOLD, BackgroundPace::Share(_)] = after(before(), 1400)[..] else { panic!("as in earlier recordings") };
    assert_eq!(after(BackgroundSettings::default(), 1400), [HOLD, GAPS]);
}

#[test]
fn a_debt_that_is_always_urgent_holds_up_none_of_the_operators_work() {
    let days = |days: u64| Nanos::from_secs(days * 24 * HOUR);
    let (scrub, debt) = (scrub(days(30), 1000.0), debt(Nanos::from_millis(1), 10.0));
    let paces = |settings| {
        let mut worklist = worklist(settings, &[&scrub, &debt]);
        let mut last = Vec::new();
        for at in 1..1500 {
            // A nanosecond more each second, so that it never hangs.
            let of_debt = report(&debt, at as f64 * 1e-9, Nanos::SECOND);
            last = second(&mut worklist, at, 0.0, &[report(&scrub, 0.0, Nanos::ZERO), of_debt]);
        }
        last
    };
    assert_eq!(paces(before())[0], HOLD, "as in recordings of earlier versions");
    assert_eq!(paces(BackgroundSettings::default()), [GAPS, HOLD]);
}

#[test]
fn a_debt_has_its_turn_where_the_operators_work_hangs_and_its_own_part_where_there_is_none() {
    let (scrub, debt) = (scrub(Nanos::from_secs(168 * HOUR), 1000.0), debt(Nanos::from_secs(2 * HOUR), 3000.0));
    let mut both = worklist(BackgroundSettings::default(), &[&scrub, &debt]);
    let mut last = Vec::new();
    for at in 1..700 {
        let reports = [report(&scrub, 0.0, Nanos::SECOND), report(&debt, 0.0, Nanos::ZERO)];
        last = second(&mut both, at, 0.0, &reports);
    }
    assert_eq!(last, [HOLD, GAPS]);
    let mut alone = worklist(BackgroundSettings::default(), &[&debt]);
    for at in (1..60).chain(HOUR + 5..HOUR + 10) {
        last = second(&mut alone, at, 0.9, &[report(&debt, 0.0, Nanos::ZERO)]);
    }
    assert!(matches!(last[..], [BackgroundPace::Share(_)]), "{last:?}");
}

/// What is told of a disk on which the operator's scrub of so many hours is due in a week, and a debt of so many seconds in five hours that ties so
/// much; others take nine tenths of the disk, and half of its space is in use.
fn told_beside_a_claim(settings: BackgroundSettings, scrub_hours: u64, claim: (f64, f64)) -> Vec<String> {
    let scrub = scrub(Nanos::from_secs(168 * HOUR), (scrub_hours * HOUR) as f64);
    let (debt, tied_bytes) = (debt(Nanos::from_secs(5 * HOUR), claim.0), claim.1);
    let mut worklist = worklist(settings, &[&scrub, &debt]);
    let foreground = Foreground { busy: 0.9, bytes_per_second: 1e7, requests_per_second: 100.0, ..QUIET };
    let mut told = Vec::new();
    for now in (1..100).map(Nanos::from_secs) {
        let (used_bytes, size_bytes, file_system) = (50 * GIB, 100 * GIB, Some(7));
        let of_scrub = report(&scrub, 0.0, Nanos::ZERO);
        worklist.reported(now, &BackgroundReport { used_bytes, size_bytes, file_system, ..of_scrub });
        worklist.reported(now, &BackgroundReport { tied_bytes, ..report(&debt, 0.0, Nanos::ZERO) });
        for effect in worklist.slice(now, DISK, (foreground, 1.0), (&|_| None, None)) {
            match effect {
                Effect::Found(finding) if finding.kind == FindingKind::Oversubscribed => told.push(finding.message),
                _ => {}
            }
        }
    }
    told
}

#[test]
fn an_alarm_names_work_of_the_operators_only_for_what_that_misses_without_debts() {
    let (current, endless) = (BackgroundSettings::default(), (TEN_YEARS_SECONDS, 0.0));
    let told = told_beside_a_claim(current, 40, endless);
    let [told] = &told[..] else { panic!("{told:?}") };
    assert!(told.contains("debt misses its deadline") && !told.contains("scrub"), "{told}");
    // Of a week it may have half.
    let told = told_beside_a_claim(current, 100, endless);
    let [told] = &told[..] else { panic!("{told:?}") };
    assert!(told.contains("debt misses its deadline, scrub misses its deadline"), "{told}");
    assert_eq!(told_beside_a_claim(current, 40, (60.0, 0.0)), [""; 0]);
    let before = BackgroundSettings { debts_raise_no_false_alarm: false, ..current };
    let told = told_beside_a_claim(before, 40, endless);
    assert!(told.iter().any(|told| told.contains("scrub misses its deadline")), "as in earlier recordings: {told:?}");
}

#[test]
fn space_does_not_run_out_by_what_a_tenant_says_that_it_ties() {
    let (current, claim) = (BackgroundSettings::default(), (60.0, (1_u64 << 60) as f64));
    assert_eq!(told_beside_a_claim(current, 1, claim), [""; 0]);
    let before = BackgroundSettings { debts_raise_no_false_alarm: false, ..current };
    let told = told_beside_a_claim(before, 1, claim);
    assert!(told.iter().any(|told| told.contains("space runs out")), "as in earlier recordings: {told:?}");
}
