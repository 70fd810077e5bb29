//! What came of a contest: each arm's runs beside each other, and whether Minerva reached its goals.

use super::{Contest, Role};
use crate::scene::RunResult;
use serde::Serialize;
use std::collections::BTreeMap;

/// Length of the whiles in which a victim that lasts is compared, in seconds.
const WHILE_S: f64 = 6.0;
/// The least share (docs/adr/0022), and that of who spares the disk.
const SHARE_LEAST: f64 = 5.0;
const SHARE_SPARING: f64 = 100.0;
/// What is asked of Minerva against the best single arm of the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goals {
    /// Mean completion of the short, as a part of the baseline's, in each scene.
    pub short_most: f64,
    /// Over all scenes: that part, or
    pub overall_most: f64,
    /// completion as a part of the time alone on the disk.
    pub alone_most: f64,
    /// What a victim that lasts gets done in each while, as a part of the baseline's.
    pub lasting_least: f64,
    /// Completion of the heavy where the victims end, as a part of the baseline's.
    pub heavy_most: f64,
    /// What the whole disk delivers, as a part of the baseline's.
    pub disk_least: f64,
    /// The baseline; unless it is told the best single arm of the kernel's own.
    pub baseline: Option<&'static str>,
    /// Medians of a few rounds on a shared machine differ by so much without a cause: by so much a goal may be missed.
    pub noise: f64,
}

impl Goals {
    /// Where the kernel's elevators read no weights: against a disk that nobody steers.
    pub const fn beside_nobody(unsteered: &'static str) -> Self {
        Self {
            short_most: 0.6,
            overall_most: 0.6,
            alone_most: 1.1,
            lasting_least: 1.0,
            heavy_most: 1.05,
            disk_least: 0.95,
            baseline: Some(unsteered),
            noise: 0.0,
        }
    }
}

impl Default for Goals {
    fn default() -> Self {
        Self {
            short_most: 1.0,
            overall_most: 0.8,
            alone_most: 1.1,
            lasting_least: 1.0,
            heavy_most: 1.05,
            disk_least: 0.97,
            baseline: None,
            noise: 0.03,
        }
    }
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What is compared, for people.
    pub what: String,
    /// Minerva's value as a part of the baseline's.
    pub value: f64,
    /// In words.
    pub goal: String,
    /// Reached.
    pub met: bool,
    /// The numbers behind it.
    pub detail: String,
}

/// A scene, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The best single arm.
    pub baseline: String,
    /// The comparisons.
    pub rows: Vec<Row>,
    /// Of the short: completion as a part of the baseline's and of the time alone, where there are short ones.
    pub short: Option<(f64, f64)>,
    /// A table of all arms, for people.
    pub table: String,
}

/// One arm's numbers in one round.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// Mean completion of the short, in seconds.
    short_s: Option<f64>,
    /// Megabytes a second of those that last, in each while, all together.
    lasting: Vec<f64>,
    /// Mean completion of the heavy, in seconds, where they have an end of their own.
    heavy_s: Option<f64>,
    /// Parts of the disk's time that all tenants together were served, each part counted by what it gets alone.
    served: f64,
    /// The same of the heavy.
    heavy_served: f64,
}

/// Judges the runs of one contest. `arms` holds each arm's runs, one a round; `steered` names Minerva's arm; `alone` holds the
/// run of the first tenant of each kind alone on the disk. Nothing without runs of Minerva and of another arm.
pub fn judge(
    contest: &Contest,
    arms: &BTreeMap<String, Vec<RunResult>>,
    steered: &str,
    alone: &BTreeMap<usize, RunResult>,
    goals: &Goals,
) -> Option<Judgement> {
    let numbers: BTreeMap<&str, Vec<Numbers>> = arms
        .iter()
        .map(|(arm, runs)| (arm.as_str(), runs.iter().map(|run| numbers(contest, run, alone)).collect()))
        .collect();
    let has_short = contest.roles.contains(&Role::Short);
    // Less is better: seconds, or the reciprocal of what was done.
    let merit = |rounds: &Vec<Numbers>| match has_short {
        true => median(rounds.iter().filter_map(|one| one.short_s)),
        false => 1.0 / median(rounds.iter().map(|one| one.lasting.iter().sum())).max(f64::MIN_POSITIVE),
    };
    let is_theirs = |arm: &str| match goals.baseline {
        Some(baseline) => arm == baseline,
        None => !arm.starts_with("minerva"),
    };
    let others = numbers.iter().filter(|(arm, rounds)| is_theirs(arm) && !rounds.is_empty());
    let (baseline, theirs) = others.min_by(|(_, one), (_, other)| merit(one).total_cmp(&merit(other)))?;
    let ours = numbers.get(steered).filter(|rounds| !rounds.is_empty())?;
    let rows = rows(contest, ours, theirs, baseline, goals);
    let short = has_short.then(|| {
        let of = |rounds: &[Numbers]| median(rounds.iter().filter_map(|one| one.short_s));
        (of(ours) / of(theirs), of(ours) / short_alone_s(contest, alone))
    });
    Some(Judgement { baseline: (*baseline).to_owned(), rows, short, table: table(contest, &numbers, alone) })
}

fn rows(contest: &Contest, ours: &[Numbers], theirs: &[Numbers], baseline: &str, goals: &Goals) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |what: String, value: f64, least: bool, bound: f64, detail: String| {
        let met = if least { value >= bound - goals.noise } else { value <= bound + goals.noise };
        let goal = format!("at {} {bound}", if least { "least" } else { "most" });
        rows.push(Row { what, value, goal, met, detail: format!("{detail}; baseline {baseline}") });
    };
    let compare = |of: &dyn Fn(&Numbers) -> Option<f64>| {
        let [ours, theirs] = [ours, theirs].map(|rounds| rounds.iter().filter_map(of).collect::<Vec<f64>>());
        let (one, other) = (median(ours.iter().copied()), median(theirs.iter().copied()));
        (!ours.is_empty() && other > 0.0)
            .then(|| (one / other, format!("{} for {}", with_spread(&ours), with_spread(&theirs))))
    };
    if let Some((value, detail)) = compare(&|one| one.short_s) {
        row("completion of the short".to_owned(), value, false, goals.short_most, format!("{detail} s"));
    }
    let whiles = ours.iter().chain(theirs).map(|one| one.lasting.len()).min().unwrap_or(0);
    for at in 0..whiles {
        let from = at as f64 * WHILE_S;
        let what = format!("done by the victim, {from:.0} to {:.0} s", from + WHILE_S);
        if let Some((value, detail)) = compare(&|one| one.lasting.get(at).copied()) {
            row(what, value, true, goals.lasting_least, format!("{detail} MB/s"));
        }
    }
    match compare(&|one| one.heavy_s) {
        Some((value, detail)) => {
            row("completion of the heavy".to_owned(), value, false, goals.heavy_most, format!("{detail} s"));
        }
        None => {
            // Where they last they keep what their shares say.
            let weight = |role, share| contest.roles.iter().filter(|one| **one == role).count() as f64 * share;
            let heavy = weight(Role::Heavy, SHARE_LEAST);
            let least = heavy / (heavy + weight(Role::Lasting, SHARE_SPARING));
            let kept = median(ours.iter().map(|one| one.heavy_served));
            let detail = format!("{:.1} % of the disk's time", kept * 100.0);
            row("disk time of the heavy, of their shares".to_owned(), kept / least, true, 1.0, detail);
        }
    }
    if let Some((value, detail)) = compare(&|one| Some(one.served)) {
        row("whole disk".to_owned(), value, true, goals.disk_least, format!("{detail} of its time served"));
    }
    rows
}

fn numbers(contest: &Contest, run: &RunResult, alone: &BTreeMap<usize, RunResult>) -> Numbers {
    let of = |role: Role| (0..run.tenants.len()).filter(move |index| contest.roles[*index] == role);
    let alone_mb_per_s = |index: usize| alone.get(&contest.kind_of(index)).map_or(0.0, |run| run.tenants[0].mb_per_s);
    let completion = |role| {
        let ended = of(role).filter(|index| contest.scene.tenants[*index].lasts.is_none());
        mean(ended.map(|index| run.tenants[index].completion_s))
    };
    let served = |index: usize| {
        let alone = alone_mb_per_s(index);
        if alone > 0.0 { run.tenants[index].bytes as f64 / 1e6 / alone / run.makespan_s.max(1e-3) } else { 0.0 }
    };
    // What the heavy get beside those that last counts, not what they got before.
    let contended = |index: usize| {
        let phase = run.phase("contention").map_or((0.0, 0.0), |phase| (phase.from_s, phase.until_s));
        let bins = &run.series.mb_per_s[index];
        let [from, until] = [phase.0, phase.1].map(|at| ((at / run.series.bin_s) as usize).min(bins.len()));
        let rate = bins[from.min(until)..until].iter().sum::<f64>() / (until.saturating_sub(from)).max(1) as f64;
        let alone = alone_mb_per_s(index);
        if alone > 0.0 { rate / alone } else { 0.0 }
    };
    Numbers {
        short_s: completion(Role::Short),
        lasting: whiles(run, &of(Role::Lasting).collect::<Vec<_>>()),
        heavy_s: completion(Role::Heavy),
        served: (0..run.tenants.len()).map(served).sum(),
        heavy_served: of(Role::Heavy).map(contended).sum(),
    }
}

/// Megabytes a second of these tenants together in each whole while from the first one's start.
fn whiles(run: &RunResult, tenants: &[usize]) -> Vec<f64> {
    let Some(begin_s) = tenants.iter().map(|index| run.tenants[*index].started_s).min_by(f64::total_cmp) else {
        return Vec::new();
    };
    let end_s = tenants.iter().map(|index| &run.tenants[*index]).map(|one| one.started_s + one.completion_s);
    let end_s = end_s.fold(0.0, f64::max);
    let per_while = (WHILE_S / run.series.bin_s) as usize;
    let first = (begin_s / run.series.bin_s) as usize;
    // The last request may end a moment after the word to stop.
    let count = ((end_s - begin_s + 0.5) / WHILE_S) as usize;
    let bins = |at: usize| first + at * per_while..first + (at + 1) * per_while;
    let done = |at: usize, index: &usize| {
        bins(at).filter_map(|bin| run.series.mb_per_s[*index].get(bin)).sum::<f64>() / per_while as f64
    };
    (0..count).map(|at| tenants.iter().map(|index| done(at, index)).sum()).collect()
}

fn short_alone_s(contest: &Contest, alone: &BTreeMap<usize, RunResult>) -> f64 {
    let short = (0..contest.roles.len()).filter(|index| contest.roles[*index] == Role::Short);
    let times = short.filter_map(|index| alone.get(&contest.kind_of(index)).map(|run| run.tenants[0].completion_s));
    mean(times).unwrap_or(f64::NAN)
}

fn table(contest: &Contest, numbers: &BTreeMap<&str, Vec<Numbers>>, alone: &BTreeMap<usize, RunResult>) -> String {
    let mut text = format!("{}\n", contest.scene.title);
    for (index, run) in alone {
        let (plan, one) = (&contest.scene.tenants[*index], &run.tenants[0]);
        let (seconds, rate) = (one.completion_s, one.mb_per_s);
        text.push_str(&format!(
            "  alone: {}: {seconds:.2} s, {rate:.3} MB/s, p99 {:.1} ms\n",
            plan.description, one.latency_ms_p99
        ));
    }
    for (arm, rounds) in numbers {
        let all = |of: &dyn Fn(&Numbers) -> Option<f64>| {
            let values: Vec<f64> = rounds.iter().filter_map(of).collect();
            if values.is_empty() { "-".to_owned() } else { with_spread(&values) }
        };
        let whiles = rounds.iter().map(|one| one.lasting.len()).min().unwrap_or(0);
        let lasting: Vec<String> = (0..whiles)
            .map(|at| format!("{:.3}", median(rounds.iter().filter_map(|one| one.lasting.get(at).copied()))))
            .collect();
        text.push_str(&format!(
            "  {arm:<16} short {} s, heavy {} s, disk {}, lasting MB/s each {WHILE_S} s: {}\n",
            all(&|one| one.short_s),
            all(&|one| one.heavy_s),
            all(&|one| Some(one.served)),
            if lasting.is_empty() { "-".to_owned() } else { lasting.join(" ") },
        ));
    }
    text
}

/// The median, and the least and greatest where there are several.
fn with_spread(values: &[f64]) -> String {
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)));
    let middle = median(values.iter().copied());
    if values.len() > 1 { format!("{middle:.3} ({least:.3} to {most:.3})") } else { format!("{middle:.3}") }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The middle one; of an even number, the mean of the two in the middle; 0 of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 1 => values[middle],
        (_, middle) => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests;
