//! What a group transferred beside the tenants below it: its own transfers, and those of groups that are no tenants or were removed.
//!
//! Where all counters only rise, as on v2, write P for the group's totals, T for the sum of its tenants' counters and O for the remainder, so that at
//! any instant P = T + O. A total that was read *before* each of the tenants gives P - T <= O, for the tenants may have moved on
//! since: the greatest of these differences is what is known of O, and is never more than O is. A total that was read *after* each
//! tenant gives P - T >= O, for the same reason. Where the second difference is not more than the first, nobody has transferred
//! anything since they were read last, however long ago that was.
//!
//! On v1 P and O fall when a group below is removed. Then neither what was learnt before holds, nor is the greatest difference the one to
//! keep: whoever asks there learns from the last reading only. A fall since leaves the question open, as P - T is then less than what was
//! learnt, but for one of exactly as much as somebody transferred meanwhile.

use minerva_model::{DeviceId, IoCounters};
use std::collections::BTreeMap;

/// Counters by disk.
pub(crate) type Totals = BTreeMap<DeviceId, IoCounters>;

/// What is known of one group's remainder: it is that much or more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remainder {
    at_least: Totals,
    /// The group's totals when they were last used here.
    seen: Totals,
}

impl Remainder {
    /// Learns from totals of the group that were read before those of any tenant.
    pub(crate) fn learn(&mut self, before: &Totals, tenants: &Totals) {
        if self.has_fallen(before) {
            self.at_least.clear();
        }
        for (device, total) in before {
            let tenants = of(tenants, *device);
            let least = self.at_least.entry(*device).or_default();
            *least = each(&each(total, &tenants, u64::saturating_sub), least, u64::max);
        }
        self.seen.clone_from(before);
    }

    /// Whether totals of the group that were read after those of its tenants hold nothing beside them and the remainder: then what was
    /// last read of each tenant is what its counters still say.
    pub(crate) fn explains(&mut self, after: &Totals, tenants: &Totals) -> bool {
        if self.has_fallen(after) || tenants.keys().any(|device| !after.contains_key(device)) {
            return false;
        }
        let is_explained = |(device, total): (&DeviceId, &IoCounters)| {
            let (tenants, rest) = (of(tenants, *device), of(&self.at_least, *device));
            each(&tenants, &rest, u64::saturating_add) == *total
        };
        let explains = after.iter().all(is_explained);
        self.seen.clone_from(after);
        explains
    }

    /// The disk's counters began again, so that nothing holds that was learnt of them.
    fn has_fallen(&self, totals: &Totals) -> bool {
        self.seen.iter().any(|(device, seen)| each(seen, &of(totals, *device), u64::max) != of(totals, *device))
    }
}

/// Adds a tenant's counters of a disk.
pub(crate) fn add(totals: &mut Totals, device: DeviceId, counters: &IoCounters) {
    let sum = totals.entry(device).or_default();
    *sum = each(sum, counters, u64::saturating_add);
}

fn of(totals: &Totals, device: DeviceId) -> IoCounters {
    totals.get(&device).copied().unwrap_or_default()
}

/// Counters, each from two by `with`.
pub(crate) fn each(a: &IoCounters, b: &IoCounters, with: fn(u64, u64) -> u64) -> IoCounters {
    IoCounters {
        read_bytes: with(a.read_bytes, b.read_bytes),
        write_bytes: with(a.write_bytes, b.write_bytes),
        read_ops: with(a.read_ops, b.read_ops),
        write_ops: with(a.write_ops, b.write_ops),
    }
}

#[cfg(test)]
mod tests {
    use super::{Remainder, Totals};
    use minerva_model::{DeviceId, IoCounters};

    fn totals(read_bytes: u64, write_ops: u64) -> Totals {
        let disk = DeviceId { major: 8, minor: 0 };
        Totals::from([(disk, IoCounters { read_bytes, write_ops, ..IoCounters::default() })])
    }

    #[test]
    fn only_what_is_exactly_the_tenants_and_the_remainder_is_explained() {
        let mut remainder = Remainder::default();
        assert!(remainder.explains(&Totals::new(), &Totals::new()));
        assert!(remainder.explains(&totals(100, 3), &totals(100, 3)));
        assert!(!remainder.explains(&totals(110, 3), &totals(100, 3)));
        assert!(!remainder.explains(&totals(110, 4), &totals(110, 3)));
        // Tenants that moved on while they were read make the remainder look small, and it never sinks for that.
        remainder.learn(&totals(150, 4), &totals(140, 4));
        remainder.learn(&totals(150, 4), &totals(160, 5));
        assert!(remainder.explains(&totals(180, 5), &totals(170, 5)));
        assert!(!remainder.explains(&totals(180, 5), &totals(171, 5)));
        assert!(!remainder.explains(&totals(181, 5), &totals(170, 5)));
        // Of a disk that only tenants have counters of nothing is known.
        assert!(!remainder.explains(&Totals::new(), &totals(1, 0)));
    }

    #[test]
    fn a_fall_leaves_the_question_open_even_if_the_tenants_did_more_than_it_took() {
        let mut remainder = Remainder::default();
        remainder.learn(&totals(150, 0), &totals(100, 0));
        // The group that did those 50 was removed, and a tenant that was read did 70.
        assert!(!remainder.explains(&totals(170, 0), &totals(170, 0)));
    }

    #[test]
    fn counters_that_begin_again_take_what_was_learnt_with_them() {
        let mut remainder = Remainder::default();
        remainder.learn(&totals(150, 0), &totals(100, 0));
        assert!(!remainder.explains(&totals(60, 0), &totals(10, 0)), "50 beside the tenants, but of other counters");
        remainder.learn(&totals(60, 0), &totals(55, 0));
        assert!(remainder.explains(&totals(61, 0), &totals(56, 0)));
    }
}
