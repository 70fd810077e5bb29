//! What the foreground asks for: seconds of the days that are played, bins of the weeks before and after.

use minerva_forecast::seasonal::{BIN_SECONDS, BINS_PER_DAY, BINS_PER_WEEK};

/// A second, or the mean of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Requests.
    pub ops: f64,
    /// Of these, writes; a block each.
    pub written_blocks: f64,
}

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Means of bins of ten minutes, the first in bin 0 of a Monday: what forecasters saw before, the days that are played, what
    /// comes after.
    pub bins: Vec<Second>,
    /// Where the days that are played begin.
    pub first_bin: usize,
    /// The days that are played.
    pub seconds: Vec<Second>,
}

impl Load {
    /// Bins whose means are those of the seconds, over which they lie.
    pub(crate) fn settle(&mut self) {
        for (bin, seconds) in self.bins[self.first_bin..].iter_mut().zip(self.seconds.chunks(BIN_SECONDS as usize)) {
            let count = seconds.len() as f64;
            *bin = Second {
                ops: seconds.iter().map(|second| second.ops).sum::<f64>() / count,
                written_blocks: seconds.iter().map(|second| second.written_blocks).sum::<f64>() / count,
            };
        }
    }

    /// Blocks written a second in the mean of Tuesdays to Fridays before the days that are played; of all bins where there are none.
    pub fn written_per_weekday_second(&self) -> f64 {
        let is_usual = |bin: &usize| (1..5).contains(&(bin % BINS_PER_WEEK / BINS_PER_DAY));
        let mut bins: Vec<usize> = (0..self.first_bin).filter(is_usual).collect();
        if bins.is_empty() {
            bins = (0..self.bins.len()).collect();
        }
        let sum: f64 = bins.iter().map(|bin| self.bins[*bin].written_blocks).sum();
        sum / bins.len().max(1) as f64
    }

    /// The same load, from a second of the played days on so many times as much.
    pub fn grown(mut self, from_second: usize, factor: f64) -> Self {
        let times = |second: &mut Second| {
            second.ops *= factor;
            second.written_blocks *= factor;
        };
        self.seconds.iter_mut().skip(from_second).for_each(times);
        let played = self.seconds.len().div_ceil(BIN_SECONDS as usize);
        self.bins.iter_mut().skip(self.first_bin + played).for_each(times);
        self.settle();
        self
    }
}
