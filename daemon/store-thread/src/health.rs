//! What people are told of a store that does not work, or was damaged.

use crate::Memory;
use minerva_model::{Finding, FindingKind};
use minerva_store::StoreNote;
use std::sync::PoisonError;

impl Memory {
    /// What the store said when it last failed; empty while it works.
    pub fn error(&self) -> String {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Damaged stores in whose place another is, as findings; each is told once.
    pub fn take_losses(&self) -> Vec<Finding> {
        self.losses.try_iter().map(finding).collect()
    }
}

fn finding(note: StoreNote) -> Finding {
    Finding {
        kind: FindingKind::StoreDamaged,
        device: None,
        tenant: None,
        message: format!(
            "{note}. See in the kernel's log whether the disk fails, register background work again, and give credits that are owed \
             (minerva-ctl credits give); a restart of minervad ends this warning."
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Memory, MemorySettings, StoreMetrics};
    use minerva_model::{FindingKind, Nanos};

    #[test]
    fn a_damaged_store_is_told_once_and_not_after_the_next_start() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("minerva.db"), "no database ".repeat(999)).expect("written");
        let start = || {
            let settings = MemorySettings {
                state_dir: directory.path().to_owned(),
                boot_id: "boot".to_owned(),
                ledger_keep: Nanos::from_secs(3600),
            };
            Memory::start(settings, StoreMetrics::default(), Box::new(|| {})).expect("a thread")
        };
        let memory = start();
        let told = memory.take_losses();
        assert_eq!(told.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::StoreDamaged]);
        let message = &told[0].message;
        for part in ["minerva.db.corrupt-1", "credits", "background work", "runs of jobs are lost"] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!((memory.error(), memory.take_losses().len()), (String::new(), 0));
        memory.close();
        let memory = start();
        assert_eq!(memory.take_losses(), []);
        memory.close();
    }
}
