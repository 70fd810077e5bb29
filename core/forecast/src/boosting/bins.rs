//! Feature values as small numbers: each feature is cut at its quantiles.

use serde::{Deserialize, Serialize};

/// Most features a model takes.
pub const FEATURES_MAX: usize = 32;
/// Most cuts of a feature; values then have one more bin.
pub const CUTS_MAX: usize = 64;
/// Rows that the quantiles are taken from.
const SAMPLE_MAX: usize = 10_000;

/// Where each feature is cut. The bin of a value is how many cuts lie below it; a NaN is in the lowest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cuts {
    /// Of each feature, ascending and distinct.
    pub(super) of_feature: Vec<Vec<f32>>,
}

impl Cuts {
    /// Cuts the next feature at the quantiles of its values in `rows`, row by row, `features` values a row.
    ///
    /// Of many rows an evenly spaced sample is taken.
    pub(super) fn add(&mut self, rows: &[f32], features: usize) {
        let feature = self.of_feature.len();
        let stride = (rows.len() / features).div_ceil(SAMPLE_MAX).max(1);
        let column = rows.chunks_exact(features).step_by(stride).map(|row| row[feature]);
        let mut sample: Vec<f32> = column.filter(|value| value.is_finite()).collect();
        sample.sort_unstable_by(f32::total_cmp);
        self.of_feature.push(quantiles(&sample));
    }

    /// Features of a row.
    pub fn features(&self) -> usize {
        self.of_feature.len()
    }

    /// The value at which a bin of a feature ends; infinite beyond the last.
    pub(super) fn value(&self, feature: u8, bin: u8) -> f32 {
        let cuts = self.of_feature.get(usize::from(feature));
        cuts.and_then(|cuts| cuts.get(usize::from(bin))).copied().unwrap_or(f32::INFINITY)
    }

    /// The bin of a feature's value.
    pub(super) fn bin(&self, feature: usize, value: f32) -> u8 {
        // At most 64, see `CUTS_MAX`.
        self.of_feature[feature].partition_point(|cut| *cut < value) as u8
    }
}

/// Distinct cuts of a sorted sample, each halfway between two values.
fn quantiles(sorted: &[f32]) -> Vec<f32> {
    let mut cuts = Vec::new();
    for part in 1..=CUTS_MAX {
        let at = part * sorted.len() / (CUTS_MAX + 1);
        let (Some(value), true) = (sorted.get(at), at > 0) else { continue };
        // Cut below the value; a value so common that it holds two quantiles is cut off above too and has a bin of its own.
        let first = sorted.partition_point(|other| other < value);
        let next = sorted.partition_point(|other| other <= value);
        let is_common = (next - first) * (CUTS_MAX + 1) >= 2 * sorted.len();
        let below = (first > 0).then(|| middle(sorted[first - 1], *value));
        let above = sorted.get(next).filter(|_| is_common).map(|above| middle(*value, *above));
        for cut in [below, above].into_iter().flatten() {
            if cuts.len() < CUTS_MAX && cuts.last().is_none_or(|last| *last < cut) {
                cuts.push(cut);
            }
        }
    }
    cuts
}

fn middle(low: f32, high: f32) -> f32 {
    let middle = low + (high - low) * 0.5;
    // Of neighbours there is none between.
    if middle < high { middle } else { low }
}

#[cfg(test)]
mod tests {
    use super::Cuts;

    #[test]
    fn common_values_have_bins_of_their_own() {
        let rows: Vec<f32> = (0..1000).map(|row| if row < 900 { 0.0 } else { row as f32 }).collect();
        let mut cuts = Cuts::default();
        cuts.add(&rows, 1);
        assert!(cuts.bin(0, 0.0) < cuts.bin(0, 900.0) && cuts.bin(0, 905.0) < cuts.bin(0, 999.0), "{cuts:?}");
        assert_eq!(cuts.bin(0, f32::NAN), 0);
        assert!(cuts.bin(0, f32::INFINITY) as usize <= super::CUTS_MAX);
        let mut cuts = Cuts::default();
        cuts.add(&[3.0; 50], 1);
        assert!(cuts.of_feature[0].is_empty(), "a constant has nothing to cut");
    }
}
