//! A synthetic week of virtual desktops, after what Kachmar and Kaeli (2020) show of the SYSTOR '17 traces (Lee et al. 2017): Fig. 4,
//! 8, 9 and the error of forecasts. The numbers are chosen in docs/adr/0017.

use crate::load::{Load, Second};
use crate::random::Noise;
use minerva_forecast::seasonal::{BIN_SECONDS, BINS_PER_DAY, BINS_PER_WEEK};

/// Days that are played, as in the paper.
pub const DAYS: usize = 6;
/// Whole weeks that forecasters saw before.
pub const HISTORY_WEEKS: usize = 4;

/// Each hour of an office day, the busiest being 1.
const HOURS: [f64; 24] = [
    0.16, 0.17, 0.16, 0.18, 0.19, 0.26, 0.40, 0.58, 0.82, 0.95, 1.00, 0.88, 0.81, 0.77, 0.75, 0.75, 0.62, 0.50, 0.38,
    0.30, 0.31, 0.54, 0.38, 0.20,
];
/// Monday to Sunday.
const DAY_LEVELS: [f64; 7] = [1.22, 1.0, 1.0, 1.0, 1.0, 0.34, 0.34];
/// Requests a second in Monday's busiest hour: 75 % of 64 cores of 50.
const PEAK_OPS: f64 = 2_400.0;
const WRITE_SHARE: f64 = 1.0 / 3.0;
/// While updates are installed.
const WRITE_SHARE_UPDATES: f64 = 0.5;
const UPDATE_HOUR: usize = 21;
/// Deviation of a bin from its hour, of a second from its bin, of a bin's part of writes; of logarithms.
const BIN_SIGMA: f64 = 0.17;
const SECOND_SIGMA: f64 = 0.15;
const WRITE_SIGMA: f64 = 0.1;
/// How much of it is in the next bin or second.
const BIN_KEPT: f64 = 0.7;
const SECOND_KEPT: f64 = 0.8;
/// The walk of a load without a pattern: slower, and wider.
const WALK_KEPT: f64 = 0.985;
const WALK_SIGMA: f64 = 0.6;
/// Wednesday, 07:00.
const START_BIN: usize = 2 * BINS_PER_DAY + 7 * 6;

/// What days have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Office hours, quiet weekends.
    Office,
    /// None: the same mean, a slow walk.
    Walk,
}

/// Six days from a Wednesday, 07:00, with four weeks before and one after.
pub fn synthetic(pattern: Pattern, seed: u64) -> Load {
    let first_bin = HISTORY_WEEKS * BINS_PER_WEEK + START_BIN;
    let bins = means(pattern, seed, first_bin + DAYS * BINS_PER_DAY + BINS_PER_WEEK);
    let mut noise = Noise::new(seed ^ 0x5ec0_0d50, SECOND_KEPT);
    let seconds = bins[first_bin..first_bin + DAYS * BINS_PER_DAY]
        .iter()
        .flat_map(|bin| std::iter::repeat_n(*bin, BIN_SECONDS as usize))
        .map(|bin| {
            let factor = noise.factor(SECOND_SIGMA);
            Second { ops: bin.ops * factor, written_blocks: bin.written_blocks * factor }
        })
        .collect();
    let mut load = Load { bins, first_bin, seconds };
    load.settle();
    load
}

fn means(pattern: Pattern, seed: u64, count: usize) -> Vec<Second> {
    let kept = if pattern == Pattern::Walk { WALK_KEPT } else { BIN_KEPT };
    let mut noise = Noise::new(seed.wrapping_mul(2).wrapping_add(0xb1a5), kept);
    let mut writes = Noise::new(seed.wrapping_mul(3).wrapping_add(0x3717e), BIN_KEPT);
    (0..count)
        .map(|bin| {
            let (level, write_share) = match pattern {
                Pattern::Office => (level(bin), write_share(bin)),
                Pattern::Walk => (mean_level(), WRITE_SHARE),
            };
            let sigma = if pattern == Pattern::Walk { WALK_SIGMA } else { BIN_SIGMA };
            let ops = PEAK_OPS * level * noise.factor(sigma);
            Second { ops, written_blocks: ops * (write_share * writes.factor(WRITE_SIGMA)).min(1.0) }
        })
        .collect()
}

/// A bin's expected part of the busiest hour's load.
fn level(bin: usize) -> f64 {
    let day = DAY_LEVELS[bin / BINS_PER_DAY % 7] / DAY_LEVELS[0];
    // Between the middles of two hours.
    let position = (bin % BINS_PER_DAY) as f64 / 6.0 - 0.5 + 1.0 / 12.0;
    let hour = (position.floor() as isize).rem_euclid(24) as usize;
    let part = position - position.floor();
    day * (HOURS[hour] * (1.0 - part) + HOURS[(hour + 1) % 24] * part)
}

fn mean_level() -> f64 {
    (0..BINS_PER_WEEK).map(level).sum::<f64>() / BINS_PER_WEEK as f64
}

fn write_share(bin: usize) -> f64 {
    if bin % BINS_PER_DAY / 6 == UPDATE_HOUR { WRITE_SHARE_UPDATES } else { WRITE_SHARE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_week_has_the_papers_shape_and_seeds_differ() {
        let load = synthetic(Pattern::Office, 1);
        assert_eq!((load.seconds.len(), load.bins.len() - load.first_bin), (DAYS * 86_400, (DAYS + 7) * BINS_PER_DAY));
        assert_eq!(load, synthetic(Pattern::Office, 1));
        assert_ne!(load, synthetic(Pattern::Office, 2));
        let weeks = HISTORY_WEEKS as f64;
        let day = |day: usize| {
            let bins = load.bins[..load.first_bin].iter().enumerate();
            let of_day = bins.filter(|(bin, _)| bin / BINS_PER_DAY < 28 && bin / BINS_PER_DAY % 7 == day);
            of_day.map(|(_, bin)| bin.ops).sum::<f64>() / weeks / BINS_PER_DAY as f64
        };
        let usual = (1..5).map(day).sum::<f64>() / 4.0;
        assert!((day(0) / usual - 1.22).abs() < 0.1, "Monday: {}", day(0) / usual);
        assert!((day(5) / usual - 0.34).abs() < 0.05, "Saturday: {}", day(5) / usual);
        let written: f64 = load.bins.iter().map(|bin| bin.written_blocks).sum();
        let share = written / load.bins.iter().map(|bin| bin.ops).sum::<f64>();
        assert!((0.32..0.37).contains(&share), "a third are writes: {share}");
        let series: Vec<f64> = load.bins.iter().map(|bin| bin.ops).collect();
        let by_lag = minerva_forecast::evaluate::autocorrelation(&series, 2 * BINS_PER_DAY - 1);
        let others = by_lag[BINS_PER_DAY / 4..3 * BINS_PER_DAY / 4].iter().copied().fold(-1.0, f64::max);
        let day = by_lag[BINS_PER_DAY];
        assert!(day > 0.4 && day > others + 0.2, "the strongest lag is a day: {day}, {others}");
    }

    #[test]
    fn without_a_pattern_a_day_says_nothing_of_the_next() {
        let load = synthetic(Pattern::Walk, 1);
        let series: Vec<f64> = load.bins.iter().map(|bin| bin.ops).collect();
        let by_lag = minerva_forecast::evaluate::autocorrelation(&series, BINS_PER_DAY);
        assert!(by_lag[BINS_PER_DAY].abs() < 0.25, "{}", by_lag[BINS_PER_DAY]);
    }

    #[test]
    fn a_load_that_grows_does_so_from_its_second_on() {
        let load = synthetic(Pattern::Office, 1);
        let grown = load.clone().grown(600, 2.0);
        assert_eq!(grown.bins[..=load.first_bin], load.bins[..=load.first_bin]);
        let (before, after) = (load.bins[load.first_bin + 1].ops, grown.bins[load.first_bin + 1].ops);
        assert!((after / before - 2.0).abs() < 1e-9);
        assert_eq!(grown.seconds[599], load.seconds[599]);
    }
}
