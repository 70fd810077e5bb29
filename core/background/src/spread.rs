//! The least background work in each slot that keeps to two curves: never more than can be paid by then, never less than must be.
//!
//! One number says how hard a stretch of slots works, its level: 0 is nothing, `cores` takes what the forecast leaves free, three
//! times `cores` takes everything. A stretch has the lowest level that meets every requirement from its start on; it ends at the
//! requirement that asked for it, and the next begins there.

/// Stretches; what lies beyond has the last one's level, which is enough but may be more than needed.
const STRETCHES_MAX: usize = 96;
const BISECTIONS: u32 = 30;
/// Times `cores`: the level at which every core works, however many the foreground wants.
const LEVEL_MAX: f64 = 3.0;
/// Requirements met within so many core-seconds are met.
pub(crate) const TOLERANCE: f64 = 1e-6;

/// Where work goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// So that every slot has the same number of cores to spare: what is idle most works most.
    Headroom,
    /// Evenly, as Kachmar and Kaeli (2020) have it: the same in every slot that has so many free.
    Even,
    /// As soon as anything is free: when work will be done that takes every gap.
    Early,
}

impl Spread {
    /// Cores at a level, of `cores` of which `free` are free; rises with the level.
    fn cores(self, level: f64, free: f64, cores: f64) -> f64 {
        let taken = match self {
            Self::Headroom => free.max(-cores) - (cores - level),
            Self::Even if level <= cores => free.min(level),
            Self::Early if level <= cores => free,
            Self::Even | Self::Early => free.max(0.0) + level - cores,
        };
        taken.clamp(0.0, cores)
    }
}

/// What is to be spread: a value a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curves<'a> {
    pub(crate) cores: f64,
    /// Cores that may work, however many the foreground wants.
    pub(crate) limit: &'a [f64],
    /// Cores that the forecast leaves free; below 0 where the foreground wants more than there are.
    pub(crate) free: &'a [f64],
    pub(crate) seconds: &'a [f64],
    /// Core-seconds that can be done by the end of each slot; does not fall.
    pub(crate) ready: &'a [f64],
    /// Core-seconds that must be; at most [`most`].
    pub(crate) required: &'a [f64],
}

/// Core-seconds done by the end of each slot if all cores that may work always did.
pub(crate) fn most(limit: &[f64], seconds: &[f64], ready: &[f64]) -> Vec<f64> {
    let mut done = 0.0;
    let slots = limit.iter().zip(seconds).zip(ready);
    slots
        .map(|((limit, seconds), ready)| {
            done = f64::min(done + limit * seconds, *ready);
            done
        })
        .collect()
}

/// Cores for each slot.
pub(crate) fn spread(how: Spread, curves: Curves<'_>) -> Vec<f64> {
    let slots = curves.free.len();
    let mut cores = vec![0.0; slots];
    let (mut from, mut done) = (0, 0.0);
    for stretch in 1..=STRETCHES_MAX {
        let Some(binding) = first_missed(how, curves, from, done, 0.0) else {
            fill(how, curves, (from, slots), 0.0, &mut done, &mut cores);
            break;
        };
        let (mut low, mut high, mut until) = (0.0, LEVEL_MAX * curves.cores, binding);
        for _ in 0..BISECTIONS {
            let level = (low + high) / 2.0;
            match first_missed(how, curves, from, done, level) {
                Some(missed) => (low, until) = (level, missed),
                None => high = level,
            }
        }
        if stretch == STRETCHES_MAX {
            until = slots - 1;
        }
        fill(how, curves, (from, until + 1), high, &mut done, &mut cores);
        from = until + 1;
        if from == slots {
            break;
        }
    }
    cores
}

/// Works through a stretch at a level.
fn fill(how: Spread, curves: Curves<'_>, (from, to): (usize, usize), level: f64, done: &mut f64, cores: &mut [f64]) {
    for (at, of_slot) in cores.iter_mut().enumerate().take(to).skip(from) {
        let before = *done;
        let taken = how.cores(level, curves.free[at], curves.cores).min(curves.limit[at]);
        *done = f64::min(before + taken * curves.seconds[at], curves.ready[at]);
        // Cores that find nothing to do are the foreground's.
        *of_slot = if curves.seconds[at] > 0.0 { (*done - before) / curves.seconds[at] } else { 0.0 };
    }
}

/// The first slot from `from` on whose requirement is missed at a level.
fn first_missed(how: Spread, curves: Curves<'_>, from: usize, mut done: f64, level: f64) -> Option<usize> {
    (from..curves.free.len()).find(|at| {
        let cores = how.cores(level, curves.free[*at], curves.cores).min(curves.limit[*at]);
        done = f64::min(done + cores * curves.seconds[*at], curves.ready[*at]);
        done + TOLERANCE < curves.required[*at]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread_of(how: Spread, free: &[f64], ready: &[f64], required: &[f64]) -> Vec<f64> {
        let seconds = vec![1.0; free.len()];
        let limit = vec![10.0; free.len()];
        let cores = spread(how, Curves { cores: 10.0, limit: &limit, free, seconds: &seconds, ready, required });
        cores.iter().map(|cores| (cores * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn work_goes_where_most_is_free_or_evenly_and_steals_only_what_it_must() {
        let (free, ready) = ([2.0, 8.0, 2.0, 5.0], [100.0; 4]);
        let by_then = |work| [0.0, 0.0, work, work];
        assert_eq!(spread_of(Spread::Headroom, &free, &ready, &by_then(6.0)), [0.0, 6.0, 0.0, 0.0]);
        assert_eq!(spread_of(Spread::Even, &free, &ready, &by_then(6.0)), [2.0, 2.0, 2.0, 0.0]);
        assert_eq!(spread_of(Spread::Headroom, &free, &ready, &by_then(12.0)), [2.0, 8.0, 2.0, 0.0]);
        assert_eq!(spread_of(Spread::Even, &free, &ready, &by_then(12.0)), [2.0, 8.0, 2.0, 0.0]);
        assert_eq!(spread_of(Spread::Early, &free, &ready, &by_then(6.0)), [2.0, 8.0, 2.0, 5.0], "whatever is free");
        assert_eq!(spread_of(Spread::Early, &free, &[11.0; 4], &by_then(6.0)), [2.0, 8.0, 1.0, 0.0]);
        // Three more than are free: one stolen in each.
        assert_eq!(spread_of(Spread::Headroom, &free, &ready, &by_then(15.0)), [3.0, 9.0, 3.0, 0.0]);
        assert_eq!(spread_of(Spread::Even, &free, &ready, &by_then(15.0)), [3.0, 9.0, 3.0, 0.0]);
        assert_eq!(spread_of(Spread::Even, &free, &ready, &[0.0; 4]), [0.0; 4]);
    }

    #[test]
    fn nothing_is_paid_before_it_is_owed_and_a_stretch_ends_where_it_must() {
        // Four core-seconds come in the third slot and are required in the fourth.
        let cores = spread_of(Spread::Headroom, &[9.0, 9.0, 1.0, 5.0], &[0.0, 0.0, 4.0, 4.0], &[0.0, 0.0, 0.0, 4.0]);
        assert_eq!(cores, [0.0, 0.0, 0.0, 4.0]);
        // A hard start, then rest.
        let cores = spread_of(Spread::Even, &[9.0; 4], &[100.0; 4], &[8.0, 8.0, 8.0, 10.0]);
        assert_eq!(cores, [8.0, 0.667, 0.667, 0.667]);
    }

    #[test]
    fn all_cores_do_no_more_than_there_is() {
        assert_eq!(most(&[10.0; 3], &[1.0, 1.0, 1.0], &[4.0, 30.0, 31.0]), [4.0, 14.0, 24.0]);
    }

    #[test]
    fn where_less_may_be_taken_from_others_work_begins_sooner() {
        let (free, seconds, ready, required) = ([0.0; 4], [1.0; 4], [100.0; 4], [0.0, 0.0, 0.0, 12.0]);
        let cores_of = |limit: [f64; 4]| {
            let required: Vec<f64> = most(&limit, &seconds, &ready)
                .iter()
                .zip(required)
                .map(|(most, due): (&f64, _)| most.min(due))
                .collect();
            let curves = Curves {
                cores: 10.0,
                limit: &limit,
                free: &free,
                seconds: &seconds,
                ready: &ready,
                required: &required,
            };
            spread(Spread::Headroom, curves).iter().map(|cores| cores.round()).collect::<Vec<f64>>()
        };
        assert_eq!(cores_of([4.0; 4]), [3.0; 4]);
        assert_eq!(cores_of([2.0, 2.0, 4.0, 4.0]), [2.0, 2.0, 4.0, 4.0]);
        assert_eq!(cores_of([2.0; 4]), [2.0; 4], "what cannot be met takes what it may");
    }
}
