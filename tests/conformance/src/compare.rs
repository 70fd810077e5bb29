//! Pairs of the two arms, and how far they are apart.

use crate::Outcome;
use crate::job::Job;
use std::fmt::Write as _;

/// Throughput and shares are to agree within this part.
pub const THROUGHPUT_ERROR_MAX: f64 = 0.15;
/// The 99th percentile within this part.
pub const P99_ERROR_MAX: f64 = 0.30;

/// One job, both arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// What was run.
    pub job: Job,
    /// On the simulator.
    pub simulated: Outcome,
    /// On the kernel.
    pub real: Outcome,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// All tenants together.
    Throughput,
    /// Each tenant's part of it.
    Shares,
    /// Each tenant's 99th percentile.
    P99,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::Shares, Self::P99];

    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Shares => "shares",
            Self::P99 => "p99",
        }
    }

    /// The greatest error that counts as agreement.
    pub const fn error_max(self) -> f64 {
        match self {
            Self::Throughput | Self::Shares => THROUGHPUT_ERROR_MAX,
            Self::P99 => P99_ERROR_MAX,
        }
    }
}

impl Pair {
    /// How far the simulated arm is from the real one, as a part of the real one: the worst tenant's.
    pub fn error(&self, quantity: Quantity) -> f64 {
        let relative = |simulated: f64, real: f64| (simulated / real.max(f64::MIN_POSITIVE) - 1.0).abs();
        let tenants = 0..self.job.tenants.len();
        match quantity {
            Quantity::Throughput => relative(self.simulated.bytes_per_second(), self.real.bytes_per_second()),
            Quantity::Shares => {
                tenants.map(|index| relative(self.simulated.share(index), self.real.share(index))).fold(0.0, f64::max)
            }
            Quantity::P99 => self
                .simulated
                .tenants
                .iter()
                .zip(&self.real.tenants)
                .map(|(simulated, real)| relative(simulated.p99_ms, real.p99_ms))
                .fold(0.0, f64::max),
        }
    }

    /// Whether everything agrees.
    pub fn agrees(&self) -> bool {
        Quantity::ALL.iter().all(|quantity| self.error(*quantity) <= quantity.error_max())
    }

    /// The pair in one line: simulated / real.
    pub fn line(&self) -> String {
        let (simulated, real) = (&self.simulated, &self.real);
        let mut text = format!(
            "{} {}: {:.2}/{:.2} MB/s",
            if self.agrees() { "agrees" } else { "DIFFERS" },
            self.job,
            simulated.bytes_per_second() / 1e6,
            real.bytes_per_second() / 1e6
        );
        for (index, (left, right)) in simulated.tenants.iter().zip(&real.tenants).enumerate() {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "; share {:.3}/{:.3} mean {:.2}/{:.2} p99 {:.2}/{:.2} ms ({} real)",
                simulated.share(index),
                real.share(index),
                left.mean_ms,
                right.mean_ms,
                left.p99_ms,
                right.p99_ms,
                right.requests
            );
        }
        let errors = Quantity::ALL.map(|quantity| {
            let (error, most) = (self.error(quantity), quantity.error_max());
            format!("{} {:.0} %{}", quantity.as_str(), error * 100.0, if error > most { "!" } else { "" })
        });
        let _ = write!(text, "; apart: {}", errors.join(", "));
        text
    }
}

/// The worst pair's error.
pub fn worst(pairs: &[Pair], quantity: Quantity) -> f64 {
    pairs.iter().map(|pair| pair.error(quantity)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{Pair, Quantity, worst};
    use crate::job::jobs;
    use crate::{Outcome, TenantOutcome};

    #[test]
    fn the_worst_tenant_counts() {
        let outcome = |rates: [f64; 2]| Outcome {
            tenants: rates
                .map(|bytes_per_second| TenantOutcome { bytes_per_second, p99_ms: 1.0, mean_ms: 1.0, requests: 1 })
                .to_vec(),
        };
        let pair = Pair { job: jobs().remove(0), simulated: outcome([8e6, 2e6]), real: outcome([9e6, 1e6]) };
        assert_eq!(pair.error(Quantity::Throughput), 0.0);
        assert!((pair.error(Quantity::Shares) - 1.0).abs() < 1e-9);
        assert!(!pair.agrees() && pair.line().starts_with("DIFFERS"));
        assert_eq!(worst(&[pair], Quantity::P99), 0.0);
    }
}
