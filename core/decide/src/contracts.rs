//! Contracts of guests' disks beside the other processes of the host (docs/adr/0059).
//!
//! A server of ours orders what its guests ask for, but on the disk of the host it is one among others. What its contracts reserve of the
//! disk's time is known from the test that admitted them. So its share is raised until its part beside all who use the disk is that and
//! a margin, and further while contracts are missed and others had the disk. Beside those who are there a newcomer is counted, who
//! begins at the neutral share.
//!
//! The others keep a tenth of the disk between them, however much is reserved.

use crate::Decider;
use crate::compose::{DecideInput, Pair, SharePolicy};
use minerva_model::{DeviceId, Nanos, PolicyName, Reason, ServedContracts, Share, Signals, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Beyond what is reserved: contracts are judged by mean times, and weights take effect over several requests.
const MARGIN_PERMILLE: u32 = 100;
/// What a slice with missed contracts adds, and a [`CALM_SLICES`] without takes away.
const STEP_PERMILLE: u32 = 50;
/// Slices without a missed contract until the server's part is lessened by a step.
const CALM_SLICES: u32 = 60;
/// No server has more beside others.
const PART_PERMILLE_MAX: u32 = 900;
/// Contracts that are missed while others had less of the disk than this were not missed because of them.
const OTHERS_PERMILLE_MIN: f64 = 50.0;
/// How much a slice counts in what others had lately.
const GAIN: f64 = 0.2;
/// Shares are raised to multiples of this: a tenant that comes or goes is no write each.
const SHARE_STEP: u32 = 25;

/// What a server has beside others, as a factor on its share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule {
    servers: BTreeMap<DeviceId, BTreeMap<String, Server>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Server {
    contracts: ServedContracts,
    /// Of `contracts`, at the end of the slice before.
    missed: u64,
    widened_permille: u32,
    calm_slices: u32,
    /// What others had lately.
    others_permille: f64,
}

/// How the contracts of a server on a device stand, as far as shares say.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractsView<'a> {
    /// What is known of them.
    pub contracts: &'a ServedContracts,
    /// The part of the device's time that the server's share is to give it, in thousandths.
    pub part_permille: u32,
    /// The part that others had lately.
    pub others_permille: u32,
}

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::CONTRACTS
    }

    fn slice(&mut self, _: Nanos, input: &DecideInput<'_>) {
        for (device, servers) in &mut self.servers {
            servers.values_mut().for_each(|server| server.slice(*device, input.signals));
        }
    }

    fn weighs_others(&self, device: DeviceId) -> bool {
        self.servers.get(&device).is_some_and(|servers| servers.values().any(|server| server.part_permille() > 0))
    }

    fn is_other(&self, tenant: TenantId, device: DeviceId) -> bool {
        !self.servers.get(&device).is_some_and(|servers| servers.values().any(|server| server.is_own(tenant)))
    }

    fn factor(&self, pair: &Pair<'_>, product: f64) -> Option<f64> {
        let needed = f64::from(self.server_of(pair)?.share_needed(pair));
        (needed > product).then(|| needed / product.max(f64::MIN_POSITIVE))
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        let Some(server) = self.server_of(pair) else { return Reason::NoHistory };
        let ServedContracts { server: name, reserved_permille, .. } = &server.contracts;
        let part = server.part_permille();
        let widened = match server.widened_permille {
            0 => String::new(),
            widened => format!("; {} of these since contracts were missed while others had the disk", widened / 10),
        };
        let text = format!(
            "the contracts of {name} reserve {} % of the disk: {} % beside others with {} together{widened}",
            reserved_permille / 10,
            part / 10,
            pair.beside,
        );
        Reason::Stated { text }
    }
}

impl Decider {
    /// What the contracts of a server need on a device from now on.
    pub fn contracts_seen(&mut self, contracts: &ServedContracts) {
        self.policies.contracts.seen(contracts);
    }

    /// A server has ended.
    pub fn server_gone(&mut self, server: &str) {
        self.policies.contracts.server_gone(server);
    }

    /// What is known of contracts of servers, by device.
    pub fn contracts(&self) -> impl Iterator<Item = ContractsView<'_>> {
        self.policies.contracts.views()
    }

    /// Whether the operator excludes the tenant: nothing is decided about it.
    pub fn is_excluded(&self, id: TenantId) -> bool {
        let index = self.tenants.binary_search_by_key(&id, |(tenant, _)| *tenant);
        index.is_ok_and(|index| self.tenants[index].1.excluded)
    }

    /// A server moves nothing of its own, and yet has a share.
    pub(crate) fn claim_for_servers(&mut self) {
        for ContractsView { contracts, .. } in self.policies.contracts.views() {
            let known = contracts.tenant.and_then(|id| {
                let index = self.tenants.binary_search_by_key(&id, |(tenant, _)| *tenant).ok()?;
                Some(self.tenants[index])
            });
            if let Some((tenant, terms)) = known.filter(|_| contracts.reserved_permille > 0) {
                self.disks.entry(contracts.device).or_default().claim(tenant, terms);
            }
        }
    }
}

impl Rule {
    /// What a server needs from now on.
    pub(crate) fn seen(&mut self, contracts: &ServedContracts) {
        let servers = self.servers.entry(contracts.device).or_default();
        match servers.get_mut(&contracts.server) {
            Some(server) => {
                // One that began anew counts anew.
                server.missed = server.missed.min(contracts.missed);
                server.contracts = contracts.clone();
            }
            None => drop(servers.insert(contracts.server.clone(), Server::new(contracts))),
        }
    }

    /// A server has ended.
    pub(crate) fn server_gone(&mut self, name: &str) {
        self.servers.values_mut().for_each(|servers| drop(servers.remove(name)));
        self.servers.retain(|_, servers| !servers.is_empty());
    }

    /// A disk is gone.
    pub(crate) fn device_gone(&mut self, device: DeviceId) {
        self.servers.remove(&device);
    }

    /// All servers, by device.
    pub(crate) fn views(&self) -> impl Iterator<Item = ContractsView<'_>> {
        self.servers.values().flat_map(BTreeMap::values).map(|server| ContractsView {
            contracts: &server.contracts,
            part_permille: server.part_permille(),
            others_permille: server.others_permille as u32,
        })
    }

    fn server_of(&self, pair: &Pair<'_>) -> Option<&Server> {
        let servers = self.servers.get(&pair.device)?;
        let is_its = |server: &&Server| server.contracts.tenant == Some(pair.tenant) && server.part_permille() > 0;
        servers.values().find(is_its)
    }
}

impl Server {
    fn new(contracts: &ServedContracts) -> Self {
        Self {
            contracts: contracts.clone(),
            missed: contracts.missed,
            widened_permille: 0,
            calm_slices: 0,
            others_permille: 0.0,
        }
    }

    fn is_own(&self, tenant: TenantId) -> bool {
        self.contracts.tenant == Some(tenant) || self.contracts.guests.binary_search(&tenant).is_ok()
    }

    /// A slice ended: what others had in it, and whether contracts were missed.
    fn slice(&mut self, device: DeviceId, signals: &Signals) {
        let rows = signals.io.iter().filter(|row| row.device == device && !self.is_own(row.tenant));
        let others = 1e3 * rows.map(|row| row.disk_part()).sum::<f64>().min(1.0);
        self.others_permille += GAIN * (others - self.others_permille);
        let missed = std::mem::replace(&mut self.missed, self.contracts.missed) < self.contracts.missed;
        if missed && others >= OTHERS_PERMILLE_MIN {
            self.calm_slices = 0;
            let room = PART_PERMILLE_MAX.saturating_sub(self.part_permille());
            self.widened_permille += STEP_PERMILLE.min(room);
        } else {
            self.calm_slices += 1;
            if self.calm_slices >= CALM_SLICES {
                self.calm_slices = 0;
                self.widened_permille = self.widened_permille.saturating_sub(STEP_PERMILLE);
            }
        }
    }

    /// What it is to have beside others; 0 without contracts.
    fn part_permille(&self) -> u32 {
        match self.contracts.reserved_permille {
            0 => 0,
            reserved => {
                (reserved.min(PART_PERMILLE_MAX) + MARGIN_PERMILLE + self.widened_permille).min(PART_PERMILLE_MAX)
            }
        }
    }

    /// The share with which it has that, before everyone is raised.
    fn share_needed(&self, pair: &Pair<'_>) -> u32 {
        let part = self.part_permille();
        let others = pair.beside + Share::NEUTRAL.get() / pair.room.max(1);
        (others * part).div_ceil(1_000 - part).next_multiple_of(SHARE_STEP)
    }
}
