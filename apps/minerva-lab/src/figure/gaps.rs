//! `minerva-lab figure gaps`

use super::{Line, drawn_seed, median};
use crate::cli::GapsArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{Bursts, GAPS_DEADLINE_S, GapsPlan, GapsReader, GapsResult, GapsWork, gaps};
use minerva_lab::workload::{Latency, WorkerProgram};
use std::time::Instant;

/// What the reader keeps of its requests, in percent, and by how much its p99 may be longer.
const KEPT_PERCENT_MIN: f64 = 95.0;
const P99_PERCENT_MAX: f64 = 10.0;
/// What background work takes of the pauses, in percent.
const USED_PERCENT_MIN: f64 = 80.0;
/// So many pairs are asked for: fewer meet no goal.
const PAIRS_MIN: usize = 10;

pub(super) fn run(arguments: &GapsArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let plans = plans(arguments)?;
    let begun = Instant::now();
    let mut left: f64 = plans.iter().map(GapsPlan::seconds).sum();
    eprintln!("minerva-lab: about {} min, and what the disks need to be filled", minutes(left));
    for plan in &plans {
        let disk = format!("{}, {}", plan.profile, plan.elevator);
        let pairs = plan.work.len() * plan.readers.len() * plan.rounds as usize;
        // Of the kind that is measured now all pairs so far; of those before what was printed.
        let mut last: Option<GapsResult> = None;
        let print = |result: &GapsResult| -> anyhow::Result<()> {
            kept(&disk, result).print(arguments.output.json)?;
            in_time(&disk, result).print(arguments.output.json)?;
            if result.has_pauses { used(&disk, result).print(arguments.output.json) } else { Ok(()) }
        };
        let measured = gaps(plan, &program, &interrupted, |result| {
            if let Some(before) = last.take_if(|last| last.words != result.words)
                && let Err(error) = print(&before)
            {
                tell_unprinted(&error);
            }
            left = (left - plan.seconds() / pairs as f64).max(0.0);
            tell_pair(&disk, plan.rounds, result);
            let since = minutes(begun.elapsed().as_secs_f64());
            eprintln!("minerva-lab: {since} min passed, about {} min to go", minutes(left));
            last = Some(result.clone());
        });
        // An interruption too leaves what was measured before it.
        if let Some(result) = &last {
            print(result)?;
        }
        measured?;
    }
    Ok(())
}

/// One for each disk and elevator.
fn plans(arguments: &GapsArguments) -> anyhow::Result<Vec<GapsPlan>> {
    let plan = GapsPlan {
        work: arguments.work.iter().map(|word| work(word)).collect(),
        readers: arguments.reader.iter().map(|word| reader(word)).collect(),
        profile: String::new(),
        elevator: String::new(),
        bursts: arguments.bursts.max(1),
        rounds: arguments.rounds,
        seed: drawn_seed(arguments.seed),
        daemon: binaries::minervad(&arguments.output)?,
        tool: binaries::minerva_ctl(&arguments.output)?,
    };
    let of = |disk: &String| {
        let on = |name: &String| GapsPlan { profile: disk.clone(), elevator: name.clone(), ..plan.clone() };
        arguments.elevator.iter().map(on).collect::<Vec<_>>()
    };
    Ok(arguments.profile.iter().flat_map(of).collect())
}

fn minutes(seconds: f64) -> String {
    format!("{:.0}", (seconds / 60.0).ceil())
}

fn reader(word: &str) -> GapsReader {
    if word == "steady" { GapsReader::Steady } else { GapsReader::Pauses }
}

/// The command line takes no other words.
fn work(word: &str) -> GapsWork {
    match word {
        "delete" => GapsWork::Delete,
        "scrub" => GapsWork::Scrub,
        _ => GapsWork::Backup,
    }
}

fn tell_unprinted(error: &anyhow::Error) {
    eprintln!("minerva-lab: a result could not be printed: {error:#}");
}

/// Says how the pair that was just measured came out, and of how many it is.
fn tell_pair(disk: &str, rounds: u32, result: &GapsResult) {
    let Some([with, without]) = result.pairs.last() else { return };
    let whole = if result.has_pauses { "the pauses" } else { "the window" };
    let used = with.used.map_or("none counted".to_owned(), |used| format!("{:.0} %", 100.0 * used));
    eprintln!(
        "minerva-lab: {disk}, {}: pair {} of {rounds}: {:.1} % of the reader's requests, {used} of {whole} used, {}",
        result.words,
        result.pairs.len(),
        percent(with.requests_per_s, without.requests_per_s),
        match with.done_s {
            Some(done_s) => format!("done after {done_s:.0} of {GAPS_DEADLINE_S} s"),
            None => "not done in time".to_owned(),
        },
    );
}

/// What the reader keeps: its requests in all pairs together, and p99 over all of its requests.
fn kept(disk: &str, result: &GapsResult) -> Line {
    let counted = result.pairs.iter().filter(|[with, _]| !with.bursts.is_empty());
    let parts: Vec<f64> = counted.map(|[with, without]| percent(with.requests_per_s, without.requests_per_s)).collect();
    let [with, without] = [0, 1].map(|arm| {
        let windows = result.pairs.iter().flat_map(|pair| &pair[arm].bursts);
        let latency = Latency::merged(windows.map(|window| &window.latency));
        (latency.quantile(0.99).unwrap_or_default().as_secs_f64() * 1e3, latency.count())
    });
    // Of all pairs together.
    let [with_s, without_s] = [0, 1].map(|arm| result.pairs.iter().map(|pair| pair[arm].busy_s).sum::<f64>().max(1e-3));
    let part = percent(with.1 as f64 / with_s, without.1 as f64 / without_s);
    let longer = percent(with.0, without.0) - 100.0;
    let rate = |arm: usize| median(result.pairs.iter().map(|pair| pair[arm].requests_per_s));
    Line {
        id: "gaps",
        value: part,
        unit: "% of the reader's requests",
        goal: if result.has_pauses {
            format!("at least {KEPT_PERCENT_MIN}, and p99 at most {P99_PERCENT_MAX} % longer")
        } else {
            "none: work takes from who never pauses what its deadline needs".to_owned()
        },
        met: is_enough(result) && (!result.has_pauses || part >= KEPT_PERCENT_MIN && longer <= P99_PERCENT_MAX),
        detail: format!(
            "{disk}, {}: {:.1} requests a second for {:.1} ({} pairs, {}; {}); p99 {longer:+.1} % ({:.1} ms for {:.1}, of {} and {} requests)",
            result.words,
            rate(0),
            rate(1),
            parts.len(),
            spread(&parts),
            counted_until(result),
            with.0,
            without.0,
            with.1,
            without.1,
        ),
    }
}

/// Until when the reader counts.
fn counted_until(result: &GapsResult) -> String {
    if result.has_pauses {
        let over = over(result);
        format!("in {over} of them the work was done before the window ended, and bursts until then count")
    } else {
        "until the work is done, and without it for two minutes".to_owned()
    }
}

/// As many pairs as are asked for, and in each of them there was a burst before the work was done: beside none nobody loses anything.
fn is_enough(result: &GapsResult) -> bool {
    result.pairs.len() >= PAIRS_MIN && result.pairs.iter().all(|[with, _]| !with.bursts.is_empty())
}

/// Pairs in which the work was done before the window ended.
fn over(result: &GapsResult) -> usize {
    result.pairs.iter().filter(|[with, _]| with.is_over).count()
}

/// What background work takes of the pauses.
fn used(disk: &str, result: &GapsResult) -> Line {
    let parts: Vec<f64> = result.pairs.iter().filter_map(|[Bursts { used, .. }, _]| Some((*used)? * 100.0)).collect();
    let part = median(parts.iter().copied());
    Line {
        id: "gaps",
        value: part,
        unit: "% of the pauses used",
        goal: format!("at least {USED_PERCENT_MIN}"),
        // Work that ends in the first pause has none that counts.
        met: is_enough(result) && parts.len() >= PAIRS_MIN && part >= USED_PERCENT_MIN,
        detail: format!(
            "{disk}, {} ({} pairs, {}; in {} of them the work was done before the window ended, and pauses until then count); beside the reader it ran in {:.0} % of the bursts",
            result.words,
            parts.len(),
            spread(&parts),
            over(result),
            median(result.pairs.iter().map(|[with, _]| with.beside * 100.0)),
        ),
    }
}

/// How much of the work was done by its deadline.
fn in_time(disk: &str, result: &GapsResult) -> Line {
    let all = result.pairs.len();
    let done: Vec<f64> = result.pairs.iter().filter_map(|[with, _]| with.done_s).collect();
    let part = percent(done.len() as f64, all as f64);
    Line {
        id: "gaps",
        value: part,
        unit: "% of the work done by its deadline",
        goal: "100".to_owned(),
        met: is_enough(result) && done.len() == all,
        detail: format!(
            "{disk}, {}: {} of {all}, after {:.0} s in the median of the {GAPS_DEADLINE_S} s that it was given",
            result.words,
            done.len(),
            median(done.iter().copied()),
        ),
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    100.0 * part / whole.max(f64::MIN_POSITIVE)
}

fn spread(values: &[f64]) -> String {
    if values.is_empty() {
        return "none counted".to_owned();
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.1} to {most:.1} %")
}

#[cfg(test)]
mod tests {
    use super::{Bursts, GapsResult, in_time, kept, used};
    use minerva_lab::figure::Window;

    fn bursts(used: Option<f64>) -> Bursts {
        // A hundred requests of eight milliseconds.
        let latency = serde_json::from_str("[[8000, 100]]").expect("latencies");
        let bursts = vec![Window { mb_per_s: 1.0, latency }];
        Bursts { bursts, busy_s: 1.0, requests_per_s: 1.0, used, beside: 0.0, is_over: false, done_s: Some(60.0) }
    }

    /// Whether the reader kept enough, the work used enough of the pauses, and all of it was done in time.
    fn met(pairs: Vec<[Bursts; 2]>) -> [bool; 3] {
        let result = GapsResult { words: String::new(), has_pauses: true, pairs };
        [kept("d", &result).met, used("d", &result).met, in_time("d", &result).met]
    }

    #[test]
    fn too_few_pairs_or_pairs_that_show_nothing_meet_no_goal() {
        let pair = |used| [bursts(used), bursts(None)];
        let pairs = |count: usize| vec![pair(Some(0.9)); count];
        assert_eq!([met(pairs(10)), met(pairs(9))], [[true; 3], [false; 3]]);
        // Of one pair no pause counts, so that there are nine.
        assert_eq!(met([pairs(9), vec![pair(None)]].concat()), [true, false, true]);
        let mut late = pairs(10);
        late[3][0].done_s = None;
        assert_eq!(met(late), [true, true, false]);
        let mut without_a_burst = pairs(10);
        without_a_burst[3][0].bursts.clear();
        assert_eq!(met(without_a_burst), [false; 3]);
    }
}
