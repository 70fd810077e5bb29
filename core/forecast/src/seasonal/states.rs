//! Low, medium and high arrival intensity and the times between them: a Markov-modulated Poisson process in bins (Kachmar and
//! Kaeli 2020, section V.A; Xue et al. 2014), fitted by expectation and maximisation (Baum et al. 1970, scaled as Rabiner 1989).
//!
//! I/O comes in larger clumps than Poisson's, so counts are first divided by how much more they vary within a state than their mean;
//! without that one state would follow every burst.

use super::Seasonal;
use serde::{Deserialize, Serialize};

/// Low, medium, high.
pub const STATES: usize = 3;
/// Rounds of expectation and maximisation.
const ROUNDS: usize = 20;
/// What a rate or a probability is at least, so that nothing is impossible.
const LEAST: f64 = 1e-6;

type PerState = [f64; STATES];

/// The model and where the process is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalStates {
    /// Mean count a bin in each state, ascending as started, in units of `clump`.
    rates: PerState,
    /// Row to column, in a bin.
    transitions: [PerState; STATES],
    initial: PerState,
    /// What counts are divided by.
    clump: f64,
    /// Probability of each state now.
    now: PerState,
    log_likelihood: f64,
}

impl ArrivalStates {
    /// Fits to counts (or rates) of bins; values that are not finite or below 0 are taken as 0. `None` for fewer than 30 values or
    /// if all are alike.
    pub fn fit(series: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = series.iter().map(|value| sane(*value)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        if n < 30 || sorted[0] == sorted[n - 1] {
            return None;
        }
        // Thirds of the values are the states to start from, and how they vary within is the clump.
        let third = |state: usize| &sorted[state * n / STATES..(state + 1) * n / STATES];
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let means: PerState = std::array::from_fn(|state| mean(third(state)));
        let variation: f64 = (0..STATES)
            .map(|state| {
                let squares = third(state).iter().map(|value| (value - means[state]) * (value - means[state]));
                squares.sum::<f64>()
            })
            .sum::<f64>()
            / n as f64;
        let clump = (variation / mean(&sorted)).max(LEAST * sorted[n - 1]);
        let stay = 0.9;
        let other = (1.0 - stay) / (STATES - 1) as f64;
        let transitions = std::array::from_fn(|row| std::array::from_fn(|to| if row == to { stay } else { other }));
        let rates = means.map(|mean| (mean / clump).max(LEAST));
        Some(Self::fit_from(series, clump, rates, transitions, ROUNDS))
    }

    /// Fits from given rates (in units of `clump`) and transition probabilities, in so many rounds; the initial states are alike.
    pub fn fit_from(
        series: &[f64],
        clump: f64,
        rates: PerState,
        transitions: [PerState; STATES],
        rounds: usize,
    ) -> Self {
        let even = [1.0 / STATES as f64; STATES];
        let mut model = Self { rates, transitions, initial: even, clump, now: even, log_likelihood: 0.0 };
        let counts: Vec<f64> = series.iter().map(|value| sane(*value) / clump).collect();
        let mut forward = vec![even; counts.len()];
        for _ in 0..rounds {
            model.improve(&counts, &mut forward);
        }
        model.now = model.initial;
        counts.iter().enumerate().for_each(|(at, count)| model.follow(*count, at > 0));
        model
    }

    /// Mean of a bin in each state, in the units of the series.
    pub fn rates(&self) -> [f64; STATES] {
        self.rates.map(|rate| rate * self.clump)
    }

    /// Probability to go from a state (row) to another within a bin.
    pub fn transitions(&self) -> [[f64; STATES]; STATES] {
        self.transitions
    }

    /// Probability of each state now.
    pub fn now(&self) -> [f64; STATES] {
        self.now
    }

    /// Of the series under the model that the last round started from.
    pub fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// Logarithm of Poisson's probability of a count, which need not be whole.
    fn log_density(&self, state: usize, count: f64) -> f64 {
        count * libm::log(self.rates[state]) - self.rates[state] - libm::lgamma(count + 1.0)
    }

    /// Densities of a count in each state relative to the largest, and the largest's logarithm.
    fn densities(&self, count: f64) -> (PerState, f64) {
        let logs: PerState = std::array::from_fn(|state| self.log_density(state, count));
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (logs.map(|log| libm::exp(log - largest)), largest)
    }

    fn moved(&self, from: &PerState) -> PerState {
        std::array::from_fn(|to| (0..STATES).map(|state| from[state] * self.transitions[state][to]).sum())
    }

    /// One round; `forward` is a buffer as long as the series.
    fn improve(&mut self, counts: &[f64], forward: &mut [PerState]) {
        let mut likelihood = 0.0;
        let mut at = self.initial;
        for (time, count) in counts.iter().enumerate() {
            if time > 0 {
                at = self.moved(&at);
            }
            let (densities, largest) = self.densities(*count);
            (0..STATES).for_each(|state| at[state] *= densities[state]);
            likelihood += libm::log(normalise(&mut at)) + largest;
            forward[time] = at;
        }
        let mut stays = [[0.0; STATES]; STATES];
        let (mut weight, mut weighted) = ([0.0; STATES], [0.0; STATES]);
        let mut backward = [1.0; STATES];
        let mut first = self.initial;
        for (time, count) in counts.iter().enumerate().rev() {
            let mut posterior: PerState = std::array::from_fn(|state| forward[time][state] * backward[state]);
            normalise(&mut posterior);
            for state in 0..STATES {
                weight[state] += posterior[state];
                weighted[state] += posterior[state] * count;
            }
            if time == 0 {
                first = posterior;
                break;
            }
            let (densities, _) = self.densities(*count);
            let ahead: PerState = std::array::from_fn(|to| densities[to] * backward[to]);
            let mut joint: [PerState; STATES] = std::array::from_fn(|from| {
                std::array::from_fn(|to| forward[time - 1][from] * self.transitions[from][to] * ahead[to])
            });
            let total: f64 = joint.iter().flatten().sum();
            joint.iter_mut().flatten().for_each(|value| *value /= total.max(f64::MIN_POSITIVE));
            stays.iter_mut().flatten().zip(joint.iter().flatten()).for_each(|(sum, value)| *sum += value);
            backward = std::array::from_fn(|from| (0..STATES).map(|to| self.transitions[from][to] * ahead[to]).sum());
            normalise(&mut backward);
        }
        for state in 0..STATES {
            self.rates[state] = (weighted[state] / weight[state].max(LEAST)).max(LEAST);
            stays[state].iter_mut().for_each(|value| *value = value.max(LEAST));
            normalise(&mut stays[state]);
        }
        (self.transitions, self.initial, self.log_likelihood) = (stays, first, likelihood);
    }

    fn follow(&mut self, count: f64, moves: bool) {
        if moves {
            self.now = self.moved(&self.now);
        }
        let (densities, _) = self.densities(count);
        (0..STATES).for_each(|state| self.now[state] *= densities[state].max(f64::MIN_POSITIVE));
        normalise(&mut self.now);
    }
}

impl Seasonal for ArrivalStates {
    fn observe(&mut self, _: usize, value: f64) {
        if value.is_finite() {
            self.follow(sane(value) / self.clump, true);
        } else {
            self.now = self.moved(&self.now);
        }
    }

    fn forecast(&self, _: usize, ahead: &mut [f64]) -> bool {
        let mut at = self.now;
        for value in ahead {
            at = self.moved(&at);
            *value = self.clump * at.iter().zip(&self.rates).map(|(probability, rate)| probability * rate).sum::<f64>();
        }
        true
    }
}

fn sane(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

/// Makes the sum one; what it was.
fn normalise(values: &mut PerState) -> f64 {
    let sum: f64 = values.iter().sum();
    if sum > 0.0 && sum.is_finite() {
        values.iter_mut().for_each(|value| *value /= sum);
        return sum;
    }
    *values = [1.0 / STATES as f64; STATES];
    f64::MIN_POSITIVE
}
