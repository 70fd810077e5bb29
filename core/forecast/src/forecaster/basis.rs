//! What is told of a tenant's next slice, beside what the trees say of it.

use crate::online::IntervalMeter;
use crate::tenant::FeatureState;

/// Who speaks of the next slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The host's trees.
    Trees,
    /// The autoregression of the tenant's own series, which sees cycles that are longer than what trees look back.
    Series,
    /// The best naive forecast, because neither did better for this tenant.
    Naive,
}

impl Source {
    /// The word people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trees => "trees",
            Self::Series => "series",
            Self::Naive => "naive",
        }
    }
}

/// The rate of the next slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextSlice {
    /// In bytes a second; of the trees between the median and the mean of the logarithm ([`Answer::told`]).
    pub bytes_per_second: f64,
    /// 80 % of what comes is above this and below `high`; equal to the value until enough came.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// As [`SkillMeter::told`]: above 0 only what is sure.
    pub skill: f64,
    /// Who said it: of those that beat every naive forecast for this tenant lately, the better.
    pub source: Source,
}

/// After a slice, all that its next slice is told from beside the trees' answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    /// What is told in place of the trees' answer, because it did better lately.
    pub(super) instead_of_trees: Option<(f64, Source)>,
    /// Of whoever speaks, as [`NextSlice::skill`].
    pub(super) skill: f64,
    /// As [`FeatureState::reach`].
    pub(super) reach: Option<f32>,
    pub(super) interval: IntervalMeter,
}

impl Basis {
    /// The next slice, given what the trees tell of it as log1p of bytes a second.
    pub(super) fn next_slice(&self, told: f32) -> NextSlice {
        self.of_log(f64::from(FeatureState::within(self.reach, told)))
    }

    /// The same of what is within reach.
    pub(super) fn of_log(&self, log: f64) -> NextSlice {
        let (value, source) = self.instead_of_trees.unwrap_or_else(|| (libm::expm1(log), Source::Trees));
        let interval = self.interval.interval(value);
        NextSlice {
            bytes_per_second: value,
            low: interval.map_or(value, |interval| interval.low),
            high: interval.map_or(value, |interval| interval.high),
            skill: self.skill,
            source,
        }
    }
}
