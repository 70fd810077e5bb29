//! What is known of jobs, and when it is worth nothing any more.

use super::*;

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
