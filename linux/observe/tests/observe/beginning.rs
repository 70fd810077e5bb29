//! Tenants that begin, beside others that are busy.

use crate::fake_host::{FakeHost, seen};
use crate::v1::BFQ;
use minerva_model::CgroupVersion;
use std::collections::BTreeMap;

/// Two hundred are busy all the time, and one more does something now and then.
#[test]
fn what_a_tenant_that_begins_has_open_is_known_in_its_first_slice_beside_any_number_of_busy_ones() {
    const BEGINS: u32 = 150;
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    let group = |index: u32| format!("g{index:03}");
    for index in 0..201 {
        host.group(&group(index), &format!("{}\n", 1_000 + index));
        host.process(1_000 + index, "x", 5, 1, 0);
    }
    let mut observer = host.observer(&[]);
    let tenants = seen(&observer.discover());
    let begins = tenants.iter().find(|tenant| tenant.cgroup.path == group(BEGINS)).expect("a tenant").id;
    let mut moved = 0;
    for slice in 1..=60 {
        let is_on = slice % 20 < 3;
        moved += u64::from(is_on);
        for index in 0..201 {
            let slices = if index == BEGINS { moved } else { slice };
            host.blkio(&group(index), "bfq", "_recursive", "8:0", [slices * 4096, 0], [slices, 0]);
        }
        // Another file with each session, and as many as before.
        host.write(&format!("proc/{}/fd/3", 1_000 + BEGINS), &"x".repeat(1_000 * (1 + slice as usize / 20)));
        let usage = observer.sample().usage;
        assert!(usage.len() <= 64, "{} are looked at", usage.len());
        if slice % 20 == 0 {
            let told = usage.iter().find(|row| row.tenant == begins).map(|row| row.open_file_bytes);
            assert_eq!(told, Some(1_000 * (1 + slice / 20)), "slice {slice}");
        }
    }
}

/// Two hundred move in every second slice, so that a hundred begin in each; one is busy all the time, and one at rest.
#[test]
fn tenants_that_begin_have_turns_and_leave_the_others_theirs() {
    const BUSY: u32 = 200;
    const AT_REST: u32 = 201;
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    let group = |index: u32| format!("g{index:03}");
    for index in 0..=AT_REST {
        host.group(&group(index), &format!("{}\n", 1_000 + index));
        host.process(1_000 + index, "x", 5, 1, 0);
    }
    let mut observer = host.observer(&[]);
    observer.discover();
    let mut looks = BTreeMap::new();
    for slice in 1..=32u64 {
        for index in 0..AT_REST {
            let slices = if index == BUSY { slice } else { (slice + u64::from(index % 2)) / 2 };
            host.blkio(&group(index), "bfq", "_recursive", "8:0", [slices * 4096, 0], [slices, 0]);
        }
        for row in observer.sample().usage {
            *looks.entry(row.tenant).or_insert(0) += 1;
        }
    }
    assert_eq!(looks.len() as u32, AT_REST + 1, "each had a turn: {looks:?}");
}
