//! The day and the week ahead of a disk or a group, as clients see them.

use crate::metrics::LoadLabels;
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_forecast::COVERAGE_PERMILLE;
use minerva_model::{Expectation, LOAD_BIN, LOAD_BINS_PER_DAY, LoadBin, LoadForecast, LoadOf, Nanos};
use minerva_operator_server::call::Ahead;

impl Driver {
    /// What a disk (by kernel name or MAJ:MIN) or a group is expected to do. Nothing if there is neither of the name.
    pub(crate) fn load_forecast(&self, asked: &str, ahead: Ahead) -> Option<v1::ForecastResponse> {
        let device = self.devices.values().find(|device| device.name == asked || device.id.to_string() == asked);
        let group = || self.tenants.values().any(|tenant| tenant.group.as_deref() == Some(asked));
        let (of, name) = match device {
            Some(device) => (LoadOf::Device(device.id), device.name.clone()),
            None if group() => (LoadOf::Group(asked.to_owned()), format!("group {asked}")),
            None => return None,
        };
        let now = crate::clock::boottime();
        let load = self.engine.outlook().load(&of).map(|load| {
            // What is shown of the past is as long as what is shown of the future.
            let (bins, skill, sum) = match ahead {
                Ahead::Day => (LOAD_BINS_PER_DAY, load.skill_day, load.day),
                Ahead::Week => (load.bins.len(), load.skill_week, load.week),
            };
            let past = self.engine.load_past(&of);
            v1::LoadForecast {
                first_unix_ns: self.progress.unix_ns + signed(load.first_ends) - signed(LOAD_BIN) - signed(now),
                bin_ns: LOAD_BIN.0,
                bins: load.bins.iter().take(bins).map(shown).collect(),
                past_bytes_per_second: past[past.len().saturating_sub(bins)..].to_vec(),
                skill,
                days_scored: load.days_scored,
                read_bytes: Some(interval(sum.read)),
                write_bytes: Some(interval(sum.written)),
                discard_bytes: Some(interval(sum.discarded)),
            }
        });
        Some(v1::ForecastResponse {
            tenant: name,
            mode: self.file.config.engine.forecast.mode.as_str().to_owned(),
            slice_ns: self.file.config.engine.observe.slice.0,
            unix_ns: self.progress.unix_ns,
            disks: Vec::new(),
            load,
        })
    }

    /// A slice has ended: the gauges of the days ahead are set.
    pub(crate) fn note_days(&self) {
        for load in self.engine.outlook().loads() {
            let of = match &load.of {
                LoadOf::Device(id) => self.devices.get(id).map(|device| device.name.clone()),
                LoadOf::Group(group) => Some(group.clone()),
            };
            let Some(of) = of else { continue };
            let kind = if matches!(load.of, LoadOf::Device(_)) { "device" } else { "group" };
            for (horizon, bins, skill) in
                [("day", LOAD_BINS_PER_DAY, load.skill_day), ("week", load.bins.len(), load.skill_week)]
            {
                let labels = LoadLabels { kind, name: of.clone(), horizon };
                self.metrics.load_forecast.get_or_create(&labels).set(bytes(load, bins));
                self.metrics.load_forecast_skill.get_or_create(&labels).set(skill);
            }
        }
    }
}

fn bytes(load: &LoadForecast, bins: usize) -> f64 {
    load.bins.iter().take(bins).map(|bin| bin.bytes_per_second() * LOAD_BIN.as_secs_f64()).sum()
}

fn signed(span: Nanos) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

fn interval(of: Expectation) -> v1::Interval {
    v1::Interval {
        value: of.value.into(),
        lower: of.lower.into(),
        upper: of.upper.into(),
        coverage_permille: COVERAGE_PERMILLE,
    }
}

fn shown(bin: &LoadBin) -> v1::LoadBin {
    v1::LoadBin {
        read_bytes_per_second: Some(interval(bin.read)),
        write_bytes_per_second: Some(interval(bin.written)),
        discard_bytes_per_second: Some(interval(bin.discarded)),
        free_bytes: bin.free.map(interval),
    }
}
