//! Whose turn it is of the disks that lie on one disk below them: work on two volumes of a disk would move its head to and fro, and each would
//! take the other's requests for those of somebody who came back.

use minerva_model::{DeviceId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// How long one has the turn while another waits for it.
const TURN: Nanos = Nanos::from_secs(10);

/// A disk with work that may run.
#[derive(Debug)]
pub(crate) struct Wanting {
    /// The disks at its bottom.
    pub(crate) bottom: BTreeSet<DeviceId>,
    /// The work is what a tenant owes.
    pub(crate) is_told: bool,
}

/// The disks with work that have their turn, and those that had it. Disks that share none below have it side by side.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Since when.
    having: BTreeMap<DeviceId, Nanos>,
    /// When it ended.
    had: BTreeMap<DeviceId, Nanos>,
}

impl Turns {
    /// Takes all disks with work that may run, and gives turns: to work of the operator first, then to who has waited longest. A tenant's
    /// gives its turn up at once where the operator's waits, and ends none of the operator's: whatever it says that it owes costs that nothing.
    pub(crate) fn give(&mut self, now: Nanos, wanting: &BTreeMap<DeviceId, Wanting>) {
        let meets =
            |one: &DeviceId, other: &DeviceId| one != other && !wanting[one].bottom.is_disjoint(&wanting[other].bottom);
        let goes_before = |one: &DeviceId, other: &DeviceId| !wanting[one].is_told && wanting[other].is_told;
        self.had.retain(|device, _| wanting.contains_key(device));
        self.having.retain(|device, _| wanting.contains_key(device));
        let waiting: Vec<DeviceId> =
            wanting.keys().filter(|device| !self.having.contains_key(device)).copied().collect();
        let is_over = |device: &DeviceId, since: Nanos| {
            // What lies below one may change while it has its turn.
            let meets_earlier =
                self.having.iter().any(|(other, from)| (*from, other) < (since, device) && meets(device, other));
            let mut waiting = waiting.iter().filter(|other| meets(device, other) && !goes_before(device, other));
            let may_end = now.since(since) >= TURN;
            meets_earlier || waiting.any(|other| may_end || goes_before(other, device))
        };
        let over: Vec<DeviceId> =
            self.having.iter().filter(|(device, since)| is_over(device, **since)).map(|(device, _)| *device).collect();
        for device in over {
            self.having.remove(&device);
            self.had.insert(device, now);
        }
        let mut next: Vec<DeviceId> =
            wanting.keys().filter(|device| !self.having.contains_key(device)).copied().collect();
        next.sort_by_key(|device| (wanting[device].is_told, self.had.get(device).copied(), *device));
        for device in next {
            if self.having.keys().all(|other| !meets(&device, other)) {
                self.having.insert(device, now);
            }
        }
    }

    /// It has its turn.
    pub(crate) fn has(&self, device: DeviceId) -> bool {
        self.having.contains_key(&device)
    }
}

#[cfg(test)]
mod tests {
    use super::{TURN, Turns, Wanting};
    use minerva_model::{DeviceId, Nanos};
    use std::collections::BTreeMap;

    fn disk(minor: u32) -> DeviceId {
        DeviceId { major: 253, minor }
    }

    /// Who has the turn, of disks that lie on these.
    fn having(turns: &mut Turns, seconds: u64, wanting: &[(u32, &[u32])]) -> Vec<u32> {
        let wanted = |on: &[u32], is_told| Wanting { bottom: on.iter().map(|on| disk(*on)).collect(), is_told };
        // Tenants' have numbers from 50.
        let wanting: BTreeMap<DeviceId, Wanting> =
            wanting.iter().map(|(of, on)| (disk(*of), wanted(on, *of >= 50))).collect();
        turns.give(Nanos::from_secs(seconds), &wanting);
        wanting.keys().filter(|device| turns.has(**device)).map(|device| device.minor).collect()
    }

    #[test]
    fn of_volumes_on_one_disk_one_has_its_turn_after_the_other_and_others_beside_them() {
        let mut turns = Turns::default();
        let all: [(u32, &[u32]); 4] = [(1, &[10]), (2, &[10, 11]), (3, &[11]), (4, &[12])];
        assert_eq!(having(&mut turns, 0, &all), [1, 3, 4]);
        assert_eq!(having(&mut turns, 9, &all), [1, 3, 4], "not before its turn is over");
        assert_eq!(TURN, Nanos::from_secs(10));
        assert_eq!(having(&mut turns, 10, &all), [2, 4]);
        assert_eq!(having(&mut turns, 20, &all), [1, 3, 4]);
        assert_eq!(having(&mut turns, 21, &all[1..]), [3, 4]);
        assert_eq!(having(&mut turns, 22, &all[1..2]), [2], "the other has nothing to do any more");
        assert_eq!(having(&mut turns, 99, &all[1..2]), [2], "nobody waits for it");
    }

    #[test]
    fn what_a_tenant_owes_takes_no_turn_from_the_operators_work() {
        let mut turns = Turns::default();
        let all: [(u32, &[u32]); 3] = [(1, &[10]), (50, &[10]), (51, &[10])];
        assert_eq!(having(&mut turns, 0, &all[1..]), [50]);
        assert_eq!(having(&mut turns, 1, &all), [1], "at once");
        assert_eq!(having(&mut turns, 99, &all), [1]);
        assert_eq!(having(&mut turns, 100, &all[1..]), [51], "who has waited longer");
        assert_eq!(having(&mut turns, 110, &all[1..]), [50]);
    }

    #[test]
    fn a_volume_that_grows_onto_the_disk_of_another_waits_for_that_ones_turn() {
        let mut turns = Turns::default();
        assert_eq!(having(&mut turns, 0, &[(1, &[10]), (2, &[11])]), [1, 2]);
        assert_eq!(having(&mut turns, 1, &[(1, &[10]), (2, &[10, 11])]), [1]);
        assert_eq!(having(&mut turns, 10, &[(1, &[10]), (2, &[10, 11])]), [2]);
    }
}
