//! Differences of two samples: rates, resets, latency, contention.
