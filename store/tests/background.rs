//! Queues of background work, kept over starts.

use minerva_model::{BackgroundCost, BackgroundId, BackgroundState, DiskCalibration};
use minerva_store::{BackgroundFound, BackgroundRow, LastingIdentity, Store};

fn row(id: u32, name: &str) -> BackgroundRow {
    BackgroundRow {
        id: BackgroundId(id),
        name: name.to_owned(),
        kind: "delete".to_owned(),
        path: "/data/old".to_owned(),
        identity: (2049, 17),
        lasting_identity: Some(LastingIdentity { file_system: (1, u64::MAX), subvolume: 256, born_ns: 7 }),
        parent_inode: Some(u64::MAX),
        command: Vec::new(),
        never_stop: false,
        priority: 3,
        added_unix_ms: 1_000,
        due_unix_ms: Some(9_000),
        is_paused: false,
        state: BackgroundState::Waiting,
        message: String::new(),
        done_items: 12.5,
        total_items: None,
        position: 12,
        found: BackgroundFound { bytes: 4096, errors: 2, uncorrectable: 1, corrected: 1, under_way: 0 },
        used_percent_max: 50,
        ran_ms: 7,
        cost: BackgroundCost { seconds_per_item: 1.0 / 3.0, measured_seconds: 0.0, slow_down: None },
    }
}

#[test]
fn queues_of_background_work_outlive_the_daemon_and_numbers_are_not_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Store::open(&directory.path().join("db"), "boot", Box::new(|| 0)).unwrap().0;
    let store = open();
    assert_eq!(store.background().unwrap(), (Vec::new(), BackgroundId(0)));
    store.add_background(&row(1, "one")).unwrap();
    store.add_background(&row(2, "two")).unwrap();
    assert!(store.add_background(&row(3, "two")).is_err(), "a name is one queue's");
    assert!(store.update_background(&BackgroundRow { is_paused: true, ..row(1, "one") }).unwrap());
    store.forget_background(BackgroundId(2)).unwrap();
    // How far it was when it was forgotten may be told after that.
    assert!(!store.update_background(&row(2, "two")).unwrap());
    drop(store);
    let (rows, last) = open().background().unwrap();
    assert_eq!(rows, [BackgroundRow { is_paused: true, ..row(1, "one") }]);
    assert_eq!(last, BackgroundId(2));
}

#[test]
fn what_earlier_versions_kept_of_a_queue_is_read() {
    let mut text = serde_json::to_value(row(1, "one")).unwrap();
    let fields = text.as_object_mut().unwrap();
    for field in ["lasting_identity", "parent_inode", "found", "used_percent_max"] {
        fields.remove(field).unwrap();
    }
    let read: BackgroundRow = serde_json::from_value(text).unwrap();
    let (lasting_identity, parent_inode, found) = (None, None, BackgroundFound::default());
    assert_eq!(read, BackgroundRow { lasting_identity, parent_inode, found, ..row(1, "one") });
}

#[test]
fn what_a_disk_serves_outlives_the_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Store::open(&directory.path().join("db"), "boot", Box::new(|| 0)).unwrap().0;
    let measured =
        |rate| DiskCalibration { bytes_per_busy_second: rate, requests_per_second: 1.0 / 3.0, busy_seconds: 9.5 };
    let store = open();
    assert_eq!(store.calibration("disk-1").unwrap(), None);
    store.keep_calibration("disk-1", &measured(1e6)).unwrap();
    store.keep_calibration("disk-1", &measured(2e6)).unwrap();
    drop(store);
    assert_eq!(open().calibration("disk-1").unwrap(), Some(measured(2e6)));
    assert_eq!(open().calibration("disk-2").unwrap(), None);
}
