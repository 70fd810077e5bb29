//! Background work that takes time from others in stretches, between which it is stopped (docs/adr/0020).
//!
//! Where shares are caps it has none. One would be made from what it used in whole slices, for most of which it is stopped, and the kernel would
//! hold it to that mean in its stretches too. Others lose nothing by it: they have at least half of the time, whatever the work does in its
//! part, and what it used is not dealt to them (`disk_use`). Where shares are weights, the groups above it must not lift others by its share
//! (`hierarchy`).

use crate::Actuator;
use minerva_model::{DeviceId, TenantId};
use std::collections::{BTreeMap, BTreeSet};

impl Actuator {
    /// Who takes time from others on which disks; without disks of its own, as in recordings of earlier versions, it is as others are. `stopped`
    /// is all background work that is stopped while others use a disk, but in such time.
    pub fn background_takes(
        &mut self,
        takers: &BTreeMap<TenantId, Option<BTreeSet<DeviceId>>>,
        stopped: &BTreeSet<TenantId>,
    ) {
        for (id, disk) in &mut self.disks {
            let takes_here = |own: &BTreeSet<DeviceId>| own.contains(id);
            let here = takers.iter().filter(|(_, own)| own.as_ref().is_some_and(takes_here));
            disk.is_taken_by(here.map(|(tenant, _)| *tenant).collect());
        }
        let takes = takers.values().any(Option::is_some);
        let mut changed = Vec::new();
        for (id, known) in &mut self.tenants {
            let is_work = takes && stopped.contains(id);
            if std::mem::replace(&mut known.is_work, is_work) != is_work {
                changed.push(*id);
            }
        }
        let pairs: Vec<_> = changed.into_iter().flat_map(|id| self.pairs_of(id)).collect();
        pairs.into_iter().for_each(|pair| self.enter_pair(pair));
    }
}
