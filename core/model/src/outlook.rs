//! What is expected of each tenant on each disk: forecasts with their interval and the skill that was measured.
//!
//! A policy may use a forecast only as far as its skill goes: absent, stale and unskilled forecasts must all leave a decision as
//! it would be without them. [`Outlook::default`] is that of a host on which nothing is forecast.

use crate::{DeviceId, LoadForecast, LoadOf, Nanos, SharedLoad, TenantId};
use serde::{Deserialize, Serialize};

/// How far ahead a forecast looks (Malensek et al. 2016, section 4, Kachmar and Kaeli 2020, section V.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Horizon {
    /// The slice that begins now.
    NextSlice,
    /// The next 15 seconds.
    Pattern,
    /// What is left of the I/O session that the tenant is in.
    Session,
    /// The next 24 hours.
    Day,
    /// The next seven days.
    Week,
}

impl Horizon {
    /// Every horizon, the nearest first.
    pub const ALL: [Self; 5] = [Self::NextSlice, Self::Pattern, Self::Session, Self::Day, Self::Week];

    /// The word people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NextSlice => "next-slice",
            Self::Pattern => "pattern",
            Self::Session => "session",
            Self::Day => "day",
            Self::Week => "week",
        }
    }
}

/// An expected value and the interval in which the true one lies with the stated probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// What is expected.
    pub value: f64,
    /// The lower end, at most `value`.
    pub lower: f64,
    /// The upper end, at least `value`.
    pub upper: f64,
    /// Probability that the interval holds what then comes, in thousandths.
    pub coverage_permille: u32,
}

impl Interval {
    /// Finite, not negative, and in order.
    pub fn is_sane(&self) -> bool {
        let ends = [self.lower, self.value, self.upper];
        ends.iter().all(|end| end.is_finite() && *end >= 0.0) && self.lower <= self.value && self.value <= self.upper
    }
}

/// What one tenant is expected to do on one disk within one horizon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Who.
    pub tenant: TenantId,
    /// Where.
    pub device: DeviceId,
    /// Within which time.
    pub horizon: Horizon,
    /// Bytes read within the horizon.
    pub read_bytes: Interval,
    /// Bytes written within the horizon.
    pub write_bytes: Interval,
    /// Probability that the tenant uses the disk at all within the horizon, in thousandths.
    pub busy_permille: u32,
    /// 1 less the forecast's error over that of the best naive forecast: 1 is perfect, 0 no better than naive, and below 0
    /// worse. Measured on what came of earlier forecasts; 0 until enough of them were. Of a session: how much of the order of sessions by
    /// size is foreseen, of which 1 is all, and 0 what is foreseen without knowing the tenant
    /// ([`crate::ForecastSettings::sessions_by_order`]).
    pub skill: f64,
    /// It is a naive forecast: there is no model yet, or the models did worse, and [`Self::skill`] says how they did. Earlier versions did
    /// not say so.
    #[serde(default)]
    pub is_naive: bool,
    /// When it was made, by which it goes stale.
    pub made_at: Nanos,
}

impl Forecast {
    /// Bytes both ways that are expected.
    pub fn bytes(&self) -> f64 {
        self.read_bytes.value + self.write_bytes.value
    }

    fn key(&self) -> (TenantId, DeviceId, Horizon) {
        (self.tenant, self.device, self.horizon)
    }

    fn is_sane(&self) -> bool {
        self.read_bytes.is_sane() && self.write_bytes.is_sane() && self.skill <= 1.0 && self.busy_permille <= 1_000
    }
}

/// Slices ahead of which it is foreseen whether a tenant uses a disk.
pub const PHASES: usize = 15;

/// When one tenant is expected to use a disk and when to do other things, slice by slice (Malensek et al. 2016, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Who.
    pub tenant: TenantId,
    /// Where.
    pub device: DeviceId,
    /// Probability that the tenant uses the disk in each of the next slices, in thousandths.
    pub busy_permille: [u16; PHASES],
    /// Of these probabilities, as [`Forecast::skill`].
    pub skill: f64,
    /// The burst under way, or the next.
    #[serde(default)]
    pub burst: Burst,
    /// When they were made.
    pub made_at: Nanos,
}

/// What one burst of a tenant that pauses after each is expected to transfer. Recordings of earlier versions know nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// In all, in bytes.
    pub bytes: f64,
    /// How well that was told of earlier ones, 0 to 1: 0 means that nothing is known, or that they have nothing in common.
    pub certainty: f64,
    /// It is told by earlier runs of the same batch job, as too few of its own are known.
    #[serde(default)]
    pub by_runs: bool,
}

impl Phases {
    fn key(&self) -> (TenantId, DeviceId) {
        (self.tenant, self.device)
    }

    fn is_sane(&self) -> bool {
        let is_burst_sane = self.burst.bytes >= 0.0 && (0.0..=1.0).contains(&self.burst.certainty);
        self.skill <= 1.0 && is_burst_sane && self.busy_permille.iter().all(|busy| *busy <= 1_000)
    }
}

/// Every forecast that stands. Sorted by tenant, disk and horizon, at most one for each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    forecasts: Vec<Forecast>,
    #[serde(default)]
    phases: Vec<Phases>,
    #[serde(default)]
    loads: Vec<SharedLoad>,
}

impl Outlook {
    /// From forecasts in any order. One that holds no sane number is dropped, and of several for the same tenant, disk and
    /// horizon the first is kept.
    pub fn new(mut forecasts: Vec<Forecast>) -> Self {
        forecasts.retain(Forecast::is_sane);
        forecasts.sort_by_key(Forecast::key);
        forecasts.dedup_by_key(|forecast| forecast.key());
        Self { forecasts, ..Self::default() }
    }

    /// With these in place of what was said of the same before.
    pub fn with_forecasts(mut self, newer: Vec<Forecast>) -> Self {
        if newer.is_empty() {
            return self;
        }
        let older = std::mem::take(&mut self.forecasts);
        let Self { forecasts, .. } = Self::new(newer.into_iter().chain(older).collect());
        Self { forecasts, ..self }
    }

    /// With phases in any order, judged as forecasts are.
    pub fn with_phases(self, mut phases: Vec<Phases>) -> Self {
        phases.retain(Phases::is_sane);
        phases.sort_by_key(Phases::key);
        phases.dedup_by_key(|phases| phases.key());
        Self { phases, ..self }
    }

    /// With the week ahead of disks and groups, in any order; of several of the same the first is kept.
    pub fn with_loads(self, mut loads: Vec<SharedLoad>) -> Self {
        loads.sort_by(|a, b| a.of.cmp(&b.of));
        loads.dedup_by(|a, b| a.of == b.of);
        Self { loads, ..self }
    }

    /// The week ahead of every disk and group of which one is foreseen: disks first.
    pub fn loads(&self) -> &[SharedLoad] {
        &self.loads
    }

    /// The week ahead of a disk or group, if there is one.
    pub fn load(&self, of: &LoadOf) -> Option<&LoadForecast> {
        let position = self.loads.binary_search_by(|load| load.of.cmp(of));
        position.ok().map(|index| &*self.loads[index])
    }

    /// The phases of every tenant of which they are foreseen.
    pub fn phases(&self) -> &[Phases] {
        &self.phases
    }

    /// The forecast, if there is one.
    pub fn get(&self, tenant: TenantId, device: DeviceId, horizon: Horizon) -> Option<&Forecast> {
        let position = self.forecasts.binary_search_by_key(&(tenant, device, horizon), Forecast::key);
        position.ok().map(|index| &self.forecasts[index])
    }

    /// All of them.
    pub fn forecasts(&self) -> &[Forecast] {
        &self.forecasts
    }

    /// Nothing is forecast.
    pub fn is_empty(&self) -> bool {
        self.forecasts.is_empty() && self.phases.is_empty() && self.loads.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Burst, Forecast, Horizon, Interval, Outlook, PHASES, Phases};
    use crate::{DeviceId, Nanos, TenantId};

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    fn forecast(tenant: u64, horizon: Horizon, value: f64) -> Forecast {
        Forecast {
            tenant: TenantId(tenant),
            device: DISK,
            horizon,
            read_bytes: Interval { value, lower: value / 2.0, upper: value * 2.0, coverage_permille: 800 },
            write_bytes: Interval::default(),
            busy_permille: 1_000,
            skill: 0.5,
            is_naive: false,
            made_at: Nanos::ZERO,
        }
    }

    #[test]
    fn forecasts_are_found_whatever_their_order_and_damaged_ones_are_dropped() {
        let damaged = [
            forecast(1, Horizon::Week, f64::NAN),
            forecast(1, Horizon::Week, -1.0),
            Forecast { skill: f64::NAN, ..forecast(1, Horizon::Week, 1.0) },
            Forecast { busy_permille: 1_001, ..forecast(1, Horizon::Week, 1.0) },
            Forecast { write_bytes: Interval { lower: 1.0, ..Interval::default() }, ..forecast(1, Horizon::Week, 1.0) },
        ];
        let mut rows = vec![forecast(2, Horizon::Day, 7.0), forecast(1, Horizon::Session, 5.0)];
        rows.extend(damaged);
        rows.extend([forecast(1, Horizon::NextSlice, 3.0), forecast(1, Horizon::NextSlice, 4.0)]);
        let outlook = Outlook::new(rows);
        let bytes = |tenant, horizon| outlook.get(TenantId(tenant), DISK, horizon).map(Forecast::bytes);
        assert_eq!(bytes(1, Horizon::NextSlice), Some(3.0));
        assert_eq!(bytes(1, Horizon::Session), Some(5.0));
        assert_eq!(bytes(2, Horizon::Day), Some(7.0));
        assert_eq!((bytes(1, Horizon::Week), bytes(2, Horizon::Week), bytes(3, Horizon::Day)), (None, None, None));
        assert_eq!(outlook.forecasts().len(), 3);
        assert!(Outlook::default().is_empty());
        let phases = |tenant, skill| Phases {
            tenant: TenantId(tenant),
            device: DISK,
            busy_permille: [500; PHASES],
            skill,
            burst: Burst::default(),
            made_at: Nanos::ZERO,
        };
        let broken = Phases { busy_permille: [1_001; PHASES], ..phases(1, 0.5) };
        let outlook =
            outlook.with_phases(vec![phases(2, 0.5), broken, phases(1, 0.5), phases(2, 0.1), phases(3, f64::NAN)]);
        let kept: Vec<(u64, f64)> = outlook.phases().iter().map(|phases| (phases.tenant.0, phases.skill)).collect();
        assert_eq!((kept, outlook.forecasts().len()), (vec![(1, 0.5), (2, 0.5)], 3));
    }

    #[test]
    fn horizons_stand_from_the_nearest_to_the_farthest() {
        assert!(Horizon::ALL.is_sorted());
    }
}
