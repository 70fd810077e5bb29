//! Decisions as they are explained later.

use super::{Fixture, NOON, audit_row};
use minerva_store::AuditRow;

#[test]
fn explain_shows_what_was_in_force_on_each_disk() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    let rows = [
        audit_row(NOON, "sda", 100),
        audit_row(NOON, "sdb", 100),
        audit_row(NOON + 1000, "sda", 50),
        audit_row(NOON + 1000, "sda", 40),
        audit_row(NOON + 2000, "sda", 30),
    ];
    store.audit(&rows).expect("written");
    let shares = |at| -> Vec<(String, u32)> {
        let rows = store.explain("web", None, at).expect("read");
        rows.into_iter().map(|row| (row.device_name, row.decision.share.get())).collect()
    };
    assert_eq!(shares(Some(NOON - 1)), []);
    assert_eq!(shares(Some(NOON)), [("sda".to_owned(), 100), ("sdb".to_owned(), 100)]);
    assert_eq!(shares(Some(NOON + 1999)), [("sda".to_owned(), 40), ("sdb".to_owned(), 100)]);
    assert_eq!(shares(None), [("sda".to_owned(), 30), ("sdb".to_owned(), 100)]);
    assert_eq!(store.explain("web", None, None).expect("read")[0], rows[4]);
    assert_eq!(store.explain("nobody", None, None).expect("read"), []);
}

#[test]
fn tenants_of_one_name_are_told_apart_by_their_cgroups() {
    let fixture = Fixture::new();
    let mut store = fixture.open("boot-a");
    let of = |number: u32, at, device, share| AuditRow {
        cgroup_path: format!("machine.slice/machine-qemu-{number}-web.scope"),
        ..audit_row(at, device, share)
    };
    // The second has the name from a minute later; the first has decisions on another disk, and one more in between.
    let rows = [
        of(1, NOON, "sda", 10),
        of(1, NOON, "sdb", 20),
        of(2, NOON + 60_000, "sda", 30),
        of(1, NOON + 70_000, "sda", 40),
        of(2, NOON + 80_000, "sda", 50),
    ];
    store.audit(&rows).expect("written");
    let shares = |cgroup: Option<u32>, at| -> Vec<u32> {
        let cgroup = cgroup.map(|number| of(number, 0, "", 1).cgroup_path);
        let rows = store.explain("web", cgroup.as_deref(), at).expect("read");
        rows.into_iter().map(|row| row.decision.share.get()).collect()
    };
    assert_eq!((shares(Some(1), None), shares(Some(2), None)), (vec![40, 20], vec![50]));
    assert_eq!((shares(Some(1), Some(NOON + 65_000)), shares(Some(2), Some(NOON + 65_000))), (vec![10, 20], vec![30]));
    assert!(shares(Some(2), Some(NOON)).is_empty());
    assert_eq!((shares(None, Some(NOON)), shares(None, Some(NOON + 65_000))), (vec![10, 20], vec![30]));
    assert_eq!((shares(None, Some(NOON + 75_000)), shares(None, None)), (vec![40, 20], vec![50]));
}
