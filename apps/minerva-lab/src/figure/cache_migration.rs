//! `minerva-lab figure cache-migration`

use super::cache_loss::{Loss, WAYS, spread};
use super::{Line, cache_report, drawn_seed, median};
use crate::cache_cli::CacheMigrationArguments;
use crate::{binaries, signals};
use anyhow::Context as _;
use minerva_lab::figure::{MigrationArm, MigrationPlan, MigrationRun, NEIGHBOURS, cache_migration};
use minerva_lab::workload::WorkerProgram;

/// How many times sooner a burst is written through the pool than straight to the busy disk.
const SOONER_MIN: f64 = 5.0;
/// What neighbours lose beside the migration, in percent.
const LOST_PERCENT_MAX: f64 = 5.0;
/// Until all has moved once it is quiet, in seconds.
const MOVED_S_MAX: f64 = 120.0;
/// So many rounds are asked for: fewer meet no goal.
const ROUNDS_MIN: usize = 5;
const POOL: usize = 3;

pub(super) fn run(arguments: &CacheMigrationArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let seed = drawn_seed(arguments.seed);
    let mut kept = Vec::new();
    for elevator in &arguments.elevator {
        let plan = MigrationPlan {
            profile: arguments.profile.clone(),
            elevator: elevator.clone(),
            pool_profile: arguments.pool_profile.clone(),
            burst_bytes: arguments.megabytes * 1_000_000,
            busy: minerva_model::Nanos::from_secs(arguments.seconds.max(5)),
            bursts: arguments.bursts.max(1),
            rounds: arguments.rounds,
            seed,
            service: binaries::minerva_fs(&arguments.output)?,
            daemon: arguments.daemon.then(|| binaries::minervad(&arguments.output)).transpose()?,
        };
        let rounds = cache_migration(&plan, &program, &interrupted, &mut tell)?;
        for line in lines(&plan, &rounds) {
            line.print(arguments.output.json)?;
        }
        if let Some(report) = &arguments.report {
            cache_report::write(report, &plan, &rounds)?;
        }
        kept.push(serde_json::json!({ "elevator": elevator, "rounds": rounds }));
    }
    if let Some(path) = &arguments.runs {
        let text = serde_json::to_string(&kept)?;
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

/// Says which arm plays.
pub(crate) fn tell(round: u32, arm: MigrationArm) {
    let words = match arm {
        MigrationArm::Nobody => "the neighbours alone",
        MigrationArm::Straight => "a burst written directly to their disk",
        MigrationArm::Copy => "a burst to a fast disk, copied back at once",
        MigrationArm::Pool => "a burst through the pool",
    };
    eprintln!("round {}: {words}", round + 1);
}

fn lines(plan: &MigrationPlan, rounds: &[Vec<MigrationRun>]) -> Vec<Line> {
    let told_by = if plan.daemon.is_some() { "minervad tells" } else { "the disk's counters tell" };
    let where_ = format!(
        "{}, {}, pool on {}, {told_by}, {} rounds",
        plan.profile,
        plan.elevator,
        plan.pool_profile,
        rounds.len()
    );
    vec![sooner(&where_, plan, rounds), lost(&where_, rounds), moved(&where_, rounds)]
}

/// How much sooner the program is done.
fn sooner(where_: &str, plan: &MigrationPlan, rounds: &[Vec<MigrationRun>]) -> Line {
    let done = |arm: usize| -> Vec<f64> { rounds.iter().filter_map(|round| round[arm].done_s()).collect() };
    let times: Vec<f64> = done(1).iter().zip(done(POOL)).map(|(straight, pool)| straight / pool.max(1e-3)).collect();
    let each = WAYS.map(|(arm, name)| format!("{name} {} s", spread(&done(arm))));
    let value = median(times.iter().copied());
    Line {
        id: "cache-migration",
        value,
        unit: "times faster than writing directly to the busy disk",
        goal: format!("at least {SOONER_MIN} in {ROUNDS_MIN} rounds"),
        met: times.len() >= ROUNDS_MIN && value >= SOONER_MIN,
        detail: format!(
            "{where_}: {} MB in 8 files, each synced; {} ({} times)",
            plan.burst_bytes / 1_000_000,
            each.join(", "),
            spread(&times)
        ),
    }
}

/// What neighbours lose beside the migration; and what they lose by each way, while they never pause and while they do.
fn lost(where_: &str, rounds: &[Vec<MigrationRun>]) -> Line {
    let mut worst = f64::NEG_INFINITY;
    let mut words = Vec::new();
    for (place, (neighbour, ..)) in NEIGHBOURS.iter().enumerate() {
        for (arm, name) in WAYS {
            let pausing = Loss::of(rounds, arm, place, |run| &run.pausing);
            let busy = Loss::of(rounds, arm, place, |run| &run.busy);
            if arm == POOL {
                worst = worst.max(pausing.throughput).max(busy.throughput);
            }
            words.push(format!("{neighbour}, {name}: {pausing} with pauses, {busy} without"));
        }
    }
    let moved: Vec<f64> = rounds.iter().map(|round| round[POOL].moved_pausing as f64 / 1e6).collect();
    // Who moves nothing in pauses, or all of it before them, costs nothing there and has shown nothing.
    let idle = moved.iter().filter(|moved| **moved <= 0.0).count();
    let nothing = if idle == 0 { String::new() } else { format!(", nothing in {idle} of {} rounds", moved.len()) };
    Line {
        id: "cache-migration",
        value: worst,
        unit: "% of its throughput lost by the neighbour that loses most, with pauses or without, beside the pool",
        goal: format!("less than {LOST_PERCENT_MAX}, and in each of {ROUNDS_MIN} rounds some is moved in pauses"),
        met: rounds.len() >= ROUNDS_MIN && worst < LOST_PERCENT_MAX && idle == 0,
        detail: format!(
            "{where_}, {:.0} MB moved in pauses{nothing}; against no burst: {}",
            median(moved.iter().copied()),
            words.join("; ")
        ),
    }
}

/// How soon all has moved.
fn moved(where_: &str, rounds: &[Vec<MigrationRun>]) -> Line {
    let seconds: Vec<f64> = rounds.iter().filter_map(|round| round[POOL].placed_after_quiet_s()).collect();
    let placed = |arm: usize| -> Vec<f64> {
        rounds.iter().filter_map(|round| round[arm].burst_s).map(|[began, _, placed]| placed - began).collect()
    };
    let value = median(seconds.iter().copied());
    let each = WAYS.map(|(arm, name)| format!("{name} {} s", spread(&placed(arm))));
    Line {
        id: "cache-migration",
        value,
        unit: "s of idle disk until all files are moved",
        goal: format!("at most {MOVED_S_MAX} in {ROUNDS_MIN} rounds"),
        met: seconds.len() >= ROUNDS_MIN && value <= MOVED_S_MAX,
        detail: format!(
            "{where_} ({}); from the start of the burst until it is at its destination: {}",
            spread(&seconds),
            each.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::lines;
    use minerva_lab::figure::{MigrationArm, MigrationPlan, MigrationRun, NeighbourRun};
    use minerva_lab::workload::Latency;
    use minerva_model::Nanos;

    /// Two neighbours, with these rates while they pause now and then, and a burst that was written and placed then.
    fn run(arm: MigrationArm, rates: [f64; 2], burst_s: Option<[f64; 3]>) -> MigrationRun {
        let neighbours = rates.map(|mb_per_s| NeighbourRun { mb_per_s, latency: Latency::default() }).to_vec();
        MigrationRun {
            arm,
            burst_s,
            busy: neighbours.clone(),
            pausing: neighbours,
            worked_s: vec![[0.0, 10.0], [15.0, 20.0]],
            moved_pausing: 1,
            series: vec![vec![], vec![]],
        }
    }

    #[test]
    fn the_worst_off_neighbour_counts_and_what_was_placed_before_the_quiet_took_none_of_it() {
        let plan = MigrationPlan {
            profile: "p".to_owned(),
            elevator: "e".to_owned(),
            pool_profile: "s".to_owned(),
            burst_bytes: 1,
            busy: Nanos::SECOND,
            bursts: 1,
            rounds: 1,
            seed: 1,
            service: "s".into(),
            daemon: None,
        };
        let round = |pool_placed| {
            vec![
                run(MigrationArm::Nobody, [1.0, 20.0], None),
                run(MigrationArm::Straight, [0.5, 10.0], Some([2.0, 14.0, 14.0])),
                run(MigrationArm::Copy, [0.5, 10.0], Some([2.0, 4.0, 16.0])),
                run(MigrationArm::Pool, [0.98, 19.0], Some([2.0, 4.0, pool_placed])),
            ]
        };
        let told: Vec<(f64, bool)> = lines(&plan, &vec![round(35.0); 5])
            .iter()
            .map(|line| ((line.value * 10.0).round() / 10.0, line.met))
            .collect();
        assert_eq!(told, [(6.0, true), (5.0, false), (15.0, true)]);
        assert!(lines(&plan, &vec![round(35.0); 4]).iter().all(|line| !line.met), "too few rounds");
        assert_eq!(lines(&plan, &[round(18.0)])[2].value, 0.0);
        // What is lost while nobody pauses counts too, and so does a round in which nothing moved in pauses.
        let lost = |count: usize, change: fn(&mut MigrationRun)| {
            let mut rounds = vec![round(35.0); 5];
            rounds.iter_mut().for_each(|round| round[3].pausing = round[0].pausing.clone());
            rounds.iter_mut().for_each(|round| round[3].busy = round[0].busy.clone());
            rounds.iter_mut().take(count).for_each(|round| change(&mut round[3]));
            lines(&plan, &rounds).swap_remove(1)
        };
        assert!(lost(5, |_| ()).met);
        let idle = lost(1, |run| run.moved_pausing = 0);
        assert!(!idle.met && idle.detail.contains("nothing in 1 of 5 rounds"), "{}", idle.detail);
        let busy = lost(3, |run| run.busy[0].mb_per_s = 0.9);
        assert!(!busy.met && (busy.value - 10.0).abs() < 1e-9, "{}", busy.value);
    }
}
