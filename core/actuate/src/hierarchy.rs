//! From shares to the weights of one disk, when cgroups are nested.
//!
//! The kernel compares a group's weight with its siblings' only. So that a share means the same at every depth, a group above
//! tenants weighs what the active tenants beneath it have together: two tenants of share 100 in one slice and one of share 100
//! beside that slice get a third each. A tenant that Minerva may not steer counts as 100, the kernel's default. What stands
//! beneath a tenant is the tenant's own affair and counts for nothing outside it.
//!
//! All groups that one user makes, in what was delegated to it or by logging in, are one claim on the disk, however many there are: the
//! group above them weighs no more than the largest share among its active tenants.
//!
//! Background work that takes time from others in stretches has a large share, and is stopped between them. A group above weighs all of that
//! only where nothing but background work uses the disk beneath it: others there would have the whole weight for as long as the work is stopped.
//! Beside others it counts in groups above as 100 at most, and so goes before those in its own group only.
//!
//! A sum may pass the largest weight the knob takes. Then the whole sibling set is divided by a power of two, so that ratios
//! stay down to weight 1; powers of two, and coming back only with room to spare, keep a set of thousands from being rewritten
//! whenever a sum moves. Limits: siblings that Minerva does not steer stay at what they have, undivided.
//!
//! A group with no active tenant beneath keeps the weight it has, because it does not matter then.

mod claim;

pub(crate) use claim::Own;

use crate::groups::{GroupNumber, Groups};
use crate::knob::Holder;
use crate::setting::WEIGHT_DEFAULT;
use claim::Claim;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default, Serialize, Deserialize)]
struct Node {
    own: Option<Own>,
    beneath: Claim,
    /// How many tenants of its maker's claim what; empty for a group in which only root makes groups.
    #[serde(default)]
    made: BTreeMap<u64, u32>,
    /// The weight last planned.
    planned: Option<u32>,
}

impl Node {
    fn upwards(&self) -> Claim {
        match self.own {
            None => self.beneath.of_group(self.made.keys().next_back().copied().unwrap_or(u64::MAX)),
            Some(own) => own.upwards(),
        }
    }
}

/// The children of one group that are steered.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Siblings {
    /// What each is to weigh before the division.
    claims: BTreeMap<GroupNumber, u64>,
    /// How many have which claim: the largest is the last.
    counts: BTreeMap<u64, u32>,
    /// Weights are divided by two to this.
    shift: u32,
}

/// One more of a value, or one less.
fn count(counts: &mut BTreeMap<u64, u32>, before: Option<u64>, after: Option<u64>) {
    if let Some(after) = after {
        *counts.entry(after).or_default() += 1;
    }
    if let Some(before) = before
        && let Some(count) = counts.get_mut(&before)
    {
        *count -= 1;
        if *count == 0 {
            counts.remove(&before);
        }
    }
}

impl Siblings {
    fn set(&mut self, group: GroupNumber, claim: Option<u64>) {
        let before = match claim {
            Some(claim) => self.claims.insert(group, claim),
            None => self.claims.remove(&group),
        };
        count(&mut self.counts, before, claim);
    }

    /// Sees to it that the largest claim fits; true if the division changed.
    fn fit(&mut self, weight_max: u64) -> bool {
        let largest = self.counts.keys().next_back().copied().unwrap_or(0);
        let before = self.shift;
        while largest >> self.shift > weight_max {
            self.shift += 1;
        }
        // A quarter of the range must be to spare before the division is eased.
        while self.shift > 0 && largest >> (self.shift - 1) <= weight_max - weight_max / 4 {
            self.shift -= 1;
        }
        self.shift != before
    }
}

/// A new weight; `None` when the group is no longer Minerva's business.
pub(crate) type Change = (Holder, Option<u32>);

/// The weights of one disk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Tree {
    weight_max: u32,
    manage_ancestors: bool,
    nodes: BTreeMap<GroupNumber, Node>,
    sets: BTreeMap<GroupNumber, Siblings>,
    touched: BTreeSet<GroupNumber>,
}

impl Tree {
    pub(crate) fn new(weight_max: u32, manage_ancestors: bool) -> Self {
        Self { weight_max, manage_ancestors, nodes: BTreeMap::new(), sets: BTreeMap::new(), touched: BTreeSet::new() }
    }

    /// Sets or removes what a tenant has here, and carries the difference up.
    pub(crate) fn set(&mut self, groups: &Groups, group: GroupNumber, own: Option<Own>) {
        let node = self.nodes.entry(group).or_default();
        if node.own == own {
            return;
        }
        if node.own.map(|own| own.tenant) != own.map(|own| own.tenant) {
            // Another holder has other knobs: what was planned for the former says nothing of them.
            node.planned = None;
        }
        let owned = node.own;
        let mut before = node.upwards();
        node.own = own;
        let mut after = node.upwards();
        self.touched.insert(group);
        let mut makers: BTreeSet<GroupNumber> =
            [owned, own].into_iter().flatten().filter_map(|own| own.maker).collect();
        let mut next = groups.parent(group);
        // For a new one all groups above are looked at, as an earlier tree may have left weights there.
        while let Some(group) = next.filter(|_| owned.is_none() || before != after || !makers.is_empty()) {
            let node = self.nodes.entry(group).or_default();
            let upwards_before = node.upwards();
            if makers.remove(&group) {
                let made_here = |own: Option<Own>| own.filter(|own| own.maker == Some(group)).map(Own::claim);
                count(&mut node.made, made_here(owned), made_here(own));
            }
            node.beneath = node.beneath.with(before, after);
            (before, after) = (upwards_before, node.upwards());
            self.touched.insert(group);
            next = groups.parent(group);
        }
    }

    /// Groups that no longer exist, and had nothing left in them.
    pub(crate) fn forget(&mut self, groups: &[GroupNumber]) {
        for group in groups {
            self.nodes.remove(group);
            self.sets.remove(group);
            self.touched.remove(group);
            // The group above may have stayed.
            self.sets.values_mut().filter(|set| set.claims.contains_key(group)).for_each(|set| set.set(*group, None));
        }
    }

    /// What a touched group claims among its siblings now that all that changed is known. One in which nobody is active keeps
    /// its claim, whatever the sums were on the way.
    fn claim(&mut self, groups: &Groups, group: GroupNumber) {
        let (Some(node), Some(parent)) = (self.nodes.get(&group), groups.parent(group)) else { return };
        let claim = match (node.own, node.upwards()) {
            (Some(own), _) => own.share.map(u64::from),
            (None, beneath) if !self.manage_ancestors || beneath.steered == 0 => None,
            (None, beneath) if beneath.shares == 0 => return,
            (None, beneath) => Some(beneath.weight()),
        };
        self.sets.entry(parent).or_default().set(group, claim);
    }

    /// The weights that changed since the last call, in the order in which to write them: groups above rise from the top
    /// down, then tenants change, then groups above sink from the bottom up. So nobody is for a moment in a group
    /// narrower than both before and after.
    pub(crate) fn changes(&mut self, groups: &Groups) -> Vec<Change> {
        for group in self.touched.iter().copied().collect::<Vec<_>>() {
            self.claim(groups, group);
        }
        let parents: BTreeSet<GroupNumber> = self.touched.iter().filter_map(|group| groups.parent(*group)).collect();
        for parent in parents {
            if let Some(set) = self.sets.get_mut(&parent)
                && set.fit(u64::from(self.weight_max))
            {
                self.touched.extend(set.claims.keys());
            }
        }
        let mut changes: Vec<((u8, u32, GroupNumber), Change)> = Vec::new();
        for group in std::mem::take(&mut self.touched) {
            let (Some(node), Some(known)) = (self.nodes.get_mut(&group), groups.get(group)) else { continue };
            let set = known.parent.and_then(|parent| self.sets.get(&parent));
            let weight = set.and_then(|set| Some((*set.claims.get(&group)?, set.shift)));
            let weight = weight.map(|(claim, shift)| ((claim >> shift) as u32).clamp(1, self.weight_max));
            let before = std::mem::replace(&mut node.planned, weight);
            // What an earlier tree planned for a group may stand, though this one planned nothing yet.
            let is_left = node.own.is_none() && node.beneath.steered == 0;
            if weight == before && !is_left {
                continue;
            }
            let rises = weight.unwrap_or(WEIGHT_DEFAULT) >= before.unwrap_or(WEIGHT_DEFAULT);
            let (rank, holder) = match node.own {
                Some(own) => ((1, 0, group), Holder::Tenant(own.tenant)),
                None if rises => ((0, known.depth, group), Holder::Group(group)),
                None => ((2, u32::MAX - known.depth, group), Holder::Group(group)),
            };
            changes.push((rank, (holder, weight)));
        }
        changes.sort_unstable_by_key(|(rank, _)| *rank);
        changes.into_iter().map(|(_, change)| change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Own, Tree};
    use crate::groups::Groups;
    use crate::knob::Holder;
    use minerva_model::TenantId;
    use proptest::prelude::{Strategy, any, proptest};
    use std::collections::BTreeMap;

    /// A tenant's path below three levels, its share if it is steered, and whether it is active.
    fn tenants() -> impl Strategy<Value = Vec<(String, Option<u32>, bool)>> {
        let one = (0..3_u8, 0..3_u8, proptest::option::weighted(0.9, 1..10_000_u32), any::<bool>());
        proptest::collection::vec(one, 1..30).prop_map(|rows| {
            let path = |index, top, middle| format!("top{top}/middle{middle}/tenant{index}");
            rows.into_iter().enumerate().map(|(i, (t, m, share, active))| (path(i, t, m), share, active)).collect()
        })
    }

    fn own(index: usize, share: Option<u32>, active: bool) -> Own {
        Own { tenant: TenantId(index as u64), share, active, maker: None, is_work: false }
    }

    proptest! {
        /// However a state was reached, the weights are the same as when entered at once, up to the easing of divisions. What is below
        /// `top0` was made by the users of its middle groups, of which each claims its largest share.
        #[test]
        fn differences_carried_up_equal_sums(rows in tenants(), order in any::<u64>()) {
            let mut groups = Groups::default();
            let numbers: Vec<_> =
                rows.iter().enumerate().map(|(i, (path, ..))| groups.enter(path, TenantId(i as u64))).collect();
            let middle = |path: &str| path.rsplit_once('/').unwrap().0.to_owned();
            let made = |index: usize, share, active| {
                let path = &rows[index].0;
                let maker = path.starts_with("top0/").then(|| groups.find(&middle(path)).unwrap());
                Some(Own { maker, ..own(index, share, active) })
            };
            let (mut once, mut twice) = (Tree::new(10_000, true), Tree::new(10_000, true));
            for (index, (_, share, active)) in rows.iter().enumerate() {
                let other = (order.rotate_left(index as u32) % 10_000) as u32 + 1;
                // Whose it is may turn out later.
                twice.set(&groups, numbers[index], Some(own(index, Some(other), !active)));
                once.set(&groups, numbers[index], made(index, *share, *active));
            }
            for (index, (_, share, active)) in rows.iter().enumerate().rev() {
                twice.set(&groups, numbers[index], made(index, *share, *active));
            }
            for group in groups.numbers() {
                let claims = |tree: &Tree| tree.nodes.get(&group).map(|node| (node.beneath, node.upwards()));
                assert_eq!(claims(&once), claims(&twice));
            }
            let mut expected: BTreeMap<String, u64> = BTreeMap::new();
            for (path, share, _) in rows.iter().filter(|row| row.2) {
                let (claim, share) = (expected.entry(middle(path)).or_default(), u64::from(share.unwrap_or(100)));
                *claim = if path.starts_with("top0/") { share.max(*claim) } else { share + *claim };
            }
            let root = groups.find("").unwrap();
            assert_eq!(once.nodes.get(&root).map_or(0, |node| node.beneath.shares), expected.into_values().sum::<u64>());
        }

        /// Weights fit the knob, and no sibling set is more distorted than the division explains.
        #[test]
        fn weights_fit_and_keep_their_order(shares in proptest::collection::vec(1..10_000_u32, 1..40)) {
            let mut groups = Groups::default();
            let mut tree = Tree::new(1_000, true);
            for (index, share) in shares.iter().enumerate() {
                let number = groups.enter(&format!("all/{index}"), TenantId(index as u64));
                tree.set(&groups, number, Some(own(index, Some(*share), true)));
            }
            let mut weights = vec![100; shares.len()];
            for (holder, weight) in tree.changes(&groups) {
                if let Holder::Tenant(TenantId(index)) = holder {
                    weights[index as usize] = weight.unwrap();
                }
            }
            let largest = weights.iter().max().unwrap();
            assert!(weights.iter().all(|weight| (1..=1_000).contains(weight)));
            assert!(*shares.iter().max().unwrap() <= 1_000 || *largest > 375, "no more divided than needed");
            let mut order: Vec<(u32, u32)> = shares.iter().copied().zip(weights).collect();
            order.sort_unstable();
            assert!(order.is_sorted_by_key(|(_, weight)| *weight), "a larger share weighs no less");
            assert!(tree.changes(&groups).is_empty(), "nothing changes twice");
        }
    }

    #[test]
    fn what_stands_beneath_a_tenant_counts_for_nothing_above() {
        let mut groups = Groups::default();
        let outer = groups.enter("pods/one", TenantId(1));
        let inner = groups.enter("pods/one/inner", TenantId(2));
        let mut tree = Tree::new(1_000, true);
        tree.set(&groups, inner, Some(own(2, Some(70), true)));
        tree.set(&groups, outer, Some(own(1, Some(30), true)));
        let changes = tree.changes(&groups);
        let pods = groups.find("pods").unwrap();
        assert!(changes.contains(&(Holder::Group(pods), Some(30))));
        assert!(changes.contains(&(Holder::Tenant(TenantId(2)), Some(70))));
    }

    #[test]
    fn background_work_lifts_the_groups_above_it_only_where_it_lifts_nobody_else() {
        let mut groups = Groups::default();
        let paths = ["top/minerva/work", "top/minerva/gaps", "top/minerva/named", "top/other"];
        let numbers: Vec<_> = paths.iter().zip(1..).map(|(path, id)| groups.enter(path, TenantId(id))).collect();
        let mut tree = Tree::new(10_000, true);
        let mut weights = |index: usize, share: u32, active| {
            let is_work = index < 2;
            let own = Own { is_work, ..own(index + 1, Some(share), active) };
            tree.set(&groups, numbers[index], Some(own));
            let changes: BTreeMap<_, _> = tree.changes(&groups).into_iter().collect();
            let of = |path| changes.get(&Holder::Group(groups.find(path).unwrap())).copied().flatten();
            [of("top/minerva"), of("top")]
        };
        assert_eq!(weights(0, 1_000, true), [Some(1_000); 2]);
        assert_eq!(weights(1, 1, true), [Some(1_001); 2], "work in gaps is stopped as well");
        assert_eq!(weights(3, 50, true), [None, Some(151)], "what is beside its group is not lifted");
        assert_eq!(weights(2, 12, true), [Some(113), Some(163)]);
        assert_eq!(weights(0, 40, true), [Some(53), Some(103)], "an ordinary share counts as it is");
        assert_eq!(weights(0, 1_000, true), [Some(113), Some(163)]);
        assert_eq!(weights(2, 12, false), [Some(1_001), Some(151)]);
        assert_eq!(weights(3, 50, false), [None, Some(1_001)]);
    }

    #[test]
    fn the_operator_can_keep_groups_to_himself() {
        let mut groups = Groups::default();
        let tenant = groups.enter("pods/one", TenantId(1));
        let mut tree = Tree::new(1_000, false);
        tree.set(&groups, tenant, Some(own(1, Some(30), true)));
        assert_eq!(tree.changes(&groups), [(Holder::Tenant(TenantId(1)), Some(30))]);
    }
}
