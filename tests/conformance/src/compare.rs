//! Pairs of a simulated and a real arm, and how far they are apart.

use crate::job::Job;
use crate::{Arm, Outcome};
use std::fmt::Write as _;

/// Throughput and shares are to agree within this part.
pub const THROUGHPUT_ERROR_MAX: f64 = 0.15;
/// The 99th percentile within this part.
pub const P99_ERROR_MAX: f64 = 0.30;

/// One job, the simulated arm and the real one that it is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// What was run.
    pub job: Job,
    /// On the simulator.
    pub simulated: Arm,
    /// On the kernel, or at a server.
    pub real: Arm,
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

    /// Its values in an outcome: one for throughput, one a tenant for the others.
    fn of(self, outcome: &Outcome) -> Vec<f64> {
        match self {
            Self::Throughput => vec![outcome.bytes_per_second()],
            Self::Shares => (0..outcome.tenants.len()).map(|index| outcome.share(index)).collect(),
            Self::P99 => outcome.tenants.iter().map(|tenant| tenant.p99_ms).collect(),
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
        let (simulated, real) = (quantity.of(&self.simulated.whole), quantity.of(&self.real.whole));
        simulated.iter().zip(&real).map(|(simulated, real)| relative(*simulated, *real)).fold(0.0, f64::max)
    }

    /// Whether everything agrees.
    pub fn agrees(&self) -> bool {
        Quantity::ALL.iter().all(|quantity| self.error(*quantity) <= quantity.error_max())
    }

    /// How far a quantity is apart, for people: where it does not agree with the values, and with what either arm got in its
    /// own windows. The real arm's are parts of its run, the simulated ones as long as all of it.
    pub fn apart(&self, quantity: Quantity) -> String {
        let mut text = format!("{:.0} %", self.error(quantity) * 100.0);
        for spread in self.spreads(quantity) {
            let Spread { simulated, simulated_windows: (least, most), real, real_windows } = spread;
            // Writing to a String cannot fail.
            let _ = write!(text, "! (simulated {simulated:.3}, windows {least:.3} to {most:.3}; real {real:.3}");
            let _ = match real_windows {
                Some((least, most)) => write!(text, ", windows {least:.3} to {most:.3})"),
                None => write!(text, ")"),
            };
        }
        text
    }

    /// Each value that does not agree, with the least and the greatest that the simulator got in windows as long as the real
    /// one. A real value between them differs by no more than chance.
    fn spreads(&self, quantity: Quantity) -> Vec<Spread> {
        let (simulated, real) = (quantity.of(&self.simulated.whole), quantity.of(&self.real.whole));
        let range = |arm: &Arm, index: usize| {
            let values = arm.windows.iter().map(|window| quantity.of(window)[index]);
            values.fold((f64::INFINITY, 0.0), |(least, most), value: f64| (value.min(least), value.max(most)))
        };
        let apart = (0..real.len()).filter(|index| relative(simulated[*index], real[*index]) > quantity.error_max());
        apart
            .map(|index| Spread {
                simulated: simulated[index],
                simulated_windows: range(&self.simulated, index),
                real: real[index],
                real_windows: (self.real.windows.len() > 1).then(|| range(&self.real, index)),
            })
            .collect()
    }

    /// Whether the simulator's own windows are as far apart as it is from the real arm, wherever it does not agree with it.
    pub fn may_be_chance(&self, quantity: Quantity) -> bool {
        let within = |spread: &Spread| {
            let (least, most) = spread.simulated_windows;
            (least..=most).contains(&spread.real)
        };
        self.spreads(quantity).iter().all(within)
    }

    /// The pair in one line: simulated / real.
    pub fn line(&self) -> String {
        let (simulated, real) = (&self.simulated.whole, &self.real.whole);
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
        let errors = Quantity::ALL.map(|quantity| format!("{} {}", quantity.as_str(), self.apart(quantity)));
        let _ = write!(text, "; apart: {}", errors.join(", "));
        text
    }
}

/// A value of both arms, and between what their windows lie.
struct Spread {
    simulated: f64,
    simulated_windows: (f64, f64),
    real: f64,
    /// None if the real arm was one window.
    real_windows: Option<(f64, f64)>,
}

fn relative(simulated: f64, real: f64) -> f64 {
    (simulated / real.max(f64::MIN_POSITIVE) - 1.0).abs()
}

/// What another arm got of the same job, in one line.
pub fn beside(name: &str, arm: &Arm) -> String {
    let mut text = format!("{name}: {:.2} MB/s", arm.whole.bytes_per_second() / 1e6);
    for (index, tenant) in arm.whole.tenants.iter().enumerate() {
        let share = arm.whole.share(index);
        // Writing to a String cannot fail.
        let _ = write!(text, "; share {share:.3} mean {:.2} p99 {:.2} ms", tenant.mean_ms, tenant.p99_ms);
    }
    text
}

/// The worst pair's error.
pub fn worst(pairs: &[Pair], quantity: Quantity) -> f64 {
    pairs.iter().map(|pair| pair.error(quantity)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{Pair, Quantity, worst};
    use crate::job::jobs;
    use crate::{Arm, Outcome, TenantOutcome};

    #[test]
    fn the_worst_tenant_counts_and_chance_is_told_apart() {
        let outcome = |rates: [f64; 2]| Outcome {
            tenants: rates
                .map(|bytes_per_second| TenantOutcome { bytes_per_second, p99_ms: 1.0, mean_ms: 1.0, requests: 1 })
                .to_vec(),
        };
        let simulated = |windows: &[[f64; 2]]| Arm {
            whole: outcome([8e6, 2e6]),
            windows: windows.iter().map(|rates| outcome(*rates)).collect(),
        };
        let real = Arm { whole: outcome([9e6, 1e6]), windows: vec![outcome([9e6, 1e6]), outcome([7e6, 3e6])] };
        let pair = Pair { job: jobs().remove(0), simulated: simulated(&[[7e6, 3e6], [8e6, 2e6]]), real };
        assert_eq!(pair.error(Quantity::Throughput), 0.0);
        assert!((pair.error(Quantity::Shares) - 1.0).abs() < 1e-9);
        assert!(!pair.agrees() && pair.line().starts_with("DIFFERS"));
        let apart = "(simulated 0.200, windows 0.200 to 0.300; real 0.100, windows 0.100 to 0.300)";
        assert!(pair.apart(Quantity::Shares).ends_with(apart), "{}", pair.apart(Quantity::Shares));
        assert!(!pair.may_be_chance(Quantity::Shares) && pair.may_be_chance(Quantity::P99));
        let wide = Pair { simulated: simulated(&[[7e6, 3e6], [9.5e6, 5e5]]), ..pair.clone() };
        assert!(!wide.agrees() && wide.may_be_chance(Quantity::Shares));
        assert_eq!(worst(&[pair], Quantity::P99), 0.0);
    }
}
