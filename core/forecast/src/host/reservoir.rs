//! A bounded sample of all rows ever seen, with a lean to the recent ones (Vitter 1985; Aggarwal 2006).

use crate::codec::{Damaged, Reader, Writer};
use crate::tenant::{FEATURES, FEATURES_WITHOUT_DAY_AGO, Row};
use serde::{Deserialize, Serialize};

/// The sample reaches back over so many times its size.
const REACH: u64 = 20;

/// Rows, or the first features of each, and their targets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reservoir {
    capacity: usize,
    /// Features of each row.
    #[serde(default = "without_day_ago")]
    width: usize,
    #[serde(with = "crate::state::packed")]
    rows: Vec<f32>,
    #[serde(with = "crate::state::packed")]
    targets: Vec<f32>,
    seen: u64,
    random: u64,
}

/// Of recordings that do not say.
const fn without_day_ago() -> usize {
    FEATURES_WITHOUT_DAY_AGO
}

impl Reservoir {
    /// For the first `width` features of at most `capacity` rows. The same seed and rows give the same sample.
    pub fn new(capacity: usize, width: usize, seed: u64) -> Self {
        let (capacity, width) = (capacity.max(1), width.clamp(1, FEATURES));
        Self { capacity, width, rows: Vec::new(), targets: Vec::new(), seen: 0, random: seed }
    }

    /// Offers a row; a row with a target or value that is not finite is not taken.
    pub fn offer(&mut self, row: &Row, target: f32) {
        if !target.is_finite() || row.iter().any(|value| !value.is_finite()) {
            return;
        }
        self.seen = self.seen.saturating_add(1);
        let (row, width) = (&row[..self.width], self.width);
        if self.targets.len() < self.capacity {
            self.rows.extend_from_slice(row);
            self.targets.push(target);
            return;
        }
        let place = (self.draw() % self.seen.min(REACH * self.capacity as u64)) as usize;
        if place < self.capacity {
            self.rows[place * width..(place + 1) * width].copy_from_slice(row);
            self.targets[place] = target;
        }
    }

    /// Rows held.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Features of each row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The rows, row by row, and their targets.
    pub fn content(&self) -> (&[f32], &[f32]) {
        (&self.rows, &self.targets)
    }

    /// Some of the rows, evenly from all that are held, at most `most`; what outlives a restart.
    pub(crate) fn encode(&self, most: usize, writer: &mut Writer) {
        let step = self.len().div_ceil(most.max(1)).max(1);
        let kept = || (0..self.len()).step_by(step);
        writer.count(kept().count());
        for at in kept() {
            self.rows[at * self.width..(at + 1) * self.width].iter().for_each(|value| writer.f32(*value));
            writer.f32(self.targets[at]);
        }
    }

    /// Takes over rows of `width` features each in place of those that are held; what they lack is 0.
    pub(crate) fn decode(&mut self, most: usize, width: usize, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        let (mut rows, mut targets) = (Vec::new(), Vec::new());
        for row in 1..=reader.count(most)? {
            for _ in 0..width {
                rows.push(reader.finite_f32()?);
            }
            rows.resize(row * self.width, 0.0);
            targets.push(reader.finite_f32()?);
        }
        (self.seen, self.rows, self.targets) = (targets.len() as u64, rows, targets);
        Ok(())
    }

    /// SplitMix64 (Steele, Lea and Flood 2014).
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
