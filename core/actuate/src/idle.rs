//! Tenants at level `idle`: held back while others use the disk, whatever shares it out (docs/adr/0014).
//!
//! The least weight is a part of the disk all the same, and on most elevators it is nothing at all. So a tenant at `idle` is capped
//! too, by the throttle layer, which lies above every elevator: from the slice on in which others were seen to use the disk until
//! they have not for [`QUIET`]. Fixed grace periods before idle work are as old as idle work (Golding and others, "Idleness is not
//! sloth", 1995).
//!
//! What a request of idle work costs others is the move of the disk's head, not its bytes, so the cap follows the size of the
//! tenant's requests: one in [`SECONDS_A_REQUEST`] each way. None waits for ever: while nothing is completed the cap
//! doubles, so that a request much larger than those before is done within a minute or so.
//!
//! Background work that is stopped while others use the disk has no cap: it would outlast the pause that the work is for.
//!
//! Tenants at `idle` do not hold back each other. Caps are lifted when the host is short of memory (`memory`).

use crate::Actuator;
use crate::cap_knobs::wish_cap;
use crate::ledger::Ledger;
use minerva_model::{BackEnd, DeviceId, IoSignals, Nanos, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How long nobody else may have used the disk before caps are lifted.
const QUIET: Nanos = Nanos::from_secs(3);
/// Distance of the requests of a capped tenant.
const SECONDS_A_REQUEST: u64 = 4;
/// Without a completed request for so long a capped tenant gets twice as much.
const PATIENCE: Nanos = Nanos::from_secs(8);
/// Caps are powers of two, so that they change seldom: one request of 4 KiB, and of 1 MiB, which is about as large as they come.
const CAP_BYTES_MIN: u64 = 1 << 10;
const CAP_BYTES_MAX: u64 = 256 << 10;
/// Nothing is known of the tenant's requests yet.
const CAP_BYTES_FIRST: u64 = 16 << 10;

impl Actuator {
    /// Tenants that are stopped by other means while others use a disk, and so get no cap at level `idle`.
    pub fn stopped_elsewhere(&mut self, tenants: &BTreeSet<TenantId>) {
        let Self { disks, ledger, .. } = self;
        disks.values_mut().for_each(|disk| disk.stopped_elsewhere(tenants, ledger));
    }
}

/// A tenant at `idle`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pace {
    /// Its cap when it has one, in bytes a second each way.
    bytes_per_second: u64,
    /// When it last completed a request, was capped or got twice as much.
    served_at: Nanos,
    capped: bool,
}

impl Pace {
    fn slice(&mut self, now: Nanos, row: Option<&IoSignals>, holds_back: bool) {
        let began = holds_back && !self.capped;
        self.capped = holds_back;
        match row.map(|row| row.transferred).filter(|done| done.ops() > 0) {
            Some(done) => {
                let rate = done.bytes() / done.ops() / SECONDS_A_REQUEST;
                self.bytes_per_second = rate.next_power_of_two().clamp(CAP_BYTES_MIN, CAP_BYTES_MAX);
                self.served_at = now;
            }
            None if began || !self.capped => self.served_at = now,
            None if now.since(self.served_at) >= PATIENCE => {
                self.bytes_per_second = (self.bytes_per_second * 2).min(CAP_BYTES_MAX);
                self.served_at = now;
            }
            None => {}
        }
    }
}

/// Those of one disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct IdleTenants {
    /// How caps are set here; nothing where they cannot or may not be.
    by: Option<BackEnd>,
    paces: BTreeMap<TenantId, Pace>,
    others_at: Option<Nanos>,
    /// Of those at `idle`, who is stopped by other means while others use the disk: needs no cap, and in a pause of others no delay.
    #[serde(default)]
    stopped_elsewhere: BTreeSet<TenantId>,
}

impl IdleTenants {
    /// Caps are set in this way from now on, or not at all.
    pub(crate) fn cap_by(&mut self, device: DeviceId, by: Option<BackEnd>, ledger: &mut Ledger) {
        if self.by != by {
            self.capped().into_iter().for_each(|tenant| self.lift(device, tenant, ledger));
            self.by = by;
        }
    }

    /// A slice ended, in which disks were used as `rows` say, by tenant and disk: who of the `idle` is capped in the next.
    pub(crate) fn slice(
        &mut self,
        now: Nanos,
        device: DeviceId,
        idle: &BTreeSet<TenantId>,
        rows: &[IoSignals],
        may_cap: bool,
        ledger: &mut Ledger,
    ) {
        let back = self.paces.keys().copied().filter(|tenant| !idle.contains(tenant));
        back.collect::<Vec<_>>().into_iter().for_each(|tenant| self.lift(device, tenant, ledger));
        if idle.is_empty() {
            // Who uses the disk meanwhile is no other to one that steps back later, least of all that one itself.
            self.others_at = None;
            return;
        }
        if rows.iter().any(|row| row.device == device && row.active && !idle.contains(&row.tenant)) {
            self.others_at = Some(now);
        }
        let Some(by) = self.by else { return };
        let holds_back = may_cap && self.others_at.is_some_and(|at| now.since(at) < QUIET);
        for tenant in idle.difference(&self.stopped_elsewhere) {
            let row = rows.binary_search_by_key(&(*tenant, device), |row| (row.tenant, row.device));
            let row = row.ok().map(|index| &rows[index]);
            let pace = self.paces.entry(*tenant).or_insert(Pace {
                bytes_per_second: CAP_BYTES_FIRST,
                served_at: now,
                capped: false,
            });
            let was_capped = pace.capped;
            pace.slice(now, row, holds_back);
            if was_capped || pace.capped {
                wish_cap(ledger, by, *tenant, device, pace.capped.then_some([pace.bytes_per_second; 2]));
            }
        }
    }

    /// These are stopped by other means while others use the disk.
    pub(crate) fn stopped_elsewhere(&mut self, device: DeviceId, tenants: &BTreeSet<TenantId>, ledger: &mut Ledger) {
        if self.stopped_elsewhere != *tenants {
            tenants.iter().for_each(|tenant| self.lift(device, *tenant, ledger));
            self.stopped_elsewhere.clone_from(tenants);
        }
    }

    /// The tenant is not at `idle` any more.
    pub(crate) fn lift(&mut self, device: DeviceId, tenant: TenantId, ledger: &mut Ledger) {
        let was_capped = self.paces.remove(&tenant).is_some_and(|pace| pace.capped);
        if let Some(by) = self.by.filter(|_| was_capped) {
            wish_cap(ledger, by, tenant, device, None);
        }
    }

    /// The tenant's knobs are put back by somebody else, or gone with it.
    pub(crate) fn forget(&mut self, tenant: TenantId) {
        self.paces.remove(&tenant);
    }

    /// Who is held back.
    pub(crate) fn capped(&self) -> Vec<TenantId> {
        self.paces.iter().filter(|(_, pace)| pace.capped).map(|(tenant, _)| *tenant).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{CAP_BYTES_FIRST, CAP_BYTES_MAX, IdleTenants, Pace};
    use crate::fights::Rules;
    use crate::ledger::Ledger;
    use minerva_model::{BackEnd, DeviceId, IoCounters, IoSignals, Nanos, TenantId};
    use std::collections::BTreeSet;

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    fn row(tenant: u64, ops: u64, size: u64) -> IoSignals {
        let transferred = IoCounters { read_ops: ops, read_bytes: ops * size, ..IoCounters::default() };
        let (tenant, active) = (TenantId(tenant), ops > 0);
        IoSignals {
            tenant,
            device: DISK,
            elapsed: Nanos::SECOND,
            transferred,
            latency: None,
            active,
            served: None,
            disk_time: Nanos::ZERO,
        }
    }

    #[test]
    fn who_is_idle_waits_for_others_only_and_not_while_memory_is_short() {
        let mut ledger = Ledger::new(Rules { verify_every_slices: 1, fights_before_giving_up: 1 });
        let mut disk = IdleTenants::default();
        disk.cap_by(DISK, Some(BackEnd::Max), &mut ledger);
        let idle = BTreeSet::from([TenantId(1), TenantId(2)]);
        // Who is active in each second, whether caps may stand, and how many are capped after it.
        let table: [(&[u64], bool, usize); 10] = [
            (&[1, 2], true, 0),
            (&[1, 2, 3], true, 2),
            (&[1], true, 2),
            (&[1], true, 2),
            (&[1], true, 0),
            (&[3], true, 2),
            (&[3], false, 0),
            (&[3], true, 2),
            (&[], true, 2),
            (&[3], true, 2),
        ];
        for (second, (active, may_cap, capped)) in (1..).zip(table) {
            let rows: Vec<IoSignals> = active.iter().map(|tenant| row(*tenant, 5, 4096)).collect();
            disk.slice(Nanos::from_secs(second), DISK, &idle, &rows, may_cap, &mut ledger);
            assert_eq!(disk.capped().len(), capped, "second {second}");
        }
        disk.lift(DISK, TenantId(1), &mut ledger);
        assert_eq!(disk.capped(), [TenantId(2)], "who comes back is free at once");
    }

    /// The caps of each second, given how many requests of which size were completed in it.
    fn caps(seconds: &[(u64, u64)]) -> Vec<u64> {
        let mut pace = Pace { bytes_per_second: CAP_BYTES_FIRST, served_at: Nanos::ZERO, capped: false };
        let slice = |(second, (ops, size)): (u64, &(u64, u64))| {
            pace.slice(Nanos::from_secs(second), Some(&row(1, *ops, *size)), true);
            pace.bytes_per_second
        };
        (1..).zip(seconds).map(slice).collect()
    }

    #[test]
    fn a_cap_is_one_request_in_four_seconds() {
        // Requests, their size, and the cap.
        let table = [
            (1, 512, 1 << 10),
            (1, 4 << 10, 1 << 10),
            (50, 6 << 10, 2 << 10),
            (3, 64 << 10, 16 << 10),
            (9, 256 << 10, 64 << 10),
            (1, 1 << 20, 256 << 10),
            (1, 64 << 20, 256 << 10),
        ];
        for (ops, size, cap) in table {
            assert_eq!(caps(&[(ops, size)]), [cap], "{ops} of {size}");
        }
    }

    #[test]
    fn who_waits_gets_twice_as_much_every_eight_seconds() {
        let waits = [vec![(1, 4 << 10)], vec![(0, 0); 80]].concat();
        let seen = caps(&waits);
        assert_eq!((seen[0], seen[7], seen[8], seen[16]), (1 << 10, 1 << 10, 2 << 10, 4 << 10));
        assert_eq!(seen.last(), Some(&CAP_BYTES_MAX));
        // What may pass in all until a request of 1 MiB is done, though those before were of 4 KiB.
        let passed = seen
            .iter()
            .scan(0, |sum, cap| {
                *sum += cap;
                Some(*sum)
            })
            .position(|sum| sum >= 1 << 20);
        assert!(passed.is_some_and(|second| second <= 70), "{passed:?}");
        assert_eq!(caps(&[vec![(1, 4 << 10)], vec![(0, 0); 20], vec![(1, 4 << 10)]].concat()).last(), Some(&(1 << 10)));
    }
}
