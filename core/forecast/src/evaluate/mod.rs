//! How good forecasts are: measures of error, of intervals and of probabilities, and what a series looks like.

mod measures;
mod shape;
mod ties;

pub use measures::{Accuracy, Brier};
pub use shape::{Decomposition, autocorrelation, decompose, partial_autocorrelation};
pub use ties::Edges;
