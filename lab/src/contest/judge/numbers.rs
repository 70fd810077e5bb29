//! What is compared of one run.

use crate::contest::{Contest, Role};
use crate::scene::RunResult;
use std::collections::BTreeMap;

/// Length of the whiles in which a victim that lasts is compared, in seconds.
pub(super) const WHILE_S: f64 = 6.0;

/// One arm's numbers in one round.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// Mean completion of the short, in seconds.
    pub(super) short_s: Option<f64>,
    /// For each of those that last, megabytes a second in each while.
    pub(super) lasting: Vec<Vec<f64>>,
    /// Mean completion of the heavy, in seconds, where they have an end of their own.
    pub(super) heavy_s: Option<f64>,
    /// Parts of the disk's time that all tenants together were served, each part counted by what it gets alone.
    pub(super) served: f64,
    /// The same of the heavy, and of all, while those that last are there.
    pub(super) heavy_contended: f64,
    pub(super) contended: f64,
    /// The part of all weights that the heavy had then, where the kernel looks at weights.
    pub(super) heavy_weight: Option<f64>,
    /// Megabytes a second of the whole disk.
    pub(super) disk_mb_per_s: f64,
}

impl Numbers {
    /// What those that last got together, in all the time.
    pub(super) fn lasting_sum(&self) -> f64 {
        self.lasting.iter().flatten().sum()
    }
}

/// What is compared of this run.
pub(super) fn numbers(contest: &Contest, run: &RunResult, alone: &BTreeMap<usize, RunResult>) -> Numbers {
    let of = |role: Role| of_role(contest, role);
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
    let phase = run.phase("contention").map_or((0.0, 0.0), |phase| (phase.from_s, phase.until_s));
    let bins = |length: usize| {
        let [from, until] = [phase.0, phase.1].map(|at| ((at / run.series.bin_s) as usize).min(length));
        from.min(until)..until
    };
    let contended = |index: usize| {
        let rates = &run.series.mb_per_s[index];
        let bins = bins(rates.len());
        let rate = rates[bins.clone()].iter().sum::<f64>() / bins.len().max(1) as f64;
        let alone = alone_mb_per_s(index);
        if alone > 0.0 { rate / alone } else { 0.0 }
    };
    let heavy_weight = run.weights.as_ref().and_then(|rows| {
        let bins = bins(rows.iter().map(Vec::len).min().unwrap_or(0));
        let part = |bin: usize| {
            let sum = |role| of(role).map(|index| rows[index][bin]).sum::<f64>();
            sum(Role::Heavy) / (sum(Role::Heavy) + sum(Role::Lasting))
        };
        // A weight that could not be read counts for nobody.
        mean(bins.map(part).filter(|part| part.is_finite()))
    });
    Numbers {
        short_s: completion(Role::Short),
        lasting: whiles(run, &of(Role::Lasting).collect::<Vec<_>>()),
        heavy_s: completion(Role::Heavy),
        served: (0..run.tenants.len()).map(served).sum(),
        heavy_contended: of(Role::Heavy).map(contended).sum(),
        contended: of(Role::Heavy).chain(of(Role::Lasting)).map(contended).sum(),
        heavy_weight,
        disk_mb_per_s: run.disk_mb_per_s,
    }
}

/// Megabytes a second of each of these tenants in each whole while from the first one's start.
fn whiles(run: &RunResult, tenants: &[usize]) -> Vec<Vec<f64>> {
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
    tenants.iter().map(|index| (0..count).map(|at| done(at, index)).collect()).collect()
}

/// The tenants of a role, by their place in the scene.
pub(super) fn of_role(contest: &Contest, role: Role) -> impl Iterator<Item = usize> {
    (0..contest.roles.len()).filter(move |index| contest.roles[*index] == role)
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The middle one; of an even number, the mean of the two in the middle; 0 of none.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 1 => values[middle],
        (_, middle) => f64::midpoint(values[middle - 1], values[middle]),
    }
}
