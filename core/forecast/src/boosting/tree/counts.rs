//! Histograms: what residuals add up to and how many rows there are, by feature and bin.

use super::BINS;

/// Sum of residuals and count of rows in a bin, of one size so that both are added at once. Counts are whole and far below 2^53.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    pub(super) sum: f64,
    pub(super) rows: f64,
}

/// The rows as histograms count them: without features that no row tells apart, of which many a host has some.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// The first, as sums over all rows are its, and those that are not the same in all rows.
    pub(super) features: Vec<usize>,
    /// Row by row, of each of these features.
    bins: Vec<u8>,
}

impl Counted {
    /// Of rows of so many features each, one at least.
    pub(super) fn of(bins: &[u8], features: usize) -> Self {
        let mut is_counted = vec![false; features];
        if let Some(first) = is_counted.first_mut() {
            *first = true;
        }
        for row in bins.chunks_exact(features) {
            // Whoever is in the lowest bin throughout, as all constants are, can be split nowhere.
            is_counted.iter_mut().zip(row).for_each(|(is_counted, bin)| *is_counted |= *bin > 0);
        }
        let features_counted: Vec<usize> = (0..features).filter(|feature| is_counted[*feature]).collect();
        let counted = bins.chunks_exact(features).flat_map(|row| features_counted.iter().map(|feature| row[*feature]));
        Self { bins: counted.collect(), features: features_counted }
    }

    /// Bins of a histogram.
    pub(super) fn width(&self) -> usize {
        self.features.len() * BINS
    }

    /// Counts these rows; how many values were added.
    pub(super) fn count(&self, histogram: &mut [Bin], rows: &[u32], residuals: &[f32]) -> u64 {
        let features = self.features.len();
        histogram.fill(Bin::default());
        for row in rows {
            let row = *row as usize;
            let residual = f64::from(residuals[row]);
            let row = &self.bins[row * features..(row + 1) * features];
            for (bin, histogram) in row.iter().zip(histogram.as_chunks_mut::<BINS>().0) {
                let bin = &mut histogram[usize::from(*bin)];
                *bin = Bin { sum: bin.sum + residual, rows: bin.rows + 1.0 };
            }
        }
        (rows.len() * features) as u64
    }
}
