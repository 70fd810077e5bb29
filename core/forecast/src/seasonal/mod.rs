//! Day and week ahead, in bins of ten minutes.
//!
//! Every model takes the value of each bin in order ([`Seasonal::observe`]) and forecasts any number of bins from the next on.
//! A bin without a value (the daemon was off, a counter was reset) is a NaN; models go on as if it were as they forecast.

mod bins;
mod days;
mod ensemble;
mod holt_winters;
mod long_arma;
mod naive;
mod states;

pub use bins::{Bin, Bins, Totals};
pub use days::DayClusters;
pub use ensemble::{Ensemble, Member};
pub use holt_winters::{HoltWinters, Smoothing};
pub use long_arma::LongArma;
pub use naive::SeasonalNaive;
pub use states::{ArrivalStates, STATES};

/// Bins of a day.
pub const BINS_PER_DAY: usize = 144;
/// Bins of a week.
pub const BINS_PER_WEEK: usize = 7 * BINS_PER_DAY;
/// Length of a bin.
pub const BIN_SECONDS: u64 = 600;

/// A forecaster of bins.
pub trait Seasonal {
    /// Takes the value of the next bin, which is number `bin` of its week, from 0; NaN if there is none.
    fn observe(&mut self, bin: usize, value: f64);

    /// Fills `ahead` with forecasts of the bins that follow, at least 0 each; whether there is a forecast at all. `bin` is the
    /// number in its week of the first. Allocates nothing.
    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool;
}
