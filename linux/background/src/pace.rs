//! Work for a part of the time only, so that whoever else uses the disk has the rest.

use std::time::Duration;

/// Pauses are not shorter: the scheduler would round them.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// Nor longer, so that the work is seen to go on.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A part of the time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    percent: u32,
    owed: Duration,
}

impl Pace {
    /// To work for so many percent of the time, 1 to 100.
    pub fn new(percent: u32) -> Self {
        Self { percent: percent.clamp(1, 100), owed: Duration::ZERO }
    }

    /// Takes what was worked, and says how long to pause now: what took long, because others use the disk, is followed by a pause
    /// that is longer by as much.
    pub fn worked(&mut self, time: Duration) -> Duration {
        self.owed += time * (100 - self.percent) / self.percent;
        if self.owed < PAUSE_MIN {
            return Duration::ZERO;
        }
        let pause = self.owed.min(PAUSE_MAX);
        // What a single slow call would ask for beyond that is forgiven: the disk may have slept.
        self.owed = Duration::ZERO;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::{PAUSE_MAX, Pace};
    use std::time::Duration;

    #[test]
    fn a_fifth_of_the_time_pauses_four_times_as_long_as_it_works() {
        let mut pace = Pace::new(20);
        let pauses: Duration = (0..100).map(|_| pace.worked(Duration::from_millis(1))).sum();
        assert_eq!(pauses, Duration::from_millis(400));
        assert_eq!(pace.worked(Duration::from_secs(60)), PAUSE_MAX);
        assert_eq!(Pace::new(100).worked(Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(Pace::new(0).worked(Duration::from_millis(1)), Duration::from_millis(99));
    }
}
