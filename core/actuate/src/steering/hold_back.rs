//! Who is dealt no cap with others on one disk: who is held back by caps of its own, whatever the back end is (tenants at `idle`, and batch jobs
//! that wait), and background work that takes time from others in stretches.

use super::{Means, Steering};
use crate::cap_knobs::wish_cap;
use crate::ledger::Ledger;
use crate::waiting_jobs::OfDisk;
use minerva_model::{Decision, EngineConfig, JobWait, Nanos, Signals, TenantId};
use std::collections::{BTreeMap, BTreeSet};

impl Steering {
    /// Holds back tenants at `idle` while others use the disk, and batch jobs that wait; before each [`Steering::plan`]. Answers with those
    /// that are dealt nothing else.
    pub(crate) fn hold_back(
        &mut self,
        (now, config): (Nanos, &EngineConfig),
        idle: &BTreeSet<TenantId>,
        mut waiting: BTreeMap<TenantId, JobWait>,
        signals: &Signals,
        may_cap: bool,
        ledger: &mut Ledger,
    ) -> Vec<TenantId> {
        let id = self.device.id;
        // Who waits for a job of unknown size is left what the others leave, which weights give and caps do not.
        let has_weights = matches!(self.means, Means::Weights { .. });
        waiting.retain(|tenant, wait| !idle.contains(tenant) && (wait.turn_is_known || !has_weights));
        let has_waiting = self.jobs.held_back.can_cap() && !waiting.is_empty();
        waiting.retain(|_, _| may_cap);
        self.jobs.slice(now, self.of_disk(config), &waiting, signals, ledger);
        let has_idle = self.idle.slice(now, id, idle, &signals.io, may_cap, ledger);
        self.refuses_caps = !may_cap && (has_waiting || has_idle);
        let mut apart = [self.idle.held_back.capped(), self.jobs.held_back.capped()].concat();
        if let Means::Caps { back_end, dealer } = &mut self.means {
            for taker in self.takers.iter().filter(|taker| dealer.caps(**taker) && !apart.contains(taker)) {
                wish_cap(ledger, *back_end, *taker, id, None);
            }
            apart.extend(&self.takers);
            apart.iter().for_each(|tenant| dealer.forget(*tenant));
        }
        apart
    }

    /// These take time from others here, and are stopped for the rest of it.
    pub(crate) fn is_taken_by(&mut self, takers: BTreeSet<TenantId>) {
        self.takers = takers;
    }

    /// These are stopped by other means while others use the disk.
    pub(crate) fn stopped_elsewhere(&mut self, tenants: &BTreeSet<TenantId>, ledger: &mut Ledger) {
        self.idle.stopped_elsewhere(self.device.id, tenants, ledger);
    }

    fn of_disk(&self, config: &EngineConfig) -> OfDisk {
        let settings = config.devices.get(&self.device.name);
        let bytes_per_second = settings.and_then(|disk| disk.bandwidth_bytes_per_second).map(|bytes| bytes as f64);
        OfDisk { device: self.device.id, rotational: self.device.facts.rotational, bytes_per_second }
    }

    /// Within a slice a tenant came back from `idle`, or is to wait no more.
    pub(crate) fn let_on(&mut self, decision: &Decision, ledger: &mut Ledger) {
        if !decision.is_only_when_idle() {
            self.idle.held_back.lift(self.device.id, decision.tenant, ledger);
        }
        if decision.job_waits().is_none() {
            self.jobs.held_back.lift(self.device.id, decision.tenant, ledger);
        }
    }

    /// Some tenant is capped here, or may be in the next slice.
    pub(crate) fn may_hold_up_writeback(&self) -> bool {
        self.has_caps() || !self.idle.held_back.capped().is_empty() || !self.jobs.held_back.capped().is_empty()
    }

    /// Some tenant has no cap here because memory is short.
    pub(crate) const fn refuses_caps(&self) -> bool {
        self.refuses_caps
    }
}
