//! What is known of jobs, and when it is worth nothing any more.

use super::*;
use minerva_model::UsageSignals;

#[test]
fn a_run_that_the_operator_cuts_teaches_nothing_and_the_next_one_does() {
    type Change = fn(&mut Rule);
    let changes: [Change; 3] = [
        |rule| rule.tenant_seen(&Tenant { job: job("sort", 7_000), ..tenant(1, "service") }),
        |rule| {
            rule.tenant_seen(&tenant(1, "service"));
            rule.tenant_seen(&Tenant { job: job("sort", 7_000), ..tenant(1, "service") });
        },
        |rule| {
            rule.tenant_seen(&Tenant { job: job("sort", 800), excluded: true, ..tenant(1, "service") });
            rule.tenant_seen(&Tenant { job: job("sort", 800), ..tenant(1, "service") });
        },
    ];
    for (change, parts_teach_nothing) in changes.iter().flat_map(|change| [(change, true), (change, false)]) {
        let mut rule = Rule::default();
        rule.settings.parts_teach_nothing = parts_teach_nothing;
        rule.tenant_seen(&Tenant { job: job("sort", 800), ..tenant(1, "service") });
        rule.recalled("sort", &[800], &[]);
        let known = |rule: &Rule| rule.known_jobs().map(|known| (known.runs, known.mean_bytes)).next();
        // Two nights. In the first the operator edits the file when half is done.
        (1..=4).for_each(|second| drop(slice(&mut rule, second, 1000, &[100])));
        change(&mut rule);
        (5..=8).for_each(|second| drop(slice(&mut rule, second, 1000, &[100])));
        slice(&mut rule, 1_000, 1000, &[0]);
        assert_eq!(known(&rule) == Some((1, 800.0)), parts_teach_nothing);
        assert_eq!(rule.take_rested().is_empty(), parts_teach_nothing, "nor is it kept");
        (2_001..=2_008).for_each(|second| drop(slice(&mut rule, second, 1000, &[100])));
        slice(&mut rule, 3_000, 1000, &[0]);
        assert_eq!(known(&rule) == Some((2, 800.0)), parts_teach_nothing);
    }
}

/// The tenant whose rule says this, as it is seen.
fn ruled(bytes: u64) -> Tenant {
    Tenant { job: job("sort", bytes), ..tenant(1, "service") }
}

/// What each run moved that ended by a rest so far.
fn rested(rule: &mut Rule) -> Vec<u64> {
    rule.take_rested().iter().map(JobRun::bytes).collect()
}

#[test]
fn a_rule_that_changes_once_the_work_is_done_costs_the_next_run_nothing() {
    type Change = fn(&mut Rule);
    let changes: [Change; 2] = [
        |rule| rule.tenant_seen(&ruled(800)),
        // Nobody is a job for a slice.
        |rule| {
            rule.tenant_seen(&tenant(1, "service"));
            slice(rule, 301, 1000, &[0]);
            rule.tenant_seen(&ruled(800));
        },
    ];
    for (change, whole_runs_teach) in changes.iter().flat_map(|change| [(change, true), (change, false)]) {
        let mut rule = Rule::default();
        rule.settings.whole_runs_teach = whole_runs_teach;
        rule.tenant_seen(&ruled(7_000));
        (1..=8).for_each(|second| drop(slice(&mut rule, second, 1000, &[100])));
        // Before ten minutes of rest are over.
        slice(&mut rule, 300, 1000, &[0]);
        change(&mut rule);
        slice(&mut rule, 302, 1000, &[0]);
        slice(&mut rule, 608, 1000, &[0]);
        assert!(rested(&mut rule).is_empty() && rule.known_jobs().count() == 0, "it was cut short");
        (90_001..=90_008).for_each(|second| drop(slice(&mut rule, second, 1000, &[100])));
        slice(&mut rule, 91_000, 1000, &[0]);
        let expected: &[u64] = if whole_runs_teach { &[800] } else { &[] };
        assert_eq!((rested(&mut rule).as_slice(), rule.known_jobs().count()), (expected, expected.len()));
    }
}

#[test]
fn a_job_that_computes_when_its_rule_changes_goes_on_with_a_part() {
    let mut rule = Rule::default();
    rule.tenant_seen(&ruled(7_000));
    (1..=4).for_each(|second| drop(slice(&mut rule, second, 1000, &[100])));
    rule.tenant_seen(&ruled(800));
    let usage = UsageSignals {
        tenant: TenantId(1),
        elapsed: Nanos::SECOND,
        cpu_ns: 500_000_000,
        memory_bytes: 0,
        network_bytes: None,
        open_files: 0,
        open_sockets: 0,
        open_file_bytes: 0,
        processes: 1,
        process_read_bytes: 0,
        process_write_bytes: 0,
    };
    let computes = Signals { usage: vec![usage], ..Signals::default() };
    for second in 5..=1_200 {
        rule.slice(Nanos::from_secs(second), &DecideInput { signals: &computes, outlook: Outlook::default() });
    }
    (1_201..=1_204).for_each(|second| drop(slice(&mut rule, second, 1000, &[100])));
    slice(&mut rule, 2_000, 1000, &[0]);
    assert_eq!((rested(&mut rule), rule.known_jobs().count()), (Vec::new(), 0));
}

#[test]
fn a_disk_that_goes_takes_nothing_from_a_run() {
    for whole_runs_teach in [true, false] {
        let mut rule = Rule::default();
        rule.settings.whole_runs_teach = whole_runs_teach;
        rule.tenant_seen(&ruled(800));
        rule.tenant_seen(&tenant(2, "by itself"));
        rule.declared(TenantId(2), job("copy", 800));
        // With the work done, as a snapshot is removed then, and in the middle of it, after which another disk has its number.
        for second in 1..=8 {
            slice(&mut rule, second, 1000, &[100, 100]);
        }
        rule.device_gone(DISK);
        let declared = rule.declared(TenantId(2), None).map(|run| (run.device, run.bytes()));
        assert_eq!(declared, whole_runs_teach.then_some((DISK, 800)));
        slice(&mut rule, 1_000, 1000, &[0]);
        for second in 2_001..=2_008 {
            slice(&mut rule, second, 1000, &[100]);
            if second == 2_004 {
                rule.device_gone(DISK);
            }
        }
        slice(&mut rule, 3_000, 1000, &[0]);
        let expected: &[u64] = if whole_runs_teach { &[800, 800] } else { &[] };
        assert_eq!(rested(&mut rule), expected, "{whole_runs_teach}");
        let known: Vec<f64> = rule.known_jobs().map(|known| known.mean_bytes).collect();
        assert_eq!(known.len(), if whole_runs_teach { 2 } else { 0 });
        assert!(known.iter().all(|bytes| *bytes == 800.0) && rule.left.is_empty());
    }
}

#[test]
fn jobs_of_one_tenant_one_after_the_other_do_not_add_up_for_days() {
    for knowledge_fades in [true, false] {
        let mut rule = Rule::default();
        rule.settings.knowledge_fades = knowledge_fades;
        rule.tenant_seen(&tenant(1, "one"));
        let mut past = 0;
        for number in 0..100 {
            let second = 1_800 * number;
            rule.declared(TenantId(1), job("sort", 3_000));
            slice(&mut rule, second + 1, 1000, &[3_000]);
            past = rule.named.past(TenantId(1));
            rule.declared(TenantId(1), None);
        }
        // Of 3,000 each half an hour.
        assert_eq!(past, if knowledge_fades { 999 } else { 99 * 3_000 });
    }
}

#[test]
fn jobs_that_end_often_do_not_put_off_that_they_are_forgotten() {
    let mut rule = Rule::default();
    rule.tenant_seen(&tenant(1, "one"));
    for second in 1..=3_600 {
        rule.declared(TenantId(1), job(if second % 2 == 0 { "a" } else { "b" }, 1));
        slice(&mut rule, second, 1000, &[1]);
    }
    assert!(rule.named.past(TenantId(1)) < 1_800, "{}", rule.named.past(TenantId(1)));
}

#[test]
fn a_rate_that_a_job_has_no_more_though_it_goes_first_is_forgotten_within_minutes() {
    for knowledge_fades in [true, false] {
        let mut rule = rule(&[("a", Some(10_000_000)), ("b", Some(20_000_000))]);
        rule.settings.knowledge_fades = knowledge_fades;
        let rate = |rule: &Rule, tenant| rule.running[&(DISK, TenantId(tenant))].bytes_per_second_max;
        (1..=3).for_each(|second| drop(slice(&mut rule, second, 1000, &[10_000, 1_000])));
        assert!(rule.running[&(DISK, TenantId(1))].has_led);
        (4..=303).for_each(|second| drop(slice(&mut rule, second, 1000, &[1_000, 100])));
        assert_eq!(rate(&rule, 1) < 1_100.0, knowledge_fades, "{}", rate(&rule, 1));
        assert_eq!(rate(&rule, 2), 1_000.0, "who is held back is not slow");
        // It computes, with a line of its log now and then.
        let before = rate(&rule, 1);
        (304..=603).for_each(|second| drop(slice(&mut rule, second, 1000, &[10, 100])));
        assert_eq!(rate(&rule, 1), before);
        rule.device_gone(DISK);
        assert_eq!((rule.running.is_empty(), rule.places.is_empty()), (knowledge_fades, knowledge_fades));
    }
}
