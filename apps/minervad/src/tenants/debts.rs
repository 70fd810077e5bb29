//! What tenants owe, for as long as somebody holds it: registered as background work, whose thread tells them when they may work.

use crate::slice_loop::Driver;
use crate::tenants::held_debts::Words;
use minerva_api::v1;
use minerva_background_queues::{NotOwed, Owing, Owner};
use minerva_model::{Nanos, RefusalKind, TenantId};
use minerva_store::AnswerKind;
use minerva_tenant_server::request::{Debt, Refusal, WantedDisk};

impl Driver {
    /// A tenant owes this for as long as somebody listens.
    pub(crate) fn hold_debt(
        &mut self,
        tenant: TenantId,
        debt: Debt,
        (within, disk): (Option<Nanos>, WantedDisk),
        words: Words,
    ) -> bool {
        match self.owe(tenant, debt, (within, disk), words.clone()) {
            Ok(()) => true,
            Err(refusal) => {
                // Whoever asked may have gone.
                let _ = words.try_send(Err(refusal));
                false
            }
        }
    }

    fn owe(
        &mut self,
        tenant: TenantId,
        debt: Debt,
        (within, disk): (Option<Nanos>, WantedDisk),
        words: Words,
    ) -> Result<(), Refusal> {
        let only = || if self.devices.len() == 1 { self.devices.keys().next().copied() } else { None };
        let only = only();
        let device = self.disk_wanted(tenant, disk)?.or(only).ok_or_else(|| {
            let message =
                format!("Say on which disk the work is: by a path on it, or as MAJ:MIN; there are {}.", self.disks());
            Refusal::new(RefusalKind::UnknownDevice, message)
        })?;
        let Some(known) = self.tenants.get(&tenant) else {
            return Err(Refusal::new(RefusalKind::UnknownTenant, format!("There is no tenant {tenant} any more.")));
        };
        let (tenant_name, cgroup) = (known.name.clone(), known.cgroup.path.clone());
        let Debt { name, service, done, tied_bytes } = debt;
        let text = format!("debt {name} of {service} on {}", self.disk_called(device));
        let registration = self.parts.debts.register();
        let owner = Owner { tenant, tenant_name, cgroup, name, device, within, registration };
        let thread = words.clone();
        let word = move |may_work| v1::HoldDebtResponse { may_work, registration };
        let say = Box::new(move |may_work| thread.try_send(Ok(word(may_work))).is_ok());
        let owing = Owing { service, done, tied_bytes };
        let (id, events, replaced) =
            self.background.owe(owner, owing, say).map_err(|why| Refusal::new(RefusalKind::TooMany, why))?;
        // The first answer: the thread says nothing before the engine knows of it.
        let _ = words.try_send(Ok(word(false)));
        events.into_iter().for_each(|event| self.feed(event));
        if let Some((_, before)) = replaced.and_then(|replaced| self.parts.debts.held.remove(&replaced)) {
            // Whoever held it may have gone.
            let _ = before.try_send(Err(replaced_by_a_later_one()));
        }
        self.parts.debts.held.insert(id, (tenant, words));
        let key = self.parts.own_key("debt");
        self.audit_request(tenant, AnswerKind::Granted, &key, text);
        Ok(())
    }

    /// A tenant says how far it is.
    pub(crate) fn debt_reported(&mut self, tenant: TenantId, debt: Debt, registration: u64) -> Result<(), Refusal> {
        let Debt { name, service, done, tied_bytes } = debt;
        let owing = Owing { service, done, tied_bytes };
        let events = self.background.owed_report(tenant, (&name, registration), owing).map_err(|why| match why {
            NotOwed::Replaced => replaced_by_a_later_one(),
            NotOwed::ByNobody => {
                let message =
                    format!("Nobody holds a debt called {name}: hold it first, and for as long as it is owed.");
                Refusal::new(RefusalKind::UnknownOperation, message)
            }
        })?;
        events.into_iter().for_each(|event| self.feed(event));
        Ok(())
    }

    /// Once a slice: what nobody holds any more is owed no more.
    pub(crate) fn review_debts(&mut self) {
        let over = self.parts.debts.held.iter().filter(|(_, (_, words))| words.is_closed()).map(|(id, _)| *id);
        for id in over.collect::<Vec<_>>() {
            self.parts.debts.held.remove(&id);
            if let Some(event) = self.background.release(id) {
                self.feed(event);
            }
        }
    }
}

/// What whoever held a debt of that name before is told.
fn replaced_by_a_later_one() -> Refusal {
    Refusal::new(RefusalKind::KeyReused, "A later debt of this name took its place.".to_owned())
}
