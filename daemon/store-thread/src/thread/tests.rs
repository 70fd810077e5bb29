//! A store that cannot be written, or not be tended.

use super::Keeper;
use crate::StoreMetrics;
use crate::jobs::{Acknowledged, Batch, FORGOTTEN_MAX};
use minerva_model::{Declaration, DeviceId, Level, Nanos, TenantHistory, UsageAverage};
use minerva_store::{DiskIdentities, ModelFiles, SetLevel, Store, StoreNote, StoredClaim, system_clock};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

/// A keeper, what it says of the store, and those who would hear of it.
struct Fixture {
    directory: tempfile::TempDir,
    health: Arc<Mutex<String>>,
    keeper: Keeper,
    _heard: (Receiver<Acknowledged>, Receiver<Store>, Receiver<StoreNote>),
}

impl Fixture {
    /// Of a store to which this was done.
    fn new(statements: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = path(directory.path());
        drop(Store::open(&path, "boot", system_clock()).expect("opens"));
        execute(&path, statements);
        let health = Arc::default();
        let ((give, acknowledgements), (give_reader, readers), (tell, losses)) = (channel(), channel(), channel());
        let models = ModelFiles::new(directory.path().join("models"));
        let keeper = Keeper::new(
            (path, "boot".to_owned(), models, Duration::from_secs(3600)),
            DiskIdentities::default(),
            Arc::clone(&health),
            StoreMetrics::default(),
            (give, give_reader, tell),
            Box::new(|| {}),
        );
        Self { directory, health, keeper, _heard: (acknowledgements, readers, losses) }
    }

    fn execute(&self, statements: &str) {
        execute(&path(self.directory.path()), statements);
    }

    fn error(&self) -> String {
        self.health.lock().expect("nobody panicked").clone()
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join("minerva.db")
}

fn execute(path: &Path, statements: &str) {
    Connection::open(path).expect("opens").execute_batch(statements).expect("executed");
}

fn history(key: &str) -> TenantHistory {
    let usage = UsageAverage { recent_bytes_per_second: 1e6, long_term_bytes_per_second: 1e5 };
    TenantHistory { key: key.to_owned(), device: DISK, usage, disk_part: 0.1, group: 3, age: Nanos::ZERO }
}

fn remembered(key: &str) -> Batch {
    Batch { histories: [((key.to_owned(), DISK), history(key))].into(), ..Batch::default() }
}

#[test]
fn a_store_that_cannot_be_written_keeps_nothing_of_tenants_that_came_and_went() {
    let Fixture { mut keeper, health, .. } = Fixture::new("PRAGMA user_version = 99");
    assert!(health.lock().expect("nobody panicked").contains("version 99"));
    let set = SetLevel { level: Level::Low, until: None, process: None };
    let claim = StoredClaim { set: Some(set), schedule: None };
    for number in 0..FORGOTTEN_MAX + 1_000 {
        let key = format!("cgroup:job-{number}.scope#{number}");
        let mut came = remembered(&key);
        came.declarations.insert(key.clone(), Declaration { key: key.clone(), ..Declaration::default() });
        came.claims.insert(key.clone(), claim.clone());
        keeper.keep(came);
        // As the loop does when it hears that one has gone, in a later slice.
        let mut went = Batch::default();
        went.claims.insert(key.clone(), StoredClaim::default());
        went.forget(key);
        keeper.keep(went);
    }
    let Batch { histories, declarations, claims, forgotten, .. } = &keeper.held;
    assert_eq!((histories.len(), declarations.len(), claims.len()), (0, 0, 0));
    assert_eq!(forgotten.len(), FORGOTTEN_MAX);
}

#[test]
fn a_store_that_cannot_be_tended_does_not_work_again_because_a_batch_is_written() {
    let undeletable = "INSERT INTO claim VALUES ('cgroup:a#1', 'an earlier boot', '{}');
        CREATE TRIGGER undeletable BEFORE DELETE ON claim BEGIN SELECT raise(ABORT, 'no room for that'); END;";
    let mut fixture = Fixture::new(undeletable);
    assert_eq!(fixture.error(), "");
    fixture.keeper.prune();
    assert!(fixture.error().contains("no room for that"), "{}", fixture.error());
    fixture.keeper.keep(remembered("group:a"));
    assert!(fixture.keeper.held.is_empty() && fixture.error().contains("no room for that"), "{}", fixture.error());
    fixture.execute("DROP TRIGGER undeletable");
    fixture.keeper.prune();
    assert_eq!(fixture.error(), "");
}
