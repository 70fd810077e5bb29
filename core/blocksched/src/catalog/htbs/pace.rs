//! How long things take on this disk: measured, because no contract can say it.

use minerva_model::Nanos;

/// A mean and a mean deviation that follow what is measured, as TCP does with round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    mean_ns: f64,
    deviation_ns: f64,
    samples: u32,
}

impl Estimate {
    /// A first guess, which the first sample replaces.
    pub(super) fn assumed(mean: Nanos) -> Self {
        Self { mean_ns: mean.0 as f64, deviation_ns: 0.0, samples: 0 }
    }

    pub(super) fn note(&mut self, sample_ns: f64) {
        if self.samples == 0 {
            *self = Self { mean_ns: sample_ns, deviation_ns: sample_ns / 4.0, samples: 1 };
            return;
        }
        let error = sample_ns - self.mean_ns;
        self.mean_ns += error / 8.0;
        self.deviation_ns += (error.abs() - self.deviation_ns) / 8.0;
        self.samples = self.samples.saturating_add(1);
    }

    pub(super) fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// What few samples exceed.
    pub(super) fn high_ns(&self) -> f64 {
        self.mean_ns + 2.0 * self.deviation_ns
    }

    pub(super) fn is_measured(&self) -> bool {
        self.samples > 0
    }
}
