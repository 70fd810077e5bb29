//! What a slice says of a disk that is steered by caps.

use crate::caps::DiskUse;
use crate::groups::GroupNumber;
use crate::tenant_use::Use;
use minerva_model::{DeviceId, EngineConfig, Signals, TenantId};
use std::collections::BTreeMap;

/// A tenant's claim on a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) share: u32,
    /// The group above its own in which its maker makes groups.
    pub(crate) maker: Option<GroupNumber>,
}

/// What the slice says of a disk, for dealing caps. `claims` holds the tenants that may be capped. Active ones that one maker made divide
/// one share between them, however many they are.
pub(crate) fn disk_use(
    device: DeviceId,
    capacity: Option<u64>,
    config: &EngineConfig,
    claims: &BTreeMap<TenantId, Claim>,
    signals: &Signals,
) -> (DiskUse, Vec<Use>) {
    let mut uses = Vec::new();
    let (mut uncapped, mut contention) = (0.0, 0);
    let active = || signals.io.iter().filter(|row| row.device == device && row.active);
    let mut made: BTreeMap<GroupNumber, u32> = BTreeMap::new();
    for maker in active().filter_map(|row| claims.get(&row.tenant)?.maker) {
        *made.entry(maker).or_default() += 1;
    }
    for row in active() {
        contention += 1;
        let Some(Claim { share, maker }) = claims.get(&row.tenant) else {
            uncapped += row.bytes_per_second();
            continue;
        };
        let sharers = maker.and_then(|maker| made.get(&maker)).map_or(1.0, |count| f64::from(*count));
        let rate = row.bytes_per_second();
        let reads = rate * row.transferred.read_bytes as f64 / row.transferred.bytes().max(1) as f64;
        uses.push(Use {
            tenant: row.tenant,
            share: f64::from(*share) / sharers,
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
        keeps_both_ways_open: config.actuation.caps_keep_both_ways_open,
    };
    (disk, uses)
}
