//! Groups that were delegated to users, each with all below it: on v2 their counters hold what groups did that came and went between
//! two looks.

use crate::classify::{Part, classify};
use crate::rules::Rules;
use crate::tree::{Node, delegated_from};
use minerva_model::{CgroupRef, DeviceId, IoCounters, SubtreeIo, TenantId};
use std::collections::BTreeMap;

/// The name of a group that nobody saw, as far as rules judge it.
const UNSEEN: &str = "unseen";

/// A delegated group below which tenants are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subtree {
    pub(crate) group: CgroupRef,
    history_key: String,
    weight_percent: u32,
    own: Option<TenantId>,
}

impl Subtree {
    pub(crate) fn row(&self, device: DeviceId, counters: IoCounters) -> SubtreeIo {
        SubtreeIo {
            group: self.group.clone(),
            history_key: self.history_key.clone(),
            weight_percent: self.weight_percent,
            own: self.own,
            device,
            counters,
        }
    }
}

/// The topmost delegated groups, by inode. Where all below one counts as one tenant, that tenant's counters say it already. `before` is
/// what was found by the same rules.
pub(crate) fn subtrees(
    nodes: &BTreeMap<String, Node>,
    by_path: &BTreeMap<String, TenantId>,
    rules: &Rules,
    named_parents: &[String],
    before: &BTreeMap<u64, Subtree>,
) -> BTreeMap<u64, Subtree> {
    let Some(root) = nodes.get("").map(|node| node.facts.access) else { return BTreeMap::new() };
    let mut found: BTreeMap<u64, Subtree> = BTreeMap::new();
    let mut last: Option<CgroupRef> = None;
    let delegated = |(path, node): &(&String, &Node)| {
        !path.is_empty() && node.class.part == Part::Holder && node.facts.access.is_delegated(root)
    };
    for (path, _) in nodes.iter().filter(delegated) {
        let is_below = |top: &CgroupRef| path.strip_prefix(&top.path).is_some_and(|rest| rest.starts_with('/'));
        if last.as_ref().is_some_and(is_below) {
            continue;
        }
        let Some(group) = delegated_from(nodes, path).filter(|group| group.path == *path) else { continue };
        let own = by_path.get(path).copied();
        let subtree = match before.get(&group.inode).filter(|before| before.group == group) {
            Some(before) => Subtree { own, ..before.clone() },
            None => {
                let below = format!("{path}/{UNSEEN}");
                let ruling = rules.judge(&below, &classify(&below, named_parents), Some(path));
                let account = group.login_user().unwrap_or_else(|| group.clone());
                let history_key = account.history_key(ruling.group.as_deref());
                Subtree { group: group.clone(), history_key, weight_percent: ruling.weight_percent, own }
            }
        };
        found.insert(group.inode, subtree);
        last = Some(group);
    }
    found
}
