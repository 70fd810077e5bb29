//! Level `idle` at the real daemon: held back while others use the disk, on any elevator.

use super::{endowed, set_level};
use crate::bed::{Bed, until};
use crate::listeners::{Relay, at};
use minerva_api::v1;
use minerva_linux_actuate::{RestoreWhen, WriterSettings, restore};
use std::fs;

fn capped(bed: &Bed, tenant: &str) -> bool {
    ["read", "write"].iter().all(|way| bed.cap(tenant, way).is_some())
}

fn free(bed: &Bed, tenant: &str) -> bool {
    ["read", "write"].iter().all(|way| bed.cap(tenant, way).is_none())
}

#[test]
fn who_is_idle_is_capped_while_others_read_and_a_kill_leaves_no_cap() {
    let Some((mut bed, socket)) = endowed(0) else { return };
    // No elevator that reads weights, so the kernel has to be told to count.
    fs::write(format!("/sys/block/{}/queue/scheduler", bed.device), "none").expect("every disk can do without");
    bed.arm_throttle();
    bed.start_readers();
    let mut daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    // A named group without processes is removed.
    let _stays = Relay::start(&bed, &socket, &bed.cgroup("sparing"));
    at(&relay.socket, async |mut client| {
        set_level(&mut client, v1::Level::Idle, None).await;
    });
    daemon.until("the tenant at idle is capped", || capped(&bed, "heavy"));
    assert!(free(&bed, "sparing"), "nobody else is");
    bed.stop_readers();
    bed.start_reader("heavy", 64);
    daemon.until("it has the disk to itself", || free(&bed, "heavy"));
    bed.start_reader("sparing", 2);
    daemon.until("somebody came", || capped(&bed, "heavy"));
    at(&relay.socket, async |mut client| {
        set_level(&mut client, v1::Level::Normal, None).await;
    });
    daemon.until("it came back", || free(&bed, "heavy"));
    at(&relay.socket, async |mut client| {
        set_level(&mut client, v1::Level::Idle, None).await;
    });
    daemon.until("it stepped back again", || capped(&bed, "heavy"));
    daemon.signal("-KILL");
    daemon.child.wait().expect("an end");
    until("the guard has put it back", || free(&bed, "heavy"));
}

#[test]
fn what_a_restore_put_back_is_nobodys_doing_where_a_level_changes_before_the_slice_ends() {
    let Some((mut bed, socket)) = endowed(0) else { return };
    fs::write(format!("/sys/block/{}/queue/scheduler", bed.device), "none").expect("every disk can do without");
    bed.arm_throttle();
    let text = fs::read_to_string(bed.config()).expect("the operator's file");
    // The level is to change before the lease is renewed, and no look at what others write is to come before.
    let text = text.replace("slice = \"100ms\"", "slice = \"3s\"");
    let text = text.replace("verify_every_slices = 5", "verify_every_slices = 3600");
    fs::write(bed.config(), text).expect("the operator's file");
    bed.start_readers();
    let daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    at(&relay.socket, async |mut client| {
        set_level(&mut client, v1::Level::Idle, None).await;
    });
    daemon.until("the tenant at idle is capped", || capped(&bed, "heavy"));
    let settings = WriterSettings::new(bed.directory.path().join("run"), bed.root());
    assert!(restore(&settings, RestoreWhen::Always).expect("a report").is_complete());
    at(&relay.socket, async |mut client| {
        set_level(&mut client, v1::Level::Normal, None).await;
    });
    daemon.pass_slices(2);
    assert!(free(&bed, "heavy"), "{}", daemon.log());
    let findings = daemon.status().expect("an answer").findings;
    let of = |kind: &str| findings.iter().filter(|finding| finding.kind == kind).count();
    assert_eq!((of("knobs-restored"), of("overwritten")), (1, 0), "{findings:?}");
}
