//! What the slice loop does with servers of ours.

use crate::slice_loop::Driver;
use minerva_linux_observe::Roots;
use minerva_model::{Nanos, Sample, Tenant, TenantId};
use std::collections::BTreeMap;

impl Driver {
    /// Tells the engine which disks of guests are served, and whose they are.
    pub(crate) fn look_at_servers(&mut self, now: Nanos) {
        let (tenants, roots, devices) = (&self.tenants, self.watch.observer.roots(), &self.devices);
        let tenant_of = |process| tenant_of(tenants, roots, process);
        for event in self.servers.look(now, tenant_of, |device| devices.contains_key(&device)) {
            self.feed(event);
        }
    }

    /// Tells the servers how their contracts stand beside other processes.
    pub(crate) fn tell_servers(&mut self, now: Nanos) {
        let Self { engine, servers, .. } = self;
        servers.tell(now, engine.protections());
    }

    /// What guests transferred through servers of ours is their tenants'.
    pub(crate) fn add_served(&mut self, sample: &mut Sample) {
        let (tenants, roots) = (&self.tenants, self.watch.observer.roots());
        self.servers.add_to(sample, |process| tenant_of(tenants, roots, process));
    }
}

/// Whose a process is: of the tenants above its group the nearest.
fn tenant_of(tenants: &BTreeMap<TenantId, Tenant>, roots: &Roots, process: u32) -> Option<TenantId> {
    let group = roots.cgroup_of(process)?;
    let holds = |path: &str| group.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let above = tenants.values().filter(|tenant| holds(&tenant.cgroup.path));
    above.max_by_key(|tenant| tenant.cgroup.path.len()).map(|tenant| tenant.id)
}
