//! Who is told a cap, when that is told anew, and whose word counts.

use super::*;

/// Whether each of tenants 1, 2, ... is told a cap.
fn are_capped<const COUNT: usize>(rule: &Rule) -> [bool; COUNT] {
    std::array::from_fn(|index| {
        let place = rule.places.get(&(DISK, TenantId(index as u64 + 1)));
        place.and_then(QueuePosition::waits_with).is_some()
    })
}

/// In how many of so many slices the second job is told a cap, where a disk delivers 3,000 bytes a second, of which the first has 200 whatever the
/// others do, and the second all others unless it has a cap.
fn beside_a_slow_first(rule: &mut Rule, slices: u64) -> usize {
    let capped = (1..=slices).filter(|second| {
        let [_, is_capped] = are_capped(rule);
        let (busy_permille, other) = if is_capped { (120, 150) } else { (1000, 2_800) };
        slice(rule, *second, busy_permille, &[200, other]);
        is_capped
    });
    capped.count()
}

#[test]
fn a_first_job_that_is_as_fast_without_caps_leaves_the_disk_to_the_others() {
    let run = |caps_are_tried| {
        let mut rule = rule(&[("a", Some(20_000_000)), ("b", Some(600_000_000))]);
        rule.settings.caps_are_tried = caps_are_tried;
        beside_a_slow_first(&mut rule, 90)
    };
    assert_eq!(run(true), 6, "until that is found, and for two tries");
    assert_eq!(run(false), 84, "as in recordings of earlier versions");
}

#[test]
fn a_first_job_that_is_slower_without_caps_keeps_them() {
    let mut rule = rule(&[("a", Some(20_000_000)), ("b", Some(600_000_000))]);
    let mut capped = 0;
    for second in 1..=70 {
        let [_, is_capped] = are_capped(&rule);
        capped += usize::from(is_capped);
        // It computes for a moment after each request, and its requests wait for others'.
        if is_capped {
            slice(&mut rule, second, 700, &[140, 10])
        } else {
            slice(&mut rule, second, 1000, &[70, 130])
        };
    }
    assert!(capped >= 64, "all but the first slice and the tries: {capped}");
}

#[test]
fn a_first_job_that_needs_the_disk_again_has_caps_again() {
    let mut rule = rule(&[("a", Some(20_000_000)), ("b", Some(600_000_000))]);
    assert!(beside_a_slow_first(&mut rule, 20) < 8 && !are_capped::<2>(&rule)[1]);
    // From now on it reads as fast as it can, beside the other half of the disk.
    let mut when = Vec::new();
    for second in 21..40 {
        let [_, is_capped] = are_capped(&rule);
        when.extend(is_capped.then_some(second));
        let bytes = if is_capped { [2_850, 150] } else { [1_500, 1_500] };
        slice(&mut rule, second, 1000, &bytes);
    }
    assert!(when.len() >= 12 && when.last() == Some(&39), "{when:?}");
}

#[test]
fn one_that_read_fast_and_computes_beside_a_line_of_its_log_each_second_holds_up_nobody() {
    let run = |caps_are_tried| {
        let mut rule = rule(&[("a", Some(20_000_000)), ("b", Some(600_000_000)), ("c", Some(900_000_000))]);
        rule.settings.caps_are_tried = caps_are_tried;
        let (mut capped, mut is_ahead) = (0, 0);
        for second in 1..=620 {
            let [_, second_is_capped, third_is_capped] = are_capped(&rule);
            capped += usize::from(second_is_capped);
            is_ahead += usize::from(third_is_capped && !second_is_capped);
            let first = if second <= 20 { 2_800 } else { 4 };
            let second_has = if second_is_capped { 75 } else { 3_000 - first };
            let third_has = if third_is_capped { 75 } else { 3_000 - first };
            let busy = (first + second_has + third_has) * 1000 / 3_000;
            slice(&mut rule, second, busy.min(1000) as u32, &[first, second_has, third_has]);
        }
        (capped, is_ahead)
    };
    let (capped, is_ahead) = run(true);
    assert_eq!((capped, is_ahead), (20, 599), "the next is ahead with it");
    assert_eq!(run(false), (598, 0), "as in recordings of earlier versions");
}

#[test]
fn little_that_is_all_a_disk_that_seeks_gives_is_not_computing() {
    let mut rule = rule(&[("a", Some(20_000_000)), ("b", Some(600_000_000))]);
    slice(&mut rule, 1, 1000, &[1_000, 1_000]);
    let row = |read_bytes, disk_time| IoSignals {
        tenant: TenantId(1),
        device: DISK,
        elapsed: Nanos::SECOND,
        transferred: IoCounters { read_bytes, ..IoCounters::default() },
        latency: None,
        served: None,
        disk_time,
        active: true,
    };
    let computes = |read_bytes, milliseconds| {
        let io = vec![row(read_bytes, Nanos::from_millis(milliseconds))];
        rule.computes(DISK, TenantId(1), &Signals { io, ..Signals::default() })
    };
    assert_eq!([computes(50, 60), computes(50, 600), computes(60, 60)], [true, false, false]);
    assert!(rule.computes(DISK, TenantId(1), &Signals::default()), "nothing at all");
}

#[test]
fn the_part_of_one_that_waits_is_told_anew_when_jobs_come_or_go_behind_it_and_not_in_recordings_of_earlier_versions() {
    for caps_are_told in [true, false] {
        let sizes: Vec<(String, Option<u64>)> = (1..=20).map(|size| (format!("t{size}"), Some(size << 30))).collect();
        let mut rule = rule(&sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect::<Vec<_>>());
        rule.settings.caps_are_told = caps_are_told;
        slice(&mut rule, 1, 1000, &[1000; 20]);
        slice(&mut rule, 2, 1000, &[1000; 20]);
        let state = |rule: &Rule| {
            let position = rule.places[&(DISK, TenantId(2))];
            (rule.mark_at(&position, false), position.waits_with().unwrap_or(0.0))
        };
        let (mark, part) = state(&rule);
        slice(&mut rule, 3, 1000, &[1000; 20]);
        assert_eq!(state(&rule), (mark, part), "nothing is told anew");
        (3..=20).for_each(|tenant| drop(rule.tenant_gone(TenantId(tenant))));
        slice(&mut rule, 4, 1000, &[1000; 2]);
        let (later, of_two) = state(&rule);
        assert!((of_two - 10.0 * part).abs() < 1e-9, "{part} {of_two}");
        assert_eq!(later != mark, caps_are_told);
        let marks: BTreeSet<u8> = (0..=126)
            .flat_map(|told| [true, false].map(|let_on| (told, let_on)))
            .map(|(told, let_on)| rule.mark_at(&QueuePosition { told, ..rule.places[&(DISK, TenantId(2))] }, let_on))
            .collect();
        assert_eq!(marks.len(), if caps_are_told { 254 } else { 1 });
    }
}

#[test]
fn an_excluded_tenant_is_no_job_and_nobody_is_capped_for_it() {
    for excluded_are_no_jobs in [true, false] {
        let mut rule = rule(&[("a", Some(1 << 40)), ("b", Some(1 << 30)), ("c", Some(1 << 50))]);
        rule.settings.excluded_are_no_jobs = excluded_are_no_jobs;
        let bytes = [1 << 20; 3];
        slice(&mut rule, 1, 1000, &bytes);
        assert_eq!(are_capped(&rule), [true, false, true]);
        rule.tenant_seen(&Tenant { excluded: true, ..tenant(3, "c") });
        let places = slice(&mut rule, 2, 1000, &bytes);
        let expected = if excluded_are_no_jobs { [false; 3] } else { [true, false, true] };
        assert_eq!((are_capped(&rule), places[2].is_none()), (expected, excluded_are_no_jobs));
        assert_eq!(
            rule.views(Nanos::from_secs(2), &Outlook::default()).len(),
            if excluded_are_no_jobs { 2 } else { 3 }
        );
        rule.declared(TenantId(3), job("c", 50));
        assert_eq!(slice(&mut rule, 3, 1000, &bytes)[2].is_none(), excluded_are_no_jobs, "nor by its own word");
        rule.tenant_seen(&tenant(3, "c"));
        assert!(slice(&mut rule, 4, 1000, &bytes)[2].is_some(), "it is steered again");
    }
}

#[test]
fn the_size_in_a_rule_that_changed_is_believed_after_one_that_was_wrong() {
    for changed_rules_are_believed in [true, false] {
        let mut rule = Rule::default();
        rule.settings.changed_rules_are_believed = changed_rules_are_believed;
        rule.tenant_seen(&Tenant { job: job("sort", 1), ..tenant(1, "one") });
        slice(&mut rule, 1, 1000, &[10_000]);
        assert!(rule.named.is_overrun(TenantId(1)));
        rule.tenant_seen(&Tenant { job: job("sort", 1_000_000), ..tenant(1, "one") });
        slice(&mut rule, 2, 1000, &[10_000]);
        let of_file = rule.views(Nanos::from_secs(2), &Outlook::default())[0].disks[0].basis;
        assert_eq!(of_file == "its declared size", changed_rules_are_believed, "{of_file}");
        // Whoever says so itself is not believed for what the operator says of another.
        rule.declared(TenantId(1), job("tiny", 1));
        slice(&mut rule, 3, 1000, &[10_000]);
        rule.tenant_seen(&Tenant { job: job("sort", 2_000_000), ..tenant(1, "one") });
        assert!(rule.named.is_overrun(TenantId(1)));
    }
}

#[test]
fn the_reason_of_a_job_that_waits_tells_of_its_cap() {
    let reason = |second: Option<u64>, cap_jobs, caps_are_told| {
        let mut rule = rule(&[("a", Some(1 << 40)), ("b", second)]);
        rule.cap_jobs = cap_jobs;
        rule.settings.caps_are_told = caps_are_told;
        slice(&mut rule, 1, 1000, &[1 << 20, 1 << 10]);
        let shown = rule.views(Nanos::from_secs(1), &Outlook::default());
        let [first, waits] = [1, 0].map(|job: usize| shown[job].disks[0].reason.clone());
        assert!(!first.contains("it keeps"), "{first}");
        waits.split_once("; it keeps ").map(|(_, told)| told.to_owned())
    };
    let told = |text: &str| Some(text.to_owned());
    assert_eq!(reason(Some(1 << 30), true, true), told("5.0 % of the disk's time, by a cap too"));
    assert_eq!(reason(None, true, true), told("12.5 % of the disk's time, by a cap where no weight acts"));
    assert_eq!(reason(Some(1 << 30), false, true), told("5.0 % of the disk's time"));
    assert_eq!(reason(Some(1 << 30), true, false), None, "as in recordings of earlier versions");
}
