//! From shares to caps, dealt again each slice, for back ends that know only limits.
//!
//! A cap is not work-conserving, so it is fitted to what tenants really use. Of a disk that delivers `capacity` bytes a second:
//!
//! - a tenant's *need* is its measured rate plus a fifth, so that it can grow, and at least the floor;
//! - needs are met in proportion to shares until they are met or the capacity is spent (water-filling); what is then left is
//!   given out in proportion to shares. These parts sum to the capacity, so nothing is stranded;
//! - the cap is that part, but never below the tenant's fair part (capacity times its share of shares), so that a tenant that
//!   wakes up has its due at once. That is the headroom: caps may sum to more than the capacity by the fair parts that
//!   are not used, never to more than twice the capacity.
//!
//! A cap of bytes says nothing of how long a queue is. Who reads a little at a time waits behind all that others have queued, and its
//! measured rate is what that waiting leaves it. So others are held below what the disk delivers for as long as that helps somebody
//! ([`Room`], the setting `caps_make_room`); and caps stand while those that are capped press against them, though the disk is then less
//! than busy, and while one waits for its cap ([`Waiting`]). What nobody's waiting speaks against is an eighth more for everyone: what a disk
//! delivers is not known better than that, and a tenant that pauses for a part of a slice leaves something to the others.
//!
//! Where nobody gets less than its share says nobody is capped ([`Shortage`], the setting `caps_only_if_short`).
//! Background work that takes time from others in stretches is never capped (`background`).
//!
//! What the disk delivers is the operator's number, or the most that was seen. That is never forgotten, though caps above what the disk
//! delivers in the long run limit nobody: what tenants have while some are capped, or want little, does not show what the disk can do, and caps
//! dealt from it would keep them there.
//!
//! A cap is split between reads and writes as the tenant used them ([`split`]). A new cap within a sixteenth of the old is not written. Each cap carries a lease of two slices: one that is not dealt
//! again is lifted. All are lifted when the disk was far from busy for two slices, or only one tenant is on it, or the host is
//! short of memory (`memory`).

use crate::room::{Claim, Room};
use crate::shortage::Shortage;
use crate::split::{DEALT_BYTES_MIN, split};
use crate::tenant_use::{Cap, Use};
use crate::waiting::Waiting;
use minerva_model::{Nanos, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How much more than measured a tenant may need in the next slice.
const GROWTH: f64 = 1.2;
/// Caps that make room are wider by this, so that no part of the disk is idle because a number was not exact.
const HEADROOM: f64 = 1.125;
/// Who uses so much of its cap would use more.
const PRESSED: f64 = 0.75;
/// Slices for which a cap holds without being dealt again, and after which a disk that is not busy is free.
const LEASE_SLICES: u64 = 2;

/// What is known of the disk in the slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskUse {
    /// What the disk delivers, from the operator's file.
    pub(crate) capacity_bytes_per_second: Option<f64>,
    /// What it delivered in the slice.
    pub(crate) measured_bytes_per_second: f64,
    /// It was busy enough for caps to make sense.
    pub(crate) busy: bool,
    /// What tenants used that cannot be capped.
    pub(crate) uncapped_bytes_per_second: f64,
    /// Active tenants, capped or not.
    pub(crate) contention: usize,
    /// The least part of the disk for each tenant, in thousandths.
    pub(crate) floor_permille: u32,
    /// The length of a slice, for leases.
    pub(crate) slice: Nanos,
    /// Others are held back below what the disk delivers where that helps who gets less than its share says.
    pub(crate) makes_room: bool,
    /// Nobody is capped where all get what their shares say.
    pub(crate) only_if_short: bool,
    /// Each way of a cap has a least size.
    pub(crate) keeps_both_ways_open: bool,
}

/// The caps of one disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Dealer {
    dealt: BTreeMap<TenantId, (Cap, Nanos)>,
    fastest_bytes_per_second: f64,
    quiet_slices: u64,
    #[serde(default)]
    room: Room,
    #[serde(default)]
    shortage: Shortage,
    #[serde(default)]
    waiting: Waiting,
    /// Whose caps are told again with the next deal, also where they are as they were.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    afresh: BTreeSet<TenantId>,
    /// The host is short of memory: no cap may stand.
    is_barred: bool,
}

impl Dealer {
    /// Whether caps may stand at all.
    pub(crate) fn may_cap(&mut self, may: bool) {
        self.is_barred = !may;
    }

    /// The caps that change; `None` lifts.
    pub(crate) fn deal(&mut self, now: Nanos, disk: DiskUse, uses: &[Use]) -> Vec<(TenantId, Option<Cap>)> {
        let (mut contention, mut all) = (disk.contention, uses.to_vec());
        if disk.makes_room {
            all = self.waiting.with_waiting(now, uses, |tenant| self.dealt.get(&tenant).map(|(cap, _)| *cap));
            contention += all.len() - uses.len();
        }
        let uses = all.as_slice();
        self.fastest_bytes_per_second = self.fastest_bytes_per_second.max(disk.measured_bytes_per_second);
        let disk = DiskUse { busy: disk.busy || (disk.makes_room && self.press_against_caps(uses)), ..disk };
        self.quiet_slices = if disk.busy { 0 } else { self.quiet_slices + 1 };
        let mut changes = Vec::new();
        if self.is_barred || self.quiet_slices >= LEASE_SLICES || (disk.busy && contention < 2) {
            changes.extend(std::mem::take(&mut self.dealt).into_keys().map(|tenant| (tenant, None)));
            (self.room, self.shortage) = (Room::default(), Shortage::default());
            return changes;
        }
        if disk.busy && disk.only_if_short && !self.shortage.slice(&claims(disk, uses)) {
            changes.extend(std::mem::take(&mut self.dealt).into_keys().map(|tenant| (tenant, None)));
            return changes;
        }
        if disk.busy {
            self.deal_anew(now, disk, uses, &mut changes);
        } else {
            // One slice of quiet proves nothing: what stands may stand for one more.
            self.dealt.values_mut().for_each(|(_, renewed)| *renewed = now);
        }
        let lease = Nanos(disk.slice.0.saturating_mul(LEASE_SLICES));
        self.dealt.retain(|tenant, (_, renewed)| {
            let valid = now.since(*renewed) < lease;
            if !valid {
                changes.push((*tenant, None));
            }
            valid
        });
        changes
    }

    fn deal_anew(&mut self, now: Nanos, disk: DiskUse, uses: &[Use], changes: &mut Vec<(TenantId, Option<Cap>)>) {
        let capacity = disk.capacity_bytes_per_second.unwrap_or(self.fastest_bytes_per_second);
        let left = (capacity - disk.uncapped_bytes_per_second).max(capacity / 10.0);
        let floor = capacity * f64::from(disk.floor_permille) / 1e3;
        let rates: Vec<(f64, f64)> = uses.iter().map(|one| (one.share, one.rate())).collect();
        let (held, headroom) = match disk.makes_room {
            true => (self.room.slice(left, &claims(disk, uses)), HEADROOM),
            false => (Vec::new(), 1.0),
        };
        for (index, (one, bytes)) in uses.iter().zip(caps(left, floor, &rates)).enumerate() {
            let bytes = bytes * headroom;
            let bytes = held.get(index).copied().flatten().map_or(bytes, |most| bytes.min(most).max(floor));
            let cap = split(one, bytes.max(DEALT_BYTES_MIN), disk.keeps_both_ways_open.then_some(capacity));
            self.renew(now, one.tenant, cap, changes);
        }
    }

    /// Somebody uses most of what it may, one way.
    fn press_against_caps(&self, uses: &[Use]) -> bool {
        uses.iter().any(|one| {
            let cap = self.dealt.get(&one.tenant).map(|(cap, _)| *cap);
            cap.is_some_and(|cap| {
                let of = |rate: f64, cap: u64| rate >= PRESSED * cap as f64;
                (one.read_bytes_per_second > 0.0 && of(one.read_bytes_per_second, cap.read))
                    || (one.write_bytes_per_second > 0.0 && of(one.write_bytes_per_second, cap.write))
            })
        })
    }

    /// The tenant has a cap.
    pub(crate) fn caps(&self, tenant: TenantId) -> bool {
        self.dealt.contains_key(&tenant)
    }

    /// The tenant is gone.
    pub(crate) fn forget(&mut self, tenant: TenantId) {
        self.dealt.remove(&tenant);
        self.waiting.forget(tenant);
        self.afresh.remove(&tenant);
    }

    /// What was dealt to a tenant may not stand.
    pub(crate) fn deal_afresh(&mut self, tenant: TenantId) {
        self.afresh.insert(tenant);
    }

    fn renew(&mut self, now: Nanos, tenant: TenantId, cap: Cap, changes: &mut Vec<(TenantId, Option<Cap>)>) {
        let near = |old: u64, new: u64| old.abs_diff(new) <= old / 16;
        let afresh = self.afresh.remove(&tenant);
        match self.dealt.get_mut(&tenant) {
            Some((old, renewed)) if !afresh && near(old.read, cap.read) && near(old.write, cap.write) => *renewed = now,
            _ => {
                self.dealt.insert(tenant, (cap, now));
                changes.push((tenant, Some(cap)));
            }
        }
    }
}

fn claims(disk: DiskUse, uses: &[Use]) -> Vec<Claim> {
    let claim = |one: &Use| Claim {
        tenant: one.tenant,
        share: one.share,
        bytes_per_second: one.rate(),
        requests: one.rate() * disk.slice.as_secs_f64() / one.request_bytes.max(1.0),
    };
    uses.iter().map(claim).collect()
}

/// The cap of each (share, measured rate), in their order; see the module's text.
fn caps(capacity: f64, floor: f64, claims: &[(f64, f64)]) -> Vec<f64> {
    let shares: f64 = claims.iter().map(|(share, _)| share).sum();
    let parts = parts(capacity, floor, claims);
    claims.iter().zip(parts).map(|((share, _), part)| part.max(capacity * share / shares)).collect()
}

/// Water-filling: parts that sum to the capacity.
fn parts(capacity: f64, floor: f64, claims: &[(f64, f64)]) -> Vec<f64> {
    let floor = floor.min(capacity / claims.len().max(1) as f64);
    let need = |measured: f64| (measured * GROWTH).max(floor);
    let at = |level: f64| claims.iter().map(move |(share, measured)| (level * share).clamp(floor, need(*measured)));
    let mut high = claims.iter().map(|(share, measured)| need(*measured) / share).fold(0.0, f64::max);
    let mut low = 0.0;
    let unspent = capacity - at(high).sum::<f64>();
    if unspent < 0.0 {
        // 64 halvings bring the level to the last bit that a float can tell.
        for _ in 0..64 {
            let level = (low + high) / 2.0;
            *(if at(level).sum::<f64>() > capacity { &mut high } else { &mut low }) = level;
        }
        return at(low).collect();
    }
    let shares: f64 = claims.iter().map(|(share, _)| share).sum();
    at(high).zip(claims).map(|(part, (share, _))| part + unspent * share / shares).collect()
}

#[cfg(test)]
mod capacity_tests;
#[cfg(test)]
mod tests {
    use super::{DEALT_BYTES_MIN, Dealer, DiskUse, GROWTH, Use, caps, parts};
    use minerva_model::{Nanos, TenantId};
    use proptest::prelude::{Strategy, proptest};

    fn claims() -> impl Strategy<Value = Vec<(f64, f64)>> {
        proptest::collection::vec((1.0..10_000.0, 0.0..2e8), 1..40)
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-6 * right.abs().max(1.0)
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_capacity_and_keep_the_floor(claims in claims(), capacity in 1e6..5e8, permille in 0.0..20.0) {
            let floor = capacity * permille / 1e3;
            let parts = parts(capacity, floor, &claims);
            assert!(near(parts.iter().sum(), capacity), "{} of {capacity}", parts.iter().sum::<f64>());
            let floor = floor.min(capacity / claims.len() as f64);
            assert!(parts.iter().all(|part| *part >= floor - 1e-6));
        }

        #[test]
        fn caps_keep_the_fair_part_and_the_headroom_rule(claims in claims(), capacity in 1e6..5e8) {
            let shares: f64 = claims.iter().map(|(share, _)| share).sum();
            let caps = caps(capacity, 0.0, &claims);
            for (cap, (share, _)) in caps.iter().zip(&claims) {
                assert!(*cap >= capacity * share / shares - 1e-6);
            }
            assert!(caps.iter().sum::<f64>() <= 2.0 * capacity + 1.0);
            // What tenants can be expected to use under their caps fits the disk.
            let expected = caps.iter().zip(&claims).map(|(cap, (_, measured))| cap.min(measured * GROWTH)).sum::<f64>();
            assert!(expected <= capacity * (1.0 + 1e-6));
        }

        #[test]
        fn a_larger_share_never_gets_less(claims in claims(), capacity in 1e6..5e8, more in 1.0..10.0, index in 0..40_usize) {
            let index = index % claims.len();
            let before = caps(capacity, capacity / 100.0, &claims)[index];
            let mut raised = claims;
            raised[index].0 *= more;
            let after = caps(capacity, capacity / 100.0, &raised)[index];
            assert!(after >= before * (1.0 - 1e-6), "{after} after {before}");
        }
    }

    #[test]
    fn a_sparing_tenant_frees_the_rest() {
        // Equal shares on 100 MB/s: who uses 10 keeps its fair 50, and who wants all gets what the other leaves.
        assert_eq!(caps(100e6, 0.0, &[(1.0, 10e6), (1.0, 90e6)]), [50e6, 88e6]);
    }

    const DISK: DiskUse = DiskUse {
        capacity_bytes_per_second: Some(100e6),
        measured_bytes_per_second: 100e6,
        busy: true,
        uncapped_bytes_per_second: 0.0,
        contention: 2,
        floor_permille: 10,
        slice: Nanos::SECOND,
        makes_room: false,
        only_if_short: false,
        keeps_both_ways_open: false,
    };

    fn reader(tenant: u64, rate: f64) -> Use {
        let (tenant, request_bytes) = (TenantId(tenant), 64e3);
        Use { tenant, share: 100.0, read_bytes_per_second: rate, write_bytes_per_second: 0.0, request_bytes }
    }

    #[test]
    fn caps_are_leased_and_lifted() {
        let mut dealer = Dealer::default();
        let both = [reader(1, 50e6), reader(2, 50e6)];
        assert_eq!(dealer.deal(Nanos::from_secs(1), DISK, &both).len(), 2);
        assert_eq!(dealer.deal(Nanos::from_secs(2), DISK, &both), [], "unchanged caps are renewed, not written");
        // The second tenant is seen no more: its cap outlives one slice, not two.
        let three = DiskUse { contention: 3, ..DISK };
        let lifted = |changes: Vec<(TenantId, Option<_>)>| changes.into_iter().any(|(_, cap)| cap.is_none());
        assert!(!lifted(dealer.deal(Nanos::from_secs(3), three, &both[..1])));
        assert!(lifted(dealer.deal(Nanos::from_secs(4), three, &both[..1])));
        let quiet = DiskUse { busy: false, ..DISK };
        assert_eq!(dealer.deal(Nanos::from_secs(5), quiet, &[]), []);
        assert_eq!(dealer.deal(Nanos::from_secs(6), quiet, &[]), [(TenantId(1), None)]);
    }

    #[test]
    fn caps_stand_while_somebody_presses_against_them() {
        let (mut dealer, room) = (Dealer::default(), DiskUse { makes_room: true, ..DISK });
        let both = [reader(1, 50e6), reader(2, 50e6)];
        assert_eq!(dealer.deal(Nanos::from_secs(1), room, &both).len(), 2);
        let lifted = |changes: Vec<(TenantId, Option<_>)>| changes.into_iter().any(|(_, cap)| cap.is_none());
        // The caps are what leaves the disk less than busy.
        let idle = DiskUse { busy: false, ..room };
        for second in 2..6 {
            assert!(!lifted(dealer.deal(Nanos::from_secs(second), idle, &both)), "{second}");
        }
        let few = [reader(1, 1e6), reader(2, 1e6)];
        assert!(!lifted(dealer.deal(Nanos::from_secs(6), idle, &few)));
        assert!(lifted(dealer.deal(Nanos::from_secs(7), idle, &few)));
    }

    /// Two readers of 256 KiB at shares 80:1, each as fast as its cap lets it be, of which the light one completes a request when its bytes have come
    /// in: what each has in a second, in the mean over a minute of slices of half a second.
    #[test]
    fn caps_stand_while_a_request_takes_longer_than_a_slice() {
        const REQUEST: f64 = 262_144.0;
        let mut dealer = Dealer::default();
        let slice = Nanos::from_millis(500);
        let disk = DiskUse { capacity_bytes_per_second: Some(4e6), makes_room: true, slice, ..DISK };
        let (mut caps, mut credit, mut had) = ([f64::INFINITY; 2], [0.0_f64; 2], [0.0; 2]);
        for slice in 1..=120 {
            let mut uses = Vec::new();
            for (index, share) in [800.0, 10.0].into_iter().enumerate() {
                credit[index] += caps[index].min(6e6) / 2.0;
                let bytes = (credit[index] / REQUEST).floor() * REQUEST;
                credit[index] -= bytes;
                had[index] += bytes / 60.0;
                if bytes > 0.0 {
                    uses.push(Use { share, request_bytes: REQUEST, ..reader(index as u64, bytes * 2.0) });
                }
            }
            // Under caps the disk is less than busy.
            let disk = DiskUse { contention: uses.len(), busy: caps.contains(&f64::INFINITY), ..disk };
            for (tenant, cap) in dealer.deal(Nanos(slice * disk.slice.0), disk, &uses) {
                caps[tenant.0 as usize] = cap.map_or(f64::INFINITY, |cap| cap.read as f64);
            }
        }
        assert!(had[0] + had[1] < 4.6e6 && had[0] > 20.0 * had[1], "{had:?}");
    }

    #[test]
    fn one_tenant_alone_is_not_capped_and_nobody_is_strangled() {
        let mut dealer = Dealer::default();
        let alone = DiskUse { contention: 1, ..DISK };
        assert_eq!(dealer.deal(Nanos::from_secs(1), alone, &[reader(1, 1e8)]), []);
        let slow = DiskUse { capacity_bytes_per_second: Some(1e3), ..DISK };
        for (_, cap) in dealer.deal(Nanos::from_secs(2), slow, &[reader(1, 1e3), reader(2, 1e3)]) {
            assert!(cap.is_some_and(|cap| (cap.read + cap.write) as f64 >= DEALT_BYTES_MIN - 1.0));
        }
    }
}
