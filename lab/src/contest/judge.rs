//! What came of a contest: each arm's runs beside each other, and whether Minerva reached its goals.

mod numbers;

use self::numbers::{Numbers, WHILE_S, mean, median, numbers, of_role};
use super::{Contest, Role};
use crate::scene::RunResult;
use serde::Serialize;
use std::collections::BTreeMap;

/// The least share (docs/adr/0022), and that of who spares the disk: what the heavy are to keep where the kernel looks at no weights.
const SHARE_LEAST: f64 = 5.0;
const SHARE_SPARING: f64 = 100.0;
/// Medians of a few rounds on a shared machine differ by so much without a cause. A goal that is missed by less is missed, and the detail
/// says by how little.
const NOISE: f64 = 0.03;

/// Of a victim without a whole while of [`WHILE_S`].
const TOO_SHORT: &str = "not measured, as it lasts less than a while of 6 s at this scale";

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
}

impl Goals {
    /// Where there is no elevator, as on most hosts with NVMe: against a disk that nobody steers.
    pub const fn beside_nobody(unsteered: &'static str) -> Self {
        Self {
            short_most: 0.6,
            overall_most: 0.6,
            alone_most: 1.1,
            lasting_least: 1.0,
            heavy_most: 1.05,
            disk_least: 0.95,
            baseline: Some(unsteered),
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
        false => 1.0 / median(rounds.iter().map(Numbers::lasting_sum)).max(f64::MIN_POSITIVE),
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
        let missed_by = if least { bound - value } else { value - bound };
        let (met, goal) = (missed_by <= 0.0, format!("at {} {bound}", if least { "least" } else { "most" }));
        let noise =
            if !met && missed_by <= NOISE { ", missed by less than medians differ without a cause" } else { "" };
        rows.push(Row { what, value, goal, met, detail: format!("{detail}; baseline {baseline}{noise}") });
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
    for (tenant, index) in of_role(contest, Role::Lasting).enumerate() {
        let name = &contest.scene.tenants[index].name;
        let whiles = ours.iter().chain(theirs).map(|one| one.lasting[tenant].len()).min().unwrap_or(0);
        for at in 0..whiles {
            let from = at as f64 * WHILE_S;
            let what = format!("done by {name}, {from:.0} to {:.0} s", from + WHILE_S);
            if let Some((value, detail)) = compare(&|one| one.lasting[tenant].get(at).copied()) {
                row(what, value, true, goals.lasting_least, format!("{detail} MB/s"));
            }
        }
        if whiles == 0 {
            // Left out, it would look as if nothing had been asked of it.
            row(format!("done by {name}"), f64::NAN, true, goals.lasting_least, TOO_SHORT.to_owned());
        }
    }
    match compare(&|one| one.heavy_s) {
        Some((value, detail)) => {
            row("completion of the heavy".to_owned(), value, false, goals.heavy_most, format!("{detail} s"));
        }
        None => {
            let (kept, detail) = heavy_kept(contest, ours);
            row("disk time of the heavy, of their shares".to_owned(), kept, true, 1.0, detail);
        }
    }
    if let Some((value, detail)) = compare(&|one| Some(one.served)) {
        let rates = compare(&|one| Some(one.disk_mb_per_s)).map_or_else(String::new, |(part, detail)| {
            format!("; bytes, which favour who reads in sequence: {detail} MB/s, {:.0} %", part * 100.0)
        });
        row("whole disk".to_owned(), value, true, goals.disk_least, format!("{detail} of its time served{rates}"));
    }
    rows
}

/// Where the heavy last they keep what their shares say, of what all are served: the part of it that they kept.
fn heavy_kept(contest: &Contest, ours: &[Numbers]) -> (f64, String) {
    let (due, whose) = heavy_due(contest, ours);
    let kept = median(ours.iter().map(|one| one.heavy_contended / one.contended.max(f64::MIN_POSITIVE)));
    let of_disk = median(ours.iter().map(|one| one.heavy_contended));
    let detail = format!(
        "{:.1} % of the time that all are served, {:.1} % of the disk's; {whose} {:.1} %",
        kept * 100.0,
        of_disk * 100.0,
        due * 100.0
    );
    (kept / due, detail)
}

/// The part that the heavy are to have beside those that last: by the weights in force, or by the least share where there are none.
fn heavy_due(contest: &Contest, ours: &[Numbers]) -> (f64, &'static str) {
    let weights: Vec<f64> = ours.iter().filter_map(|one| one.heavy_weight).collect();
    if !weights.is_empty() {
        return (median(weights.into_iter()), "their weights in force say");
    }
    let weight = |role, share| of_role(contest, role).count() as f64 * share;
    let heavy = weight(Role::Heavy, SHARE_LEAST);
    (heavy / (heavy + weight(Role::Lasting, SHARE_SPARING)), "no weights are in force; the least share says")
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
        let lasting: Vec<String> = of_role(contest, Role::Lasting)
            .enumerate()
            .map(|(tenant, _)| {
                let whiles = rounds.iter().map(|one| one.lasting[tenant].len()).min().unwrap_or(0);
                let middle = |at| median(rounds.iter().filter_map(|one| one.lasting[tenant].get(at).copied()));
                (0..whiles).map(|at| format!("{:.3}", middle(at))).collect::<Vec<_>>().join(" ")
            })
            .collect();
        text.push_str(&format!(
            "  {arm:<16} short {} s, heavy {} s, disk {}, lasting MB/s each {WHILE_S} s: {}\n",
            all(&|one| one.short_s),
            all(&|one| one.heavy_s),
            all(&|one| Some(one.served)),
            if lasting.is_empty() { "-".to_owned() } else { lasting.join(" and ") },
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

#[cfg(test)]
mod tests;
