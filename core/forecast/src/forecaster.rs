//! All forecasts of a host: slices in, outlooks out, with bounded work a slice.

mod families;
mod nouns;
mod sessions;
mod tenants;

pub use families::Family;
pub use sessions::SessionOutlook;
pub use tenants::{NextSlice, TenantOutlook};

use crate::arima::{Budget, MODELS_MAX, Workspace};
use crate::codec::Damaged;
use crate::host::{Learner, LearnerSettings};
use crate::tenant::Reading;
use families::Families;
use minerva_model::{DeviceId, Nanos, Outlook, TenantId};
use sessions::Sessions;
use std::collections::BTreeMap;
use std::ops::Bound;
use tenants::Tenant;

/// A tenant on a disk.
pub type Key = (TenantId, DeviceId);

/// Slices between two refits of the trees.
const REFIT_SLICES: u64 = 60;
/// Slices without I/O after which a tenant's state is dropped.
const FORGET_SLICES: u32 = 900;

/// How large a forecaster may become and how much it may do in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForecasterSettings {
    /// Of the trees for the next slice.
    pub next_slice: LearnerSettings,
    /// Of the trees for sessions.
    pub session: LearnerSettings,
    /// Tenants with a state of about 8 kB each; of more there is no forecast.
    pub tenants_max: usize,
    /// Series for which a model is fitted in a slice.
    pub fits: u32,
    /// Steps of the searches in a slice, over all fits.
    pub steps: u32,
    /// Parts of the trees' refit, a feature or a tree each, in a slice.
    pub parts: u32,
}

impl Default for ForecasterSettings {
    fn default() -> Self {
        Self {
            next_slice: LearnerSettings::default(),
            session: LearnerSettings { rows: 8_000, trees: 50, seed: 2 },
            tenants_max: 10_000,
            fits: 4,
            steps: 1_500,
            parts: 2,
        }
    }
}

/// The forecasts of a host.
#[derive(Clone, Debug)]
pub struct Forecaster {
    settings: ForecasterSettings,
    tenants: BTreeMap<Key, Tenant>,
    next_slice: Learner,
    sessions: Sessions,
    families: Families,
    buffers: (Vec<f64>, Workspace),
    /// Whose turn it was last to be fitted.
    turn: Option<Key>,
    slices: u64,
    refused: u64,
}

impl Forecaster {
    /// One that has seen nothing.
    pub fn new(settings: ForecasterSettings) -> Self {
        Self {
            settings,
            tenants: BTreeMap::new(),
            next_slice: Learner::new(settings.next_slice),
            sessions: Sessions::new(settings.session),
            families: Families::default(),
            buffers: (Vec::new(), Workspace::default()),
            turn: None,
            slices: 0,
            refused: 0,
        }
    }

    /// Takes what a slice said of the tenants that did I/O or are about to: who, of which family (a hash of name, unit or image), and
    /// the reading. Of one that is not named nothing happened. A tenant named twice counts twice. Then does the slice's work.
    pub fn observe(&mut self, slice: &[(Key, Family, Reading)]) {
        self.slices += 1;
        for tenant in self.tenants.values_mut() {
            tenant.is_named = false;
        }
        for (key, family, reading) in slice {
            if !self.tenants.contains_key(key) && self.tenants.len() >= self.settings.tenants_max {
                self.refused += 1;
                continue;
            }
            let tenant = self.tenants.entry(*key).or_insert_with(|| Tenant::new(*family));
            tenant.observe(reading, &mut self.next_slice, &mut self.sessions, &mut self.families);
        }
        let (next_slice, sessions, families) = (&mut self.next_slice, &mut self.sessions, &mut self.families);
        self.tenants.retain(|_, tenant| {
            if !tenant.is_named {
                let nothing = Reading { elapsed_seconds: 1.0, ..Reading::default() };
                tenant.observe(&nothing, next_slice, sessions, families);
                tenant.is_named = false;
            }
            tenant.idle_slices() < FORGET_SLICES
        });
        self.work();
    }

    /// What is foreseen of a tenant; `None` if nothing is known of it.
    pub fn outlook(&self, key: Key) -> Option<TenantOutlook> {
        self.tenants.get(&key).map(|tenant| tenant.outlook(&self.next_slice, &self.sessions))
    }

    /// All forecasts as the stages after this one take them. `slice` is how long the next slice will be.
    pub fn to_model(&self, now: Nanos, slice: Nanos) -> Outlook {
        let rows = self.tenants.iter().flat_map(|(key, tenant)| {
            let outlook = tenant.outlook(&self.next_slice, &self.sessions);
            nouns::forecasts(*key, tenant, &outlook, now, slice)
        });
        Outlook::new(rows.collect())
    }

    /// The next slice alone, as [`Self::outlook`] has it.
    pub fn next_slice(&self, key: Key) -> Option<NextSlice> {
        self.tenants.get(&key).map(|tenant| tenant.next_slice(&self.next_slice))
    }

    /// Tenants with a state.
    pub fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// Readings that found no place, ever.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The fitted trees of slices and of sessions as bytes; `None` for what was never fitted.
    pub fn encode(&self) -> [Option<Vec<u8>>; 2] {
        [self.next_slice.encode(), self.sessions.learner.encode()]
    }

    /// Takes over the trees for the next slice.
    ///
    /// # Errors
    /// Damaged bytes, which change nothing.
    pub fn decode_next_slice(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        self.next_slice.decode(bytes)
    }

    /// Takes over the trees for sessions.
    ///
    /// # Errors
    /// Damaged bytes, which change nothing.
    pub fn decode_sessions(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        self.sessions.learner.decode(bytes)
    }

    /// The slice's share of fitting: some series in turns, a part of the trees.
    fn work(&mut self) {
        let mut budget = Budget { models: self.settings.fits * MODELS_MAX, steps: self.settings.steps };
        let mut fits = self.settings.fits;
        let (turn, tenants, buffers) = (&mut self.turn, &mut self.tenants, &mut self.buffers);
        // From whose turn it was to the end, then from the start: everybody once at most.
        let bounds = match *turn {
            Some(after) => [(Bound::Excluded(after), Bound::Unbounded), (Bound::Unbounded, Bound::Included(after))],
            None => [(Bound::Unbounded, Bound::Unbounded); 2],
        };
        'turns: for range in bounds {
            for (key, tenant) in tenants.range_mut(range) {
                for rates in tenant.rates_mut() {
                    if rates.wants_fit() && rates.since_fit() >= REFIT_SLICES as u32 {
                        rates.fit(buffers, &mut budget);
                        fits = fits.saturating_sub(1);
                    }
                }
                *turn = Some(*key);
                if fits == 0 || budget.steps == 0 {
                    break 'turns;
                }
            }
        }
        for (learner, offset) in [(&mut self.next_slice, 0), (&mut self.sessions.learner, REFIT_SLICES / 2)] {
            if !learner.is_training() && (self.slices + offset).is_multiple_of(REFIT_SLICES) {
                learner.begin_refit();
            }
            for _ in 0..self.settings.parts {
                learner.advance();
            }
        }
    }
}
