//! How often one of the ways to treat the readers would look best though all of them are alike.

use super::ROUNDS;

/// So seldom at most is what is told not to be by chance.
const CHANCE_MAX: f64 = 0.05;
/// Errors of the sum below are smaller.
const TOLERANCE: f64 = 1e-4;
const STEPS: u32 = 10_000;

/// In which part of all comparisons one of so many `others`, all like the one in force, is better than that in every round.
pub(super) fn chance(others: usize, rounds: u32) -> f64 {
    let (others, rounds) = (others as f64, f64::from(rounds.max(1)));
    // Over what the one in force had in its best round, as its rank among all values there can be.
    let step = 1.0 / f64::from(STEPS);
    let at = |index: u32| {
        let rank = (f64::from(index) + 0.5) * step;
        let ahead = (1.0 - rank).powf(rounds);
        rounds * rank.powf(rounds - 1.0) * (1.0 - (1.0 - ahead).powf(others)) * step
    };
    (0..STEPS).map(at).sum()
}

/// Whether so many rounds are enough for what is better in all of them to be no chance.
pub(super) fn is_enough(others: usize, rounds: u32) -> bool {
    chance(others, rounds) <= CHANCE_MAX + TOLERANCE
}

/// The least number of rounds that is.
pub(super) fn rounds_needed(others: usize) -> u32 {
    (ROUNDS..).find(|rounds| is_enough(others, *rounds)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{chance, is_enough, rounds_needed};

    #[test]
    fn of_more_that_are_alike_one_looks_better_more_often_and_more_rounds_show_it() {
        // Of six values the three greatest are those of one arm in one of twenty orders; of four the two greatest in one of six.
        for (rounds, part) in [(1, 2.0), (2, 6.0), (3, 20.0)] {
            assert!((chance(1, rounds) - 1.0 / part).abs() < 1e-6, "{rounds}: {}", chance(1, rounds));
        }
        assert!((chance(2, 1) - 2.0 / 3.0).abs() < 1e-6, "{}", chance(2, 1));
        assert_eq!(chance(0, 3), 0.0);
        assert!((0.2..0.35).contains(&chance(13, 3)), "{}", chance(13, 3));
        assert_eq!([0, 1].map(rounds_needed), [3, 3]);
        let needed = rounds_needed(13);
        assert!((4..=6).contains(&needed) && is_enough(13, needed) && !is_enough(13, needed - 1), "{needed}");
    }

    /// As it is drawn, and not as it is reckoned.
    #[test]
    fn drawn_comparisons_are_as_often_wrong_as_is_told() {
        let mut random = fastrand::Rng::with_seed(1);
        let tries = 20_000;
        let wrong = (0..tries).filter(|_| {
            let mut rounds = || [random.f64(), random.f64(), random.f64()];
            let best = rounds().into_iter().fold(0.0, f64::max);
            (0..13).any(|_| rounds().into_iter().all(|value| value > best))
        });
        let part = wrong.count() as f64 / f64::from(tries);
        assert!((part - chance(13, 3)).abs() < 0.02, "{part} for {}", chance(13, 3));
    }
}
