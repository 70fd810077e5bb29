//! What is no slip: estimates that come, and others that go first from now on.

use minerva_background::{Foreground, Worklist};
use minerva_model::{
    BackgroundCost, BackgroundHold, BackgroundId, BackgroundPace, BackgroundQueue, BackgroundReport,
    BackgroundSettings, BackgroundState, DeviceId, Nanos,
};

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const HOUR: u64 = 3600;

fn queue(id: u32, priority: u8, seconds: Option<f64>) -> BackgroundQueue {
    BackgroundQueue {
        id: BackgroundId(id),
        name: format!("queue-{id}"),
        device: DISK,
        cgroup: format!("minerva/background-b{id}"),
        priority,
        added: Nanos::ZERO,
        due: Some(Nanos::from_secs(100 * HOUR)),
        given: None,
        is_paused: false,
        hold: BackgroundHold::Stop,
        cost: BackgroundCost { seconds_per_item: 1.0, measured_seconds: 60.0, slow_down: None },
        done_items: 0.0,
        total_items: seconds,
    }
}

/// Minute by minute for three hours beside others who take half of the disk's time; of what they leave four fifths are used. `now` says in
/// each minute how many seconds of work each of the queues is large, and how many bytes the last one ties. By how many seconds the end of
/// each moved, and which part of the time that it has left is not planned with.
fn after_three_hours(
    settings: BackgroundSettings,
    queues: &[BackgroundQueue],
    now: impl Fn(u64) -> (Vec<Option<f64>>, f64),
) -> Vec<(f64, f64)> {
    let mut worklist = Worklist::default();
    worklist.configure(settings);
    queues.iter().for_each(|queue| worklist.set(queue.clone()));
    let mut done = vec![0.0; queues.len()];
    for minute in 1..3 * 60 {
        let (sizes, tied_bytes) = now(minute);
        let instant = Nanos::from_secs(60 * minute);
        let runs: Vec<bool> = worklist.views(instant).map(|view| view.order.pace != BackgroundPace::Hold).collect();
        for (at, (queue, total_items)) in queues.iter().zip(sizes).enumerate() {
            let ran = if runs[at] { 24.0 } else { 0.0 };
            done[at] += ran;
            let tied_bytes = if at + 1 == queues.len() { tied_bytes } else { 0.0 };
            worklist.reported(instant, &report(queue.id, (done[at], total_items), ran, tied_bytes));
        }
        let foreground =
            Foreground { busy: 0.5, bytes_per_second: 5e6, requests_per_second: 100.0, ..Foreground::default() };
        worklist.slice(instant, DISK, (foreground, 60.0), (&|_| None, None));
    }
    let end = Nanos::from_secs(3 * HOUR);
    let part = |left: Nanos, planned: Nanos| 1.0 - planned.as_secs_f64() / left.as_secs_f64();
    let views = worklist.views(end);
    views.map(|view| (view.slipped_seconds, part(view.due.since(end), view.planned_due.since(end)))).collect()
}

fn report(
    id: BackgroundId,
    (done_items, total_items): (f64, Option<f64>),
    ran: f64,
    tied_bytes: f64,
) -> BackgroundReport {
    BackgroundReport {
        id,
        state: BackgroundState::Waiting,
        done_items,
        total_items,
        tied_bytes,
        ran: Nanos((ran * 1e9) as u64),
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

fn before() -> BackgroundSettings {
    BackgroundSettings { compares_like_ends: false, ..BackgroundSettings::default() }
}

#[test]
fn a_queue_that_says_how_large_it_is_has_not_slipped_nor_has_what_waits_for_it() {
    let queues = [queue(1, 5, None), queue(2, 0, Some(3600.0))];
    // The first finds after 90 minutes that it has thirty hours to do.
    let sizes = |minute: u64| (vec![(minute > 90).then_some(30.0 * 3600.0), Some(3600.0)], 0.0);
    let slipped = after_three_hours(before(), &queues, sizes);
    assert!(slipped.iter().all(|(seconds, part)| *seconds > 30.0 * 3600.0 && *part > 0.7), "{slipped:?}");
    let slipped = after_three_hours(BackgroundSettings::default(), &queues, sizes);
    assert!(slipped.iter().all(|(seconds, part)| seconds.abs() < 300.0 && *part < 0.02), "{slipped:?}");
}

#[test]
fn a_queue_before_which_another_goes_from_now_on_has_not_slipped() {
    let queues = [queue(1, 0, Some(5.0 * 3600.0)), queue(2, 0, Some(30.0 * 3600.0))];
    // The second, which is large, ties much after 90 minutes, and so goes first.
    let sizes = |minute: u64| (vec![Some(5.0 * 3600.0), Some(30.0 * 3600.0)], if minute > 90 { 1e15 } else { 0.0 });
    let first = |settings| after_three_hours(settings, &queues, sizes).first().copied().unwrap_or_default();
    let slipped = first(before());
    assert!(slipped.0 > 30.0 * 3600.0 && slipped.1 > 0.7, "{slipped:?}");
    let slipped = first(BackgroundSettings::default());
    assert!(slipped.0.abs() < 300.0 && slipped.1 < 0.02, "{slipped:?}");
}

/// When 30,000 s of work are done that turn out to be two thirds more and are due in thirty hours, in hours. Others leave half of the time, of
/// which four fifths are used.
fn done_after_hours(settings: BackgroundSettings) -> f64 {
    let mut worklist = Worklist::default();
    worklist.configure(settings);
    let due = Some(Nanos::from_secs(30 * HOUR));
    worklist.set(BackgroundQueue { due, ..queue(1, 0, Some(30_000.0)) });
    let (mut done, mut ran, mut second) = (0.0, 0.4, 0);
    while done < 30_000.0 + 0.4 * done && second < 100 * HOUR {
        second += 1;
        done += ran;
        let now = Nanos::from_secs(second);
        worklist.reported(now, &report(BackgroundId(1), (done, Some(30_000.0 + 0.4 * done)), ran, 0.0));
        let foreground =
            Foreground { busy: 0.5, bytes_per_second: 5e6, requests_per_second: 100.0, ..Foreground::default() };
        worklist.slice(now, DISK, (foreground, 1.0), (&|_| None, None));
        ran = match worklist.pace(BackgroundId(1)) {
            Some(BackgroundPace::Share(permille)) => 0.4 + f64::from(permille) / 1000.0,
            _ => 0.4,
        };
    }
    second as f64 / HOUR as f64
}

#[test]
fn what_is_taken_from_others_because_ends_moved_does_not_move_them() {
    let late = done_after_hours(BackgroundSettings { slips_count: false, ..BackgroundSettings::default() });
    let with = done_after_hours(BackgroundSettings::default());
    // Ends that swing with what is taken would not have it begun in time.
    assert!(
        late > 32.0 && with < 30.6 && with < done_after_hours(before()),
        "{late} {with} {}",
        done_after_hours(before())
    );
}
