//! What a disk's plan in force goes by: which file system's space, how near deadlines are, and what came instead of what was expected.

mod quiet;

use minerva_background::{Foreground, Span, Worklist};
use minerva_model::{
    BackgroundCost, BackgroundHold, BackgroundId, BackgroundPace, BackgroundQueue, BackgroundReport,
    BackgroundSettings, BackgroundState, DeviceId, Effect, FindingKind, Nanos,
};
use quiet::QUIET;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const GIB: u64 = 1 << 30;

fn queue(id: u32, due: Nanos, seconds: f64) -> BackgroundQueue {
    BackgroundQueue {
        id: BackgroundId(id),
        name: format!("queue-{id}"),
        device: DISK,
        cgroup: format!("minerva/background-b{id}"),
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

fn report(id: u32, seconds: f64, (used_bytes, size_bytes, file_system): (u64, u64, Option<u64>)) -> BackgroundReport {
    BackgroundReport {
        id: BackgroundId(id),
        state: BackgroundState::Waiting,
        done_items: 0.0,
        total_items: Some(seconds),
        tied_bytes: 0.0,
        ran: Nanos::ZERO,
        used_bytes,
        size_bytes,
        file_system,
        processors: None,
        gets_on: None,
        is_beside_others: false,
        ran_beside: Nanos::ZERO,
        beside: None,
    }
}

fn busy(part: f64) -> Foreground {
    Foreground { busy: part, bytes_per_second: part * 1e7, requests_per_second: 100.0, ..QUIET }
}

fn configured(settings: BackgroundSettings) -> Worklist {
    let mut worklist = Worklist::default();
    worklist.configure(settings);
    worklist
}

fn slice(worklist: &mut Worklist, second: u64, foreground: Foreground) -> Vec<Effect> {
    worklist.slice(Nanos::from_secs(second), DISK, (foreground, 1.0), (&|_| None, None))
}

fn alarms(effects: &[Effect]) -> Vec<&str> {
    fn oversubscribed(effect: &Effect) -> Option<&str> {
        match effect {
            Effect::Found(finding) if finding.kind == FindingKind::Oversubscribed => Some(&finding.message),
            _ => None,
        }
    }
    effects.iter().filter_map(oversubscribed).collect()
}

fn pace(worklist: &Worklist) -> Option<BackgroundPace> {
    worklist.views(Nanos::ZERO).next().map(|view| view.order.pace)
}

const MONTH: Nanos = Nanos::from_secs(30 * 86_400);

#[test]
fn two_file_systems_of_one_disk_are_not_taken_for_one_that_grows() {
    let trims = |numbers: [Option<u64>; 2]| {
        let mut worklist = configured(BackgroundSettings::default());
        (1..=2).for_each(|id| worklist.set(queue(id, MONTH, 1000.0)));
        let mut effects = Vec::new();
        for second in 1..3700 {
            // `/` holds 20 of 50 GiB, and `/home` 120 of 400; neither grows.
            let now = Nanos::from_secs(second);
            worklist.reported(now, &report(1, 1000.0, (20 * GIB, 50 * GIB, numbers[0])));
            let later = now + Nanos(1000);
            worklist.reported(later, &report(2, 1000.0, (120 * GIB, 400 * GIB, numbers[1])));
            effects.extend(slice(&mut worklist, second, QUIET));
        }
        let space = worklist.space_date(Nanos::from_secs(3700), DISK, Span::Month, (&|_| None, None));
        (alarms(&effects).len(), space.likely_seconds.is_some())
    };
    assert_eq!(trims([None, None]), (1, true), "as in recordings that do not say which is which");
    assert_eq!(trims([Some(7), Some(9)]), (0, false));
}

#[test]
fn of_two_file_systems_the_one_that_runs_out_first_is_told_of_and_work_on_the_other_frees_nothing_there() {
    let mut worklist = configured(BackgroundSettings::default());
    (1..=2).for_each(|id| worklist.set(queue(id, MONTH, 1000.0)));
    let mut told = Vec::new();
    for second in 1..7300 {
        let now = Nanos::from_secs(second);
        // A megabyte a second where 40 GiB are free; what is tied is on the other.
        worklist.reported(now, &report(1, 1000.0, (10 * GIB + second * 1_000_000, 50 * GIB, Some(7))));
        let tied_bytes = 30.0 * GIB as f64;
        worklist.reported(now, &BackgroundReport { tied_bytes, ..report(2, 1000.0, (120 * GIB, 400 * GIB, Some(9))) });
        told.extend(slice(&mut worklist, second, QUIET));
    }
    let now = Nanos::from_secs(7300);
    let date = worklist.space_date(now, DISK, Span::Month, (&|_| None, None)).likely_seconds.expect("within a month");
    // Growth of two hours counts as that of six: a third of it, 30 GB in 90,000 s.
    assert!((1.0..1.6).contains(&((date - now.as_secs_f64()) / 90_000.0)), "{date}");
    assert!(alarms(&told).iter().any(|message| message.contains("space runs out")), "{:?}", alarms(&told));
}

#[test]
fn a_deadline_within_the_hour_is_met_by_what_is_taken_from_others_or_told_at_once() {
    let half_an_hour = Nanos::from_secs(1800);
    let start = |seconds: f64, settings| {
        let mut worklist = configured(settings);
        // Others take half of the time; it becomes known before the work is added.
        worklist.set(BackgroundQueue { is_paused: true, ..queue(9, MONTH, 1.0) });
        (1..60).for_each(|second| drop(slice(&mut worklist, second, busy(0.5))));
        worklist.set(queue(1, Nanos::from_secs(60) + half_an_hour, seconds));
        let effects = slice(&mut worklist, 60, busy(0.5));
        (alarms(&effects).len(), pace(&worklist))
    };
    let by_hours = BackgroundSettings { first_hour_by_minutes: false, ..BackgroundSettings::default() };
    // Of half an hour gaps leave 12 minutes, and half of the time is 15.
    assert_eq!(start(13.0 * 60.0, by_hours), (0, Some(BackgroundPace::Gaps)), "it counted as due after an hour");
    let (told, taken) = start(13.0 * 60.0, BackgroundSettings::default());
    assert!(told == 0 && matches!(taken, Some(BackgroundPace::Share(400..))), "{told} {taken:?}");
    assert_eq!(start(20.0 * 60.0, by_hours).0, 0);
    let (told, taken) = start(20.0 * 60.0, BackgroundSettings::default());
    assert!(told == 1 && matches!(taken, Some(BackgroundPace::Share(_))), "{told} {taken:?}");
}

#[test]
fn a_plan_that_is_made_before_others_are_seen_is_made_anew_in_time_for_a_deadline() {
    let taken = |settings| {
        let mut worklist = configured(settings);
        worklist.set(queue(1, Nanos::from_secs(600), 60.0));
        let mut is_taken = |second| {
            drop(slice(&mut worklist, second, if second == 1 { QUIET } else { busy(0.99) }));
            matches!(pace(&worklist), Some(BackgroundPace::Share(_)))
        };
        (1..600).find(|second| is_taken(*second))
    };
    let first = taken(BackgroundSettings::default());
    assert!(first.is_some_and(|second| second <= 60), "{first:?}");
    let before = BackgroundSettings { replans_by_deadline: false, ..BackgroundSettings::default() };
    assert_eq!(taken(before), None, "as in recordings of earlier versions");
}

/// How often a plan is made in these seconds beside others whose use of the disk swings by the half minute.
fn plans_made(settings: BackgroundSettings, queues: &[BackgroundQueue], seconds: std::ops::Range<u64>) -> usize {
    let mut worklist = configured(settings);
    queues.iter().for_each(|queue| worklist.set(queue.clone()));
    let mut made = 0;
    for second in 1..seconds.end {
        let plans = std::cell::Cell::new(false);
        // Only plans ask for what is far.
        let forecast = |ahead: f64| -> Option<f64> {
            plans.set(plans.get() || ahead > 1e6);
            None
        };
        let (now, part) = (Nanos::from_secs(second), if (second / 30).is_multiple_of(2) { 0.1 } else { 0.95 });
        if let [first, _] = queues {
            // It has what others leave: of what nobody can use nothing is planned, and no plan errs.
            let (ran, gets_on) = (Nanos((0.8e9 * (1.0 - part)) as u64), Some(true));
            worklist.reported(now, &BackgroundReport { ran, gets_on, ..report(first.id.0, 1000.0, (0, 0, None)) });
        }
        drop(worklist.slice(now, DISK, (busy(part), 1.0), (&forecast, None)));
        made += usize::from(plans.get() && seconds.contains(&second));
    }
    made
}

#[test]
fn a_deadline_that_is_past_or_of_what_a_tenant_owes_beside_the_operators_work_makes_no_plans() {
    let near = [queue(1, Nanos::from_secs(600), 9000.0)];
    let debt = BackgroundQueue { hold: BackgroundHold::Told, ..queue(2, Nanos::from_secs(600), 100.0) };
    let beside = [queue(1, MONTH, 1000.0), debt];
    let current = BackgroundSettings::default();
    assert!(plans_made(current, &near, 300..600) > 5, "it comes near");
    let made = |settings| [plans_made(settings, &near, 660..1860), plans_made(settings, &beside, 300..600)];
    let [past, of_debt] = made(current);
    assert!(past <= 3 && of_debt <= 3, "{past} {of_debt}");
    let [past, of_debt] = made(BackgroundSettings { alarms_outlast_a_plan: false, ..current });
    assert!(past > 20 && of_debt > 5, "as in recordings of earlier versions: {past} {of_debt}");
}

/// How often it is told that a disk is oversubscribed, and when that is over, where it is so in these seconds by what others do.
fn told_and_over(settings: BackgroundSettings, is_busy: impl Fn(u64) -> bool, until: u64) -> (usize, Vec<u64>) {
    let mut worklist = configured(settings);
    worklist.set(queue(1, Nanos::from_secs(8 * 3600), 16_000.0));
    let (mut told, mut over, mut was) = (0, Vec::new(), false);
    for second in 1..until {
        // A calibrated disk is planned by what is forecast, and that is as others are now.
        let part = if is_busy(second) { 1.0 } else { 0.0 };
        let forecast = |_: f64| Some(part * 1e7);
        if second % 90 == 1 {
            let calibration = minerva_model::DiskCalibration {
                bytes_per_busy_second: 1e7,
                requests_per_second: 100.0,
                busy_seconds: 60.0,
            };
            // With it the plan is made anew.
            worklist.calibrated(DISK, calibration);
        }
        // It gets all that is left, and looks at what there is to do.
        let (ran, gets_on) = (Nanos((0.8e9 * (1.0 - part)) as u64), Some(true));
        let report = BackgroundReport { ran, gets_on, ..report(1, 16_000.0, (0, 0, None)) };
        worklist.reported(Nanos::from_secs(second), &report);
        let effects = worklist.slice(Nanos::from_secs(second), DISK, (busy(part), 1.0), (&forecast, None));
        told += alarms(&effects).len();
        let is = worklist.is_oversubscribed(DISK);
        if was && !is {
            over.push(second);
        }
        was = is;
    }
    (told, over)
}

#[test]
fn an_alarm_that_comes_and_goes_with_estimates_is_told_once_and_is_over_after_some_minutes_without_it() {
    let swings = |second: u64| second < 1800 && (second / 90).is_multiple_of(2);
    let (told, over) = told_and_over(BackgroundSettings::default(), swings, 3600);
    assert_eq!(told, 1);
    let [over] = over[..] else { panic!("{over:?}") };
    assert!((1800 + 200..1800 + 400).contains(&over), "{over}");
    let before = BackgroundSettings { alarms_outlast_a_plan: false, ..BackgroundSettings::default() };
    let (told, over) = told_and_over(before, swings, 3600);
    assert!(told >= 5 && over.len() >= 5, "as in recordings of earlier versions: {told} {over:?}");
}

/// Second by second; when it first takes time from others.
fn first_taken(settings: BackgroundSettings, foreground: impl Fn(u64) -> f64) -> Option<u64> {
    let mut worklist = configured(settings);
    // Three quarters of two hours are needed.
    worklist.set(queue(1, Nanos::from_secs(7300), 4000.0));
    let mut done = 0.0;
    (1..7200).find(|second| {
        let ran = 0.8 * (1.0 - foreground(*second));
        done += ran;
        let ran = Nanos((ran * 1e9) as u64);
        let report = BackgroundReport { ran, done_items: done, ..report(1, 4000.0, (0, 0, None)) };
        worklist.reported(Nanos::from_secs(*second), &report);
        slice(&mut worklist, *second, busy(foreground(*second)));
        matches!(pace(&worklist), Some(BackgroundPace::Share(_)))
    })
}

#[test]
fn a_plan_is_made_anew_where_others_leave_less_than_was_expected() {
    // Quiet when the plan is made; from the third minute on nine tenths are taken.
    let rises = |second: u64| if second < 180 { 0.0 } else { 0.9 };
    let without = BackgroundSettings { replan_on_error: false, ..BackgroundSettings::default() };
    assert_eq!(first_taken(without, rises), Some(3601), "with the next plan, an hour later");
    let with = first_taken(BackgroundSettings::default(), rises);
    assert!(with.is_some_and(|second| (300..800).contains(&second)), "{with:?}");
    assert_eq!(first_taken(BackgroundSettings::default(), |_| 0.0), None, "all comes as expected");
}

/// Hours in each of which it does a fifth less than was planned, because there is more to do than it seemed; by how much its end moved, by when
/// it is planned to be done, and the part of the disk's time that it has then.
fn after_hours(settings: BackgroundSettings, hours: u64) -> (f64, u64, Option<BackgroundPace>) {
    let mut worklist = configured(settings);
    let due = Nanos::from_secs(30 * 3600);
    worklist.set(queue(1, due, 30_000.0));
    let mut total = 30_000.0;
    // The plan of the last hour is made in its first seconds.
    for second in 1..hours * 3600 + 5 {
        // Others take half of the time; of the rest all is used.
        total += 0.2;
        let done_items = 0.4 * second as f64;
        let ran = Nanos::from_millis(400);
        let report = BackgroundReport { ran, done_items, ..report(1, total, (0, 0, None)) };
        worklist.reported(Nanos::from_secs(second), &report);
        slice(&mut worklist, second, busy(0.5));
    }
    let Some(view) = worklist.views(Nanos::from_secs(hours * 3600)).next() else { return (0.0, 0, None) };
    (view.slipped_seconds, view.planned_due.as_secs_f64() as u64 / 3600, pace(&worklist))
}

#[test]
fn a_queue_whose_end_moves_away_is_planned_as_if_it_were_due_sooner() {
    let without = BackgroundSettings { slips_count: false, ..BackgroundSettings::default() };
    let (slipped, _, before) = after_hours(without, 9);
    // Half an hour more each hour, from the second plan on.
    assert!((3.0..5.0).contains(&(slipped / 3600.0)), "{slipped}");
    let (slipped, planned, after) = after_hours(BackgroundSettings::default(), 9);
    assert!(slipped > 0.0 && planned < 30, "less than before, as it gets more: {slipped} {planned}");
    let taken = |pace| matches!(pace, Some(BackgroundPace::Share(_)));
    assert!(!taken(before) && taken(after), "{before:?} {after:?} {slipped} {planned}");
}

#[test]
fn while_a_disk_is_calibrated_its_work_rests_and_the_plan_goes_by_what_it_served_then() {
    let mut worklist = configured(BackgroundSettings::default());
    worklist.set(queue(1, MONTH, 1000.0));
    // Beside work others take a second of the disk for each megabyte; without it for ten.
    let beside = Foreground { busy: 0.8, bytes_per_second: 0.8e6, ..busy(0.8) };
    let alone = Foreground { busy: 0.1, bytes_per_second: 1e6, requests_per_second: 250.0, ..busy(0.1) };
    let work = |worklist: &mut Worklist, second: u64, ran_ms| {
        let ran = Nanos::from_millis(ran_ms);
        worklist.reported(Nanos::from_secs(second), &BackgroundReport { ran, ..report(1, 1000.0, (0, 0, None)) });
    };
    for second in 1..60 {
        work(&mut worklist, second, 200);
        slice(&mut worklist, second, beside);
    }
    let free = |worklist: &Worklist| {
        let plan = worklist.plan(Nanos::from_secs(90), DISK, Span::Week, (&|_| None, None));
        plan.slots.last().map_or(0.0, |slot| 1000.0 - slot.foreground_cores)
    };
    let (before, free_before) = (worklist.serves(DISK), free(&worklist));
    worklist.calibrate(Nanos::from_secs(60), DISK, Nanos::from_secs(30));
    let mut told = Vec::new();
    for second in 60..92 {
        // It is let go on for a moment, which does not count.
        work(&mut worklist, second, if second < 62 { 200 } else { 0 });
        told.extend(slice(&mut worklist, second, if second < 62 { beside } else { alone }));
        if second == 70 {
            assert_eq!(pace(&worklist), Some(BackgroundPace::Hold));
            assert_eq!(worklist.calibrating_left(Nanos::from_secs(70), DISK), Some(Nanos::from_secs(20)));
        }
    }
    assert_eq!((pace(&worklist), worklist.calibrating_left(Nanos(u64::MAX), DISK)), (Some(BackgroundPace::Gaps), None));
    let rate =
        |serves: Option<minerva_model::DiskCalibration>| serves.map_or(0.0, |serves| serves.bytes_per_busy_second);
    let after = worklist.serves(DISK);
    assert!((rate(before) - 1e6).abs() < 1.0 && (rate(after) - 1e7).abs() < 1.0, "{before:?} {after:?}");
    assert!(
        told.iter().any(|effect| matches!(effect, Effect::BackgroundCalibrated { device: DISK, .. })),
        "to be kept"
    );
    assert!(free(&worklist) > 2.0 * free_before, "{free_before} {}", free(&worklist));
    // Where others do nothing nothing is measured.
    worklist.calibrate(Nanos::from_secs(100), DISK, Nanos::from_secs(5));
    (100..110).for_each(|second| drop(slice(&mut worklist, second, QUIET)));
    assert_eq!(rate(worklist.serves(DISK)), rate(after));
}

#[test]
fn while_work_that_must_not_be_stopped_uses_a_disk_that_is_not_calibrated() {
    let measured = |settings| {
        let mut worklist = configured(settings);
        worklist.set(BackgroundQueue { hold: BackgroundHold::Cap, ..queue(1, MONTH, 1000.0) });
        slice(&mut worklist, 1, busy(0.5));
        worklist.calibrate(Nanos::from_secs(1), DISK, Nanos::from_secs(30));
        for second in 2..33 {
            // Of what runs under its cap only gaps are told as time in which it ran. It makes a request take four times as long.
            let beside = Foreground { bytes_per_second: 2e6, is_beside_work: true, ..busy(0.8) };
            slice(&mut worklist, second, if second < 17 { beside } else { busy(0.5) });
        }
        worklist.serves(DISK).map_or(0.0, |serves| serves.bytes_per_busy_second.round())
    };
    assert_eq!(measured(BackgroundSettings::default()), 1e7);
    let before = BackgroundSettings { calibrates_alone: false, ..BackgroundSettings::default() };
    assert!(measured(before) < 7e6, "as in recordings of earlier versions");
}

#[test]
fn a_plan_tells_what_each_queue_has_and_owes_over_time() {
    let mut worklist = configured(BackgroundSettings::default());
    worklist.set(BackgroundQueue { priority: 5, ..queue(1, MONTH, 7200.0) });
    worklist.set(queue(2, MONTH, 7200.0));
    (1..=2).for_each(|id| {
        let tied_bytes = GIB as f64;
        worklist.reported(Nanos::ZERO, &BackgroundReport { tied_bytes, ..report(id, 7200.0, (GIB, 9 * GIB, Some(1))) });
    });
    let (plan, queues) = worklist.plan_by_queue(Nanos::ZERO, DISK, (Span::Day, 24), (&|_| None, None));
    assert_eq!(queues.iter().map(|queue| (queue.id.0, queue.stretches.len())).collect::<Vec<_>>(), [(1, 24), (2, 24)]);
    let (first, second) = (&queues[0].stretches, &queues[1].stretches);
    // Four fifths of the time: the first has them for two and a half hours, then the other.
    assert_eq!((first[0].cores.round(), second[0].cores), (800.0, 0.0));
    assert_eq!((first[4].cores, second[4].cores.round(), first[4].core_seconds.round()), (0.0, 800.0, 0.0));
    assert!((second[0].blocks * 4096.0 - GIB as f64).abs() < 4096.0 && second[23].core_seconds < 1e-3);
    for (at, part) in plan.slots.chunks(6).enumerate() {
        let of_all = part.iter().map(|slot| slot.background_cores).sum::<f64>() / 6.0;
        assert!((first[at].cores + second[at].cores - of_all).abs() < 1e-6, "{at}");
    }
}
