//! What the operator wants looked at: `daemon.include` and `daemon.devices_only`. What is outside is as if it were not there.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use minerva_config::{Config, DaemonSettings, NamedSettings};
use minerva_linux_observe::HiddenGroups;
use minerva_model::{DeviceId, Event, Finding, FindingKind, Sample, TenantId};
use std::collections::{BTreeMap, BTreeSet};

/// Passes on what is inside, and remembers what that is.
#[derive(Debug)]
pub(crate) struct Scope {
    include: Option<GlobSet>,
    named: NamedSettings,
    devices_only: BTreeSet<String>,
    tenants: BTreeSet<TenantId>,
    devices: BTreeSet<DeviceId>,
    /// Every disk of the host, also those outside.
    names: BTreeMap<DeviceId, String>,
    /// Slices of which it was told that they hide groups.
    hiding: BTreeSet<String>,
}

impl Scope {
    /// The settings were judged before, so a glob that fails here is a mistake of this program.
    pub(crate) fn new(settings: &DaemonSettings, named: &NamedSettings) -> Result<Self, globset::Error> {
        let mut globs = GlobSetBuilder::new();
        for pattern in &settings.include {
            for pattern in [pattern.clone(), format!("{pattern}/**")] {
                globs.add(GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(false).build()?);
            }
        }
        Ok(Self {
            include: if settings.include.is_empty() { None } else { Some(globs.build()?) },
            named: named.clone(),
            devices_only: settings.devices_only.iter().cloned().collect(),
            tenants: BTreeSet::new(),
            devices: BTreeSet::new(),
            names: BTreeMap::new(),
            hiding: BTreeSet::new(),
        })
    }

    /// Whether the operator wants a group looked at. Who includes named groups includes background work with them: its groups are beside
    /// theirs only so that their weights are.
    fn is_inside(&self, path: &str) -> bool {
        let Some(globs) = &self.include else { return true };
        let work = path.strip_prefix(&self.named.background_parent()).filter(|rest| rest.starts_with('/'));
        globs.is_match(path) || work.is_some_and(|rest| globs.is_match(format!("{}{rest}", self.named.parent)))
    }

    /// Whether the engine is to be told.
    pub(crate) fn admits(&mut self, event: &Event) -> bool {
        match event {
            Event::TenantSeen { tenant, .. } => {
                let inside = self.is_inside(&tenant.cgroup.path);
                if inside {
                    self.tenants.insert(tenant.id);
                }
                inside
            }
            Event::TenantGone(id) => self.tenants.remove(id),
            Event::DeviceSeen(device) => {
                self.names.insert(device.id, device.name.clone());
                let inside = self.devices_only.is_empty() || self.devices_only.contains(&device.name);
                if inside {
                    self.devices.insert(device.id);
                }
                inside
            }
            Event::DeviceGone(id) => {
                self.names.remove(id);
                self.devices.remove(id)
            }
            _ => true,
        }
    }

    /// A finding for each disk that the operator's file speaks of and this host does not have.
    pub(crate) fn unknown_disks(&self, config: &Config) -> Vec<Finding> {
        let only = self.devices_only.iter().map(|name| (name, "daemon.devices_only".to_owned()));
        let tables = config.engine.devices.keys().map(|name| (name, format!("[devices.{name}]")));
        let there: BTreeSet<&str> = self.names.values().map(String::as_str).collect();
        let unknown = only.chain(tables).filter(|(name, _)| !there.contains(name.as_str()));
        let finding = |(name, place)| Finding {
            kind: FindingKind::UnknownDisk,
            device: None,
            tenant: None,
            message: format!(
                "the operator's file names the disk '{name}' in {place}, and this host has no such whole disk now. It has: {}.",
                there.iter().copied().collect::<Vec<&str>>().join(", ")
            ),
        };
        unknown.map(finding).collect()
    }

    /// A finding for each slice that hides groups and did not at the last call.
    pub(crate) fn hidden(&mut self, hidden: impl Iterator<Item = HiddenGroups>) -> Vec<Finding> {
        let hidden: Vec<HiddenGroups> = hidden.filter(|groups| self.is_inside(&groups.slice)).collect();
        let finding = |groups: &HiddenGroups| Finding {
            kind: FindingKind::HiddenTenants,
            device: None,
            tenant: None,
            message: format!("{}. To tell them apart, {}.", groups.reason(), groups.remedy()),
        };
        let findings = hidden.iter().filter(|groups| !self.hiding.contains(&groups.slice)).map(finding).collect();
        self.hiding = hidden.into_iter().map(|groups| groups.slice).collect();
        findings
    }

    /// Those that hide groups still are findings of the next call.
    pub(crate) fn tell_hidden_again(&mut self) {
        self.hiding.clear();
    }

    /// Leaves in the sample what is inside.
    pub(crate) fn narrow(&self, sample: &mut Sample) {
        sample.devices.retain(|row| self.devices.contains(&row.device));
        sample.io.retain(|row| self.tenants.contains(&row.tenant) && self.devices.contains(&row.device));
        sample.usage.retain(|row| self.tenants.contains(&row.tenant));
        sample.pressure.retain(|row| self.tenants.contains(&row.tenant));
        sample.spaces.retain(|row| self.devices.contains(&row.device));
        // Of a subtree that is inside in part, what is outside would count as what nobody saw.
        sample.subtrees.retain(|row| self.devices.contains(&row.device) && self.is_inside(&row.group.path));
    }
}

#[cfg(test)]
mod tests {
    use super::Scope;
    use minerva_config::{DaemonSettings, NamedSettings};
    use minerva_model::{CgroupRef, Event, Tenant, TenantId, TenantKind};

    fn seen(id: u64, path: &str) -> Event {
        let tenant = Tenant {
            id: TenantId(id),
            name: path.to_owned(),
            kind: TenantKind::Cgroup,
            cgroup: CgroupRef { path: path.to_owned(), inode: id },
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: minerva_model::Terms::default(),
            origin: minerva_model::Origin::default(),
        };
        Event::TenantSeen { tenant, history: Vec::new() }
    }

    fn scope(include: &str, named: &str) -> Scope {
        let settings = DaemonSettings { include: vec![include.to_owned()], ..DaemonSettings::default() };
        Scope::new(&settings, &NamedSettings { parent: named.to_owned() }).expect("a good glob")
    }

    #[test]
    fn who_includes_named_groups_includes_the_background_work_beside_them() {
        for include in ["lab/*", "lab/named", "lab/named/background-*", "lab/named-background"] {
            let mut scope = scope(include, "lab/named");
            assert!(scope.admits(&seen(1, "lab/named-background/background-b1")), "{include}");
            assert!(!scope.admits(&seen(2, "named-background/background-b1")), "{include}");
        }
        let mut scope = scope("batch", "lab/named");
        assert!(!scope.admits(&seen(1, "lab/named-background/background-b1")));
        assert!(!scope.admits(&seen(2, "lab/named-backgrounds/background-b1")));
    }

    #[test]
    fn what_is_at_or_below_a_match_is_inside() {
        let mut scope = scope("batch-*", "minerva");
        assert!(scope.admits(&seen(1, "batch-1")));
        assert!(scope.admits(&seen(2, "batch-1/night/deep")));
        assert!(!scope.admits(&seen(3, "system.slice/batch-1")));
        assert!(!scope.admits(&seen(4, "batch")));
        assert!(scope.admits(&Event::TenantGone(TenantId(2))));
        assert!(!scope.admits(&Event::TenantGone(TenantId(3))));
    }
}
