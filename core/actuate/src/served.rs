//! Disks of guests that servers of ours serve: a tenant's share on a device is the weight of its disks there, and a message to the
//! server in place of a line in a kernel file. Everything else (inspection before the first write, verification, undo) is as with
//! any other knob.

use crate::fights::Owner;
use crate::knob::{Holder, KnobKey};
use crate::ledger::Ledger;
use crate::server_weight::ServedNumber;
use crate::setting::Setting;
use crate::{Actuator, is_steered};
use minerva_model::{DeviceId, KnobFile, KnobTarget, ServedDisk, ServedDisks, Share, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

impl Actuator {
    /// Wants of every served disk what its tenant's share is.
    pub(crate) fn wish_served(&mut self) {
        for pair in self.served.pairs() {
            self.wish_served_of(pair);
        }
    }

    /// The same of one pair.
    pub(crate) fn wish_served_of(&mut self, pair: (TenantId, DeviceId)) {
        let steered = self.enforces() && is_steered(&self.tenants, pair.0);
        let share = self.pairs.get(&pair).and_then(|pair| pair.share).filter(|_| steered).map(Share::get);
        self.served.wish(pair, share, &mut self.ledger);
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Disk {
    number: ServedNumber,
    name: String,
    tenant: TenantId,
}

/// All that is served, by server and device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Served {
    disks: BTreeMap<(String, DeviceId), Vec<Disk>>,
    last: u64,
}

impl Served {
    /// A server serves these disks on a device. Those that it serves no more took their weights with them.
    pub(crate) fn seen(&mut self, seen: &ServedDisks, ledger: &mut Ledger) {
        let ServedDisks { server, device, disks } = seen;
        let mut before = self.disks.remove(&(server.clone(), *device)).unwrap_or_default();
        let mut now = Vec::new();
        for ServedDisk { name, tenant } in disks {
            let known = before.iter().position(|disk| (&disk.name, disk.tenant) == (name, *tenant));
            let number = known.map(|index| before.swap_remove(index).number).unwrap_or_else(|| {
                self.last += 1;
                let number = ServedNumber(self.last);
                let target = KnobTarget::Server { server: server.clone(), disk: name.clone() };
                ledger.own(Holder::Served(number), Owner { target, manager: "another program".into() });
                number
            });
            now.push(Disk { number, name: name.clone(), tenant: *tenant });
        }
        before.iter().for_each(|disk| ledger.disown(Holder::Served(disk.number)));
        if !now.is_empty() {
            self.disks.insert((server.clone(), *device), now);
        }
    }

    /// A server has ended, and all weights with it.
    pub(crate) fn gone(&mut self, server: &str, ledger: &mut Ledger) {
        self.disks.retain(|(of, _), disks| {
            if of == server {
                disks.iter().for_each(|disk| ledger.disown(Holder::Served(disk.number)));
            }
            of != server
        });
    }

    /// The tenants of served disks, each with its device.
    pub(crate) fn pairs(&self) -> Vec<(TenantId, DeviceId)> {
        let of = |((_, device), disks): (&(String, DeviceId), &Vec<Disk>)| {
            let device = *device;
            disks.iter().map(move |disk| (disk.tenant, device)).collect::<Vec<_>>()
        };
        let mut pairs: Vec<_> = self.disks.iter().flat_map(of).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Wants a tenant's share in the weights of its disks on a device, in equal parts; `None`: as before Minerva.
    pub(crate) fn wish(&self, (tenant, device): (TenantId, DeviceId), share: Option<u32>, ledger: &mut Ledger) {
        let on_device = self.disks.iter().filter(|((_, of), _)| *of == device).flat_map(|(_, disks)| disks);
        let own: Vec<ServedNumber> = on_device.filter(|disk| disk.tenant == tenant).map(|disk| disk.number).collect();
        let count = u32::try_from(own.len()).unwrap_or(u32::MAX).max(1);
        for number in own {
            let key = KnobKey { holder: Holder::Served(number), device, file: KnobFile::ServerWeight };
            match share {
                Some(share) => ledger.wish(key, Setting::ServerWeight((share / count).max(1))),
                None => ledger.release(key),
            }
        }
    }
}
