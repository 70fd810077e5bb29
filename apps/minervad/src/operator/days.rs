//! The day and the week ahead of a disk or a group, as clients see them.

use crate::metrics::LoadLabels;
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_engine::LoadMember;
use minerva_forecast::COVERAGE_PERMILLE;
use minerva_model::{Expectation, LOAD_BIN, LOAD_BINS_PER_DAY, LoadBin, LoadForecast, LoadOf, LoadSum, Nanos};
use minerva_operator_server::call::Ahead;
use std::collections::BTreeSet;

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
                models: self.day_models(&of),
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
    pub(crate) fn note_days(&mut self) {
        let mut noted = BTreeSet::new();
        for load in self.engine.outlook().loads() {
            let (kind, name) = match &load.of {
                LoadOf::Device(id) => ("device", self.devices.get(id).map(|device| device.name.clone())),
                LoadOf::Group(group) => ("group", Some(group.clone())),
            };
            let Some(name) = name else { continue };
            for (horizon, sum, skill) in sums(load) {
                self.metrics.load_foreseen(&LoadLabels { kind, name: name.clone(), horizon }, sum, skill);
            }
            noted.insert((kind, name));
        }
        self.foreseen.note_loads(noted, &self.metrics);
    }

    /// The day and the week ahead of a disk or a group, in all.
    pub(crate) fn loads_ahead(&self, of: &LoadOf) -> Vec<v1::LoadAhead> {
        let ahead = |load: &LoadForecast| {
            let ahead = |(horizon, sum, skill): (&str, LoadSum, f64)| v1::LoadAhead {
                horizon: horizon.to_owned(),
                read_bytes: Some(interval(sum.read)),
                write_bytes: Some(interval(sum.written)),
                skill,
                days_scored: load.days_scored,
            };
            sums(load).map(ahead).into()
        };
        self.engine.outlook().load(of).map(ahead).unwrap_or_default()
    }

    /// Those of all groups.
    pub(crate) fn groups_ahead(&self) -> Vec<v1::Group> {
        let loads = self.engine.outlook().loads().iter();
        let group = |of: &LoadOf| match of {
            LoadOf::Group(name) => Some(v1::Group { name: name.clone(), ahead: self.loads_ahead(of) }),
            LoadOf::Device(_) => None,
        };
        loads.filter_map(|load| group(&load.of)).collect()
    }

    fn day_models(&self, of: &LoadOf) -> Vec<v1::DayModel> {
        let shown = |(of, members): (&'static str, Vec<LoadMember>)| {
            members.into_iter().map(move |LoadMember { name, weight, error_percent }| v1::DayModel {
                name: name.to_owned(),
                of: of.to_owned(),
                weight,
                error_percent,
            })
        };
        ["reads", "writes"].into_iter().zip(self.engine.load_members(of)).flat_map(shown).collect()
    }
}

/// Each horizon's sums and skill.
fn sums(load: &LoadForecast) -> [(&'static str, LoadSum, f64); 2] {
    [("day", load.day, load.skill_day), ("week", load.week, load.skill_week)]
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
