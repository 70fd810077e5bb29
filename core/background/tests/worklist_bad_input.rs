//! Queues that cannot be meant, lie, vanish or run out of space: the others go on, and no number that is none gets anywhere.

use minerva_background::{Foreground, Plan, Span, Worklist, Written};
use minerva_model::{
    BackgroundCost, BackgroundHold, BackgroundId, BackgroundPace, BackgroundQueue, BackgroundReport, BackgroundState,
    DeviceId, Effect, Expectation, FindingKind, Nanos,
};

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const OTHER_DISK: DeviceId = DeviceId { major: 8, minor: 16 };
const BUSY: Foreground = Foreground {
    busy: 0.5,
    bytes_per_second: 1e6,
    written_bytes_per_second: GIB_A_DAY,
    requests_per_second: 100.0,
    is_beside_work: false,
};
const GIB: u64 = 1 << 30;
const GIB_A_DAY: f64 = GIB as f64 / 86_400.0;
const SPANS: [Span; 4] = [Span::Hour, Span::Day, Span::Week, Span::Month];

fn queue(id: u32, device: DeviceId) -> BackgroundQueue {
    BackgroundQueue {
        id: BackgroundId(id),
        name: format!("queue-{id}"),
        device,
        cgroup: format!("minerva/background-b{id}"),
        priority: 0,
        added: Nanos::ZERO,
        due: Some(Nanos::from_secs(7 * 86_400)),
        given: None,
        is_paused: false,
        hold: BackgroundHold::Stop,
        cost: BackgroundCost { seconds_per_item: 1.0, measured_seconds: 0.0, slow_down: None },
        done_items: 0.0,
        total_items: Some(1000.0),
    }
}

/// What a queue that does nothing says of its file system.
fn report(id: u32, used_bytes: u64, size_bytes: u64) -> BackgroundReport {
    BackgroundReport {
        id: BackgroundId(id),
        state: BackgroundState::Waiting,
        done_items: 0.0,
        total_items: Some(1000.0),
        tied_bytes: 0.0,
        ran: Nanos::ZERO,
        used_bytes,
        size_bytes,
        file_system: None,
        processors: None,
        gets_on: None,
        is_beside_others: false,
        ran_beside: Nanos::ZERO,
        beside: None,
    }
}

fn judge(plan: &Plan, what: &str) {
    for slot in &plan.slots {
        let numbers =
            [slot.foreground_cores, slot.background_cores, slot.stolen_cores, slot.used_blocks, slot.debt_blocks];
        assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{what}: {slot:?}");
        assert!(slot.background_cores <= 1000.0, "{what}: no more than all of the disk's time: {slot:?}");
    }
}

#[test]
fn terms_that_cannot_be_meant_leave_the_plan_whole_and_other_queues_alone() {
    let costs = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300];
    let totals = [None, Some(0.0), Some(-5.0), Some(f64::NAN), Some(f64::INFINITY), Some(1e300)];
    let dues = [None, Some(Nanos::ZERO), Some(Nanos(u64::MAX))];
    for (seconds_per_item, total_items, due) in
        costs.into_iter().flat_map(|cost| totals.into_iter().flat_map(move |total| dues.map(|due| (cost, total, due))))
    {
        let what = format!("{seconds_per_item} {total_items:?} {due:?}");
        let mut worklist = Worklist::default();
        let cost = BackgroundCost { seconds_per_item, measured_seconds: seconds_per_item, slow_down: total_items };
        worklist.set(BackgroundQueue { cost, total_items, due, added: Nanos::from_secs(10), ..queue(1, DISK) });
        worklist.set(queue(2, OTHER_DISK));
        for second in [20, 21, 4000] {
            worklist.reported(Nanos::from_secs(second), &report(2, 0, 0));
            for device in [DISK, OTHER_DISK] {
                worklist.slice(Nanos::from_secs(second), device, (BUSY, 1.0), (&|_| None, None));
            }
        }
        for span in SPANS {
            judge(&worklist.plan(Nanos::from_secs(4000), DISK, span, (&|_| None, None)), &what);
        }
        let views: Vec<_> = worklist.views(Nanos::from_secs(4000)).collect();
        assert!(
            views.iter().all(|view| view.left_seconds.is_finite() && view.left_seconds >= 0.0),
            "{what}: {views:?}"
        );
        assert!(!matches!(views[0].order.pace, BackgroundPace::Share(501..)), "{what}: {:?}", views[0].order);
        assert_eq!(views[1].order.pace, BackgroundPace::Gaps, "{what}: another disk is not touched");
    }
}

#[test]
fn what_was_due_in_the_past_is_told_and_goes_first_with_no_more_than_half_of_the_disk() {
    let mut worklist = Worklist::default();
    worklist.set(queue(1, DISK));
    let late = BackgroundQueue { due: Some(Nanos::from_secs(5)), total_items: Some(10_000.0), ..queue(2, DISK) };
    worklist.set(late);
    let mut effects = Vec::new();
    // Others have used the disk all the time, so that gaps alone would not do.
    let busy = Foreground { busy: 1.0, ..BUSY };
    for second in 10..80 {
        effects.extend(worklist.slice(Nanos::from_secs(second), DISK, (busy, 1.0), (&|_| None, None)));
    }
    effects.extend(worklist.slice(Nanos::from_secs(3700), DISK, (busy, 1.0), (&|_| None, None)));
    let told = effects.iter().find_map(|effect| match effect {
        Effect::Found(finding) => Some(finding.message.clone()),
        _ => None,
    });
    assert!(told.as_ref().is_some_and(|message| message.contains("queue-2 misses its deadline")), "{told:?}");
    let paces: Vec<_> = worklist.views(Nanos::ZERO).map(|view| view.order.pace).collect();
    assert_eq!(paces, [BackgroundPace::Hold, BackgroundPace::Share(500)]);
}

#[test]
fn one_that_vanishes_while_it_runs_makes_way_and_its_late_reports_change_nothing() {
    let mut worklist = Worklist::default();
    worklist.set(BackgroundQueue { priority: 9, ..queue(1, DISK) });
    worklist.set(queue(2, DISK));
    worklist.slice(Nanos::from_secs(1), DISK, (BUSY, 1.0), (&|_| None, None));
    worklist.remove(BackgroundId(1));
    worklist.remove(BackgroundId(1));
    let before = worklist.clone();
    worklist.reported(Nanos::from_secs(2), &BackgroundReport { ran: Nanos::from_secs(1), ..report(1, GIB, GIB) });
    assert_eq!(worklist, before);
    let effects = worklist.slice(Nanos::from_secs(2), DISK, (BUSY, 1.0), (&|_| None, None));
    let is_let = |effect: &Effect| matches!(effect, Effect::Background(order) if order.pace == BackgroundPace::Gaps);
    assert!(effects.iter().any(is_let), "{effects:?}");
}

#[test]
fn forecasts_that_are_none_are_planned_with_as_if_there_were_none() {
    for (value, what) in [(f64::NAN, "no number"), (f64::INFINITY, "endless"), (-1e9, "negative"), (1e300, "huge")] {
        let mut worklist = Worklist::default();
        worklist.set(queue(1, DISK));
        for second in 1..100 {
            worklist.slice(Nanos::from_secs(second), DISK, (BUSY, 1.0), (&|_| Some(value), None));
        }
        for span in SPANS {
            judge(&worklist.plan(Nanos::from_secs(100), DISK, span, (&|_| Some(value), None)), what);
        }
    }
}

/// A disk of 100 GiB with so many in use, that gains 1 GiB a day, which is written.
fn growing_from(used: u64) -> Worklist {
    let mut worklist = Worklist::default();
    worklist.set(queue(1, DISK));
    let writes = Foreground { written_bytes_per_second: GIB_A_DAY, ..Foreground::default() };
    worklist.slice(Nanos::ZERO, DISK, (writes, 86_400.0), (&|_| None, None));
    for day in 0..3 {
        worklist.reported(Nanos::from_secs(86_400 * day), &report(1, (used + day) * GIB, 100 * GIB));
    }
    worklist
}

/// One that likely is full in two weeks.
fn growing() -> Worklist {
    growing_from(80)
}

/// That 1 GiB a day will be written, from so many parts of that to so many.
fn between((lower, upper): (f64, f64)) -> impl Fn(f64) -> Expectation {
    move |seconds| {
        let value = GIB_A_DAY * seconds;
        Expectation::from([value, value * lower, value * upper].map(|end| end as f32))
    }
}

#[test]
fn a_file_system_that_shrinks_is_told_of_before_it_is_full() {
    let mut worklist = growing();
    let now = Nanos::from_secs(2 * 86_400);
    let told = |effects: Vec<Effect>| {
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Found(finding) if finding.message.contains("space runs out")))
    };
    let date =
        worklist.space_date(now, DISK, Span::Month, (&|_| None, None)).likely_seconds.expect("13 GiB at 1 a day");
    assert!((13.0..15.5).contains(&(date / 86_400.0 - 2.0)), "{}", date / 86_400.0);
    worklist.reported(now + Nanos::from_secs(1), &report(1, 82 * GIB, 88 * GIB));
    let sooner = worklist.space_date(now, DISK, Span::Month, (&|_| None, None)).likely_seconds.expect("it shrank");
    assert!((1.0..2.5).contains(&(sooner / 86_400.0 - 2.0)), "{}", sooner / 86_400.0);
    assert!(told(worklist.slice(now + Nanos::from_secs(2), DISK, (BUSY, 1.0), (&|_| None, None))));
    // It is full: that is told as of now.
    worklist.reported(now + Nanos::from_secs(3), &report(1, 82 * GIB, 60 * GIB));
    let full = worklist.space_date(now, DISK, Span::Month, (&|_| None, None)).likely_seconds.expect("it is full");
    assert!(full <= now.as_secs_f64() + 3600.0, "{full}");
}

#[test]
fn the_date_on_which_space_runs_out_has_the_interval_of_what_will_be_written() {
    let worklist = growing();
    let now = Nanos::from_secs(2 * 86_400);
    let days = |seconds: Option<f64>| seconds.map(|seconds| (seconds / 86_400.0 - 2.0).round());
    let date = |written: Option<(f64, f64)>| {
        let written = written.map(between);
        let written = written.as_ref().map(|written| written as Written<'_>);
        worklist.space_date(now, DISK, Span::Month, (&|_| None, written))
    };
    let unknown = date(None);
    assert!(!unknown.is_interval_known && unknown.earliest_seconds == unknown.latest_seconds, "{unknown:?}");
    let known = date(Some((0.5, 2.0)));
    let all = [known.earliest_seconds, known.likely_seconds, known.latest_seconds].map(days);
    let likely = all[1].expect("within a month");
    assert!((13.0..=15.0).contains(&likely), "{all:?}");
    assert_eq!(all, [Some((likely / 2.0).round()), Some(likely), Some(2.0 * likely)], "within a day: {known:?}");
    assert_eq!(days(date(Some((0.1, 1.0))).latest_seconds), None, "not within a month");
    // So is that of the alarm.
    let told = |written: Option<(f64, f64)>| {
        let written = written.map(between);
        let written = written.as_ref().map(|written| written as Written<'_>);
        let effects = growing().slice(now, DISK, (BUSY, 1.0), (&|_| None, written));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Found(finding) => Some(finding.message),
            _ => None,
        })
    };
    let message = told(Some((0.5, 2.0))).expect("within a month");
    let hours = |seconds: Option<f64>| format!("{:.1} h", (seconds.expect("a date") - now.as_secs_f64()) / 3600.0);
    let (earliest, latest) = (hours(known.earliest_seconds), hours(known.latest_seconds));
    assert!(message.contains(&format!("at the earliest {earliest}, at the latest {latest}")), "{message}");
    assert!(told(Some((0.1, 1.0))).is_some_and(|message| message.contains("at the latest not in the next 30 days")));
    assert!(told(None).is_some_and(|message| message.contains("is not known yet")));
    // The likely one lies between, whatever the interval says; and what is no number is as if there were none.
    let odd = date(Some((3.0, f64::NAN)));
    assert_eq!([odd.earliest_seconds, odd.latest_seconds], [odd.likely_seconds; 2], "{odd:?}");
}

/// One with 40 GiB free for what grows, so that it likely lasts for more than a month.
fn lasting() -> Worklist {
    growing_from(50)
}

#[test]
fn space_that_may_run_out_though_it_likely_lasts_is_a_notice_and_no_alarm() {
    const HOUR: u64 = 3600;
    let found = |worklist: &mut Worklist, hours: u64, written: Option<(f64, f64)>| {
        let written = written.map(between);
        let written = written.as_ref().map(|written| written as Written<'_>);
        let now = Nanos::from_secs(2 * 86_400 + hours * HOUR);
        let effects = worklist.slice(now, DISK, (BUSY, 1.0), (&|_| None, written));
        let found = effects.into_iter().filter_map(|effect| match effect {
            Effect::Found(finding) => Some((finding.kind, finding.message)),
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    let mut worklist = lasting();
    assert_eq!(found(&mut worklist, 0, None), [], "how far the date can be off is not known");
    assert_eq!(found(&mut worklist, 1, Some((0.9, 1.1))), [], "it lasts for more than a month whatever comes");
    let told = found(&mut worklist, 2, Some((0.5, 2.0)));
    let [(FindingKind::SpaceMayRunOut, message)] = &told[..] else { panic!("{told:?}") };
    assert!(!FindingKind::SpaceMayRunOut.is_warning());
    let hours: f64 =
        message.split("within ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("hours");
    assert!((20.0..23.0).contains(&(hours / 24.0)), "43 GiB at 2 a day: {message}");
    assert!(message.contains("likely lasts for the next 30 days"), "{message}");
    // What was told is told again when it is much nearer, and after a day in which it was not so.
    for hours in 3..60 {
        assert_eq!(found(&mut worklist, hours, Some((0.5, 2.0 + hours as f64 / 100.0))), [], "hour {hours}");
    }
    let nearer = found(&mut worklist, 60, Some((0.5, 8.0)));
    assert!(matches!(nearer[..], [(FindingKind::SpaceMayRunOut, _)]), "{nearer:?}");
    assert_eq!(found(&mut worklist, 61, Some((0.5, 1.0))), []);
    assert_eq!(found(&mut worklist, 62, Some((0.5, 8.0))), [], "it was away for an hour");
    (63..90).for_each(|hours| assert_eq!(found(&mut worklist, hours, Some((0.5, 1.0))), []));
    assert!(matches!(found(&mut worklist, 90, Some((0.5, 8.0)))[..], [(FindingKind::SpaceMayRunOut, _)]));
    // An interval that is none says nothing.
    let mut worklist = lasting();
    for upper in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        assert_eq!(found(&mut worklist, 100, Some((0.0, upper))), [], "{upper}");
    }
    // Where it likely runs out that is the alarm, and nothing else is said.
    let alarm = found(&mut growing(), 0, Some((0.5, 2.0)));
    assert!(matches!(alarm[..], [(FindingKind::Oversubscribed, _)]), "{alarm:?}");
}
