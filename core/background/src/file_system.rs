//! How full a file system is, and by how much what is in use grows.

use crate::cost::Mean;
use minerva_model::{Expectation, Nanos};
use serde::{Deserialize, Serialize};

/// Blocks are this large.
pub(crate) const BLOCK_BYTES: f64 = 4096.0;
pub(crate) const SPACE_HALF_LIFE_SECONDS: f64 = 24.0 * 3600.0;
/// What grew in less time than this is all that grows in it: minutes say nothing of days.
const GROWTH_SECONDS_MIN: f64 = 6.0 * 3600.0;
/// What grows by more than so many times what is written does not follow what is written.
const KEPT_MAX: f64 = 2.0;
/// Where nobody knows how large a file system is, it is not short of space.
const CAPACITY_UNKNOWN: f64 = 1e15;

/// Bytes that are expected to be written to a disk within so many seconds from now, with an interval.
pub type Written<'a> = &'a dyn Fn(f64) -> Expectation;

/// What is taken of an expectation's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Lower,
    Likely,
    Upper,
}

impl End {
    /// What is expected lies in the interval, whatever the forecast says; and what is no number is as if there were no interval.
    pub(crate) fn of(self, expected: Expectation) -> f64 {
        f64::from(match self {
            Self::Lower => expected.value.min(expected.lower),
            Self::Likely => expected.value,
            Self::Upper => expected.value.max(expected.upper),
        })
    }
}

/// What is known of a file system's space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Space {
    /// Bytes in use and in all; nothing in all: unknown.
    space: (f64, f64),
    /// Bytes a second by which what is in use grows; below 0 where more goes than comes.
    growth: Mean,
    space_at: Option<Nanos>,
}

impl Space {
    /// Bytes in use, and bytes in all; so many were freed since by background work. Unless growth `is_net`, as in recordings of earlier
    /// versions, what others deleted counts for nothing.
    pub(crate) fn reported(
        &mut self,
        now: Nanos,
        (used_bytes, size_bytes): (u64, u64),
        freed_bytes: f64,
        is_net: bool,
    ) {
        if size_bytes == 0 {
            return;
        }
        let seconds = self.space_at.map_or(0.0, |at| now.since(at).as_secs_f64());
        if seconds > 0.0 && self.space.1 > 0.0 {
            let grown = used_bytes as f64 + freed_bytes - self.space.0;
            let counted = if is_net { grown } else { grown.max(0.0) };
            self.growth.add_signed(counted / seconds, seconds, SPACE_HALF_LIFE_SECONDS);
        }
        self.space_at = Some(now);
        self.space = (used_bytes as f64, size_bytes as f64);
    }

    /// Bytes a second by which what is in use grows, as far as it grows.
    fn growth(&self) -> f64 {
        self.growth.over(GROWTH_SECONDS_MIN).max(0.0)
    }

    pub(crate) const fn seen_at(&self) -> Option<Nanos> {
        self.space_at
    }

    pub(crate) const fn capacity_bytes(&self) -> f64 {
        if self.space.1 > 0.0 { self.space.1 } else { CAPACITY_UNKNOWN }
    }

    /// Blocks in use beside those that debt ties.
    pub(crate) fn used_blocks(&self, tied_blocks: f64) -> f64 {
        (self.space.0 / BLOCK_BYTES - tied_blocks).max(0.0)
    }

    /// Blocks that debt can tie beside so many: those in use, and where nobody knows how many these are, half of what is never too much.
    pub(crate) fn tied_blocks_max(&self, tied_blocks: f64) -> f64 {
        if self.space.1 > 0.0 { self.used_blocks(tied_blocks) } else { 0.5 * CAPACITY_UNKNOWN / BLOCK_BYTES }
    }

    /// Seconds until `limit_share` of it is in use if it grows as it did, and the part that is free: whichever is least runs out first.
    pub(crate) fn left(&self, limit_share: f64) -> (f64, f64) {
        let room = (limit_share * self.capacity_bytes() - self.space.0).max(0.0);
        let growth = self.growth();
        let seconds = if growth > 0.0 { room / growth } else { f64::INFINITY };
        (seconds, room / self.capacity_bytes())
    }

    /// The part of so many bytes written a second by which what is in use grows.
    pub(crate) fn kept_of(&self, written_bytes_per_second: f64) -> Option<f64> {
        let is_written = written_bytes_per_second > 0.0;
        let kept = is_written.then(|| self.growth() / written_bytes_per_second);
        kept.filter(|kept| *kept <= KEPT_MAX)
    }

    /// Bytes a second by which what is in use grows in a slot that ends so many seconds from now and is so long, slot after slot: a part of
    /// what is foreseen to be written, else as it did.
    pub(crate) fn growing<'a>(
        &self,
        foreseen: Option<(Written<'a>, f64)>,
        end: End,
    ) -> impl FnMut(f64, f64) -> f64 + use<'a> {
        let (as_before, mut until_now) = (self.growth(), 0.0);
        move |slot_end, seconds| {
            let Some((written, kept)) = foreseen else { return as_before };
            let until_then = end.of(written(slot_end));
            // The lower end of sums whose interval widens may fall; what was written stays written.
            let until_then = if until_then.is_finite() { until_then.max(until_now) } else { until_now };
            kept * (until_then - std::mem::replace(&mut until_now, until_then)) / seconds
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Space};
    use minerva_model::{Expectation, Nanos};

    #[test]
    fn an_interval_holds_what_is_expected_and_what_is_no_number_is_none() {
        let odd = Expectation { value: 2.0, lower: 3.0, upper: f32::NAN };
        assert_eq!([End::Lower, End::Likely, End::Upper].map(|end| end.of(odd)), [2.0; 3]);
    }

    #[test]
    fn what_runs_out_first_has_the_least_left() {
        let of = |used: u64, grown: u64| {
            let mut space = Space::default();
            space.reported(Nanos::ZERO, (used, 1000), 0.0, true);
            space.reported(Nanos::from_secs(86_400), (used + grown, 1000), 0.0, true);
            space.left(0.95)
        };
        let (full, half, grows) = (of(900, 0), of(500, 0), of(400, 50));
        assert_eq!(full, (f64::INFINITY, 0.05));
        assert!(full < half, "neither grows");
        assert!(grows < full && (grows.0 / 864_000.0 - 1.0).abs() < 1e-9, "{grows:?}");
    }
}
