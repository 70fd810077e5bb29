mod caps;
mod fading;

use super::*;
use crate::compose::{DecideInput, SharePolicy};
use crate::shortest_first::{Basis, FLOOR};
use minerva_model::{CgroupRef, DeviceSignals, IoCounters, Origin, Outlook, TenantKind, Terms};
use std::collections::BTreeSet;

fn tenant(number: u64, name: &str) -> Tenant {
    Tenant {
        id: TenantId(number),
        name: name.to_owned(),
        kind: TenantKind::Named,
        cgroup: CgroupRef { path: name.to_owned(), inode: number },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin::default(),
    }
}

fn job(name: &str, bytes: u64) -> Option<JobSettings> {
    Some(JobSettings { name: name.to_owned(), bytes: Some(bytes) })
}

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

fn rule(jobs: &[(&str, Option<u64>)]) -> Rule {
    let job = |(name, bytes): &(&str, Option<u64>)| {
        ((*name).to_owned(), JobSettings { name: (*name).to_owned(), bytes: *bytes })
    };
    let mut rule = Rule::default();
    rule.configure(&MakespanSettings { jobs: jobs.iter().map(job).collect(), ..MakespanSettings::default() }, true);
    jobs.iter().zip(1..).for_each(|((name, _), number)| rule.tenant_seen(&tenant(number, name)));
    rule
}

/// A slice in which tenants 1, 2, ... read so many bytes; the places of those that have one.
fn slice(rule: &mut Rule, second: u64, busy_permille: u32, bytes: &[u64]) -> Vec<Option<usize>> {
    let row = |(read_bytes, number): (&u64, u64)| IoSignals {
        tenant: TenantId(number),
        device: DISK,
        elapsed: Nanos::SECOND,
        transferred: IoCounters { read_bytes: *read_bytes, ..IoCounters::default() },
        latency: None,
        served: None,
        disk_time: Nanos::ZERO,
        active: *read_bytes > 0,
    };
    let device = DeviceSignals {
        device: DISK,
        elapsed: Nanos::SECOND,
        transferred: IoCounters::default(),
        busy_permille,
        read_latency: None,
        write_latency: None,
        contention: 0,
        unattributed_bytes: 0,
        flushes: 0,
    };
    let signals = Signals { io: bytes.iter().zip(1..).map(row).collect(), devices: vec![device], ..Signals::default() };
    rule.slice(Nanos::from_secs(second), &DecideInput { signals: &signals, outlook: Outlook::default() });
    let place = |number| rule.places.get(&(DISK, TenantId(number))).map(|place| place.place);
    (1..=bytes.len() as u64).map(place).collect()
}

#[test]
fn nobody_is_held_back_while_the_disk_is_not_short_or_one_job_is_alone() {
    let mut rule = rule(&[("a", Some(1_000)), ("b", Some(100))]);
    assert_eq!(slice(&mut rule, 1, 1000, &[10, 10]), [Some(1), Some(0)]);
    assert_eq!(slice(&mut rule, 2, 700, &[10, 10]), [Some(1), Some(0)], "one slice says little");
    assert_eq!(slice(&mut rule, 3, 700, &[10, 10]), [None, None]);
    assert_eq!(slice(&mut rule, 4, 1000, &[10, 10]), [Some(1), Some(0)]);
    let later: Vec<_> = (5..9).map(|second| slice(&mut rule, second, 1000, &[10, 0])).collect();
    assert_eq!(later[3], [None, None], "the other computes, and holds up nobody");
}

#[test]
fn who_goes_first_and_who_waits_each_name_who_pays_for_whom() {
    let sizes: Vec<(String, Option<u64>)> = (1..=6).map(|size| (format!("t{size}"), Some(size << 20))).collect();
    let mut rule = rule(&sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect::<Vec<_>>());
    slice(&mut rule, 1, 1000, &[1000; 6]);
    let reason = |tenant: u64| rule.explain((DISK, TenantId(tenant)), &rule.places[&(DISK, TenantId(tenant))]);
    assert!(reason(1).contains("paid for by t2, t3, t4 and 2 more"), "{}", reason(1));
    assert!(reason(6).contains("it pays for t1"), "{}", reason(6));
}

#[test]
fn a_job_whose_cgroup_outlives_its_run_ends_after_a_long_rest_and_the_next_run_is_another() {
    let ends = |ends_after_rest| {
        let mut rule = Rule::default();
        rule.settings.ends_after_rest = ends_after_rest;
        rule.tenant_seen(&Tenant { job: job("backup", 800), ..tenant(1, "service") });
        rule.tenant_seen(&tenant(2, "by itself"));
        rule.declared(TenantId(2), job("sort", 800));
        let mut runs = Vec::new();
        // Three nights, ten hours apart, and it rests for a few minutes in the middle of each.
        for night in 0..3 {
            for second in (0..400).chain(700..1000) {
                let bytes = if second % 200 < 100 { 2 } else { 0 };
                slice(&mut rule, 36_000 * night + second, 1000, &[bytes, bytes]);
            }
            slice(&mut rule, 36_000 * night + 2000, 1000, &[0, 0]);
            runs.extend(rule.take_rested().into_iter().map(|run| (run.name.clone(), run.bytes())));
        }
        let view = rule.views(Nanos::from_secs(90_000), &Outlook::default());
        (runs, view[0].is_overrun, view[1].is_overrun)
    };
    let run = || ("backup".to_owned(), 600);
    assert_eq!(ends(true), (vec![run(), run(), run()], false, true), "who says itself when it ends has not ended");
    assert_eq!(ends(false), (Vec::new(), true, true), "as in recordings of earlier versions");
}

#[test]
fn one_that_is_done_or_computes_holds_up_nobody() {
    let mut rule = rule(&[("a", Some(310)), ("b", Some(1_000)), ("c", Some(2_000))]);
    let ahead = |rule: &Rule| -> Vec<u64> {
        let of = rule.places.iter().filter(|(_, position)| position.is_ahead());
        of.map(|((_, tenant), _)| tenant.0).collect()
    };
    slice(&mut rule, 1, 1000, &[100, 100, 100]);
    assert_eq!(ahead(&rule), [1], "two seconds of work");
    slice(&mut rule, 2, 1000, &[150, 50, 50]);
    assert_eq!(ahead(&rule), [1, 2], "it will be done within the slice");
    slice(&mut rule, 3, 1000, &[50, 100, 50]);
    assert_eq!(ahead(&rule), [1, 2], "it is nearly done");
    slice(&mut rule, 4, 1000, &[0, 100, 50]);
    assert_eq!(ahead(&rule), [1, 2], "it rests");
    let reason = |tenant: u64| rule.explain((DISK, TenantId(tenant)), &rule.places[&(DISK, TenantId(tenant))]);
    assert!(reason(1).contains("it rests, and holds up nobody"), "{}", reason(1));
    assert!(reason(2).contains("ahead too"), "{}", reason(2));
    assert!(reason(3).contains("it pays for a and b"), "{}", reason(3));
    rule.settings.payers_are_named = false;
    let reason = rule.explain((DISK, TenantId(3)), &rule.places[&(DISK, TenantId(3))]);
    assert!(reason.contains("it pays for the first"), "as in recordings of earlier versions: {reason}");
    slice(&mut rule, 5, 1000, &[0, 100, 50]);
    slice(&mut rule, 6, 1000, &[0, 100, 50]);
    assert_eq!(ahead(&rule), [2], "it is gone");
}

#[test]
fn one_that_had_all_that_it_needs_and_rests_is_done_unless_it_goes_on() {
    let mut rule = rule(&[("a", Some(200)), ("b", Some(1_000)), ("c", Some(2_000))]);
    assert_eq!(slice(&mut rule, 1, 1000, &[100, 100, 100]), [Some(0), Some(1), Some(2)]);
    assert_eq!(slice(&mut rule, 2, 1000, &[100, 50, 50]), [Some(0), Some(1), Some(2)]);
    assert_eq!(slice(&mut rule, 3, 1000, &[0, 100, 50]), [None, Some(0), Some(1)]);
    assert!(rule.places[&(DISK, TenantId(2))].leads(), "it has all that the first had");
    assert_eq!(slice(&mut rule, 4, 1000, &[5, 100, 50]), [Some(0), Some(1), Some(2)], "it needs a little more");
}

#[test]
fn a_jobs_own_rate_counts_once_it_went_first_for_a_while_and_no_job_is_slow_before() {
    for (in_order, after_a_slice) in [(true, Some(0)), (false, Some(1))] {
        let mut rule = rule(&[("a", Some(1_000)), ("b", Some(5_000))]);
        rule.settings.in_order_within_slices = in_order;
        assert_eq!(slice(&mut rule, 1, 1000, &[10, 100])[0], Some(0));
        // The first slice in which it goes first: the other's turn had not ended.
        assert_eq!(slice(&mut rule, 2, 1000, &[2, 190])[0], after_a_slice, "{in_order}");
        assert_eq!(slice(&mut rule, 3, 1000, &[2, 190])[0], Some(1), "it stays slow, so it is, {in_order}");
    }
}

#[test]
fn a_job_that_was_alone_for_a_week_has_not_waited_and_one_that_is_held_back_has() {
    for waiting_ages in [true, false] {
        let mut rule = rule(&[("a", None), ("b", Some(600))]);
        rule.settings.waiting_ages = waiting_ages;
        let week = 7 * 86_400;
        (0..week / 500).for_each(|slices| drop(slice(&mut rule, slices * 500, 1000, &[10])));
        let places = slice(&mut rule, week, 1000, &[10, 10]);
        // What it had in more than a thousand slices counts, unless its age does.
        assert_eq!(places, if waiting_ages { [Some(1), Some(0)] } else { [Some(0), Some(1)] }, "{waiting_ages}");
        (1..=5).for_each(|second| drop(slice(&mut rule, week + second, 1000, &[10, 10])));
        let waited = |tenant| rule.running[&(DISK, TenantId(tenant))].waited;
        let behind = if waiting_ages { 1 } else { 2 };
        assert_eq!((waited(behind), waited(3 - behind)), (Nanos::from_secs(6), Nanos::ZERO), "{waiting_ages}");
        // The first rests for a slice, in which the other goes first, and is gone for one.
        slice(&mut rule, week + 6, 1000, if behind == 1 { &[10, 0] } else { &[0, 10] });
        assert_eq!(rule.running[&(DISK, TenantId(behind))].waited, Nanos::from_secs(5), "{waiting_ages}");
    }
}

#[test]
fn long_jobs_do_not_go_first_in_turns() {
    for waiting_ages in [true, false] {
        // At a byte a second by what each does alone.
        let mut rule = rule(&[("a", Some(19_000)), ("b", Some(20_000))]);
        rule.settings.waiting_ages = waiting_ages;
        let mut first = Vec::new();
        for second in 1..=3_000 {
            // The disk is not busy now and then, so that nobody is held back for a slice.
            let busy_permille = if second % 100 < 4 { 500 } else { 1000 };
            let bytes = match first.last() {
                Some(0) => [9, 1],
                Some(_) => [1, 9],
                None => [5, 5],
            };
            let places = slice(&mut rule, second, busy_permille, &bytes);
            first.extend(places.iter().position(|place| *place == Some(0)));
        }
        let changes = first.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= if waiting_ages { 3 } else { 12 }, "{waiting_ages}: {changes}");
    }
}

#[test]
fn who_is_held_back_is_neither_slow_nor_gone_but_in_recordings_of_earlier_versions() {
    let jobs = [("a", Some(2_000)), ("b", Some(1_900)), ("c", Some(3_000))];
    for (waiting_counts, first, later) in [(true, [1, 0, 2], Some(1)), (false, [0, 2, 1], None)] {
        let mut rule = rule(&jobs);
        rule.settings.waiting_counts = waiting_counts;
        // What each had of the first half slice is chance.
        assert_eq!(slice(&mut rule, 1, 1000, &[100, 50, 100]), first.map(Some), "{waiting_counts}");
        slice(&mut rule, 2, 1000, &[1, 180, 1]);
        slice(&mut rule, 3, 1000, &[0, 180, 0]);
        slice(&mut rule, 4, 1000, &[0, 180, 0]);
        let places = slice(&mut rule, 5, 1000, &[0, 180, 0]);
        assert_eq!(places[0], later, "its next turn comes within 3.75 s, {waiting_counts}");
        let rests = |tenant| rule.places.get(&(DISK, TenantId(tenant))).is_some_and(|position| position.rests);
        assert!(!rests(1) && !rests(3), "{waiting_counts}");
    }
}

#[test]
fn a_name_is_known_by_its_runs_and_forgotten_runs_are_bounded() {
    let mut rule = rule(&[("a", None), ("b", None)]);
    assert_eq!(slice(&mut rule, 1, 1000, &[500, 100]), [Some(1), Some(0)], "who has had least");
    rule.tenant_gone(TenantId(1));
    rule.tenant_seen(&tenant(1, "a"));
    slice(&mut rule, 2, 1000, &[50, 600]);
    let known = rule.places[&(DISK, TenantId(1))].remaining;
    assert_eq!((known.basis, known.seconds), (Basis::History, 0.75), "at the other's rate, until it has gone first");
    for number in 0..2 * runs::NAMES_MAX {
        rule.runs.learn(&format!("run {number}"), None, 1.0, &[]);
    }
    assert_eq!(rule.known_jobs().count(), runs::NAMES_MAX);
}

#[test]
fn a_job_whose_settings_changed_begins_anew_and_who_is_no_job_has_no_place() {
    let mut rule = rule(&[("a", Some(1_000)), ("b", Some(500))]);
    assert_eq!(slice(&mut rule, 1, 1000, &[900, 10, 10]), [Some(0), Some(1), None]);
    let jobs = [("a", 5_000), ("b", 500)]
        .map(|(name, bytes)| (name.to_owned(), JobSettings { name: name.to_owned(), bytes: Some(bytes) }));
    rule.configure(&MakespanSettings { jobs: jobs.into_iter().collect(), ..MakespanSettings::default() }, true);
    assert_eq!(rule.running.len(), 1);
    rule.configure(&MakespanSettings::default(), true);
    assert_eq!(slice(&mut rule, 2, 1000, &[900, 10, 10]), [None, None, None]);
    assert!(rule.running.is_empty() && rule.known_jobs().count() == 0, "parts of runs teach nothing");
}

#[test]
fn tenants_are_jobs_by_their_own_word_and_by_a_rule_and_the_word_counts_for_more() {
    let mut rule = Rule::default();
    rule.tenant_seen(&Tenant { job: job("sort", 5_000), ..tenant(1, "one") });
    rule.tenant_seen(&tenant(2, "two"));
    assert_eq!(rule.declared(TenantId(2), job("count", 100)), None);
    assert_eq!(rule.declared(TenantId(9), job("count", 100)), None, "nobody has this number");
    assert_eq!(slice(&mut rule, 1, 1000, &[10, 10, 10]), [Some(1), Some(0), None]);
    assert_eq!(
        rule.declared(TenantId(1), job("sort", 50)).map(|run| (run.bytes(), run.name)),
        Some((10, "sort".to_owned()))
    );
    assert_eq!(slice(&mut rule, 2, 1000, &[10, 10]), [Some(0), Some(1)]);
    let shown = rule.views(Nanos::from_secs(2), &Outlook::default());
    let of: Vec<_> =
        shown.iter().map(|view| (view.is_declared, view.disks[0].order, view.disks[0].attained_bytes)).collect();
    assert_eq!(of, [(true, Some((1, 2)), 10), (true, Some((2, 2)), 20)]);
    let run = rule.tenant_gone(TenantId(2)).expect("a run");
    assert_eq!((run.name.as_str(), run.device, run.bytes(), run.declared_bytes), ("count", DISK, 20, Some(100)));
    assert_eq!(rule.declared(TenantId(1), None).map(|run| run.bytes()), Some(10));
    assert_eq!(rule.job(TenantId(1)).and_then(|job| job.bytes), Some(5_000), "the rule holds on");
    let known: Vec<_> = rule.known_jobs().map(|known| (known.name, known.runs)).collect();
    assert_eq!(known, [("count".to_owned(), 1), ("sort".to_owned(), 2)]);
}

#[test]
fn who_declares_a_byte_and_reads_a_terabyte_is_not_believed_again_and_people_are_told() {
    let mut rule = Rule::default();
    rule.tenant_seen(&tenant(1, "liar"));
    rule.tenant_seen(&tenant(2, "honest"));
    rule.declared(TenantId(1), job("tiny", 1));
    rule.declared(TenantId(2), job("sort", 60_000_000));
    assert_eq!(slice(&mut rule, 1, 1000, &[10_000_000, 10_000_000])[0], Some(0), "half done, at best");
    let shown = rule.views(Nanos::from_secs(1), &Outlook::default());
    assert!(shown[0].is_overrun && !shown[1].is_overrun);
    let reason = &shown[0].disks[0].reason;
    assert!(reason.contains("declared were 1 bytes, 10000000 are done"), "{reason}");
    // Again and again, each slice.
    for second in 2..20 {
        rule.declared(TenantId(1), None);
        rule.declared(TenantId(1), job(&format!("tiny-{second}"), 1));
        let places = slice(&mut rule, second, 1000, &[10_000_000, 1_000_000]);
        let shown = rule.views(Nanos::from_secs(second), &Outlook::default());
        assert_eq!((shown[0].is_overrun, shown[0].disks[0].basis), (true, "what it has had so far"));
        assert_eq!(places[0], Some(usize::from(second > 4)), "as if it had declared once, slice {second}");
    }
}

#[test]
fn how_long_a_job_is_said_to_need_is_what_its_reason_says() {
    let mut rule = rule(&[("a", Some(100 << 20)), ("b", Some(400 << 20))]);
    for second in 1..4 {
        slice(&mut rule, second, 1000, &[10 << 20, 2 << 20]);
        let shown = rule.views(Nanos::from_secs(second), &Outlook::default());
        for disk in shown.iter().map(|job| &job.disks[0]) {
            let told = format!(": {} s left by its declared size", disk.remaining_seconds.round());
            assert!(disk.order.is_some() && disk.reason.contains(&told), "{second}: {told} {}", disk.reason);
        }
    }
}

#[test]
fn only_among_jobs_one_that_waits_may_be_capped() {
    let mut rule = rule(&[("a", Some(1 << 40)), ("b", Some(1 << 30)), ("c", Some(1 << 50))]);
    rule.tenant_seen(&tenant(4, "no job"));
    let waits_with = |rule: &Rule, number| rule.places[&(DISK, TenantId(number))].waits_with();
    slice(&mut rule, 1, 1000, &[1 << 20, 1 << 20, 1 << 20]);
    assert_eq!([1, 2, 3].map(|number| waits_with(&rule, number).is_some()), [true, false, true]);
    // A tenth of an equal part each.
    assert!(waits_with(&rule, 1).is_some_and(|part| (part - 0.1 / 3.0).abs() < 1e-9));
    slice(&mut rule, 2, 1000, &[1 << 20, 1 << 20, 1 << 20, 1 << 20]);
    assert_eq!([1, 2, 3].map(|number| waits_with(&rule, number)), [None; 3], "another tenant uses the disk");
}

#[test]
fn a_turn_is_known_where_the_sizes_are_on_which_it_depends() {
    let known = |of_second| {
        let mut rule = rule(&[("a", Some(1 << 40)), ("b", of_second), ("c", Some(1 << 50))]);
        slice(&mut rule, 1, 1000, &[1 << 20, 1 << 10, 1 << 20]);
        [1, 2, 3].map(|number| rule.places[&(DISK, TenantId(number))].turn_is_known())
    };
    // The second goes first; which sizes count beside its own, the tests of `shortest_first` show.
    assert_eq!(known(Some(1 << 30)), [true, false, true]);
    assert_eq!(known(None), [false; 3]);
}

#[test]
fn that_a_turn_is_no_longer_known_is_told_also_where_the_share_stays_and_not_in_recordings_of_earlier_versions() {
    let mut rule = rule(&[("a", Some(1 << 40)), ("b", Some(1 << 30))]);
    slice(&mut rule, 1, 1000, &[1 << 20, 1 << 20]);
    let waits = rule.places[&(DISK, TenantId(1))];
    let states = [waits, QueuePosition { part: Some(FLOOR), ..waits }, QueuePosition { alone: false, ..waits }];
    for (turns_are_told, told, marks) in [(true, [true, false, false], 3), (false, [false; 3], 2)] {
        rule.settings.turns_are_told = turns_are_told;
        rule.settings.caps_are_told = false;
        assert_eq!(states.map(|state| rule.tells_turn(&state)), told);
        let different: BTreeSet<u8> = states.iter().map(|state| rule.mark_at(state, false)).collect();
        assert_eq!(different.len(), marks);
    }
}

#[test]
fn runs_that_are_recalled_order_jobs_without_sizes() {
    let mut rule = rule(&[("a", None), ("b", None)]);
    rule.recalled("a", &[0, 9_000, 9_000], &[]);
    rule.recalled("b", &[2_000], &[]);
    assert_eq!(slice(&mut rule, 1, 1000, &[100, 100]), [Some(1), Some(0)]);
    assert_eq!(rule.places[&(DISK, TenantId(1))].remaining.basis, Basis::History);
    assert_eq!(rule.known_jobs().map(|known| known.runs).collect::<Vec<_>>(), [2, 1]);
}
