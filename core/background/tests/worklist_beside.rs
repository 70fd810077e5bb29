//! Work beside others: what it takes is no gap that they leave, who goes before them, and what gets on in gaps alone.

mod quiet;

use minerva_background::{Foreground, Span, Worklist};
use minerva_model::{
    BackgroundBeside, BackgroundCost, BackgroundHold, BackgroundId, BackgroundPace, BackgroundQueue, BackgroundReport,
    BackgroundState, DeviceId, Effect, Nanos,
};
use quiet::QUIET;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
/// A reader that never pauses.
const READER: Foreground = Foreground { busy: 1.0, bytes_per_second: 1e7, requests_per_second: 200.0, ..QUIET };
const STRETCHES: Option<BackgroundBeside> = Some(BackgroundBeside::Stretches);
const LIMIT: Option<BackgroundBeside> = Some(BackgroundBeside::Limit);
const NOTHING: Option<BackgroundBeside> = Some(BackgroundBeside::Nothing);

fn queue(id: u32, due_seconds: u64) -> BackgroundQueue {
    BackgroundQueue {
        id: BackgroundId(id),
        name: format!("queue-{id}"),
        device: DISK,
        cgroup: format!("minerva/background-b{id}"),
        priority: 0,
        added: Nanos::ZERO,
        due: Some(Nanos::from_secs(due_seconds)),
        given: None,
        is_paused: false,
        hold: BackgroundHold::Stop,
        cost: BackgroundCost { seconds_per_item: 1.0, measured_seconds: 60.0, slow_down: None },
        done_items: 0.0,
        total_items: Some(5000.0),
    }
}

fn report(id: u32, done_items: f64, beside: Option<BackgroundBeside>) -> BackgroundReport {
    BackgroundReport {
        id: BackgroundId(id),
        state: BackgroundState::Running,
        done_items,
        total_items: Some(5000.0),
        tied_bytes: 0.0,
        ran: Nanos::ZERO,
        used_bytes: 0,
        size_bytes: 0,
        file_system: None,
        processors: None,
        gets_on: None,
        is_beside_others: false,
        ran_beside: Nanos::ZERO,
        beside,
    }
}

fn slice(worklist: &mut Worklist, second: u64, foreground: Foreground) -> Vec<Effect> {
    worklist.slice(Nanos::from_secs(second), DISK, (foreground, 1.0), (&|_| None, None))
}

fn paces(worklist: &Worklist) -> Vec<BackgroundPace> {
    worklist.views(Nanos::ZERO).map(|view| view.order.pace).collect()
}

/// Thousandths of the disk's time that the foreground is expected to take after two hours, in which work had a share of it, beside others or in
/// their gaps.
fn expected_after(is_beside: bool) -> f64 {
    let mut worklist = Worklist::default();
    worklist.set(queue(1, 4 * 3600));
    let (mut done, mut shared) = (0.0, 0);
    for second in 1..7200 {
        let permille = match paces(&worklist)[..] {
            [BackgroundPace::Share(permille)] => permille,
            _ => 0,
        };
        let part = f64::from(permille) / 1000.0;
        (done, shared) = (done + part, shared + u32::from(permille > 0));
        let ran = Nanos::from_millis(permille.into());
        let ran_beside = if is_beside { ran } else { Nanos::ZERO };
        let now = Nanos::from_secs(second);
        let report = BackgroundReport { total_items: Some(6000.0), ran, ran_beside, ..report(1, done, STRETCHES) };
        worklist.reported(now, &report);
        // A second of it costs them nine tenths of theirs.
        let left = 1.0 - 0.9 * part;
        let slowed = Foreground {
            busy: left,
            bytes_per_second: left * READER.bytes_per_second,
            requests_per_second: left * READER.requests_per_second,
            ..READER
        };
        slice(&mut worklist, second, slowed);
    }
    assert!(shared > 1800, "{shared}");
    let plan = worklist.plan(Nanos::from_secs(7200), DISK, Span::Day, (&|_| None, None));
    plan.slots.last().map_or(0.0, |slot| slot.foreground_cores)
}

#[test]
fn what_work_takes_from_a_reader_that_never_pauses_is_not_planned_as_a_gap() {
    let (beside, in_gaps) = (expected_after(true), expected_after(false));
    assert!(beside > 950.0, "{beside}");
    assert!(in_gaps < 850.0, "what ran while they paused took nothing from them: {in_gaps}");
}

/// What is told of a queue that is late by gaps alone, which says that it can run so beside others; its pace, why, and what its plan takes.
fn late(beside: Option<BackgroundBeside>) -> (BackgroundPace, String, f64, Vec<String>) {
    let mut worklist = Worklist::default();
    worklist.set(queue(1, 3 * 3600));
    let mut told = Vec::new();
    for second in 1..1200 {
        worklist.reported(Nanos::from_secs(second), &report(1, 0.0, beside));
        told.extend(slice(&mut worklist, second, READER));
    }
    let plan = worklist.plan(Nanos::from_secs(1200), DISK, Span::Day, (&|_| None, None));
    let found = told.into_iter().filter_map(|effect| match effect {
        Effect::Found(finding) => Some(finding.message),
        _ => None,
    });
    let found = found.collect();
    let stolen = plan.slots.iter().map(|slot| slot.stolen_cores).sum();
    let Some(view) = worklist.views(Nanos::ZERO).next() else {
        return (BackgroundPace::Hold, String::new(), 0.0, found);
    };
    (view.order.pace, view.order.reason.clone(), stolen, found)
}

#[test]
fn work_that_would_begin_again_after_each_stretch_takes_nothing_from_others_and_says_so() {
    let (pace, _, stolen, _) = late(STRETCHES);
    assert!(matches!(pace, BackgroundPace::Share(_)) && stolen > 1000.0, "{pace:?} {stolen}");
    let (pace, why, stolen, told) = late(NOTHING);
    assert!(pace == BackgroundPace::Gaps && stolen < 1.0, "{pace:?} {stolen}");
    assert!(why.contains("takes no time from others, however late it is"), "{why}");
    let [message] = &told[..] else { panic!("{told:?}") };
    assert!(message.contains("even with every gap queue-1 misses its deadline"), "{message}");
}

#[test]
fn work_that_gets_on_in_gaps_alone_holds_up_none_that_takes_time_from_others_and_that_takes_none_for_it() {
    let paces_beside = |items, busy| {
        let mut worklist = Worklist::default();
        worklist.set(BackgroundQueue { priority: 9, ..queue(1, 3 * 3600) });
        worklist.set(BackgroundQueue { total_items: Some(items), ..queue(2, 4 * 3600) });
        for second in 1..1200 {
            let now = Nanos::from_secs(second);
            worklist.reported(now, &report(1, 0.0, NOTHING));
            worklist.reported(now, &BackgroundReport { total_items: Some(items), ..report(2, 0.0, STRETCHES) });
            slice(&mut worklist, second, Foreground { busy, ..READER });
        }
        paces(&worklist)
    };
    let late = paces_beside(5000.0, 1.0);
    assert!(matches!(late[..], [BackgroundPace::Hold, BackgroundPace::Share(_)]), "{late:?}");
    let in_time = paces_beside(50.0, 0.7);
    assert_eq!(in_time, [BackgroundPace::Gaps, BackgroundPace::Hold], "the first alone is late, and goes first");
}

#[test]
fn who_can_be_limited_goes_before_nobody_from_the_first_slice_on_and_who_cannot_any_more_does() {
    let mut worklist = Worklist::default();
    worklist.set(queue(1, 4 * 3600));
    let mut second = 0;
    let mut goes_after = |beside, is_beside_others| {
        for _ in 0..700 {
            second += 1;
            let now = Nanos::from_secs(second);
            worklist.reported(now, &BackgroundReport { is_beside_others, ..report(1, 0.0, beside) });
            slice(&mut worklist, second, READER);
            let has_share = matches!(paces(&worklist)[..], [BackgroundPace::Share(_)]);
            let goes = worklist.goes_before_others(BackgroundId(1));
            assert!(!goes || (has_share && beside != LIMIT), "{second}");
        }
        assert!(matches!(paces(&worklist)[..], [BackgroundPace::Share(_)]));
        worklist.goes_before_others(BackgroundId(1))
    };
    assert!(!goes_after(LIMIT, false));
    assert!(!goes_after(LIMIT, true));
    assert!(goes_after(STRETCHES, false));
    assert!(!goes_after(None, false), "as in recordings of earlier versions, in which it was limited once");
}
