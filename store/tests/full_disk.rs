//! A full disk: the error says so, what was acknowledged stays, and the store works again once there is room.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use minerva_model::{
    DeviceId, EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos, RequestId, TenantHistory, UsageAverage,
};
use minerva_store::{Posting, Store, StoreErrorKind};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::path::{Path, PathBuf};

const PREFIX: &str = "minerva-test-full-disk-";

/// A tmpfs of one MiB, unmounted when dropped.
struct TinyDisk(PathBuf);

impl TinyDisk {
    /// `None` without the right to mount. Tests of one process have a name each.
    fn mount(name: &str) -> Option<Self> {
        sweep();
        let path = std::env::temp_dir().join(format!("{PREFIX}{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("made");
        let disk = Self(path);
        match mount(PREFIX, &disk.0, "tmpfs", MountFlags::empty(), c"size=1m") {
            Ok(()) => Some(disk),
            Err(error) => {
                println!("skipped: needs the right to mount a tmpfs ({error})");
                None
            }
        }
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        // Not mounted when mounting failed; the directory goes either way.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Removes what a killed run left behind.
fn sweep() {
    let directories = std::fs::read_dir(std::env::temp_dir()).expect("a directory");
    for path in directories.filter_map(Result::ok).map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(owner) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()) else { continue };
        if !Path::new("/proc").join(owner).exists() {
            drop(TinyDisk(path));
        }
    }
}

fn rows(generation: u32) -> Vec<TenantHistory> {
    let row = |n: u32| TenantHistory {
        key: format!("group:{generation}-{n}-{}", "x".repeat(100)),
        device: DeviceId { major: 8, minor: 0 },
        usage: UsageAverage { recent_bytes_per_second: f64::from(generation), long_term_bytes_per_second: 0.0 },
        disk_part: 0.25,
        group: 0,
        age: Nanos::ZERO,
    };
    (0..50).map(row).collect()
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let Some(disk) = TinyDisk::mount("histories") else { return };
    let path = disk.0.join("minerva.db");
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![0; 300 << 10]).expect("written");
    let open = || Store::open(&path, "boot-a", Box::new(|| 0)).expect("opens").0;
    let mut store = open();
    let mut acknowledged = 0;
    let error = loop {
        match store.remember(&rows(acknowledged)) {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1000, "one MiB never filled up");
    };
    assert_eq!(error.kind, StoreErrorKind::DiskFull);
    assert!(error.to_string().ends_with("the disk is full; free some space, it is tried again with the next slice"));
    assert!(acknowledged > 0);
    let intact = |store: &Store, generations: u32| {
        for row in (0..generations).flat_map(rows) {
            assert_eq!(store.recall(&row.key).expect("read"), [row]);
        }
    };
    intact(&store, acknowledged);
    assert_eq!(store.recall(&rows(acknowledged)[0].key).expect("read"), []);

    std::fs::remove_file(&ballast).expect("removed");
    store.remember(&rows(acknowledged)).expect("there is room again");
    drop(store);
    intact(&open(), acknowledged + 1);
}

#[test]
fn a_full_disk_spends_no_credit() {
    let Some(disk) = TinyDisk::mount("ledger") else { return };
    let path = disk.0.join("minerva.db");
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![0; 300 << 10]).expect("written");
    let open = || Store::open(&path, "boot-a", Box::new(|| 0)).expect("opens").0;
    let entry = |number: u64| {
        Posting::from(LedgerEntry {
            number: EntryNumber(number),
            account: "group:g".to_owned(),
            kind: EntryKind::Earned,
            amount: MicroCredits::credits(1),
            expires_in: Some(Nanos::from_secs(86_400)),
            request: Some(RequestId(format!("{number}-{}", "x".repeat(60)))),
        })
    };
    let batch = |generation: u64| (0..100).map(|n| entry(generation * 100 + n)).collect::<Vec<_>>();
    let mut store = open();
    let mut acknowledged = 0;
    let error = loop {
        match store.post(&batch(acknowledged)) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1000, "one MiB never filled up");
    };
    assert_eq!(error.kind, StoreErrorKind::DiskFull);
    let balance = |store: &Store| store.balance_micro_credits("group:g").expect("read");
    assert_eq!(balance(&store), acknowledged as i64 * 100_000_000, "a batch is entered whole or not at all");
    std::fs::remove_file(&ballast).expect("removed");
    store.post(&batch(acknowledged)).expect("there is room again");
    drop(store);
    assert_eq!(balance(&open()), (acknowledged as i64 + 1) * 100_000_000);
}
