//! What is learnt of work and of space from reports: what its items cost, and by how much a file system grows.

mod quiet;

use minerva_background::{Span, Worklist};
use minerva_model::{
    BackgroundCost, BackgroundHold, BackgroundId, BackgroundQueue, BackgroundReport, BackgroundSettings,
    BackgroundState, DeviceId, Nanos,
};
use quiet::QUIET;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const GIB: u64 = 1 << 30;
const DAY_SECONDS: u64 = 86_400;

fn deletion() -> BackgroundQueue {
    BackgroundQueue {
        id: BackgroundId(1),
        name: "rm".to_owned(),
        device: DISK,
        cgroup: "minerva/background-b1".to_owned(),
        priority: 0,
        added: Nanos::ZERO,
        due: Some(Nanos::from_secs(30 * DAY_SECONDS)),
        given: None,
        is_paused: false,
        hold: BackgroundHold::Stop,
        cost: BackgroundCost { seconds_per_item: 0.001, measured_seconds: 0.0, slow_down: None },
        done_items: 0.0,
        total_items: None,
    }
}

fn report(done_items: f64, gets_on: bool, ran: Nanos) -> BackgroundReport {
    BackgroundReport {
        id: BackgroundId(1),
        state: BackgroundState::Running,
        done_items,
        total_items: None,
        tied_bytes: 0.0,
        ran,
        used_bytes: 0,
        size_bytes: 0,
        file_system: None,
        processors: None,
        gets_on: Some(gets_on),
        is_beside_others: false,
        ran_beside: Nanos::ZERO,
        beside: None,
    }
}

fn worklist(settings: BackgroundSettings) -> Worklist {
    let mut worklist = Worklist::default();
    worklist.configure(settings);
    worklist.set(deletion());
    worklist
}

/// Seconds an item, after ten minutes of counting and seconds in each of which so many items are done.
fn learnt(settings: BackgroundSettings, items_a_second: &[f64]) -> f64 {
    let mut worklist = worklist(settings);
    for second in 1..=600 {
        // It says so after every 64 entries, and now and then there are fewer in a second.
        let counts = report(0.0, second % 7 > 0, Nanos::SECOND);
        worklist.reported(Nanos::from_secs(second), &counts);
    }
    let mut done = 0.0;
    for (second, items) in (601..).zip(items_a_second) {
        done += items;
        worklist.reported(Nanos::from_secs(second), &report(done, *items > 0.0, Nanos::SECOND));
    }
    worklist.views(Nanos::from_secs(700)).next().map_or(0.0, |view| view.cost.seconds_per_item)
}

#[test]
fn the_time_that_a_tree_is_counted_is_not_what_deleting_an_entry_costs() {
    let close = |seconds: f64, expected: f64| (seconds / expected - 1.0).abs() < 0.01;
    let default = BackgroundSettings::default();
    assert!(close(learnt(default, &[700.0]), 1.0 / 700.0), "{}", learnt(default, &[700.0]));
    // What does nothing for a while as it deletes costs that time.
    let slow = learnt(default, &[700.0, 0.0, 0.0, 0.0, 700.0]);
    assert!(close(slow, 5.0 / 1400.0), "{slow}");
    let before = BackgroundSettings { looking_costs_nothing: false, ..default };
    assert!(learnt(before, &[700.0]) > 0.8, "as in recordings of earlier versions");
}

/// A scrub on a disk of 100 MB/s that is cancelled after each four seconds, within a chunk of ten.
#[test]
fn work_that_is_begun_again_and_again_costs_what_all_of_it_takes() {
    let cost = |settings, gaps: u64| {
        let mut worklist = worklist(settings);
        let mut now = 0;
        for _ in 0..gaps {
            for second in 0..=4_u32 {
                now += 1;
                let ran = if second == 0 { Nanos::ZERO } else { Nanos::SECOND };
                worklist.reported(Nanos::from_secs(now), &report(100.0 * f64::from(second), true, ran));
            }
        }
        worklist.views(Nanos::from_secs(now)).next().map_or(0.0, |view| view.cost.seconds_per_item)
    };
    let default = BackgroundSettings::default();
    assert!((cost(default, 1) / 0.01 - 1.0).abs() < 0.01, "{}", cost(default, 1));
    assert!(cost(default, 10) > 0.05 && cost(default, 100) > cost(default, 10), "{}", cost(default, 10));
    let before = BackgroundSettings { what_is_lost_counts: false, ..default };
    assert!((cost(before, 10) / 0.01 - 1.0).abs() < 0.01, "as in recordings of earlier versions");
}

/// Whether space has run out within a month from any of these hours, as reports of each minute say what is in use, and what is tied.
fn has_a_date(settings: BackgroundSettings, gib: u64, minutes: impl Iterator<Item = BackgroundReport>) -> bool {
    let mut worklist = worklist(settings);
    let mut has_date = false;
    for (minute, report) in (1..).zip(minutes) {
        let now = Nanos::from_secs(minute * 60);
        let report = BackgroundReport { size_bytes: gib * GIB, file_system: Some(7), ..report };
        worklist.reported(now, &report);
        worklist.slice(now, DISK, (QUIET, 60.0), (&|_| None, None));
        let date = worklist.space_date(now, DISK, Span::Month, (&|_| None, None));
        has_date |= minute % 60 == 0 && date.likely_seconds.is_some();
    }
    has_date
}

fn gross() -> BackgroundSettings {
    BackgroundSettings { growth_is_net: false, ..BackgroundSettings::default() }
}

#[test]
fn use_that_goes_up_and_down_all_day_is_no_growth() {
    // Two gigabytes of temporary files are made in ten minutes, and deleted.
    let minutes = |growth_a_day: f64| {
        (0..1440_u64).map(move |minute| BackgroundReport {
            used_bytes: 50 * GIB + minute % 10 * 200_000_000 + (growth_a_day * minute as f64 / 1440.0) as u64,
            ..report(0.0, true, Nanos::ZERO)
        })
    };
    assert!(has_a_date(gross(), 400, minutes(0.0)), "as in recordings of earlier versions");
    assert!(!has_a_date(BackgroundSettings::default(), 400, minutes(0.0)));
    assert!(has_a_date(BackgroundSettings::default(), 400, minutes(20e9)), "what grows beside it is seen");
}

#[test]
fn what_a_file_system_gives_back_later_and_what_a_worker_has_yet_to_look_at_is_no_growth() {
    let tied = |gib: u64| (gib * GIB) as f64;
    // Ten minutes of deleting, which a btrfs gives back two minutes later.
    let later = || {
        (1..180_u64).map(|minute| BackgroundReport {
            tied_bytes: tied(40 - 4 * minute.min(10)),
            used_bytes: (80 - 4 * minute.saturating_sub(2).min(10)) * GIB,
            ..report(minute.min(10) as f64, true, Nanos::ZERO)
        })
    };
    assert!(has_a_date(gross(), 100, later()), "as in recordings of earlier versions");
    assert!(!has_a_date(BackgroundSettings::default(), 100, later()));
    // A worker that begins anew once an hour has looked at nothing for a minute.
    let anew = || {
        (0..720_u64).map(|minute| BackgroundReport {
            tied_bytes: if minute % 60 == 0 { 0.0 } else { tied(30) },
            used_bytes: 80 * GIB,
            ..report(0.0, minute % 60 > 0, Nanos::ZERO)
        })
    };
    assert!(has_a_date(gross(), 100, anew()), "as in recordings of earlier versions");
    assert!(!has_a_date(BackgroundSettings::default(), 100, anew()));
}
