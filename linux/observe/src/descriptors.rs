//! How many counter files may stay open, so that reading one again is one call.

use rustix::process::{Resource, getrlimit};

/// Files of tenants that stay open at most: two of each of twelve hundred, and room. Those of further tenants are opened for each
/// reading.
pub const DESCRIPTORS_MAX: u64 = 4_096;
/// Of what the process may open, the observer takes one part in so many; the rest is for others.
const PART: u64 = 4;

/// What may be kept open, and what is.
#[derive(Debug)]
pub(crate) struct Descriptors {
    max: u64,
    /// Less than that since the process, or the host, had none left.
    lowered_to: u64,
    pub(crate) kept: u64,
}

impl Default for Descriptors {
    fn default() -> Self {
        Self { max: 0, lowered_to: DESCRIPTORS_MAX, kept: 0 }
    }
}

impl Descriptors {
    /// The limit may be another by now.
    pub(crate) fn begin_slice(&mut self) {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        self.max = (limit / PART).min(self.lowered_to);
    }

    /// One more may be kept; then it is counted.
    pub(crate) fn take(&mut self) -> bool {
        let is_room = self.kept < self.max;
        self.kept += u64::from(is_room);
        is_room
    }

    /// None were left: from now on fewer are kept, and the caller closes those that are before the next slice.
    pub(crate) fn lower(&mut self) {
        self.lowered_to = self.lowered_to.min(self.kept / 2);
        self.max = 0;
    }

    /// More are kept than may be.
    pub(crate) fn is_above(&self) -> bool {
        self.kept > self.max
    }
}

#[cfg(test)]
mod tests {
    use super::{DESCRIPTORS_MAX, Descriptors};

    #[test]
    fn no_more_are_kept_than_may_be_and_fewer_when_there_were_none_left() {
        let mut descriptors = Descriptors::default();
        assert!(!descriptors.take());
        descriptors.begin_slice();
        let kept = (0..2 * DESCRIPTORS_MAX).filter(|_| descriptors.take()).count() as u64;
        assert!((1..=DESCRIPTORS_MAX).contains(&kept) && kept == descriptors.kept);
        descriptors.lower();
        descriptors.begin_slice();
        assert!(descriptors.is_above());
        descriptors.kept = 0;
        assert_eq!((0..kept).filter(|_| descriptors.take()).count() as u64, kept / 2);
    }
}
