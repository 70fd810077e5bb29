//! Which groups are tenants: numbers, names and the operator's rules.

use crate::ObserveError;
use crate::classify::Part;
use crate::guests::{guest_in, may_be_guest};
use crate::hidden::HiddenGroups;
use crate::read::Reader;
use crate::rules::{Rules, Ruling};
use crate::skips::Skips;
use crate::subtrees::{Subtree, subtrees};
use crate::tree::{Node, Tree, delegated_from, parent_of};
use minerva_model::{CgroupRef, CgroupVersion, Event, Origin, Tenant, TenantId, TenantKind, TenantRule};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How much of a group a tenant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The group and all below it.
    Subtree,
    /// The group's own processes only, because groups below it are tenants themselves. Only on v1: v2 does not let a group
    /// have both.
    Own,
}

/// A tenant that is there.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) tenant: Tenant,
    pub(crate) extent: Extent,
}

/// All tenants.
#[derive(Debug)]
pub(crate) struct Tenants {
    tree: Tree,
    version: CgroupVersion,
    proc: PathBuf,
    rules: Rules,
    pub(crate) known: BTreeMap<TenantId, Known>,
    by_path: BTreeMap<String, TenantId>,
    /// What was delegated to users, by inode.
    pub(crate) subtrees: BTreeMap<u64, Subtree>,
    /// Guests found by their processes, with the guest's name.
    guests: BTreeMap<TenantId, String>,
    last_id: u64,
    judge_all: bool,
    /// Another one whenever a tenant came or went, or its extent changed.
    pub(crate) generation: u64,
}

impl Tenants {
    pub(crate) fn new(
        root: OwnedFd,
        version: CgroupVersion,
        proc: &Path,
        rules: &[TenantRule],
    ) -> Result<Self, ObserveError> {
        Ok(Self {
            tree: Tree::new(root, version),
            version,
            proc: proc.to_owned(),
            rules: Rules::new(rules)?,
            known: BTreeMap::new(),
            by_path: BTreeMap::new(),
            subtrees: BTreeMap::new(),
            guests: BTreeMap::new(),
            last_id: 0,
            judge_all: false,
            generation: 0,
        })
    }

    /// The root of the hierarchy.
    pub(crate) fn root(&self) -> &OwnedFd {
        &self.tree.root
    }

    /// Slices below which the controller does not reach, as of the last look.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = HiddenGroups> + '_ {
        let nodes = self.tree.nodes.iter().filter(|(_, node)| node.hidden > 0);
        nodes.map(|(path, node)| HiddenGroups { slice: path.clone(), groups: node.hidden })
    }

    /// Where named groups are; before the first look.
    pub(crate) fn named_below(&mut self, parents: Vec<String>) {
        self.tree.named_parents = parents;
    }

    /// Replaces the rules; tenants whose ruling changes are announced again by the next [`Tenants::discover`].
    pub(crate) fn set_rules(&mut self, rules: &[TenantRule]) -> Result<(), ObserveError> {
        self.rules = Rules::new(rules)?;
        self.judge_all = true;
        Ok(())
    }

    /// A look at a tenant's processes showed that it is a QEMU guest.
    pub(crate) fn is_guest(&mut self, id: TenantId, name: String) {
        if let Some(known) = self.known.get(&id).filter(|known| may_be_guest(known.tenant.kind)) {
            let id = known.tenant.id;
            self.judge_all |= self.guests.get(&id) != Some(&name);
            self.guests.insert(id, name);
        }
    }

    /// These tenants' counters moved: what is below them is looked at in the next look.
    pub(crate) fn moved<'a>(&mut self, ids: impl Iterator<Item = &'a TenantId>) {
        for known in ids.filter_map(|id| self.known.get(id)) {
            self.tree.moved(&known.tenant.cgroup.path);
        }
    }

    /// Looks for tenants that came, went or changed.
    pub(crate) fn discover(&mut self, reader: &mut Reader, skips: &mut Skips) -> Vec<Event> {
        let gone = self.tree.look(reader, skips);
        let mut events: Vec<Event> = gone.iter().filter_map(|path| self.forget(path)).collect();
        let mut seen = Vec::new();
        self.judge_all |= std::mem::take(&mut self.tree.access_changed);
        let nodes = std::mem::take(&mut self.tree.nodes);
        for (path, extent, id) in self.changes(&nodes, reader, skips) {
            match (extent, id) {
                (None, _) => events.extend(self.forget(path)),
                (Some(extent), Some(id)) => {
                    if let Some(known) = self.known.get_mut(&id) {
                        known.extent = extent;
                        self.generation += 1;
                    }
                }
                (Some(extent), None) => seen.push(self.meet(path, &nodes, extent, reader)),
            }
        }
        if std::mem::take(&mut self.judge_all) {
            seen.extend(self.judge_again(&nodes));
            self.subtrees.clear();
        }
        // On v1 their counters say no more than those of the groups that are there: see `counters`.
        if self.version == CgroupVersion::V2 {
            let before = std::mem::take(&mut self.subtrees);
            self.subtrees = subtrees(&nodes, &self.by_path, &self.rules, &self.tree.named_parents, &before);
            // Counters are arranged anew for other groups.
            self.generation += u64::from(!self.subtrees.keys().eq(before.keys()));
        }
        self.tree.nodes = nodes;
        events.extend(seen.into_iter().map(|tenant| Event::TenantSeen { tenant, history: Vec::new() }));
        events
    }

    /// Groups that are not the tenants that they were, or are tenants and were none: how much of each is one now, and which it was.
    fn changes<'a>(
        &self,
        nodes: &'a BTreeMap<String, Node>,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> Vec<(&'a str, Option<Extent>, Option<TenantId>)> {
        let mut changes = Vec::new();
        // Both are sorted by path, so that nobody is searched for.
        let mut tenants = self.by_path.iter().peekable();
        for (path, node) in nodes.iter().filter(|(path, _)| !path.is_empty()) {
            while tenants.next_if(|(tenant, _)| *tenant < path).is_some() {}
            let id = tenants.next_if(|(tenant, _)| *tenant == path).map(|(_, id)| *id);
            let extent = self.extent(path, node, reader, skips);
            let before = id.and_then(|id| self.known.get(&id)).map(|known| known.extent);
            if extent != before {
                changes.push((path.as_str(), extent, id));
            }
        }
        changes
    }

    /// How much of a group is a tenant, if any.
    fn extent(&self, path: &str, node: &Node, reader: &mut Reader, skips: &mut Skips) -> Option<Extent> {
        match node.class.part {
            Part::Nobody => None,
            Part::Unit => Some(Extent::Subtree),
            Part::Holder if node.children == 0 => Some(Extent::Subtree),
            Part::Holder if self.version == CgroupVersion::V2 => None,
            Part::Holder => match reader.below(self.tree.root.as_fd(), &format!("{path}/cgroup.procs")) {
                Ok(text) => (!text.is_empty()).then_some(Extent::Own),
                Err(error) => {
                    skips.unreadable("cgroup.procs", path, error);
                    None
                }
            },
        }
    }

    fn forget(&mut self, path: &str) -> Option<Event> {
        let id = self.by_path.remove(path)?;
        self.generation += 1;
        self.known.remove(&id);
        self.guests.remove(&id);
        Some(Event::TenantGone(id))
    }

    fn meet(&mut self, path: &str, nodes: &BTreeMap<String, Node>, extent: Extent, reader: &mut Reader) -> Tenant {
        self.last_id += 1;
        self.generation += 1;
        let id = TenantId(self.last_id);
        let node = &nodes[path];
        if may_be_guest(node.class.kind)
            && let Some(name) = guest_in(&self.tree.root, &self.proc, path, reader)
        {
            self.guests.insert(id, name);
        }
        let tenant = self.judge(id, path, node, nodes);
        self.by_path.insert(path.to_owned(), id);
        self.known.insert(id, Known { tenant: tenant.clone(), extent });
        tenant
    }

    /// Applies the rules to a tenant. What its processes call themselves is noted and bears on nothing.
    fn judge(&self, id: TenantId, path: &str, node: &Node, nodes: &BTreeMap<String, Node>) -> Tenant {
        let guest_name = self.guests.get(&id).cloned();
        let kind = if guest_name.is_some() { TenantKind::VirtualMachine } else { node.class.kind };
        let delegated_from = delegated_from(nodes, parent_of(path));
        let delegated = delegated_from.as_ref().map(|cgroup| cgroup.path.as_str());
        let Ruling { name, group, weight_percent, excluded, job, terms } =
            self.rules.judge(path, &node.class, delegated);
        let cgroup = CgroupRef { path: path.to_owned(), inode: node.facts.inode };
        let group_kind = (kind != node.class.kind).then_some(node.class.kind);
        let is_login_users = cgroup.login_user().is_some();
        let origin = Origin { delegated_from, is_login_users, guest_name, group_kind };
        Tenant { id, name, kind, cgroup, group, weight_percent, excluded, job, terms, origin }
    }

    /// Applies the rules to everyone; the answer is those that changed.
    fn judge_again(&mut self, nodes: &BTreeMap<String, Node>) -> Vec<Tenant> {
        let mut changed = Vec::new();
        for (path, id) in &self.by_path {
            let Some(node) = nodes.get(path) else { continue };
            let tenant = self.judge(*id, path, node, nodes);
            if let Some(known) = self.known.get_mut(id).filter(|known| known.tenant != tenant) {
                known.tenant = tenant.clone();
                changed.push(tenant);
            }
        }
        changed
    }
}
