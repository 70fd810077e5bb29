//! What groups do that come and go between two looks.

use super::{DISK, MEGABYTE, observer, reads, sample};
use minerva_model::{
    CgroupRef, IoCounters, Nanos, Origin, Sample, Signals, SubtreeIo, Tenant, TenantId, TenantKind, Terms,
};
use proptest::prelude::{Strategy, prop_assert, proptest};

const DELEGATED: u64 = 77;

/// A tenant below the delegated group.
fn below(id: u64) -> Tenant {
    let cgroup = |path: &str, inode| CgroupRef { path: path.to_owned(), inode };
    Tenant {
        id: TenantId(id),
        name: format!("user/{id}"),
        kind: TenantKind::Cgroup,
        cgroup: cgroup(&format!("user/{id}"), id),
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin { delegated_from: Some(cgroup("user", DELEGATED)), ..Origin::default() },
    }
}

/// What the delegated group's counters say.
fn whole(counters: IoCounters) -> SubtreeIo {
    let group = CgroupRef { path: "user".to_owned(), inode: DELEGATED };
    let history_key = group.history_key(None);
    SubtreeIo { group, history_key, weight_percent: 100, own: None, device: DISK, counters }
}

fn unseen_bytes(signals: &Signals) -> u64 {
    signals.unseen.iter().map(|row| row.transferred.bytes()).sum()
}

#[test]
fn what_groups_did_that_nobody_saw_is_charged_to_the_account_of_whoever_made_them() {
    let mut observer = observer();
    observer.device_seen(DISK, true);
    observer.tenant_seen(&below(1));
    let at = |all: u64, own: u64, other: u64, busy_ms: u64| {
        let rows = [(1, reads(own * MEGABYTE, own)), (2, reads(other * MEGABYTE, other))];
        let mut sample = sample(reads(all * MEGABYTE, all), &rows);
        sample.devices[0].busy_ns = busy_ms * 1_000_000;
        sample
    };
    observer.signals(Nanos::from_secs(1), &Sample { subtrees: vec![whole(reads(0, 0))], ..at(0, 0, 0, 0) });
    // Of 60 MB 20 are another user's, 10 those of the group that is known, 25 of groups that came and went, and 5 nobody's.
    let next = Sample { subtrees: vec![whole(reads(35 * MEGABYTE, 35))], ..at(60, 10, 20, 600) };
    let (signals, _) = observer.signals(Nanos::from_secs(2), &next);
    let [unseen] = &signals.unseen[..] else { panic!("{:?}", signals.unseen) };
    assert_eq!((unseen.history_key.as_str(), unseen.elapsed), ("cgroup:user#77", Nanos::SECOND));
    assert_eq!(unseen.transferred, reads(25 * MEGABYTE, 25));
    assert_eq!(signals.devices[0].unattributed_bytes, 5 * MEGABYTE);
    // The time for which the disk was busy is shared out among all of them.
    let [own, other] = [0, 1].map(|index: usize| signals.io[index].disk_time.as_millis_f64().round());
    assert_eq!([own, other, unseen.disk_time.as_millis_f64().round()], [100.0, 200.0, 250.0]);
    // Nothing more was done, nothing more is charged.
    let (signals, _) = observer.signals(Nanos::from_secs(3), &next);
    assert!(signals.unseen.is_empty());
    observer.tenant_gone(TenantId(1));
    observer.device_gone(DISK);
    assert!(!format!("{observer:?}").contains(&DELEGATED.to_string()), "nothing is left of who is gone");
}

/// One group of a user in a random history.
#[derive(Clone, Debug)]
struct Brief {
    begins: usize,
    /// Slices for which it is there, and after which of them it comes into view, if it does.
    slices: usize,
    seen_after: Option<usize>,
    bytes_each: u64,
}

fn any_brief() -> impl Strategy<Value = Brief> {
    (0..20usize, 1..6usize, proptest::option::of(0..3usize), 1..500u64).prop_map(
        |(begins, slices, seen_after, bytes_each)| Brief {
            begins,
            slices,
            seen_after: seen_after.filter(|after| *after < slices),
            bytes_each,
        },
    )
}

proptest! {
    /// What an account is charged with, through its tenants and beyond them, is what the delegated group's counters rose by: never less,
    /// and no more than that and what groups did before they were first read, which counts once, not for each group.
    #[test]
    fn what_is_charged_is_what_the_delegated_groups_counters_rose_by(
        briefs in proptest::collection::vec(any_brief(), 1..12),
        whole_is_read in proptest::collection::vec(proptest::bool::weighted(0.8), 30),
        pairs_are_read in proptest::collection::vec(proptest::bool::weighted(0.8), 30),
        ahead in proptest::collection::vec(0..50u64, 30),
    ) {
        let mut observer = observer();
        let done = |brief: &Brief, slice: usize| brief.bytes_each * slice.saturating_sub(brief.begins).min(brief.slices) as u64;
        let is_there = |brief: &Brief, slice: usize| slice > brief.begins && slice <= brief.begins + brief.slices;
        let in_view = |brief: &Brief, slice: usize| {
            is_there(brief, slice) && brief.seen_after.is_some_and(|after| slice > brief.begins + after)
        };
        // A tenant that is always there; what it does between the two readings of a slice is in its own counters already.
        observer.tenant_seen(&below(100));
        let steady = |slice: usize| 10 * slice as u64;
        let (mut charged, mut counted_late_max, mut last) = (0, 0, 0);
        let mut read_of = [0; 101];
        for slice in 0..30 {
            let is_last = slice == 29;
            for (id, brief) in briefs.iter().enumerate() {
                match (in_view(brief, slice), slice > 0 && in_view(brief, slice - 1)) {
                    (true, false) => observer.tenant_seen(&below(id as u64)),
                    (false, true) => observer.tenant_gone(TenantId(id as u64)),
                    _ => {}
                }
            }
            last = briefs.iter().map(|brief| done(brief, slice)).sum::<u64>() + steady(slice);
            let mut rows: Vec<(u64, IoCounters)> = Vec::new();
            if pairs_are_read[slice] || is_last {
                let known = briefs.iter().enumerate().filter(|(_, brief)| in_view(brief, slice));
                let ahead = if is_last { 0 } else { ahead[slice].min(10) };
                let known = known.map(|(id, brief)| (id, done(brief, slice))).chain([(100, steady(slice) + ahead)]);
                for (id, bytes) in known {
                    read_of[id] = bytes;
                    rows.push((id as u64, reads(bytes, 1 + slice as u64)));
                }
            }
            let late = |(id, brief): (usize, &Brief)| match is_there(brief, slice) && brief.seen_after.is_some() {
                true => done(brief, slice) - read_of[id],
                false => 0,
            };
            let counted_late: u64 = briefs.iter().enumerate().map(late).sum();
            counted_late_max = counted_late_max.max(counted_late + steady(slice).saturating_sub(read_of[100]));
            let told = whole_is_read[slice] || is_last || slice == 0;
            let subtrees = if told { vec![whole(reads(last, 1))] } else { Vec::new() };
            let sample = Sample { subtrees, ..sample(reads(last, 1 + slice as u64), &rows) };
            let (signals, _) = observer.signals(Nanos::from_secs(slice as u64 + 1), &sample);
            charged += signals.io.iter().map(|row| row.transferred.bytes()).sum::<u64>() + unseen_bytes(&signals);
        }
        prop_assert!(charged >= last, "{charged} of {last}");
        prop_assert!(charged <= last + counted_late_max, "{charged} of {last} and {counted_late_max}");
    }
}
