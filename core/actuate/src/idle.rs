//! Tenants at level `idle`: held back while others use the disk, whatever shares it out (docs/adr/0014).
//!
//! The least weight is a part of the disk all the same, and on most elevators it is nothing at all. So a tenant at `idle` is capped
//! too, by the throttle layer, which lies above every elevator: from the slice on in which others were seen to use the disk until
//! they have not for [`QUIET`]. Fixed grace periods before idle work are as old as idle work (Golding and others, "Idleness is not
//! sloth", 1995).
//!
//! What a request of idle work costs others is the move of the disk's head, not its bytes, so the cap follows the size of the
//! tenant's requests: one in [`SECONDS_A_REQUEST`] each way (`pace`).
//!
//! Background work that is stopped while others use the disk has no cap: it would outlast the pause that the work is for.
//!
//! Tenants at `idle` do not hold back each other. Caps are lifted when the host is short of memory (`memory`).

use crate::Actuator;
use crate::held_back::HeldBack;
use crate::ledger::Ledger;
use crate::pace::{PACE_BYTES_MIN, SECONDS_A_REQUEST};
use minerva_model::{DeviceId, IoSignals, Nanos, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How long nobody else may have used the disk before caps are lifted.
const QUIET: Nanos = Nanos::from_secs(3);
/// About as large as requests come: one of 1 MiB.
const CAP_BYTES_MAX: u64 = 256 << 10;

impl Actuator {
    /// Tenants that are stopped by other means while others use a disk, and so get no cap at level `idle`.
    pub fn stopped_elsewhere(&mut self, tenants: &BTreeSet<TenantId>) {
        let Self { disks, ledger, .. } = self;
        disks.values_mut().for_each(|disk| disk.stopped_elsewhere(tenants, ledger));
    }
}

/// Those of one disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct IdleTenants {
    // Flat, as snapshots of earlier versions are.
    #[serde(flatten)]
    pub(crate) held_back: HeldBack,
    others_at: Option<Nanos>,
    /// Of those at `idle`, who is stopped by other means while others use the disk: needs no cap, and in a pause of others no delay.
    #[serde(default)]
    stopped_elsewhere: BTreeSet<TenantId>,
}

impl IdleTenants {
    /// A slice ended, in which disks were used as `rows` say, by tenant and disk: who of the `idle` is capped in the next. Whether any is, or
    /// would be if caps might stand.
    pub(crate) fn slice(
        &mut self,
        now: Nanos,
        device: DeviceId,
        idle: &BTreeSet<TenantId>,
        rows: &[IoSignals],
        may_cap: bool,
        ledger: &mut Ledger,
    ) -> bool {
        self.held_back.lift_all_but(device, |tenant| idle.contains(&tenant), ledger);
        if idle.is_empty() {
            // Who uses the disk meanwhile is no other to one that steps back later, least of all that one itself.
            self.others_at = None;
            return false;
        }
        if rows.iter().any(|row| row.device == device && row.active && !idle.contains(&row.tenant)) {
            self.others_at = Some(now);
        }
        if !self.held_back.can_cap() {
            return false;
        }
        let is_others_turn = self.others_at.is_some_and(|at| now.since(at) < QUIET);
        let holds_back = may_cap && is_others_turn;
        for tenant in idle.difference(&self.stopped_elsewhere) {
            let row = rows.binary_search_by_key(&(*tenant, device), |row| (row.tenant, row.device));
            let row = row.ok().map(|index| &rows[index]);
            self.held_back.slice(now, (*tenant, device), row, (holds_back, of_idle), ledger);
        }
        is_others_turn && idle.difference(&self.stopped_elsewhere).next().is_some()
    }

    /// These are stopped by other means while others use the disk.
    pub(crate) fn stopped_elsewhere(&mut self, device: DeviceId, tenants: &BTreeSet<TenantId>, ledger: &mut Ledger) {
        if self.stopped_elsewhere != *tenants {
            tenants.iter().for_each(|tenant| self.held_back.lift(device, *tenant, ledger));
            self.stopped_elsewhere.clone_from(tenants);
        }
    }
}

/// What a tenant at `idle` may transfer in a second, whose requests have so many bytes.
pub(crate) fn of_idle(request_bytes: u64) -> u64 {
    (request_bytes / SECONDS_A_REQUEST).next_power_of_two().clamp(PACE_BYTES_MIN, CAP_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::IdleTenants;
    use crate::fights::Rules;
    use crate::ledger::Ledger;
    use crate::pace::Pace;
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
        let mut ledger =
            Ledger::new(Rules { verify_every_slices: 1, fights_before_giving_up: 1, keeps_limits_of_others: true });
        let mut disk = IdleTenants::default();
        disk.held_back.cap_by(DISK, Some(BackEnd::Max), &mut ledger);
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
            assert_eq!(disk.held_back.capped().len(), capped, "second {second}");
        }
        disk.held_back.lift(DISK, TenantId(1), &mut ledger);
        assert_eq!(disk.held_back.capped(), [TenantId(2)], "who comes back is free at once");
    }

    /// As versions before [`super::HeldBack`] wrote it.
    #[derive(serde::Serialize)]
    struct Earlier {
        by: Option<BackEnd>,
        paces: std::collections::BTreeMap<TenantId, Pace>,
        others_at: Option<Nanos>,
    }

    #[test]
    fn a_snapshot_of_an_earlier_version_is_taken_up_and_reads_as_it_was_written() {
        let mut pace = Pace::new(Nanos::SECOND);
        pace.slice(Nanos::SECOND, None, true, |bytes| bytes);
        let paces = [(TenantId(7), pace)].into();
        let mut bytes = Vec::new();
        ciborium::into_writer(&Earlier { by: Some(BackEnd::Max), paces, others_at: None }, &mut bytes)
            .expect("written");
        let restored: IdleTenants = ciborium::from_reader(bytes.as_slice()).expect("taken up");
        assert!(restored.held_back.can_cap() && restored.held_back.capped() == [TenantId(7)]);
        let mut again = Vec::new();
        ciborium::into_writer(&restored, &mut again).expect("written");
        let again: IdleTenants = ciborium::from_reader(again.as_slice()).expect("taken up");
        assert_eq!(again.held_back.capped(), [TenantId(7)]);
    }
}
