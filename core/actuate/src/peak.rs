//! The most that a disk was seen to deliver, where nobody says what it can.
//!
//! A disk with a cache, or with a compressible or empty image behind it, delivers several times as much in one second as in the hours after.
//! So of what a slice lacks to the peak a part is forgotten.

use minerva_model::Nanos;

/// In this time all but a third of what the peak was above what is measured is forgotten: within five minutes nine tenths of a peak that was
/// ten times as high.
const FORGETS_S: f64 = 60.0;

/// The peak after a slice of this length in which the disk was busy, in bytes a second as both others.
pub(crate) fn peak(known: f64, measured: f64, slice: Nanos) -> f64 {
    let part = (slice.as_secs_f64() / FORGETS_S).min(1.0);
    measured.max(known - (known - measured) * part)
}

#[cfg(test)]
mod tests {
    use super::peak;
    use minerva_model::Nanos;

    #[test]
    fn more_counts_at_once_and_less_over_minutes() {
        assert_eq!(peak(400e6, 3e9, Nanos::SECOND), 3e9);
        let after = |slices| (0..slices).fold(3e9, |known, _| peak(known, 400e6, Nanos::SECOND));
        assert!(after(10) > 2.5e9, "a pause of some seconds is none");
        assert!(after(300) < 450e6);
        assert_eq!(peak(3e9, 400e6, Nanos::from_secs(600)), 400e6);
    }
}
