//! A made-up hierarchy, in which tenants transfer between any two readings.

use super::{Groups, LATELY_SLICES, Parents, Past, Texts};
use crate::remainder::{Totals, add, each};
use crate::tenants::Extent;
use minerva_model::{DeviceId, IoCounters, TenantId};
use proptest::prelude::*;
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;

const DISKS: [DeviceId; 2] = [DeviceId { major: 8, minor: 0 }, DeviceId { major: 7, minor: 3 }];

/// A tenant, or a group that is none.
#[derive(Clone, Debug)]
struct Group {
    id: TenantId,
    path: String,
    extent: Extent,
    now: Totals,
    last: Option<Totals>,
    past: Past,
}

/// The hierarchy, and what was read of it.
#[derive(Debug, Default)]
struct Host {
    tenants: Vec<Group>,
    /// Groups that are no tenants, or were removed, by path.
    others: BTreeMap<String, Totals>,
    /// Places of tenants by path.
    order: Vec<usize>,
    /// Tenants that transfer between readings, and how likely that is before each, in percent.
    racing: Vec<usize>,
    percent: u64,
    draws: u64,
    /// As on v1, parents lose what groups did that are removed.
    may_fall: bool,
    readings: usize,
    last_id: u64,
}

impl Host {
    fn draw(&mut self, below: u64) -> u64 {
        self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.draws >> 33) % below.max(1)
    }

    fn meet(&mut self, path: &str, extent: Extent) -> usize {
        self.last_id += 1;
        let past = Past { still_slices: u8::MAX, pace: 0 };
        let (id, path) = (TenantId(self.last_id), path.to_owned());
        let now = if self.may_fall { self.unlike() } else { Totals::new() };
        self.tenants.push(Group { id, path, extent, now, last: None, past });
        self.tenants.len() - 1
    }

    /// An amount that no others add up to, so that losing it is not made up for by chance.
    fn unlike(&mut self) -> Totals {
        let read_bytes = self.draw(1 << 31) << 20 | self.draw(1 << 20);
        Totals::from([(DISKS[0], IoCounters { read_bytes, read_ops: 1, ..IoCounters::default() })])
    }

    /// Few sizes, so that those of different tenants are often the same.
    fn transfer(&mut self, tenant: usize) {
        let (disk, counters) = (DISKS[self.draw(2) as usize], self.request());
        add(&mut self.tenants[tenant].now, disk, &counters);
    }

    fn transfer_beside(&mut self, path: &str) {
        let (disk, counters) = (DISKS[self.draw(2) as usize], self.request());
        add(self.others.entry(path.to_owned()).or_default(), disk, &counters);
    }

    fn request(&mut self) -> IoCounters {
        let bytes = 4096 << self.draw(2);
        match self.draw(2) {
            0 => IoCounters { read_bytes: bytes, read_ops: 1, ..IoCounters::default() },
            _ => IoCounters { write_bytes: bytes, write_ops: 1, ..IoCounters::default() },
        }
    }

    /// Somebody may transfer before whatever is read next.
    fn race(&mut self) {
        self.readings += 1;
        if !self.racing.is_empty() && self.draw(100) < self.percent {
            let number = self.draw(self.racing.len() as u64) as usize;
            self.transfer(self.racing[number]);
        }
    }

    fn remove(&mut self, tenant: usize) {
        let gone = self.tenants.swap_remove(tenant);
        if self.may_fall {
            return;
        }
        let parent = gone.path.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
        let others = self.others.entry(parent).or_default();
        gone.now.iter().for_each(|(disk, counters)| add(others, *disk, counters));
    }

    fn arrange(&mut self, parents: &mut Parents) {
        let tenants = self.tenants.iter().map(|group| (group.path.as_str(), group.id, group.extent));
        let order = parents.arrange(tenants).into_iter();
        let places: BTreeMap<TenantId, usize> =
            self.tenants.iter().enumerate().map(|(place, group)| (group.id, place)).collect();
        self.order = order.map(|(id, _)| places[&id]).collect();
    }

    /// One slice; the answer is how much was read. What was transferred before it is seen in it, and nothing else.
    fn slice(&mut self, parents: &mut Parents) -> usize {
        let before: Vec<Totals> = self.tenants.iter().map(|group| group.now.clone()).collect();
        let last: Vec<Option<Totals>> = self.tenants.iter().map(|group| group.last.clone()).collect();
        self.readings = 0;
        parents.read(self);
        for (index, group) in self.tenants.iter_mut().enumerate() {
            let seen = group.last.clone().expect("everyone was read once");
            let covers = |most: &Totals, least: &Totals| {
                least.iter().all(|(disk, least)| {
                    let most = most.get(disk).copied().unwrap_or_default();
                    each(&most, least, u64::max) == most
                })
            };
            assert!(covers(&seen, &before[index]), "{}: {seen:?} of {:?}", group.path, before[index]);
            assert!(covers(&group.now, &seen), "{}: {seen:?} is more than {:?}", group.path, group.now);
            let has_moved = last[index].clone().unwrap_or_default() != seen;
            group.past.still_slices = if has_moved { 0 } else { group.past.still_slices.saturating_add(1) };
        }
        self.readings
    }
}

impl Groups for Host {
    fn texts(&mut self, path: &str, _: &mut Vec<OwnedFd>) -> Option<Texts> {
        self.race();
        let is_below =
            |other: &str| other == path || other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        let mut totals = Totals::new();
        let tenants = self.tenants.iter().map(|group| (&group.path, &group.now));
        for (_, now) in tenants.chain(&self.others).filter(|(other, _)| is_below(other)) {
            now.iter().for_each(|(disk, counters)| add(&mut totals, *disk, counters));
        }
        let rows: Vec<_> = totals.into_iter().collect();
        Some(vec![serde_json::to_vec(&rows).unwrap()])
    }

    fn totals(&self, texts: &Texts) -> Option<Totals> {
        let rows: Vec<(DeviceId, IoCounters)> = serde_json::from_slice(&texts[0]).unwrap();
        Some(rows.into_iter().collect())
    }

    fn may_fall(&self) -> bool {
        self.may_fall
    }

    fn read(&mut self, place: usize) {
        self.race();
        let group = &mut self.tenants[self.order[place]];
        group.last = Some(group.now.clone());
    }

    fn past(&self, place: usize) -> Option<Past> {
        let group = &self.tenants[self.order[place]];
        group.last.as_ref().map(|_| group.past)
    }

    fn add_last(&self, place: usize, sum: &mut Totals) {
        for (disk, counters) in self.tenants[self.order[place]].last.iter().flatten() {
            add(sum, *disk, counters);
        }
    }
}

/// A flat one of many, of which the first some transfer in each slice.
fn crowd(count: usize) -> (Host, Parents) {
    let (mut host, mut parents) = (Host::default(), Parents::default());
    for index in 0..count {
        host.meet(&format!("all/t{index:05}"), Extent::Subtree);
    }
    host.arrange(&mut parents);
    assert_eq!(host.slice(&mut parents), count + 1);
    (host, parents)
}

#[test]
fn of_many_only_those_that_moved_lately_are_read() {
    let (mut host, mut parents) = crowd(1_200);
    let busy = |host: &mut Host, count: usize| (0..count).for_each(|tenant| host.transfer(tenant));
    busy(&mut host, 100);
    assert_eq!(host.slice(&mut parents), 1_202, "any of them may have started: all are read");
    for slice in 0..200 {
        // What the parent's own processes do, and groups that are removed, costs one look at all each time.
        let is_beside = slice % 50 == 7;
        if is_beside {
            host.transfer_beside("all");
        }
        busy(&mut host, 100);
        let readings = host.slice(&mut parents);
        let expected = if is_beside { 100 + 100 + 3 + 1_100 } else { 100 + 2 };
        assert_eq!(readings, expected, "in slice {slice}");
    }
    // One that rested starts, and is one of those who moved lately from then on.
    host.transfer(700);
    assert_eq!(host.slice(&mut parents), 100 + 100 + 3 + 1_100);
    host.transfer(700);
    assert_eq!(host.slice(&mut parents), 101 + 2);
    // Nobody moves.
    assert_eq!(host.slice(&mut parents), 1);
    (0..LATELY_SLICES).for_each(|_| assert_eq!(host.slice(&mut parents), 1));
    host.transfer(3);
    assert_eq!(host.slice(&mut parents), 1 + 1 + 1_200, "nobody moved lately, so nobody is asked for first");
}

#[test]
fn a_request_between_two_readings_leaves_the_question_open_and_nothing_is_lost() {
    let (mut host, mut parents) = crowd(1_200);
    host.racing = (0..50).collect();
    let mut asked_in_vain = 0;
    for (percent, slices) in [(0, 20), (1, 200), (5, 50), (50, 50), (100, 20), (0, 20)] {
        host.percent = percent;
        for _ in 0..slices {
            (0..50).for_each(|tenant| host.transfer(tenant));
            let readings = host.slice(&mut parents);
            asked_in_vain += usize::from(readings > 1_200);
            // Never much more than if everybody were read.
            assert!(readings <= 1_200 + 50 + 3, "{readings}");
        }
    }
    assert!((71..320).contains(&asked_in_vain), "{asked_in_vain} of 360");
    assert!(host.slice(&mut parents) < 60);
}

#[test]
fn what_a_group_transferred_before_it_was_a_tenant_hides_nobody() {
    let read = |bytes| IoCounters { read_bytes: bytes, read_ops: 1, ..IoCounters::default() };
    let (mut host, mut parents) = crowd(40);
    add(host.others.entry("all/x".to_owned()).or_default(), DISKS[0], &read(4096));
    assert_eq!(host.slice(&mut parents), 1 + 1 + 40);
    let before = host.others.remove("all/x").unwrap();
    let tenant = host.meet("all/x", Extent::Subtree);
    host.tenants[tenant].now = before;
    host.arrange(&mut parents);
    host.slice(&mut parents);
    // One that rested reads as much, so that the sum would be right if the new one's were counted in the remainder as well.
    add(&mut host.tenants[5].now, DISKS[0], &read(4096));
    assert_eq!(host.slice(&mut parents), 1 + 2 * (1 + 1) + 40);
}

#[test]
fn where_a_parent_loses_what_a_removed_group_did_everybody_is_read() {
    let bytes = |read_bytes| IoCounters { read_bytes, ..IoCounters::default() };
    let (mut host, mut parents) = crowd(40);
    host.may_fall = true;
    add(host.others.entry("all/x".to_owned()).or_default(), DISKS[0], &bytes(5_000));
    add(&mut host.tenants[0].now, DISKS[0], &bytes(4096));
    assert_eq!(host.slice(&mut parents), 1 + 1 + 40);
    add(&mut host.tenants[0].now, DISKS[0], &bytes(4096));
    assert_eq!(host.slice(&mut parents), 1 + 1 + 1, "what the other group did is known");
    // It is gone, and the parent's counters rise all the same.
    host.others.clear();
    add(&mut host.tenants[0].now, DISKS[0], &bytes(8192));
    assert_eq!(host.slice(&mut parents), 1 + 2 * (1 + 1) + 39);
    // Somebody who rested does as much as was lost: what was known of the other group holds no longer.
    add(&mut host.tenants[7].now, DISKS[0], &bytes(5_000));
    assert_eq!(host.slice(&mut parents), 1 + 2 * (1 + 1) + 39);
    add(&mut host.tenants[0].now, DISKS[0], &bytes(4096));
    assert_eq!(host.slice(&mut parents), 1 + 2 + 1);
}

/// Paths of tenants of a hierarchy some levels deep, with groups whose own processes are tenants.
fn hierarchy(host: &mut Host) {
    for outer in ["a", "a-b", "b"] {
        for inner in 0..3 {
            for leaf in 0..6 {
                host.meet(&format!("{outer}/{inner}/{leaf}"), Extent::Subtree);
            }
        }
        host.meet(&format!("{outer}/0"), Extent::Own);
    }
    host.meet("a", Extent::Own);
    (0..20).for_each(|leaf| _ = host.meet(&format!("b/3/c/{leaf}"), Extent::Subtree));
}

/// Something that happens between two slices.
fn change(host: &mut Host, parents: &mut Parents) {
    let count = host.tenants.len() as u64;
    match host.draw(24) {
        0 if count > 20 => {
            let tenant = host.draw(count) as usize;
            host.racing.clear();
            host.remove(tenant);
        }
        1 => {
            let (outer, number) = (["a", "b/3/c", "a-b/1"][host.draw(3) as usize], host.last_id);
            let tenant = host.meet(&format!("{outer}/new{number}"), Extent::Subtree);
            // Some did something as part of another one before they were met.
            (0..host.draw(2)).for_each(|_| host.transfer(tenant));
        }
        2 => {
            let path = ["a", "b", "b/3", "a-b"][host.draw(4) as usize];
            host.transfer_beside(path);
            return;
        }
        3 => return parents.forget(),
        6 if host.may_fall => {
            // One that nobody met was made, and is removed some time after.
            if host.others.remove("b/unmet").is_none() {
                let did = host.unlike();
                host.others.insert("b/unmet".to_owned(), did);
            }
            return;
        }
        4 => {
            host.percent = [0, 0, 2, 20, 100][host.draw(5) as usize];
            return host.racing = (0..host.draw(6)).map(|_| host.draw(count) as usize).collect();
        }
        5 => {
            // A group becomes one of those that are no tenants, and the other way round.
            let tenant = host.draw(count) as usize;
            let extent = match host.tenants[tenant].extent {
                Extent::Own => return,
                extent => extent,
            };
            host.racing.clear();
            let gone = host.tenants.swap_remove(tenant);
            let as_other = format!("{}/.", gone.path);
            host.others.insert(as_other.clone(), gone.now.clone());
            host.arrange(parents);
            host.slice(parents);
            host.others.remove(&as_other);
            let back = host.meet(&gone.path, extent);
            host.tenants[back].now = gone.now;
        }
        _ => {
            let movers = host.draw(4);
            for _ in 0..movers {
                // Most of what is done is done by a few.
                let most = if host.draw(4) == 0 { host.tenants.len() as u64 } else { 5 };
                let tenant = host.draw(most) as usize;
                host.transfer(tenant);
            }
            return;
        }
    }
    host.arrange(parents);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Whatever happens in a hierarchy, and whenever it is read: a slice shows all that was transferred before it.
    #[test]
    fn no_transfer_is_seen_later_than_in_the_next_slice(seed in any::<u64>(), may_fall in any::<bool>()) {
        let (mut host, mut parents) = (Host { draws: seed, may_fall, ..Host::default() }, Parents::default());
        hierarchy(&mut host);
        host.arrange(&mut parents);
        for _ in 0..200 {
            change(&mut host, &mut parents);
            host.slice(&mut parents);
        }
    }
}
