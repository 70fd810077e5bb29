//! Which disk a tenant means that names none.

use crate::disk::{Disk, TenantTerms};
use minerva_model::{DeviceId, Signals, TenantId};
use std::collections::{BTreeMap, BTreeSet};

/// The disk that it used most in the last slice, else the one that its history says most of, else the only one there is.
pub(crate) fn usual_disk(
    (tenant, terms): (TenantId, Option<TenantTerms>),
    signals: &Signals,
    disks: &BTreeMap<DeviceId, Disk>,
    devices: &BTreeSet<DeviceId>,
) -> Option<DeviceId> {
    let own = signals.io.iter().filter(|row| row.tenant == tenant && row.active);
    let now = own.max_by_key(|row| row.transferred.bytes()).map(|row| row.device);
    let long_term = |disk: &Disk| terms.map_or(0.0, |terms| disk.usage(terms.key).averages.long_term);
    let usual = || {
        let used = disks.iter().map(|(device, disk)| (*device, long_term(disk))).filter(|(_, average)| *average > 0.0);
        used.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(device, _)| device)
    };
    let only = || devices.first().copied().filter(|_| devices.len() == 1);
    now.or_else(usual).filter(|device| devices.contains(device)).or_else(only)
}
