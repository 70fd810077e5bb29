//! Which work may run, slice by slice.

mod quiet;

use minerva_background::{Foreground, Plan, Span, Worklist};
use minerva_model::{
    BackgroundCost, BackgroundHold, BackgroundId, BackgroundPace, BackgroundQueue, BackgroundReport, BackgroundState,
    DeviceId, Effect, FindingKind, Nanos,
};
use quiet::QUIET;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const OTHER_DISK: DeviceId = DeviceId { major: 8, minor: 16 };
const BUSY: Foreground = Foreground {
    busy: 0.5,
    bytes_per_second: 1e6,
    written_bytes_per_second: 0.0,
    requests_per_second: 100.0,
    is_beside_work: false,
};

fn hours(hours: u64) -> Nanos {
    Nanos::from_secs(3600 * hours)
}

/// A thousand items of an assumed second each, due in a week.
fn queue(id: u32) -> BackgroundQueue {
    BackgroundQueue {
        id: BackgroundId(id),
        name: format!("queue-{id}"),
        device: DISK,
        cgroup: format!("minerva/background-b{id}"),
        priority: 0,
        added: Nanos::ZERO,
        due: Some(hours(168)),
        given: None,
        is_paused: false,
        hold: BackgroundHold::Stop,
        cost: BackgroundCost { seconds_per_item: 1.0, measured_seconds: 0.0, slow_down: None },
        done_items: 0.0,
        total_items: Some(1000.0),
    }
}

fn report(id: u32, done_items: f64, ran_seconds: u64) -> BackgroundReport {
    BackgroundReport {
        id: BackgroundId(id),
        state: BackgroundState::Running,
        done_items,
        total_items: Some(1000.0),
        tied_bytes: 0.0,
        ran: Nanos::from_secs(ran_seconds),
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

fn slice(worklist: &mut Worklist, now: Nanos, foreground: Foreground) -> Vec<Effect> {
    worklist.slice(now, DISK, (foreground, 1.0), (&|_| None, None))
}

fn paces(worklist: &Worklist) -> Vec<BackgroundPace> {
    worklist.views(Nanos::ZERO).map(|view| view.order.pace).collect()
}

fn paid_seconds(worklist: &Worklist, now: Nanos) -> Option<f64> {
    worklist.plan(now, DISK, Span::Week, (&|_| None, None)).payments.first().and_then(|payment| payment.paid_seconds)
}

#[test]
fn one_queue_of_each_disk_runs_at_a_time_by_priority_and_by_deadline_when_that_is_near() {
    let mut worklist = Worklist::default();
    worklist.set(BackgroundQueue { priority: 1, ..queue(1) });
    worklist.set(BackgroundQueue { priority: 2, ..queue(2) });
    worklist.set(BackgroundQueue { due: Some(hours(80)), ..queue(3) });
    worklist.set(BackgroundQueue { device: OTHER_DISK, ..queue(4) });
    assert_eq!(slice(&mut worklist, Nanos::from_secs(1), QUIET).len(), 3, "each is told once");
    worklist.slice(Nanos::from_secs(1), OTHER_DISK, (QUIET, 1.0), (&|_| None, None));
    let [hold, gaps] = [BackgroundPace::Hold, BackgroundPace::Gaps];
    assert_eq!(paces(&worklist), [hold, gaps, hold, gaps]);
    assert_eq!(slice(&mut worklist, Nanos::from_secs(2), QUIET), [], "and not again");
    // The last eighth of the third one's time.
    slice(&mut worklist, hours(71), QUIET);
    assert_eq!(paces(&worklist), [hold, hold, gaps, gaps]);
    worklist.set(BackgroundQueue { is_paused: true, due: Some(hours(80)), ..queue(3) });
    worklist.reported(hours(71), &BackgroundReport { state: BackgroundState::Done, ..report(2, 1000.0, 0) });
    slice(&mut worklist, hours(71), QUIET);
    assert_eq!(paces(&worklist), [gaps, hold, hold, gaps]);
    worklist.remove(BackgroundId(1));
    slice(&mut worklist, hours(72), QUIET);
    assert_eq!(paces(&worklist), [hold, hold, gaps]);
}

#[test]
fn the_last_eighth_of_a_deadline_is_of_all_the_time_that_was_given_also_before_the_boot() {
    // A week was given six days and more before the boot; recordings of earlier versions do not say so.
    for (given, front) in [(Some(hours(168)), 1), (None, 2)] {
        let mut worklist = Worklist::default();
        let total_items = Some(8000.0);
        worklist.set(BackgroundQueue { due: Some(hours(20)), given, total_items, ..queue(1) });
        worklist.set(BackgroundQueue { priority: 9, total_items, ..queue(2) });
        slice(&mut worklist, Nanos::from_secs(1), QUIET);
        let runs = worklist.views(Nanos::ZERO).find(|view| view.order.pace != BackgroundPace::Hold);
        assert_eq!(runs.expect("one of both").queue.id, BackgroundId(front));
        // In the plan as well.
        let plan = worklist.plan(Nanos::from_secs(1), DISK, Span::Week, (&|_| None, None));
        let first = plan.payments.iter().min_by(|a, b| a.paid_seconds.partial_cmp(&b.paid_seconds).expect("numbers"));
        assert_eq!(first.expect("two queues").id.0, front);
    }
}

#[test]
fn what_was_measured_changes_the_plan() {
    let mut worklist = Worklist::default();
    worklist.set(queue(1));
    slice(&mut worklist, Nanos::from_secs(1), QUIET);
    // A thousand seconds of work in four fifths of the time.
    assert_eq!(paid_seconds(&worklist, Nanos::from_secs(1)), Some(3601.0), "as was assumed");
    // It takes fifty times as long, and gets half of what others leave.
    let mut learnt = Vec::new();
    for second in 2..62 {
        worklist.reported(
            Nanos::from_secs(second),
            &BackgroundReport { ran: Nanos::from_millis(250), ..report(1, (second - 1) as f64 * 0.005, 0) },
        );
        learnt.extend(slice(&mut worklist, Nanos::from_secs(second), BUSY));
    }
    let view = worklist.views(Nanos::ZERO).next().expect("the queue");
    assert!((view.cost.seconds_per_item - 50.0).abs() < 1.0, "{:?}", view.cost);
    let paid = paid_seconds(&worklist, Nanos::from_secs(62)).expect("within a week");
    // 50,000 s at a quarter of the time are 55.6 hours.
    assert!((54.0..58.0).contains(&(paid / 3600.0)), "{paid}");
    assert!(learnt.iter().any(|effect| matches!(effect, Effect::BackgroundLearnt { .. })), "{learnt:?}");
}

/// A scrub ends its chunk at a twentieth of the time.
#[test]
fn what_runs_beside_others_at_a_limit_though_it_is_to_have_gaps_says_nothing_of_gaps() {
    let paid = |is_beside_others| {
        let mut worklist = Worklist::default();
        worklist.set(queue(1));
        for second in 1..120 {
            let now = Nanos::from_secs(second);
            let ran = Nanos::from_millis(50);
            worklist.reported(now, &BackgroundReport { ran, is_beside_others, ..report(1, 0.05 * second as f64, 0) });
            slice(&mut worklist, now, BUSY);
            assert_eq!(worklist.takes_from_others(BackgroundId(1)), is_beside_others);
        }
        paid_seconds(&worklist, Nanos::from_secs(120)).expect("within a week")
    };
    let (beside, in_gaps) = (paid(true), paid(false));
    assert!(in_gaps > 4.0 * beside, "{in_gaps} {beside}");
}

#[test]
fn where_gaps_would_not_do_in_time_work_gets_a_part_of_the_disk_and_what_others_lose_is_learnt() {
    let mut worklist = Worklist::default();
    worklist.set(BackgroundQueue { due: Some(hours(2)), total_items: Some(3000.0), ..queue(1) });
    // Others leave a tenth of the time.
    let busy = Foreground { busy: 0.9, bytes_per_second: 9e6, requests_per_second: 200.0, ..BUSY };
    for second in 1..60 {
        slice(&mut worklist, Nanos::from_secs(second), busy);
    }
    // The plan of the first second knew nothing of the others; an hour later it is made anew.
    let late = hours(1) + Nanos::from_secs(2);
    slice(&mut worklist, late, busy);
    let Some(BackgroundPace::Share(permille)) = paces(&worklist).first().copied() else {
        panic!("{:?}", paces(&worklist));
    };
    assert!((300..=500).contains(&permille), "{permille}: others keep half");
    for second in 1..40 {
        let now = late + Nanos::from_secs(second);
        worklist.reported(
            now,
            &BackgroundReport {
                ran: Nanos::from_millis(500),
                total_items: Some(3000.0),
                ..report(1, second as f64 * 0.5, 0)
            },
        );
        slice(&mut worklist, now, Foreground { requests_per_second: 120.0, ..busy });
    }
    let slow_down = worklist.views(Nanos::ZERO).next().and_then(|view| view.cost.slow_down).expect("measured");
    // Two fifths of the requests lost beside work that runs for half of the time.
    assert!((0.7..0.9).contains(&slow_down), "{slow_down}");
}

/// Thousandths of the disk's time in the first hour and at most, and what the plan cannot keep.
fn shape(plan: &Plan) -> (f64, f64, usize) {
    let most = plan.slots.iter().map(|slot| slot.background_cores).fold(0.0, f64::max);
    (plan.slots.first().map_or(0.0, |slot| slot.background_cores.round()), most.round(), plan.alarms.len())
}

#[test]
fn what_work_was_measured_to_cost_others_changes_the_plan() {
    let busy = Foreground { busy: 1.0, bytes_per_second: 9e6, requests_per_second: 200.0, ..BUSY };
    // Due after a day: others leave nothing for twelve hours, then half of the time.
    let forecast = |seconds: f64| Some(if seconds < 12.0 * 3600.0 { 9e6 } else { 4.5e6 });
    let plan_with = |items, slow_down| {
        let mut worklist = Worklist::default();
        let cost = BackgroundCost { slow_down, ..queue(1).cost };
        worklist.set(BackgroundQueue { due: Some(hours(24)), total_items: Some(items), cost, ..queue(1) });
        let mut effects = Vec::new();
        for second in 1..60 {
            effects.extend(worklist.slice(Nanos::from_secs(second), DISK, (busy, 1.0), (&forecast, None)));
        }
        let late = Nanos::from_secs(3605);
        let later = |seconds: f64| forecast(seconds + late.as_secs_f64());
        effects.extend(worklist.slice(late, DISK, (busy, 1.0), (&later, None)));
        let in_force = worklist.plan(late, DISK, Span::Day, (&later, None));
        let told = effects.iter().any(|effect| matches!(effect, Effect::Found(_)));
        (shape(&in_force), told, paces(&worklist)[0])
    };
    // Nothing was measured: a second of it is taken to cost others a second, and half of the time may be taken.
    let before = plan_with(25_000.0, None);
    // A second of it costs them two of theirs: a quarter may be taken, so more of it is done while they are busy most.
    let after = plan_with(25_000.0, Some(2.0));
    let ((first, most, 0), false, BackgroundPace::Gaps) = before else { panic!("{before:?}") };
    // It is taken from now on, because later a quarter of the time would not make up for it; half would, and could wait.
    let ((first_after, most_after, 0), false, BackgroundPace::Share(250)) = after else { panic!("{after:?}") };
    assert!(most > most_after && most_after <= 400.0 && first_after > first, "{before:?} {after:?}");
    // What could be done in half of the time and not in a quarter is told; and what costs others five of theirs takes a tenth.
    assert!(matches!(plan_with(32_000.0, None), ((_, _, 0), false, _)), "{:?}", plan_with(32_000.0, None));
    let (_, is_told, pace) = plan_with(32_000.0, Some(2.0));
    assert_eq!((is_told, pace), (true, BackgroundPace::Share(250)));
    assert_eq!(plan_with(32_000.0, Some(5.0)).2, BackgroundPace::Share(100));
}

#[test]
fn against_others_goes_first_what_costs_them_least() {
    let mut worklist = Worklist::default();
    let cost = |slow_down| BackgroundCost { slow_down: Some(slow_down), ..queue(1).cost };
    for (id, slow_down) in [(1, 3.0), (2, 0.2)] {
        let due = Some(hours(3));
        worklist.set(BackgroundQueue { due, total_items: Some(2_500.0), cost: cost(slow_down), ..queue(id) });
    }
    slice(&mut worklist, Nanos::from_secs(1), QUIET);
    assert_eq!(paces(&worklist), [BackgroundPace::Gaps, BackgroundPace::Hold], "in gaps others lose nothing");
    let busy = Foreground { busy: 1.0, bytes_per_second: 9e6, requests_per_second: 200.0, ..BUSY };
    for second in 2..60 {
        slice(&mut worklist, Nanos::from_secs(second), busy);
    }
    slice(&mut worklist, hours(1) + Nanos::from_secs(2), busy);
    let [BackgroundPace::Hold, BackgroundPace::Share(_)] = paces(&worklist)[..] else {
        panic!("{:?}", paces(&worklist))
    };
}

#[test]
fn what_would_not_hold_is_told_once_with_when() {
    let mut worklist = Worklist::default();
    worklist.set(BackgroundQueue { due: Some(hours(3)), total_items: Some(100_000.0), ..queue(1) });
    let told = |effects: Vec<Effect>| {
        let found = effects.into_iter().filter_map(|effect| match effect {
            Effect::Found(finding) => Some((finding.kind, finding.message)),
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    let first = told(slice(&mut worklist, Nanos::from_secs(1), QUIET));
    let [(FindingKind::Oversubscribed, message)] = &first[..] else { panic!("{first:?}") };
    assert!(
        message.contains("queue-1 misses its deadline") && message.contains("add a disk or move load"),
        "{message}"
    );
    assert_eq!(told(slice(&mut worklist, hours(1) + Nanos::from_secs(5), QUIET)), []);
    assert!(worklist.is_oversubscribed(DISK), "it stands");
    worklist.set(BackgroundQueue { due: Some(hours(3_000)), total_items: Some(100_000.0), ..queue(1) });
    assert_eq!(told(slice(&mut worklist, hours(1) + Nanos::from_secs(6), QUIET)), []);
    assert!(!worklist.is_oversubscribed(DISK), "a later deadline holds");
    worklist.set(BackgroundQueue { due: Some(hours(3)), total_items: Some(100_000.0), ..queue(1) });
    assert_eq!(told(slice(&mut worklist, hours(1) + Nanos::from_secs(7), QUIET)).len(), 1);
    worklist.remove(BackgroundId(1));
    assert!(!worklist.is_oversubscribed(DISK), "of work that is gone nothing is late");
}

#[test]
fn a_queue_that_lies_or_hangs_holds_up_nobody() {
    let mut worklist = Worklist::default();
    worklist.set(BackgroundQueue { priority: 9, ..queue(1) });
    worklist.set(queue(2));
    for (second, done) in (1..).zip([f64::NAN, -5.0, 1e300, 3.0, f64::INFINITY, 0.0]) {
        worklist.reported(Nanos::from_secs(second), &report(1, done, 1));
        slice(&mut worklist, Nanos::from_secs(second), BUSY);
        let view = worklist.views(Nanos::ZERO).next().expect("the queue");
        assert!(view.left_seconds.is_finite() && view.left_seconds >= 0.0, "{done}: {view:?}");
    }
    assert_eq!(paces(&worklist), [BackgroundPace::Gaps, BackgroundPace::Hold]);
    worklist.reported(Nanos::from_secs(40), &report(2, 0.0, 0));
    slice(&mut worklist, Nanos::from_secs(40), QUIET);
    assert_eq!(paces(&worklist), [BackgroundPace::Hold, BackgroundPace::Gaps], "the first has said nothing for 34 s");
}

#[test]
fn one_that_runs_and_gets_nowhere_goes_last_and_takes_nothing_from_others_until_it_gets_on() {
    let mut worklist = Worklist::default();
    // More than gaps give in time, so that it gets a part of the disk against others.
    worklist.set(BackgroundQueue { due: Some(hours(4)), priority: 9, total_items: Some(10_000.0), ..queue(1) });
    worklist.set(queue(2));
    let busy = Foreground { busy: 1.0, ..BUSY };
    let mut second = 0;
    // It runs for a tenth of them.
    let mut minutes = |worklist: &mut Worklist, count: u64, items: f64| {
        for _ in 0..count * 60 {
            second += 1;
            let now = Nanos::from_secs(second);
            let ran = Nanos::from_millis(100);
            let total_items = Some(10_000.0);
            worklist.reported(now, &BackgroundReport { ran, total_items, ..report(1, items, 0) });
            worklist.reported(now, &BackgroundReport { state: BackgroundState::Waiting, ..report(2, 0.0, 0) });
            slice(worklist, now, busy);
        }
        let hung: Vec<bool> = worklist.views(Nanos::from_secs(second)).map(|view| view.is_hung).collect();
        (hung, paces(worklist))
    };
    let (hung, before) = minutes(&mut worklist, 90, 5.0);
    assert_eq!(hung, [false, false]);
    assert!(matches!(before[0], BackgroundPace::Share(1..)) && before[1] == BackgroundPace::Hold, "{before:?}");
    let (hung, after) = minutes(&mut worklist, 20, 5.0);
    let expected = vec![BackgroundPace::Hold, BackgroundPace::Gaps];
    assert_eq!((hung, after), (vec![true, false], expected), "the other goes first, and needs nothing of others'");
    worklist.remove(BackgroundId(2));
    let (_, alone) = minutes(&mut worklist, 1, 5.0);
    assert_eq!(alone, [BackgroundPace::Gaps], "it may go on where that costs nobody anything");
    let (hung, _) = minutes(&mut worklist, 1, 6.0);
    assert_eq!(hung, [false], "it got on");
}

#[test]
fn a_command_whose_processes_do_nothing_for_ten_minutes_goes_last_and_one_that_does_anything_does_not() {
    let mut worklist = Worklist::default();
    worklist.set(BackgroundQueue { priority: 9, total_items: None, ..queue(1) });
    worklist.set(queue(2));
    let mut second = 0;
    let mut minutes = |worklist: &mut Worklist, count: u64, gets_on: bool| {
        for _ in 0..count * 60 {
            second += 1;
            let now = Nanos::from_secs(second);
            // Of a command its seconds are all that is counted, so that it always seems to get on by its items.
            let command = BackgroundReport { total_items: None, gets_on: Some(gets_on), ..report(1, second as f64, 1) };
            worklist.reported(now, &command);
            worklist.reported(now, &BackgroundReport { state: BackgroundState::Waiting, ..report(2, 0.0, 0) });
            slice(worklist, now, QUIET);
        }
        (worklist.views(Nanos::from_secs(second)).next().is_some_and(|view| view.is_hung), paces(worklist))
    };
    let [hold, gaps] = [BackgroundPace::Hold, BackgroundPace::Gaps];
    assert_eq!(minutes(&mut worklist, 30, true), (false, vec![gaps, hold]));
    assert_eq!(minutes(&mut worklist, 9, false), (false, vec![gaps, hold]), "it may wait for something");
    assert_eq!(minutes(&mut worklist, 2, false), (true, vec![hold, gaps]), "the other goes first");
    worklist.remove(BackgroundId(2));
    assert_eq!(minutes(&mut worklist, 1, false), (true, vec![gaps]), "it is not stopped for it");
    assert_eq!(minutes(&mut worklist, 1, true), (false, vec![gaps]), "it does something");
}
