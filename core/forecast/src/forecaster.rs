//! All forecasts of a host: slices in, outlooks out, with bounded work a slice.

mod basis;
mod families;
mod gone;
mod models;
mod next_slices;
mod nouns;
mod parts;
mod room;
mod sessions;
mod tenants;
mod versions;
mod work;

pub use basis::{NextSlice, Source};
pub use families::Family;
pub use models::check;
pub use nouns::COVERAGE_PERMILLE;
pub use sessions::SessionOutlook;
pub use tenants::TenantOutlook;

use crate::arima::Workspace;
use crate::host::{Growth, Learner, LearnerSettings};
use crate::tenant::{AHEAD, Reading};
use families::Families;
use minerva_model::{DeviceId, Forecast, Nanos, Outlook, TenantId};
use next_slices::NextSlices;
use nouns::{Made, PATTERN_SECONDS, ROWS_A_TENANT};
use room::Room;
use serde::{Deserialize, Serialize};
use sessions::Sessions;
use std::collections::BTreeMap;
use tenants::Tenant;

/// A tenant on a disk.
pub type Key = (TenantId, DeviceId);

/// Slices without I/O after which nothing is told of a tenant: the history that forecasts are made from is empty.
const SILENT_SLICES: u32 = 300;
/// Slices without I/O after which a tenant's state is dropped.
const FORGET_SLICES: u32 = 900;

/// How large a forecaster may become and how much it may do in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecasterSettings {
    /// Of the trees for the next slice.
    pub next_slice: LearnerSettings,
    /// Of the trees for sessions.
    pub session: LearnerSettings,
    /// How long the slices are that it observes.
    pub slice: Nanos,
    /// Tenants with a state of some 17 kB each; of more there is no forecast.
    pub tenants_max: usize,
    /// Series for which a model is fitted in a slice.
    pub fits: u32,
    /// Steps of the searches in a slice, over all fits.
    pub steps: u32,
    /// Parts of the trees' refit, a feature or a tree each, in a slice.
    pub parts: u32,
    /// As what a session's forecast is told to be worth: how much of the sessions' order it has right. Otherwise, as by earlier versions,
    /// its skill against the best naive forecast.
    #[serde(default)]
    pub by_order: bool,
    /// The skill of reads and writes together is weighted by bytes. Otherwise, as by earlier versions, it is the smaller one, and a skill of
    /// exactly 0 is passed over.
    #[serde(default)]
    pub skill_by_bytes: bool,
    /// See [`Forecaster::set_within_bounds`].
    #[serde(default)]
    pub within_bounds: bool,
}

impl Default for ForecasterSettings {
    fn default() -> Self {
        Self {
            next_slice: LearnerSettings::default(),
            // Sessions are few: a host has some dozens before a reading a second would make as many rows.
            session: LearnerSettings {
                rows: 8_000,
                trees: 50,
                seed: 2,
                ridge_from: 16,
                growth: Growth::ByLevels,
                mean_percent: 0,
                within_bounds: true,
                within_seen: false,
            },
            slice: Nanos::SECOND,
            tenants_max: 10_000,
            fits: 4,
            steps: 1_500,
            parts: 2,
            by_order: true,
            skill_by_bytes: true,
            within_bounds: true,
        }
    }
}

impl ForecasterSettings {
    /// Slices that make up the 15 s ahead, of which no more than [`AHEAD`] are forecast, and no less than one.
    fn ahead(&self) -> usize {
        ((PATTERN_SECONDS / self.slice.as_secs_f64().max(1e-9)).round() as usize).clamp(1, AHEAD)
    }
}

/// When a slice was, for those of which it says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SliceTime {
    /// How long it was.
    pub seconds: f64,
    /// When it ended, in seconds since 1970 in the host's time zone, where known.
    pub wall_seconds: Option<f64>,
}

impl Default for SliceTime {
    fn default() -> Self {
        Self { seconds: 1.0, wall_seconds: None }
    }
}

/// The forecasts of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Forecaster {
    settings: ForecasterSettings,
    tenants: BTreeMap<Key, Tenant>,
    next_slice: Learner,
    #[serde(skip)]
    next_slices: NextSlices,
    sessions: Sessions,
    families: Families,
    /// Memory that is only kept to be used again.
    #[serde(skip)]
    buffers: (Vec<f64>, Workspace),
    /// Whose turn it was last to be fitted.
    turn: Option<Key>,
    slices: u64,
    refused: u64,
    #[serde(default)]
    refused_in_slice: u64,
    /// Series fitted, ever.
    #[serde(default)]
    fits: u64,
}

impl Forecaster {
    /// One that has seen nothing.
    pub fn new(settings: ForecasterSettings) -> Self {
        let mut forecaster = Self {
            settings,
            tenants: BTreeMap::new(),
            next_slice: Learner::new(settings.next_slice),
            next_slices: NextSlices::default(),
            sessions: Sessions::new(settings.session),
            families: Families::default(),
            buffers: (Vec::new(), Workspace::default()),
            turn: None,
            slices: 0,
            refused: 0,
            refused_in_slice: 0,
            fits: 0,
        };
        forecaster.set_within_bounds(settings.within_bounds);
        forecaster
    }

    /// From now on slices are this long. Of another length than before, the series of all tenants begin anew; what the host's models
    /// learnt stays.
    pub fn set_slice(&mut self, slice: Nanos) {
        if std::mem::replace(&mut self.settings.slice, slice) != slice {
            self.tenants_change();
            self.tenants.clear();
        }
    }

    /// From now on a session is taken to transfer what the last of its like did, in place of what the model says: what forecasts are
    /// measured against.
    pub fn set_sessions_by_last(&mut self, by_last: bool) {
        self.sessions.by_last = by_last;
    }

    /// Takes what a slice said of the tenants that did I/O or are about to: who, of which family (a hash of name, unit or image), and
    /// the reading. Of one that is not named nothing happened. A tenant named twice counts twice. Then does the slice's work.
    pub fn observe(&mut self, time: SliceTime, slice: &[(Key, Family, Reading)]) {
        (self.slices, self.refused_in_slice) = (self.slices + 1, 0);
        let ahead = self.settings.ahead();
        let (next_slice, sessions, families) = (&mut self.next_slice, &mut self.sessions, &mut self.families);
        let next_slices = &mut self.next_slices;
        next_slices.begin();
        for tenant in self.tenants.values_mut() {
            tenant.is_named = false;
        }
        let is_bounded = self.settings.next_slice.growth != Growth::ByLevels;
        let (within_bounds, mut room) = (self.settings.within_bounds, Room::default());
        for (key, family, reading) in slice {
            let is_full = self.tenants.len() >= self.settings.tenants_max && !self.tenants.contains_key(key);
            if is_full && !(within_bounds && room.make(reading.account, &mut self.tenants)) {
                self.refused_in_slice += 1;
                continue;
            }
            let tenant = self.tenants.entry(*key).or_insert_with(|| Tenant::new(*family, is_bounded));
            if within_bounds {
                tenant.family = *family;
            }
            tenant.observe(reading, ahead, (next_slice, next_slices.take(*key)), (sessions, families));
        }
        let nothing = Reading { elapsed_seconds: time.seconds, wall_seconds: time.wall_seconds, ..Reading::default() };
        self.tenants.retain(|key, tenant| {
            if !tenant.is_named {
                tenant.observe(&nothing, ahead, (next_slice, next_slices.take_next(*key)), (sessions, families));
            }
            let stays = tenant.idle_slices() < FORGET_SLICES;
            if stays {
                next_slices.push(*key, tenant);
            }
            stays
        });
        next_slices.end();
        self.refused += self.refused_in_slice;
        self.sessions.settle();
        self.work();
        self.foresee_next_slices();
    }

    /// What is foreseen of a tenant; `None` if nothing is known of it, or it did nothing for minutes.
    pub fn outlook(&self, key: Key) -> Option<TenantOutlook> {
        let tenant = self.tenants.get(&key).filter(|tenant| tenant.idle_slices() < SILENT_SLICES)?;
        Some(tenant.outlook(self.next_slice_of(key, tenant), &self.sessions))
    }

    /// All forecasts as the stages after this one take them. `slice` is how long the next slice will be.
    pub fn to_model(&self, now: Nanos, slice: Nanos) -> Outlook {
        let made = self.made(now, slice);
        let mut rows = Vec::with_capacity(self.tenants.len() * ROWS_A_TENANT);
        let mut phases = Vec::new();
        for (key, tenant) in self.tenants.iter().filter(|(_, tenant)| tenant.idle_slices() < SILENT_SLICES) {
            let outlook = tenant.outlook(self.next_slice_of(*key, tenant), &self.sessions);
            nouns::forecasts(*key, tenant, &outlook, made, &mut rows);
            phases.extend(nouns::phases(*key, tenant, now));
        }
        Outlook::new(rows).with_phases(phases)
    }

    /// What is foreseen of sessions that begin with these readings, which are a part of a step: of tenants of whose session nothing was
    /// observed yet. Nothing is learnt from them.
    pub fn beginnings(&self, now: Nanos, slice: Nanos, part: &[(Key, Family, Reading)]) -> Vec<Forecast> {
        let (sessions, families) = (&self.sessions, &self.families);
        let made = self.made(now, slice);
        let beginning = |(key, family, reading): &(Key, Family, Reading)| {
            let session = Tenant::beginning(self.tenants.get(key), *family, reading, sessions, families)?;
            Some(nouns::beginning(*key, reading, &session, made))
        };
        part.iter().filter_map(beginning).collect()
    }

    fn made(&self, at: Nanos, slice: Nanos) -> Made {
        let ForecasterSettings { by_order, skill_by_bytes, .. } = self.settings;
        Made { at, seconds: slice.as_secs_f64(), ahead: self.settings.ahead(), by_order, skill_by_bytes }
    }

    /// Whether anything is known of the tenant on the disk.
    pub fn knows(&self, key: Key) -> bool {
        self.tenants.contains_key(&key)
    }

    /// The disks on which something is known of a tenant.
    pub fn devices_of(&self, id: TenantId) -> impl Iterator<Item = DeviceId> + '_ {
        let first = (id, DeviceId { major: 0, minor: 0 });
        self.tenants.range(first..).take_while(move |((tenant, _), _)| *tenant == id).map(|((_, device), _)| *device)
    }

    /// Tenants with a state.
    pub fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// Readings that found no place, ever.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The same in the last slice.
    pub fn refused_in_slice(&self) -> u64 {
        self.refused_in_slice
    }

    /// Series to which a model was fitted, ever: what slices cost most, as a count.
    pub fn fits(&self) -> u64 {
        self.fits
    }
}
