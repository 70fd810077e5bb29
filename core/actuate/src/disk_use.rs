//! What a slice says of a disk that is steered by caps.

use crate::caps::DiskUse;
use crate::tenant_use::Use;
use minerva_model::{DeviceId, EngineConfig, Signals, TenantId};
use std::collections::BTreeMap;

/// What the slice says of a disk, for dealing caps. `shares` holds the tenants that may be capped.
pub(crate) fn disk_use(
    device: DeviceId,
    capacity: Option<u64>,
    config: &EngineConfig,
    shares: &BTreeMap<TenantId, u32>,
    signals: &Signals,
) -> (DiskUse, Vec<Use>) {
    let mut uses = Vec::new();
    let (mut uncapped, mut contention) = (0.0, 0);
    for row in signals.io.iter().filter(|row| row.device == device && row.active) {
        contention += 1;
        let Some(share) = shares.get(&row.tenant) else {
            uncapped += row.bytes_per_second();
            continue;
        };
        let rate = row.bytes_per_second();
        let reads = rate * row.transferred.read_bytes as f64 / row.transferred.bytes().max(1) as f64;
        uses.push(Use {
            tenant: row.tenant,
            share: f64::from(*share),
            read_bytes_per_second: reads,
            write_bytes_per_second: rate - reads,
            request_bytes: row.transferred.bytes() as f64 / row.transferred.ops().max(1) as f64,
        });
    }
    let row = signals.devices.iter().find(|row| row.device == device);
    let measured = row.map_or(0.0, |row| row.transferred.bytes() as f64 / row.elapsed.as_secs_f64().max(1e-3));
    let disk = DiskUse {
        capacity_bytes_per_second: capacity.map(|bytes| bytes as f64),
        measured_bytes_per_second: measured,
        busy: row.is_some_and(|row| row.busy_permille >= config.actuation.caps_lift_below_busy_permille),
        uncapped_bytes_per_second: uncapped,
        contention,
        floor_permille: config.fennel.floor_permille,
        slice: config.observe.slice,
        makes_room: config.actuation.caps_make_room,
        only_if_short: config.actuation.caps_only_if_short,
    };
    (disk, uses)
}
