//! What every forecast is followed by while it runs: naive forecasts to beat, skill, intervals, changes.

mod adwin;
mod cusum;
mod interval;
mod naive;
mod order;
mod orders;
mod skill;

pub use adwin::Adwin;
pub use cusum::Cusum;
pub use interval::{Interval, IntervalMeter};
pub use naive::{NAIVE, Naive};
pub use order::OrderMeter;
pub use orders::{Account, Orders};
pub use skill::SkillMeter;
pub(crate) use skill::{counted, of_both, of_both_that_earned};
