//! Slices as the forecaster of days takes them: everything that a disk does, and what the tenants of an operator's group do together.

use crate::readings::Ended;
use minerva_forecast::load::{LoadReading, LoadTime, Loads};
use minerva_forecast::seasonal::Totals;
use minerva_model::{DeviceId, LoadOf, SharedLoad, Tenant, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// See the file's documentation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DaysAhead {
    loads: Loads,
    /// Of tenants that are in one.
    groups: BTreeMap<TenantId, String>,
}

impl DaysAhead {
    pub(crate) fn tenant_seen(&mut self, tenant: &Tenant) {
        match &tenant.group {
            Some(group) => self.groups.insert(tenant.id, group.clone()),
            None => self.groups.remove(&tenant.id),
        };
    }

    pub(crate) fn tenant_gone(&mut self, id: TenantId) {
        self.groups.remove(&id);
    }

    pub(crate) fn device_gone(&mut self, id: DeviceId) {
        self.loads.device_gone(id);
    }

    /// Takes a slice; without a wall clock nothing is known of days.
    pub(crate) fn slice(&mut self, ended: &Ended<'_>) {
        let Some(wall_seconds) = ended.wall_seconds else { return };
        let mut slice = self.disks(ended);
        slice.extend(self.groups(ended));
        self.loads.observe(LoadTime { now: ended.now, wall_seconds }, &slice);
    }

    fn disks(&self, ended: &Ended<'_>) -> Vec<(LoadOf, LoadReading)> {
        let signals = ended.signals;
        let disk = |row: &minerva_model::DeviceSignals| {
            let space = signals.spaces.binary_search_by_key(&row.device, |space| space.device).ok();
            let space = space.map(|index| &signals.spaces[index]);
            let reading = LoadReading {
                seconds: row.elapsed.as_secs_f64(),
                totals: Totals {
                    read_bytes: row.transferred.read_bytes as f64,
                    write_bytes: row.transferred.write_bytes as f64,
                    discard_bytes: space.map_or(0.0, |space| space.discarded_bytes as f64),
                },
                free_bytes: space.and_then(|space| space.free_bytes).map(|bytes| bytes as f64),
            };
            (LoadOf::Device(row.device), reading)
        };
        signals.devices.iter().map(disk).collect()
    }

    /// A group of which nothing was read did nothing, also one whose tenants are all gone.
    fn groups(&self, ended: &Ended<'_>) -> Vec<(LoadOf, LoadReading)> {
        let mut totals: BTreeMap<&str, Totals> = self
            .groups
            .values()
            .map(String::as_str)
            .chain(self.loads.groups())
            .map(|group| (group, Totals::default()))
            .collect();
        if totals.is_empty() {
            return Vec::new();
        }
        for row in &ended.signals.io {
            let Some(group) = self.groups.get(&row.tenant) else { continue };
            let sum = totals.entry(group).or_default();
            sum.read_bytes += row.transferred.read_bytes as f64;
            sum.write_bytes += row.transferred.write_bytes as f64;
        }
        let seconds = ended.elapsed.as_secs_f64();
        let reading = |totals| LoadReading { seconds, totals, free_bytes: None };
        totals.into_iter().map(|(group, totals)| (LoadOf::Group(group.to_owned()), reading(totals))).collect()
    }

    pub(crate) fn forecasts(&self) -> Vec<SharedLoad> {
        self.loads.forecasts()
    }

    pub(crate) fn loads(&self) -> &Loads {
        &self.loads
    }

    pub(crate) fn loads_mut(&mut self) -> &mut Loads {
        &mut self.loads
    }
}
