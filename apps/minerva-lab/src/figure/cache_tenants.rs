//! `minerva-lab figure cache-tenants`

use super::cache_loss::spread;
use super::{Line, drawn_seed, median};
use crate::cache_cli::{CROWD_FILES, CROWD_TENANTS, CacheTenantsArguments};
use crate::{binaries, signals};
use minerva_lab::figure::{
    CacheCrowdPlan, CacheCrowdResult, HOSTILE_OPENED, HostilePlan, HostileResult, HostileWindow, Hostility,
    cache_crowd, cache_hostile,
};
use minerva_lab::workload::{Latency, WorkerProgram};
use minerva_model::Nanos;
use std::time::Duration;

/// By how much a neighbour's p99 may be longer beside a hostile tenant, in percent.
const P99_PERCENT_MAX: f64 = 20.0;
/// So many rounds are asked for: fewer meet no goal.
const ROUNDS_MIN: usize = 3;

pub(super) fn run(arguments: &CacheTenantsArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let (service, pool) = (binaries::minerva_fs(&arguments.output)?, arguments.pool.clone());
    if arguments.rounds > 0 {
        let plan = HostilePlan {
            service: service.clone(),
            pool: pool.clone(),
            window: Nanos::from_secs(arguments.seconds.max(1)),
            rounds: arguments.rounds,
            seed: drawn_seed(arguments.seed),
        };
        let mut told = |hostility| eprintln!("a neighbour beside a tenant that {}", words(hostility));
        for result in cache_hostile(&plan, &WorkerProgram::own()?, &interrupted, &mut told)? {
            beside(&result).print(arguments.output.json)?;
        }
    }
    if !arguments.hostile_only {
        let plan = CacheCrowdPlan {
            service,
            pool,
            tenants: arguments.tenants,
            files: arguments.files,
            idle: Duration::from_secs(arguments.idle_seconds.max(1)),
        };
        let result = cache_crowd(&plan, &interrupted, &mut |what| eprintln!("{what}"))?;
        for line in crowd(&plan, &result) {
            line.print(arguments.output.json)?;
        }
    }
    Ok(())
}

const fn words(hostility: Hostility) -> &'static str {
    match hostility {
        Hostility::Fills => "fills its tree again and again",
        Hostility::Opens => "holds 100,000 files open",
        Hostility::Renames => "renames directories in circles",
        Hostility::Makes => "creates, stats and removes files",
    }
}

/// What a neighbour's p99 becomes, and what it is refused.
fn beside(result: &HostileResult) -> Line {
    let p99_us = |window: &HostileWindow| window.latency.quantile(0.99).unwrap_or_default().0 as f64 / 1e3;
    let longer = |which: usize| -> Vec<f64> {
        let pairs = result.windows.iter();
        pairs.map(|set| 100.0 * (p99_us(&set[which]) / p99_us(&set[0]).max(f64::MIN_POSITIVE) - 1.0)).collect()
    };
    let all = |which: usize| {
        let latency = Latency::merged(result.windows.iter().map(|set| &set[which].latency));
        latency.quantile(0.99).unwrap_or_default().0 as f64 / 1e3
    };
    let sum =
        |of: fn(&HostileWindow) -> u64, which: usize| -> u64 { result.windows.iter().map(|set| of(&set[which])).sum() };
    let (here, plain) = (longer(1), longer(2));
    let errors = sum(|window| window.errors, 1);
    let held: Vec<u64> = result.windows.iter().map(|set| set[1].held).collect();
    let is_hostile = result.windows.iter().all(|set| is_hostile(result.hostility, &set[1]));
    let idle = words_of_idle(sum(|window| window.idle, 1));
    let value = median(here.iter().copied());
    Line {
        id: "cache-tenants",
        value,
        unit: "% longer p99 of a neighbour",
        goal: format!(
            "less than {P99_PERCENT_MAX}, nothing refused to the neighbour, and each process of the other at work in each of \
             {ROUNDS_MIN} rounds"
        ),
        met: result.windows.len() >= ROUNDS_MIN && value < P99_PERCENT_MAX && errors == 0 && is_hostile,
        detail: format!(
            "beside a tenant that {}, eight processes, {} rounds: {} %; beside the same in plain memory {} %; p99 of \
             a file made, written, read and \
             removed {:.0} us alone, {:.0} and {:.0} beside; {errors} of {} refused to the neighbour, {} of {} acts to the other meanwhile{idle}{}",
            words(result.hostility),
            result.windows.len(),
            spread(&here),
            spread(&plain),
            all(0),
            all(1),
            all(2),
            sum(|window| window.latency.count(), 1),
            sum(|window| window.refused, 1),
            sum(|window| window.acts + window.refused, 1),
            match result.hostility {
                Hostility::Opens => format!(", which held {held:?} files open"),
                _ => String::new(),
            },
        ),
    }
}

fn words_of_idle(processes: u64) -> String {
    if processes == 0 { String::new() } else { format!(", of whose processes {processes} did nothing") }
}

/// Whether each of its processes did what it is for: else the neighbour had company of no kind, or of fewer. One that holds fewer files than it wants is refused more.
fn is_hostile(hostility: Hostility, window: &HostileWindow) -> bool {
    let holds = hostility != Hostility::Opens || window.held >= HOSTILE_OPENED || window.refused > 0;
    window.acts > 0 && window.idle == 0 && holds
}

/// What many tenants cost. There is no goal for most of it: it is to be known.
fn crowd(plan: &CacheCrowdPlan, result: &CacheCrowdResult) -> Vec<Line> {
    let where_ = format!("{} tenants, {} files", plan.tenants, plan.files);
    let line = |value, unit, goal: &str, met, detail: String| Line {
        id: "cache-tenants",
        value,
        unit,
        goal: goal.to_owned(),
        met,
        detail: format!("{where_}: {detail}"),
    };
    let mib = |kib: u64| kib as f64 / 1024.0;
    vec![
        line(
            result.start_s,
            "s to start",
            "to be known",
            true,
            format!("all is counted and mounted; the end takes {:.2} s", result.end_s),
        ),
        line(
            mib(result.resident_kib),
            "MiB resident",
            "to be known",
            true,
            format!(
                "{} threads, {} descriptors; once the kernel knows all files {:.1} MiB and {} descriptors",
                result.threads,
                result.descriptors,
                mib(result.resident_walked_kib),
                result.descriptors_walked
            ),
        ),
        line(
            result.idle_ms,
            "ms of processor time in an idle second",
            "to be known",
            true,
            format!("over {} s", plan.idle.as_secs()),
        ),
        line(result.status_s, "s for `minerva-fs status --json`", "to be known", true, "the least of three".to_owned()),
        line(
            result.refused as f64,
            "files refused to a walk through all trees",
            "0, and all of a million are found in the trees of 1,000 tenants",
            result.refused == 0 && result.found == plan.files_made() && is_crowd(plan),
            format!("{} of {} found in {:.1} s", result.found, plan.files_made(), result.walk_s),
        ),
    ]
}

/// Whether there are as many tenants and files as the goal says.
fn is_crowd(plan: &CacheCrowdPlan) -> bool {
    plan.tenants >= CROWD_TENANTS && plan.files_made() >= CROWD_FILES
}

#[cfg(test)]
mod tests {
    use super::{beside, crowd};
    use minerva_lab::figure::{CacheCrowdPlan, CacheCrowdResult, HostileResult, HostileWindow, Hostility};
    use std::time::Duration;

    fn result(window: HostileWindow) -> HostileResult {
        let alone = HostileWindow::default;
        HostileResult { hostility: Hostility::Opens, windows: vec![[alone(), window, alone()]; 3] }
    }

    #[test]
    fn a_neighbour_that_is_refused_anything_misses_the_goal() {
        let window = HostileWindow { acts: 1, held: 100_000, ..HostileWindow::default() };
        let line = beside(&result(window.clone()));
        assert!(line.met, "{}", line.detail);
        let line = beside(&result(HostileWindow { errors: 3, ..window }));
        assert!(!line.met && line.detail.contains("9 of 0 refused to the neighbour"), "{}", line.detail);
    }

    #[test]
    fn beside_one_that_did_nothing_or_was_too_slow_to_hold_its_files_nothing_is_shown() {
        let met = |acts, held, refused| {
            let line = beside(&result(HostileWindow { acts, held, refused, ..HostileWindow::default() }));
            assert!(line.detail.ends_with(&format!("which held {:?} files open", [held; 3])), "{}", line.detail);
            line.met
        };
        assert_eq!(
            [met(0, 0, 0), met(50, 50, 0), met(50, 50, 7), met(100_000, 100_000, 0)],
            [false, false, true, true]
        );
    }

    #[test]
    fn a_hostile_tenant_of_which_one_process_did_nothing_and_too_few_rounds_show_nothing() {
        let window = HostileWindow { acts: 90, held: 100_000, ..HostileWindow::default() };
        let idle = beside(&result(HostileWindow { idle: 1, ..window.clone() }));
        assert!(!idle.met && idle.detail.contains("of whose processes 3 did nothing"), "{}", idle.detail);
        let mut few = result(window);
        assert!(beside(&few).met);
        few.windows.pop();
        assert!(!beside(&few).met);
    }

    #[test]
    fn files_that_a_walk_does_not_find_are_a_miss() {
        let met = |tenants, files, found, refused| {
            let idle = Duration::from_secs(1);
            let plan = CacheCrowdPlan { service: "s".into(), pool: "p".into(), tenants, files, idle };
            let result = CacheCrowdResult { found, refused, ..CacheCrowdResult::default() };
            crowd(&plan, &result).pop().is_some_and(|line| line.met)
        };
        let all = 1_000_000;
        assert_eq!([met(1000, all, all, 0), met(1000, all, all - 1, 0), met(1000, all, all, 1)], [true, false, false]);
        // As many as are asked for.
        assert_eq!([met(3, 10, 9, 0), met(999, 999_000, 999_000, 0), met(500, all, all, 0)], [false; 3]);
    }
}
