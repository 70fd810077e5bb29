//! What neighbours lose beside a burst, and how values spread.

use super::median;
use minerva_lab::figure::{MigrationRun, NeighbourRun};
use minerva_lab::workload::Latency;

/// The arms with a burst, in the order of [`MigrationArm::ALL`], which is that of runs.
pub(crate) const WAYS: [(usize, &str); 3] = [(1, "straight"), (2, "copy"), (3, "pool")];

/// What a neighbour lost against no burst, in percent: the middle of the rounds for its throughput, all requests for its p99.
pub(crate) struct Loss {
    pub(crate) throughput: f64,
    spread: [f64; 2],
    /// By how much p99 is longer.
    pub(crate) p99_percent: f64,
    pub(crate) p99_ms: [f64; 2],
}

impl Loss {
    pub(crate) fn of(
        rounds: &[Vec<MigrationRun>],
        arm: usize,
        place: usize,
        of: impl Fn(&MigrationRun) -> &[NeighbourRun],
    ) -> Self {
        let rate = |round: &[MigrationRun], arm: usize| of(&round[arm])[place].mb_per_s;
        let losses: Vec<f64> = rounds
            .iter()
            .map(|round| 100.0 * (1.0 - rate(round, arm) / rate(round, 0).max(f64::MIN_POSITIVE)))
            .collect();
        let p99_ms = [arm, 0].map(|arm| {
            let latency = Latency::merged(rounds.iter().map(|round| &of(&round[arm])[place].latency));
            latency.quantile(0.99).unwrap_or_default().as_millis_f64()
        });
        Self {
            throughput: median(losses.iter().copied()),
            spread: [
                losses.iter().copied().fold(f64::INFINITY, f64::min),
                losses.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ],
            p99_percent: 100.0 * (p99_ms[0] / p99_ms[1].max(f64::MIN_POSITIVE) - 1.0),
            p99_ms,
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { throughput, spread: [least, most], p99_percent, p99_ms: [with, without] } = self;
        write!(
            f,
            "{throughput:.1} % lost ({least:.1} to {most:.1}), p99 {p99_percent:+.0} % ({with:.1} ms for {without:.1})"
        )
    }
}

/// The middle, the least and the most.
pub(crate) fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.2} ({least:.2} to {most:.2})", median(values.iter().copied()))
}
