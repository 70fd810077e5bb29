//! Level `idle` at the real daemon: held back while others use the disk, on any elevator.

use super::{endowed, set_level};
use crate::bed::{Bed, until};
use crate::listeners::{Relay, at};
use minerva_api::v1;
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
