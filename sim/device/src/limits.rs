//! Limits of what a profile may say.

/// No part of a request takes longer; also keeps the arithmetic of instants far from its end.
pub(crate) const TIME_MS_MAX: f64 = 100_000.0;
