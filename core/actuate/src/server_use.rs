//! Who sends what to a disk where a server of ours serves guests with contracts: the kernel weighs the server's group, whoever asked it.

use crate::Actuator;
use minerva_model::{DeviceId, IoCounters, IoSignals, Nanos, ServedContracts, ServedDisks, Signals, TenantId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Servers with contracts, by device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerUse {
    servers: BTreeMap<DeviceId, BTreeMap<String, Own>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Own {
    tenant: TenantId,
    guests: Vec<TenantId>,
}

impl Actuator {
    /// A server of ours serves these disks on a device. What was wished is wished again: it may have started anew.
    pub fn server_seen(&mut self, seen: &ServedDisks) {
        self.served.seen(seen, &mut self.ledger);
        self.wish_served();
    }

    /// A server of ours has ended: nothing is written.
    pub fn server_gone(&mut self, server: &str) {
        self.served.gone(server, &mut self.ledger);
        self.servers.gone(server);
    }

    /// What the contracts of a server of ours need on a device.
    pub fn contracts_seen(&mut self, contracts: &ServedContracts) {
        self.servers.seen(contracts);
    }
}

impl ServerUse {
    /// What a server needs on a device from now on.
    pub(crate) fn seen(&mut self, contracts: &ServedContracts) {
        let ServedContracts { server, device, tenant, guests, reserved_permille, .. } = contracts;
        let servers = self.servers.entry(*device).or_default();
        match tenant.filter(|_| *reserved_permille > 0) {
            Some(tenant) => drop(servers.insert(server.clone(), Own { tenant, guests: guests.clone() })),
            None => drop(servers.remove(server)),
        }
        self.servers.retain(|_, servers| !servers.is_empty());
    }

    /// A server has ended.
    pub(crate) fn gone(&mut self, server: &str) {
        self.servers.values_mut().for_each(|servers| drop(servers.remove(server)));
        self.servers.retain(|_, servers| !servers.is_empty());
    }

    /// The tenants that such servers are on a device.
    pub(crate) fn on(&self, device: DeviceId) -> BTreeSet<TenantId> {
        self.servers.get(&device).into_iter().flat_map(BTreeMap::values).map(|own| own.tenant).collect()
    }

    /// The slice as disks have seen it: what guests transferred was sent by their servers.
    pub(crate) fn as_sent<'a>(&self, signals: &'a Signals) -> Cow<'a, Signals> {
        if self.servers.is_empty() {
            return Cow::Borrowed(signals);
        }
        let sender = |row: &IoSignals| {
            let own = self.servers.get(&row.device)?.values().find(|own| own.guests.contains(&row.tenant))?;
            Some(own.tenant)
        };
        let mut rows: BTreeMap<(TenantId, DeviceId), IoSignals> = BTreeMap::new();
        for row in &signals.io {
            let row = IoSignals { tenant: sender(row).unwrap_or(row.tenant), ..*row };
            let key = (row.tenant, row.device);
            rows.entry(key).and_modify(|sum| *sum = joined(sum, &row)).or_insert(row);
        }
        Cow::Owned(Signals { io: rows.into_values().collect(), ..signals.clone() })
    }
}

fn joined(one: &IoSignals, other: &IoSignals) -> IoSignals {
    let (a, b) = (one.transferred, other.transferred);
    IoSignals {
        elapsed: one.elapsed.max(other.elapsed),
        transferred: IoCounters {
            read_bytes: a.read_bytes + b.read_bytes,
            write_bytes: a.write_bytes + b.write_bytes,
            read_ops: a.read_ops + b.read_ops,
            write_ops: a.write_ops + b.write_ops,
        },
        latency: one.latency.or(other.latency),
        active: one.active || other.active,
        served: one.served.or(other.served),
        disk_time: Nanos(one.disk_time.0 + other.disk_time.0),
        ..*one
    }
}

#[cfg(test)]
mod tests {
    use super::ServerUse;
    use minerva_model::{DeviceId, IoCounters, IoSignals, Nanos, ServedContracts, Signals, TenantId};

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    #[test]
    fn what_guests_with_contracts_transfer_was_sent_by_their_server() {
        let row = |tenant: u64, read_bytes| IoSignals {
            tenant: TenantId(tenant),
            device: DISK,
            elapsed: Nanos::SECOND,
            transferred: IoCounters { read_bytes, read_ops: 1, ..IoCounters::default() },
            latency: None,
            active: read_bytes > 0,
            served: None,
            disk_time: Nanos(read_bytes),
        };
        let signals = Signals { io: vec![row(1, 0), row(2, 30), row(3, 40), row(4, 5)], ..Signals::default() };
        let mut servers = ServerUse::default();
        let mut contracts = ServedContracts {
            server: "blk".to_owned(),
            device: DISK,
            tenant: Some(TenantId(1)),
            guests: vec![TenantId(2), TenantId(3)],
            reserved_permille: 300,
            missed: 0,
        };
        servers.seen(&contracts);
        let told = |servers: &ServerUse| -> Vec<(u64, u64, bool)> {
            let sent = servers.as_sent(&signals);
            sent.io.iter().map(|row| (row.tenant.0, row.transferred.read_bytes, row.active)).collect()
        };
        assert_eq!(told(&servers), [(1, 70, true), (4, 5, true)]);
        assert!(servers.on(DISK).contains(&TenantId(1)));
        contracts.reserved_permille = 0;
        servers.seen(&contracts);
        assert_eq!(told(&servers), [(1, 0, false), (2, 30, true), (3, 40, true), (4, 5, true)]);
    }
}
