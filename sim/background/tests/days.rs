//! What the simulator's days hold to, whatever the policy.

use minerva_sim_background::{Forecaster, Load, Pattern, Policy, Second, Server, run, score, synthetic};

const DAY: usize = 86_400;

fn first_days(days: usize) -> Load {
    let mut load = synthetic(Pattern::Office, 7);
    load.seconds.truncate(days * DAY);
    load
}

/// A load of one rate, so that what comes of it can be reckoned by hand.
fn constant(ops: f64, written_blocks: f64, seconds: usize) -> Load {
    let second = Second { ops, written_blocks };
    Load { bins: vec![second; 3 * 1008], first_bin: 1008, seconds: vec![second; seconds] }
}

#[test]
fn what_fits_is_not_violated_and_what_does_not_waits() {
    let server = Server::published(1e9);
    let fits = run(&constant(3_200.0, 0.0, 600), server, Policy::Floor, Forecaster::None, 1.0);
    assert_eq!((fits.violation_share, fits.queued_share), (0.0, 0.0));
    let over = run(&constant(4_000.0, 0.0, 600), server, Policy::Floor, Forecaster::None, 1.0);
    assert!(over.violation_share == 1.0 && (over.queued_share - 0.2).abs() < 1e-9, "{over:?}");
}

#[test]
fn every_written_block_is_debt_once_or_twice_and_paid_or_owed() {
    // 100 blocks a second, half a day: overwrites at once, snapshots each hour, nobody pays below 40 %.
    let server = Server::published(100.0 * DAY as f64);
    let outcome = run(&constant(300.0, 100.0, DAY / 4), server, Policy::Fixed, Forecaster::None, 1.0);
    assert!((outcome.debt_share_end - 0.25).abs() < 1e-9, "a quarter of what a day defers: {}", outcome.debt_share_end);
    let used = outcome.hours.last().expect("hours").used_share;
    assert!((used - 0.25 * 0.05 / 1.95).abs() < 1e-9, "{used}");
    assert_eq!(outcome.violation_share, 0.0);
}

#[test]
fn the_pool_never_runs_full_whatever_the_forecast_says() {
    let load = first_days(2);
    let server = Server::for_load(&load);
    for (forecaster, factor) in [
        (Forecaster::DayClusters, 1.0),
        (Forecaster::DayClusters, 0.7),
        (Forecaster::DayClusters, 1.3),
        (Forecaster::None, 1.0),
    ] {
        let outcome = run(&load, server, Policy::Ours, forecaster, factor);
        assert_eq!(outcome.full_seconds, 0, "{forecaster:?} x{factor}: {}", outcome.fill_share_max);
    }
}

#[test]
fn ours_violates_less_than_the_published_policies_on_the_same_load() {
    let load = first_days(6);
    let server = Server::for_load(&load);
    let share = |policy| run(&load, server, policy, Forecaster::DayClusters, 1.0).violation_share;
    let (fixed, published, ours, floor) =
        (share(Policy::Fixed), share(Policy::Published), share(Policy::Ours), share(Policy::Floor));
    assert!(floor <= ours && ours < published && published < fixed, "{floor} {ours} {published} {fixed}");
}

#[test]
fn a_pool_that_will_be_full_is_told_before_it_is() {
    // A tenth of what is written stays: the pool of a day's debt is full in a few days, whoever pays.
    let mut server = Server::published(200.0 * DAY as f64);
    server.unique_share = 0.6;
    let outcome = run(&constant(600.0, 200.0, 3 * DAY), server, Policy::Ours, Forecaster::Perfect, 1.0);
    let (raised, date) = outcome.first_alarm.expect("an alarm");
    assert!(raised < 3600.0, "at once: {raised}");
    let full = server.capacity_blocks * 0.95 / (200.0 * 0.6);
    assert!(date <= full && date > 0.8 * full, "{date} of {full}");
}

#[test]
fn runs_repeat_and_a_perfect_forecaster_does_not_err() {
    let load = first_days(1);
    let server = Server::for_load(&load);
    let once = || run(&load, server, Policy::Ours, Forecaster::DayClusters, 1.0);
    assert_eq!(once(), once());
    let load = first_days(3);
    assert_eq!(score(&load, server, Forecaster::Perfect).smape_percent(), 0.0);
    assert_eq!(score(&load, server, Forecaster::None).count(), 0.0);
}
