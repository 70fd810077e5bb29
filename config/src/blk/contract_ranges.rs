//! What a contract of a VM disk may promise, in the file and over the control socket alike: what is set there is read from a file at the
//! next start.

use minerva_model::Nanos;
use std::ops::RangeInclusive;

/// The greatest rate, and the greatest limit.
pub const RATE_BYTES_PER_SECOND_MAX: u64 = 1 << 50;
/// Bytes that may come at once.
pub const BURST_BYTES: RangeInclusive<u64> = 4096..=1 << 40;
/// How long a request may take.
pub const DELAY: RangeInclusive<Nanos> = Nanos::from_millis(1)..=Nanos::from_secs(60);
/// The size of a request that a contract reckons with.
pub const REQUEST_BYTES: RangeInclusive<u64> = 512..=8 << 20;
