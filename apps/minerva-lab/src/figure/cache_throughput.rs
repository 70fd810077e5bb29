//! `minerva-lab figure cache-throughput`

use super::cache_loss::spread;
use super::{Line, drawn_seed, median};
use crate::cache_cli::CacheThroughputArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{ThroughputPlan, ThroughputResult, Transfer, cache_throughput};
use std::time::Duration;

/// Of what passthrough_hp reads, in percent.
const READ_PERCENT_MIN: f64 = 90.0;
/// Writes: so many megabytes a second, or this part of the best FUSE file system beside it, in percent.
const WRITE_MB_MIN: f64 = 2147.5;
const WRITE_PERCENT_MIN: f64 = 90.0;
/// `stable`, of the disk below, in percent.
const STABLE_PERCENT_MIN: f64 = 95.0;
/// Fewer rounds meet no goal.
const ROUNDS_MIN: usize = 5;
/// Other FUSE file systems over the same memory.
const PEERS: [&str; 2] = ["passthrough_hp", "bindfs"];

pub(super) fn run(arguments: &CacheThroughputArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let plan = ThroughputPlan {
        service: binaries::minerva_fs(&arguments.output)?,
        pool: arguments.pool.clone(),
        pool_profile: arguments.pool_profile.clone(),
        bytes: arguments.megabytes * 1_000_000,
        span: Duration::from_millis(arguments.span_ms.max(1)),
        rounds: arguments.rounds,
        seed: drawn_seed(arguments.seed),
        passthrough_hp: arguments.passthrough_hp.clone().or_else(|| binaries::in_path(PEERS[0])),
        bindfs: binaries::in_path(PEERS[1]),
    };
    let rounds = plan.rounds;
    let result = cache_throughput(&plan, &interrupted, &mut |round| eprintln!("round {} of {rounds}", round + 1))?;
    for missing in &result.missing {
        eprintln!("{missing}: measured without");
    }
    for line in lines(&plan, &result) {
        line.print(arguments.output.json)?;
    }
    Ok(())
}

fn lines(plan: &ThroughputPlan, result: &ThroughputResult) -> Vec<Line> {
    let mut lines = Vec::new();
    for (transfer, words) in [(Transfer::Read, "1 MiB reads"), (Transfer::RandomRead, "4 KiB random reads")] {
        let value = part(result, "temporary", &[PEERS[0]], transfer);
        lines.push(Line {
            id: "cache-throughput",
            value,
            unit: "% of passthrough_hp's",
            goal: format!("at least {READ_PERCENT_MIN} in {ROUNDS_MIN} rounds"),
            met: result.of("temporary", transfer).len() >= ROUNDS_MIN && value >= READ_PERCENT_MIN,
            detail: format!(
                "temporary, {words}, {}",
                rates(plan, result, &["temporary", "tmpfs", PEERS[0], PEERS[1]], transfer)
            ),
        });
    }
    for (transfer, words) in [(Transfer::Write, "1 MiB writes"), (Transfer::RandomWrite, "4 KiB random writes")] {
        lines.push(writes(plan, result, transfer, words));
    }
    for transfer in Transfer::ALL {
        let value = part(result, "stable", &["disk"], transfer);
        lines.push(Line {
            id: "cache-throughput",
            value,
            unit: "% of the disk's below",
            goal: format!("at least {STABLE_PERCENT_MIN} in {ROUNDS_MIN} rounds"),
            met: result.of("stable", transfer).len() >= ROUNDS_MIN && value >= STABLE_PERCENT_MIN,
            detail: format!("stable, {}, {}", words(transfer), rates(plan, result, &["stable", "disk"], transfer)),
        });
    }
    lines
}

/// Writes to `temporary`. Without the fastest of the others there is no best one to be set against; only the rate by itself can show it then.
fn writes(plan: &ThroughputPlan, result: &ThroughputResult, transfer: Transfer, words: &str) -> Line {
    let rate = median(result.of("temporary", transfer).iter().copied());
    let is_fast = transfer == Transfer::Write && rate >= WRITE_MB_MIN;
    let has_best = !result.of(PEERS[0], transfer).is_empty();
    let value = if has_best || is_fast { part(result, "temporary", &PEERS, transfer) } else { f64::NAN };
    let unmeasured = if has_best { String::new() } else { format!("not measured against {}: ", PEERS[0]) };
    Line {
        id: "cache-throughput",
        value,
        unit: "% of the best FUSE file system's beside it",
        goal: format!("at least {WRITE_PERCENT_MIN}, or 2 GiB/s at 1 MiB, in {ROUNDS_MIN} rounds"),
        met: result.of("temporary", transfer).len() >= ROUNDS_MIN
            && (is_fast || (has_best && value >= WRITE_PERCENT_MIN)),
        detail: format!(
            "{unmeasured}temporary, {words}, {}",
            rates(plan, result, &["temporary", "tmpfs", PEERS[0], PEERS[1]], transfer)
        ),
    }
}

const fn words(transfer: Transfer) -> &'static str {
    match transfer {
        Transfer::Write => "1 MiB writes and a sync",
        Transfer::Read => "1 MiB reads from the disk",
        Transfer::RandomRead => "4 KiB random reads from the disk",
        Transfer::RandomWrite => "4 KiB random writes and a sync",
    }
}

/// What a place reaches of the best of the others, in percent: the middle of the rounds. Not a number where none was measured.
fn part(result: &ThroughputResult, place: &str, others: &[&str], transfer: Transfer) -> f64 {
    let best = |round: usize| {
        let rates = others.iter().filter_map(|other| result.of(other, transfer).get(round)).copied();
        rates.fold(f64::NAN, f64::max)
    };
    let parts = result.of(place, transfer).iter().enumerate().map(|(round, rate)| 100.0 * rate / best(round));
    let parts: Vec<f64> = parts.filter(|part| part.is_finite()).collect();
    if parts.is_empty() { f64::NAN } else { median(parts) }
}

/// What was measured at each place, in MB/s.
fn rates(plan: &ThroughputPlan, result: &ThroughputResult, places: &[&str], transfer: Transfer) -> String {
    let measured = places.iter().filter(|place| !result.of(place, transfer).is_empty());
    let each: Vec<String> = measured.map(|place| format!("{place} {}", spread(result.of(place, transfer)))).collect();
    let missing = if result.missing.is_empty() { String::new() } else { format!("; {}", result.missing.join(", ")) };
    let (megabytes, rounds) = (plan.bytes / 1_000_000, plan.rounds);
    let disk = plan.pool.as_ref().map_or_else(|| plan.pool_profile.clone(), |pool| pool.display().to_string());
    format!("{megabytes} MB, {rounds} rounds, disk {disk}, MB/s: {}{missing}{}", each.join(", "), paper(transfer))
}

/// What the paper had over 100 rounds of 1 GB.
const fn paper(transfer: Transfer) -> &'static str {
    match transfer {
        Transfer::Write => "; the paper 900 temporary, 422 stable",
        Transfer::Read => "; the paper 1500 temporary, 468 stable",
        Transfer::RandomRead | Transfer::RandomWrite => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{lines, part};
    use minerva_lab::figure::{ThroughputPlan, ThroughputResult, Transfer};
    use std::time::Duration;

    fn plan() -> ThroughputPlan {
        ThroughputPlan {
            service: "s".into(),
            pool: None,
            pool_profile: "sata-ssd".to_owned(),
            bytes: 1_000_000,
            span: Duration::ZERO,
            rounds: 1,
            seed: 1,
            passthrough_hp: None,
            bindfs: None,
        }
    }

    #[test]
    fn a_place_is_set_against_the_best_of_the_others_of_the_same_round() {
        let rates = [("temporary", vec![9.0, 9.0]), ("passthrough_hp", vec![10.0, 3.0]), ("bindfs", vec![1.0, 18.0])];
        let rates = rates.map(|(place, rates)| (place.to_owned(), Transfer::Write, rates)).to_vec();
        let result = ThroughputResult { rates, missing: Vec::new() };
        assert_eq!(part(&result, "temporary", &["passthrough_hp", "bindfs"], Transfer::Write), 70.0);
        assert!(part(&result, "temporary", &["disk"], Transfer::Write).is_nan());
    }

    #[test]
    fn where_no_peer_is_there_the_goal_is_not_met() {
        let measured = |write: f64, rounds: usize| {
            let places = [("temporary", Transfer::Read, 5000.0), ("temporary", Transfer::Write, write)];
            let slow = [("temporary", Transfer::RandomWrite, 900.0), ("bindfs", Transfer::RandomWrite, 1.0)];
            let all = places.into_iter().chain(slow).chain([("bindfs", Transfer::Write, 1.0)]);
            let rates = all.map(|(place, transfer, rate)| (place.to_owned(), transfer, vec![rate; rounds])).collect();
            ThroughputResult { rates, missing: vec!["passthrough_hp is not there".to_owned()] }
        };
        let plan = plan();
        // However far ahead of the slow peer: two gibibytes a second are enough, and nothing less.
        let judged = lines(&plan, &measured(2000.0, 5));
        for line in [0, 2, 3].map(|at| &judged[at]) {
            assert!(line.value.is_nan() && !line.met && line.detail.contains("is not there"), "{}", line.detail);
        }
        assert!(judged[2].detail.starts_with("not measured against passthrough_hp"));
        assert_eq!([5, 4].map(|rounds| lines(&plan, &measured(2200.0, rounds))[2].met), [true, false]);
    }

    #[test]
    fn too_few_rounds_meet_no_goal() {
        let met = |rounds: usize| {
            let places = ["temporary", "stable", "passthrough_hp", "bindfs", "disk"];
            let all = places.into_iter().flat_map(|place| Transfer::ALL.map(|transfer| (place.to_owned(), transfer)));
            let rates = all.map(|(place, transfer)| (place, transfer, vec![100.0; rounds])).collect();
            let result = ThroughputResult { rates, missing: Vec::new() };
            lines(&plan(), &result).iter().map(|line| line.met).collect::<Vec<_>>()
        };
        assert_eq!([met(5), met(4)], [vec![true; 8], vec![false; 8]]);
    }
}
