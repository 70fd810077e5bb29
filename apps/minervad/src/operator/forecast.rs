//! Forecasts as clients see them.

use crate::metrics::{DeviceLabel, HorizonLabel};
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_engine::{RateForecast, TenantOutlook};
use minerva_forecast::COVERAGE_PERMILLE;
use minerva_model::{DeviceId, Forecast, Horizon, Interval, Nanos, Tenant, TenantId};
use minerva_operator_server::explain::find;
use std::collections::{BTreeMap, BTreeSet};

/// Horizons that the engine forecasts.
const HORIZONS: [Horizon; 3] = [Horizon::NextSlice, Horizon::Pattern, Horizon::Session];

impl Driver {
    /// What a tenant is expected to do, and was before; nothing if there is no such tenant.
    pub(crate) fn forecast(&self, asked: &str) -> Option<v1::ForecastResponse> {
        let slice = self.picture(0);
        let id = &find(&slice, asked)?.id;
        let tenant = self.tenants.values().find(|tenant| tenant.id.to_string() == *id)?;
        let rows = self.engine.outlook().forecasts();
        let devices: BTreeSet<DeviceId> =
            rows.iter().filter(|row| row.tenant == tenant.id).map(|row| row.device).collect();
        Some(v1::ForecastResponse {
            tenant: tenant.name.clone(),
            mode: self.engine.forecast_mode(tenant.id).as_str().to_owned(),
            slice_ns: self.file.config.engine.observe.slice.0,
            unix_ns: self.progress.unix_ns,
            disks: devices.into_iter().map(|device| self.disk_forecast(tenant, device)).collect(),
            load: None,
        })
    }

    fn disk_forecast(&self, tenant: &Tenant, device: DeviceId) -> v1::DiskForecast {
        let outlook = self.engine.tenant_outlook(tenant.id, device);
        let ahead = self.slices_ahead();
        let path = |rates: fn(&TenantOutlook) -> &Option<RateForecast>| {
            outlook
                .as_ref()
                .and_then(|outlook| rates(outlook).as_ref())
                .map_or_else(Vec::new, |rates| slices(rates, ahead))
        };
        let session = outlook.as_ref().and_then(|outlook| outlook.session);
        v1::DiskForecast {
            device: device.to_string(),
            device_name: self.devices.get(&device).map(|device| device.name.clone()).unwrap_or_default(),
            past: self.foreseen.past((tenant.id, device)),
            forecasts: self.forecasts_of(tenant.id, device),
            reads_ahead: path(|outlook| &outlook.reads),
            writes_ahead: path(|outlook| &outlook.writes),
            next_slice_by: outlook.map(|outlook| outlook.next_slice.source.as_str().to_owned()).unwrap_or_default(),
            session_class: session.map(|session| session.class.as_str().to_owned()).unwrap_or_default(),
        }
    }

    /// Slices that make up 15 s; shorter ones are forecast by the second.
    fn slices_ahead(&self) -> usize {
        let seconds = self.file.config.engine.observe.slice.as_secs_f64().max(1.0);
        (15.0 / seconds).round().max(1.0) as usize
    }

    /// What stands of one pair.
    pub(crate) fn forecasts_of(&self, tenant: TenantId, device: DeviceId) -> Vec<v1::Forecast> {
        let outlook = self.engine.outlook();
        let mode = self.engine.forecast_mode(tenant).as_str();
        let age = |row: &Forecast| crate::clock::boottime().since(row.made_at);
        let stands = HORIZONS.into_iter().filter_map(|horizon| outlook.get(tenant, device, horizon));
        stands.map(|row| shown(row, mode, age(row))).collect()
    }

    /// A slice has ended: what came stands beside what was expected of it, and the gauges are set.
    pub(crate) fn note_forecasts(&mut self) {
        self.note_days();
        self.metrics.loads_without_room.set(i64::try_from(self.engine.loads_without_room()).unwrap_or(i64::MAX));
        self.metrics.pairs_without_room.set(i64::try_from(self.engine.pairs_without_room()).unwrap_or(i64::MAX));
        let (signals, outlook) = (self.engine.signals(), self.engine.outlook());
        let slice = self.file.config.engine.observe.slice;
        self.foreseen.note(self.progress.unix_ns, signals, outlook, slice, &self.metrics);
        let mut by_device: BTreeMap<DeviceId, f64> = self.devices.keys().map(|device| (*device, 0.0)).collect();
        for horizon in HORIZONS {
            let rows = || outlook.forecasts().iter().filter(move |row| row.horizon == horizon);
            let (count, skilled) = (rows().count(), rows().filter(|row| row.skill > 0.0).count());
            let naive = rows().filter(|row| row.is_naive).count();
            let label = HorizonLabel { horizon: horizon.as_str() };
            self.metrics.forecasts.get_or_create(&label).set(i64::try_from(count).unwrap_or(i64::MAX));
            self.metrics.forecasts_skilled.get_or_create(&label).set(i64::try_from(skilled).unwrap_or(i64::MAX));
            self.metrics.forecasts_naive.get_or_create(&label).set(i64::try_from(naive).unwrap_or(i64::MAX));
            let skill = rows().map(|row| row.skill).sum::<f64>() / count.max(1) as f64;
            self.metrics.forecast_skill.get_or_create(&label).set(skill);
        }
        for row in outlook.forecasts().iter().filter(|row| row.horizon == Horizon::Pattern) {
            by_device.entry(row.device).and_modify(|bytes| *bytes += row.bytes());
        }
        for (device, bytes) in by_device {
            let Some(device) = self.devices.get(&device) else { continue };
            let label = DeviceLabel { device: device.name.clone() };
            self.metrics.device_forecast.get_or_create(&label).set(bytes);
        }
    }
}

fn shown(row: &Forecast, mode: &str, age: Nanos) -> v1::Forecast {
    v1::Forecast {
        horizon: row.horizon.as_str().to_owned(),
        read_bytes: Some(interval(&row.read_bytes)),
        write_bytes: Some(interval(&row.write_bytes)),
        busy_permille: row.busy_permille,
        skill: row.skill,
        naive: row.is_naive,
        mode: mode.to_owned(),
        age_ns: age.0,
    }
}

fn interval(from: &Interval) -> v1::Interval {
    let Interval { value, lower, upper, coverage_permille } = *from;
    v1::Interval { value, lower, upper, coverage_permille }
}

fn slices(rates: &RateForecast, ahead: usize) -> Vec<v1::SliceAhead> {
    let slice = |index: usize| v1::SliceAhead {
        expected: Some(v1::Interval {
            value: rates.mean[index].into(),
            lower: rates.low[index].into(),
            upper: rates.high[index].into(),
            coverage_permille: COVERAGE_PERMILLE,
        }),
        busy_permille: (rates.busy[index].clamp(0.0, 1.0) * 1000.0) as u32,
    };
    (0..ahead.min(rates.mean.len())).map(slice).collect()
}
