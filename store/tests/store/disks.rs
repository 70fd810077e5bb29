//! Histories stay with their disks, whatever numbers these have.

use crate::{DISK, Fixture, history};
use minerva_model::{DeviceId, TenantHistory};
use minerva_store::DiskIdentities;

const OTHER: DeviceId = DeviceId { major: 8, minor: 16 };

/// A boot in which the disks are numbered so.
fn numbered(disks: &[(DeviceId, &str)]) -> DiskIdentities {
    let identities = DiskIdentities::default();
    for (device, identity) in disks {
        assert!(identities.enter(*device, (*identity).to_owned()), "named twice");
    }
    identities
}

#[test]
fn a_boot_that_numbers_disks_otherwise_puts_no_history_on_another_disk() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a").with_disks(numbered(&[(DISK, "naa.1"), (OTHER, "naa.2")]));
    let rows = [history("group:g", 1.0), TenantHistory { device: OTHER, ..history("group:g", 2.0) }];
    store.remember(&rows).expect("written");
    assert_eq!(store.recall("group:g").expect("read"), rows);
    drop(store);
    let recalled = |boot: &str, disks: &[(DeviceId, &str)]| {
        let found = fixture.open(boot).with_disks(numbered(disks)).recall("group:g").expect("read");
        found.iter().map(|row| (row.device, row.usage.recent_bytes_per_second)).collect::<Vec<_>>()
    };
    assert_eq!(recalled("boot-b", &[(OTHER, "naa.1"), (DISK, "naa.2")]), [(DISK, 2.0), (OTHER, 1.0)], "changed places");
    assert_eq!(recalled("boot-c", &[(DISK, "naa.2"), (OTHER, "naa.3")]), [(DISK, 2.0)], "one is gone, one is new");
    assert_eq!(recalled("boot-d", &[(DISK, "naa.7")]), [], "a new disk has nobody's history");
    // Nothing is lost while a disk is away, and each is written under its own name.
    let mut store = fixture.open("boot-e").with_disks(numbered(&[(OTHER, "naa.1"), (DISK, "naa.3")]));
    store.remember(&[TenantHistory { device: OTHER, ..history("group:g", 9.0) }]).expect("written");
    drop(store);
    assert_eq!(recalled("boot-f", &[(DISK, "naa.1"), (OTHER, "naa.2")]), [(DISK, 9.0), (OTHER, 2.0)]);
}

#[test]
fn histories_kept_by_numbers_are_taken_over_once() {
    let fixture = Fixture::new();
    // A disk that says nothing of itself, and a file of an earlier version, have only numbers.
    fixture.open("boot-a").remember(&[history("group:g", 1.0)]).expect("written");
    let mut store = fixture.open("boot-b").with_disks(numbered(&[(DISK, "naa.1")]));
    assert_eq!(store.recall("group:g").expect("read").len(), 1);
    store.remember(&[history("group:g", 2.0)]).expect("written");
    drop(store);
    let moved = fixture.open("boot-c").with_disks(numbered(&[(OTHER, "naa.1"), (DISK, "naa.2")]));
    let found = moved.recall("group:g").expect("read");
    assert_eq!(found, [TenantHistory { device: OTHER, ..history("group:g", 2.0) }], "and the number says nothing more");
}
