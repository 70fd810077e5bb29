//! Forecasts of what each tenant is about to do: value, interval and measured skill. One file a model.
//!
//! Everything here is pure and deterministic: no clock, no thread, no random source; seeds are arguments, work is bounded by
//! counts. A prediction allocates nothing.

pub mod arima;
pub mod boosting;
mod codec;
pub mod evaluate;
mod forecaster;
pub mod host;
mod linear;
pub mod load;
mod number;
pub mod online;
pub mod seasonal;
mod state;
pub mod tenant;

pub use codec::Damaged;
pub use forecaster::{
    COVERAGE_PERMILLE, Family, Forecaster, ForecasterSettings, Key, NextSlice, SessionOutlook, SliceTime, Source,
    TenantOutlook, check,
};
