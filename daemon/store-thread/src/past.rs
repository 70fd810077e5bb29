//! What the store knows of the past, read by the loop on a connection of its own.

use crate::{Memory, in_full};
use minerva_model::{AccessKind, BackgroundId, DeviceId, LearntBandwidth, Recalled, Tenant, TenantHistory};
use minerva_store::{BackgroundRow, JobPast, Store, StoreError, StoredClaim};
use std::collections::BTreeMap;

/// Purchases that are recalled, so that none is made twice. Older ones are known to the ledger itself.
const PURCHASES_MAX: u32 = 1_000;

impl Memory {
    /// What is remembered of a tenant; what cannot be read is as if it had never been.
    pub fn recall(&self, key: &str) -> Vec<TenantHistory> {
        self.read(key, |store| store.recall(key)).unwrap_or_default()
    }

    /// What is known of a tenant's credits and declarations; nothing while the store cannot be read, which is not the same as
    /// knowing that there is nothing. To be asked when nothing is under way, or the tenant is new. The credits of an account that
    /// `are_known` are not looked up: that reads all of its rows, and tenants that have one account may come by the hundred.
    pub fn recalled(&self, tenant: &Tenant, are_known: bool) -> Option<Recalled> {
        let (account, key) = (tenant.history_key(), tenant.declaration_key());
        let declaration = match self.declared.get(&key) {
            Some(declared) => Some(declared.clone()).filter(|declared| !declared.is_empty()),
            None => self.read(&key, |store| store.declared(&key))?,
        };
        let lots = if are_known { Vec::new() } else { self.read(&account, |store| store.lots(&account))? };
        Some(Recalled {
            tenant: tenant.id,
            lots,
            purchases: self.read(&account, |store| store.purchases(&account, &key, PURCHASES_MAX))?,
            declaration,
        })
    }

    /// What a tenant claimed before this start; nothing while the store cannot be read.
    pub fn claimed(&self, tenant: &Tenant) -> Option<StoredClaim> {
        let key = tenant.declaration_key();
        Some(self.read(&key, |store| store.claimed(&key))?.unwrap_or_default())
    }

    /// A store that did not open at the start may be there by now, or another in the place of one that was damaged.
    pub fn look_for_store(&mut self) {
        if let Some(reader) = self.readers.try_iter().last() {
            self.reader = Some(reader);
        }
    }

    /// What is known of a disk's bandwidth.
    pub fn bandwidths(&self, device: DeviceId) -> Vec<LearntBandwidth> {
        let stored = self.read(&device.to_string(), |store| store.learnt(device)).unwrap_or_default();
        let mut rows: BTreeMap<AccessKind, LearntBandwidth> = stored.into_iter().map(|row| (row.access, row)).collect();
        let newer = self.learnt.iter().filter(|((of, _), _)| *of == device);
        rows.extend(newer.map(|((_, access), row)| (*access, *row)));
        rows.into_values().collect()
    }

    /// Background work that is registered, and the last number that was used; nothing while the store cannot be read.
    pub fn background(&self) -> Option<(Vec<BackgroundRow>, BackgroundId)> {
        self.read("background work", Store::background)
    }

    /// What the kept runs of batch jobs did, by name; nothing while the store cannot be read.
    pub fn job_pasts(&self) -> Option<Vec<(String, Vec<JobPast>)>> {
        self.read("batch jobs", Store::job_pasts)
    }

    pub(crate) fn read<T>(&self, of: &str, look: impl FnOnce(&Store) -> Result<T, StoreError>) -> Option<T> {
        let found = look(self.reader.as_ref()?);
        let failed_before = self.unreadable.replace(found.is_err());
        match found {
            Ok(found) => {
                if failed_before {
                    tracing::info!("the past can be read again");
                }
                Some(found)
            }
            Err(error) => {
                if !failed_before {
                    let error = in_full(&error);
                    tracing::warn!(error, of, "the past cannot be read, trying again with every slice");
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Memory, MemorySettings, StoreMetrics};
    use minerva_model::{
        CgroupRef, EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos, Origin, Tenant, TenantId, TenantKind,
        Terms,
    };

    #[test]
    fn credits_that_are_known_are_not_looked_up_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = MemorySettings {
            state_dir: directory.path().to_owned(),
            boot_id: "boot".to_owned(),
            ledger_keep: Nanos::from_secs(3600),
        };
        let (wake, woken) = std::sync::mpsc::channel();
        let wake = Box::new(move || wake.send(()).unwrap_or(()));
        let mut memory = Memory::start(settings, StoreMetrics::default(), wake).expect("a thread");
        let tenant = Tenant {
            id: TenantId(1),
            name: "a".to_owned(),
            kind: TenantKind::Cgroup,
            cgroup: CgroupRef { path: "a".to_owned(), inode: 1 },
            group: Some("g".to_owned()),
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: Terms::default(),
            origin: Origin::default(),
        };
        let entry = LedgerEntry {
            number: EntryNumber(1),
            account: tenant.history_key(),
            kind: EntryKind::Earned,
            amount: MicroCredits::credits(3),
            expires_in: Some(Nanos::from_secs(3600)),
            request: None,
        };
        memory.post(entry, None);
        memory.send_commits();
        woken.recv().expect("it is committed");
        let lots = |are_known| memory.recalled(&tenant, are_known).expect("it can be read").lots.len();
        assert_eq!((lots(false), lots(true)), (1, 0));
        memory.close();
    }
}
