//! Whose turn it is of the disks that lie on one disk below them: work on two volumes of a disk would move its head to and fro, and each would
//! take the other's requests for those of somebody who came back.

use minerva_model::{DeviceId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// How long one has the turn while another waits for it.
const TURN: Nanos = Nanos::from_secs(10);
/// And while one waits that has a share against others, where work that has none found no gap: those who use the disk may never pause.
const TURN_IN_VAIN: Nanos = Nanos::from_secs(1);
/// How long one has the turn of which the work loses what it has done since it last got on: half of a chunk of a btrfs takes a slow disk longer
/// than a turn.
const TURN_MAX: Nanos = Nanos::from_secs(180);
/// And at a limit, where a chunk takes so much longer: 1 GiB at the least one.
const TURN_LIMITED_MAX: Nanos = Nanos::from_secs(4096);

/// A disk with work that may run.
#[derive(Debug)]
pub(crate) struct Wanting {
    /// The disks at its bottom.
    pub(crate) bottom: BTreeSet<DeviceId>,
    /// The work is the operator's and does not hang: it goes before what tenants owe, and before what hangs.
    pub(crate) goes_first: bool,
    /// The work has a share of the disk's time against others.
    pub(crate) takes: bool,
    /// It runs.
    pub(crate) is_at_work: bool,
    /// Where the work is, if it runs and begins there again when it is stopped.
    pub(crate) begins_again: Option<BeginsAgain>,
}

/// Where work begins again when it is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginsAgain {
    pub(crate) at: u64,
    /// It runs at a limit.
    pub(crate) is_limited: bool,
}

impl Wanting {
    fn begins_again_at(&self) -> Option<u64> {
        self.begins_again.map(|begins| begins.at)
    }
}

/// The disks with work that have their turn, and those that had it. Disks that share none below have it side by side.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    having: BTreeMap<DeviceId, Turn>,
    /// When it ended.
    had: BTreeMap<DeviceId, Nanos>,
}

#[derive(Clone, Debug)]
struct Turn {
    since: Nanos,
    /// The first of [`Wanting::begins_again`] in it: most work runs only once there is a gap.
    began_at: Option<u64>,
    /// Those that kept theirs when this one began: for who waits for it and for them it ends as soon as one of theirs does.
    ends_with: BTreeSet<DeviceId>,
}

impl Turn {
    /// It may end for another one.
    fn may_end(&self, now: Nanos, wanting: &Wanting) -> bool {
        now.since(self.since) >= TURN && !self.is_kept(now, wanting)
    }

    /// It waits for a gap, where another would do something.
    fn is_in_vain(&self, now: Nanos, wanting: &Wanting, other: &Wanting) -> bool {
        other.takes && !wanting.takes && !wanting.is_at_work && now.since(self.since) >= TURN_IN_VAIN
    }

    /// It is kept for longer than others, as its work would begin again.
    fn is_kept(&self, now: Nanos, wanting: &Wanting) -> bool {
        wanting.begins_again.is_some_and(|begins| {
            let longest = if begins.is_limited { TURN_LIMITED_MAX } else { TURN_MAX };
            self.began_at == Some(begins.at) && now.since(self.since) < longest
        })
    }
}

/// A disk that waits for turns that end for it.
#[derive(Debug)]
struct Refused {
    device: DeviceId,
    /// Since when the last of those is.
    since: Nanos,
    /// Those of them that are kept: it waits for these all the same, whoever has the rest of its disks meanwhile.
    kept: BTreeSet<DeviceId>,
}

impl Turns {
    /// Takes all disks with work that may run, and gives turns: to work that goes first, then to who has waited longest. Other work gives its
    /// turn up at once where such work waits, and ends none of it: whatever a tenant says that it owes costs the operator's nothing.
    pub(crate) fn give(&mut self, now: Nanos, wanting: &BTreeMap<DeviceId, Wanting>) {
        let meets =
            |one: &DeviceId, other: &DeviceId| one != other && !wanting[one].bottom.is_disjoint(&wanting[other].bottom);
        let goes_before = |one: &DeviceId, other: &DeviceId| wanting[one].goes_first && !wanting[other].goes_first;
        self.had.retain(|device, _| wanting.contains_key(device));
        self.having.retain(|device, _| wanting.contains_key(device));
        self.having
            .iter_mut()
            .for_each(|(device, turn)| turn.began_at = turn.began_at.or(wanting[device].begins_again_at()));
        self.end(now, wanting, &meets, &goes_before);
        let mut next: Vec<DeviceId> =
            wanting.keys().filter(|device| !self.having.contains_key(device)).copied().collect();
        next.sort_by_key(|device| (!wanting[device].goes_first, self.had.get(device).copied(), *device));
        let mut refused: Vec<Refused> = Vec::new();
        for device in next {
            let met = || self.having.iter().filter(|(other, _)| meets(&device, other));
            if let Some(since) = met().map(|(_, turn)| turn.since).max() {
                if !met().any(|(other, _)| goes_before(other, &device)) {
                    let kept = met().filter(|(other, turn)| turn.is_kept(now, &wanting[*other]));
                    let kept = kept.map(|(other, _)| *other).collect();
                    refused.push(Refused { device, since, kept });
                }
                continue;
            }
            // Its turn ends with those for which one before it waits: else that would never find all its disks free.
            let before = || refused.iter().filter(|other| meets(&device, &other.device));
            let ends_with: BTreeSet<DeviceId> = before().flat_map(|other| &other.kept).copied().collect();
            let since = before().filter(|other| other.kept.is_empty()).map(|other| other.since).min().unwrap_or(now);
            if now.since(since) < TURN {
                let began_at = wanting[&device].begins_again_at();
                self.having.insert(device, Turn { since, began_at, ends_with });
            } else {
                refused.push(Refused { device, since, kept: BTreeSet::new() });
            }
        }
    }

    /// Ends the turns that are over.
    fn end(
        &mut self,
        now: Nanos,
        wanting: &BTreeMap<DeviceId, Wanting>,
        meets: &impl Fn(&DeviceId, &DeviceId) -> bool,
        goes_before: &impl Fn(&DeviceId, &DeviceId) -> bool,
    ) {
        let waiting: Vec<DeviceId> =
            wanting.keys().filter(|device| !self.having.contains_key(device)).copied().collect();
        let is_over = |device: &DeviceId, turn: &Turn| {
            // What lies below one may change while it has its turn.
            let is_earlier = |(other, that): (&DeviceId, &Turn)| (that.since, other) < (turn.since, device);
            let meets_earlier = self.having.iter().any(|that| is_earlier(that) && meets(device, that.0));
            let mut waiting = waiting.iter().filter(|other| meets(device, other) && !goes_before(device, other));
            let may_end = turn.may_end(now, &wanting[device]);
            let is_in_vain = |other: &DeviceId| turn.is_in_vain(now, &wanting[device], &wanting[other]);
            meets_earlier || waiting.any(|other| may_end || goes_before(other, device) || is_in_vain(other))
        };
        let mut over: BTreeSet<DeviceId> =
            self.having.iter().filter(|(device, turn)| is_over(device, turn)).map(|(device, _)| *device).collect();
        let ends_with_one = |device: &DeviceId, turn: &Turn| {
            let has_ended = turn.ends_with.iter().any(|other| over.contains(other) || !self.having.contains_key(other));
            has_ended && waiting.iter().any(|other| meets(device, other) && !goes_before(device, other))
        };
        let with_one = self.having.iter().filter(|(device, turn)| ends_with_one(device, turn));
        let with_one: Vec<DeviceId> = with_one.map(|(device, _)| *device).collect();
        over.extend(with_one);
        for device in over {
            self.having.remove(&device);
            self.had.insert(device, now);
        }
    }

    /// It has its turn.
    pub(crate) fn has(&self, device: DeviceId) -> bool {
        self.having.contains_key(&device)
    }
}

#[cfg(test)]
mod tests;
