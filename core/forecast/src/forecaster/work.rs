//! The slice's share of fitting: some series in turns, a part of the trees.

use super::{Forecaster, SILENT_SLICES};
use crate::arima::{Budget, MODELS_MAX};
use std::ops::Bound;

/// Slices between two refits of the trees, and of a series at least.
const REFIT_SLICES: u64 = 60;

impl Forecaster {
    /// Does it.
    pub(super) fn work(&mut self) {
        self.fit_series();
        for (learner, offset) in [(&mut self.next_slice, 0), (&mut self.sessions.learner, REFIT_SLICES / 2)] {
            if !learner.is_training() && (self.slices + offset).is_multiple_of(REFIT_SLICES) {
                learner.begin_refit();
            }
            for _ in 0..self.settings.parts {
                learner.advance();
            }
        }
    }

    fn fit_series(&mut self) {
        let mut budget = Budget { models: self.settings.fits * MODELS_MAX, steps: self.settings.steps };
        let mut fits = self.settings.fits;
        // From whose turn it was to the end, then from the start: everybody once at most.
        let bounds = match self.turn {
            Some(after) => [(Bound::Excluded(after), Bound::Unbounded), (Bound::Unbounded, Bound::Included(after))],
            None => [(Bound::Unbounded, Bound::Unbounded); 2],
        };
        for range in bounds {
            for (key, tenant) in self.tenants.range_mut(range) {
                if tenant.idle_slices() >= SILENT_SLICES {
                    continue;
                }
                for rates in tenant.rates_mut() {
                    if rates.since_fit() >= REFIT_SLICES as u32 && rates.wants_fit() {
                        rates.fit(&mut self.buffers, &mut budget);
                        fits = fits.saturating_sub(1);
                        self.fits += 1;
                    }
                }
                self.turn = Some(*key);
                if fits == 0 || budget.steps == 0 {
                    return;
                }
            }
        }
    }
}
