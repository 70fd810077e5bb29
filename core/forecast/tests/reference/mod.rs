//! What the models have to reach against reference implementations: `docs/figures.md`, `golden`. The tests assert it and the
//! benchmark prints it.

pub(crate) mod arima;
pub(crate) mod boosting;
pub(crate) mod data;
mod dates;
#[path = "../drawn/mod.rs"]
#[allow(dead_code, reason = "the tests of a host use the rest")]
pub(crate) mod drawn;
mod laboratory;
pub(crate) mod seasonal;
mod series;
pub(crate) mod skill;
pub(crate) mod sums;
