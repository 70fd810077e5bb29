//! What people are told of a store that does not work, or was damaged.

use crate::Memory;
use minerva_model::{Finding, FindingKind};
use minerva_store::StoreNote;
use std::sync::PoisonError;
use std::sync::mpsc::Receiver;

impl Memory {
    /// What the store said when it last failed; empty while it works.
    pub fn error(&self) -> String {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Damaged stores in whose place another is, as findings; each is told once.
    pub fn take_losses(&self) -> Vec<Finding> {
        self.losses.0.try_iter().map(finding).collect()
    }
}

/// Notes of damaged stores. Those that nobody took, because the loop has ended or never began, are logged when this is dropped.
pub(crate) struct Losses(pub(crate) Receiver<StoreNote>);

impl Drop for Losses {
    fn drop(&mut self) {
        self.0.try_iter().for_each(|note| tracing::warn!("{note}"));
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
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    fn start(directory: &Path) -> Memory {
        let settings = MemorySettings {
            state_dir: directory.to_owned(),
            boot_id: "boot".to_owned(),
            ledger_keep: Nanos::from_secs(3600),
        };
        Memory::start(settings, StoreMetrics::default(), Box::new(|| {})).expect("a thread")
    }

    fn damage(directory: &Path) {
        std::fs::write(directory.join("minerva.db"), "no database ".repeat(999)).expect("written");
    }

    /// Counts what this thread warns of.
    struct Warnings(Arc<AtomicUsize>);

    impl Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() == Level::WARN
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    /// The loop logs each loss that it takes. A store is opened for the first time by who starts the thread.
    #[test]
    fn a_loss_is_logged_here_only_if_nobody_took_it() {
        for (is_taken, logged) in [(true, 0), (false, 1)] {
            let (directory, warned) = (tempfile::tempdir().expect("a directory"), Arc::default());
            damage(directory.path());
            tracing::subscriber::with_default(Warnings(Arc::clone(&warned)), || {
                let memory = start(directory.path());
                assert!(!is_taken || memory.take_losses().len() == 1);
                memory.close();
            });
            assert_eq!(warned.load(Ordering::Relaxed), logged, "taken: {is_taken}");
        }
    }

    #[test]
    fn a_damaged_store_is_told_once_and_not_after_the_next_start() {
        let directory = tempfile::tempdir().expect("a directory");
        damage(directory.path());
        let memory = start(directory.path());
        let told = memory.take_losses();
        assert_eq!(told.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::StoreDamaged]);
        let message = &told[0].message;
        for part in ["minerva.db.corrupt-1", "credits", "background work", "runs of jobs are lost"] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!((memory.error(), memory.take_losses().len()), (String::new(), 0));
        memory.close();
        let memory = start(directory.path());
        assert_eq!(memory.take_losses(), []);
        memory.close();
    }
}
