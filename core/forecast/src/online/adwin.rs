//! Slow shifts: a window that drops its old part when the two halves differ (ADWIN2, Bifet and Gavaldà 2007).

use crate::number::bounded;
use serde::{Deserialize, Serialize};

/// Buckets of a size before two are joined into one of the next.
const BUCKETS: usize = 5;
/// Sizes: 2^20 values at most.
const LEVELS: usize = 20;
/// Confidence that an alarm is none.
const DELTA: f64 = 0.002;
/// How often, in values, the window is looked at.
const CLOCK: u32 = 32;
/// Values in each part, at least.
const PART_MIN: f64 = 5.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Bucket {
    sum: f32,
    /// Sum of squared deviations from the bucket's mean.
    squares: f32,
}

/// Buckets of one size, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Level {
    buckets: [Bucket; BUCKETS + 1],
    count: usize,
}

/// The window. 1.3 kB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Adwin {
    levels: [Level; LEVELS],
    count: f64,
    sum: f64,
    squares: f64,
    clock: u32,
}

impl Adwin {
    /// Takes a value; whether the window was cut because its mean has changed.
    pub fn observe(&mut self, value: f64) -> bool {
        let Some(value) = bounded(value) else { return false };
        self.squares += if self.count > 0.0 {
            let error = value - self.sum / self.count;
            error * error * self.count / (self.count + 1.0)
        } else {
            0.0
        };
        (self.count, self.sum) = (self.count + 1.0, self.sum + value);
        self.push(value);
        self.clock += 1;
        if self.clock < CLOCK {
            return false;
        }
        self.clock = 0;
        let mut changed = false;
        while self.needs_cut() {
            self.drop_oldest();
            changed = true;
        }
        changed
    }

    /// Values in the window.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it has seen nothing.
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
    }

    fn push(&mut self, value: f64) {
        let mut joined = Bucket { sum: value as f32, squares: 0.0 };
        for (size, level) in self.levels.iter_mut().enumerate() {
            level.buckets[level.count] = joined;
            level.count += 1;
            if level.count <= BUCKETS {
                return;
            }
            let [a, b, ..] = level.buckets;
            let n = (1_u64 << size) as f32;
            let apart = a.sum / n - b.sum / n;
            joined = Bucket { sum: a.sum + b.sum, squares: a.squares + b.squares + apart * apart * n / 2.0 };
            level.buckets.copy_within(2.., 0);
            level.count -= 2;
        }
        // The largest size is full: its oldest two are forgotten.
        let n = 2.0 * (1_u64 << (LEVELS - 1)) as f64;
        self.forget(joined, n);
    }

    fn forget(&mut self, bucket: Bucket, n: f64) {
        let (sum, mean) = (f64::from(bucket.sum), f64::from(bucket.sum) / n);
        (self.count, self.sum) = ((self.count - n).max(0.0), self.sum - sum);
        if self.count > 0.0 {
            let apart = mean - self.sum / self.count;
            let left = self.squares - f64::from(bucket.squares) - apart * apart * n * self.count / (n + self.count);
            self.squares = left.max(0.0);
        } else {
            self.squares = 0.0;
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = (0..LEVELS).rev().find(|size| self.levels[*size].count > 0);
        let Some(size) = oldest else { return };
        let level = &mut self.levels[size];
        let bucket = level.buckets[0];
        level.buckets.copy_within(1.., 0);
        level.count -= 1;
        self.forget(bucket, (1_u64 << size) as f64);
    }

    /// Whether some cut leaves two parts whose means differ by more than chance allows (theorem 3.2 of the paper).
    fn needs_cut(&self) -> bool {
        let variance = self.squares / self.count;
        let confidence = libm::log(2.0 * libm::log(self.count).max(1.0) / DELTA);
        let (mut old_count, mut old_sum) = (0.0, 0.0);
        for (size, level) in self.levels.iter().enumerate().rev() {
            for bucket in &level.buckets[..level.count] {
                old_count += (1_u64 << size) as f64;
                old_sum += f64::from(bucket.sum);
                let new_count = self.count - old_count;
                if old_count < PART_MIN || new_count < PART_MIN {
                    continue;
                }
                let apart = (old_sum / old_count - (self.sum - old_sum) / new_count).abs();
                let harmonic = 1.0 / old_count + 1.0 / new_count;
                let bound = (2.0 * harmonic * variance * confidence).sqrt() + 2.0 / 3.0 * harmonic * confidence;
                if apart > bound {
                    return true;
                }
            }
        }
        false
    }
}
