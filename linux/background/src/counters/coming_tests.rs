//! Groups of work that come with their worker, after it was begun to count.

use super::tests::write_io_stat;
use super::{Counters, NO_LIMIT};
use minerva_model::{CgroupVersion, DeviceId};
use std::fs;

#[test]
fn what_others_do_is_seen_in_the_moment_in_which_the_first_group_of_work_comes() {
    let root = tempfile::tempdir().unwrap();
    let write = |group: &str, requests: u64| write_io_stat(root.path(), group, requests);
    write("machine", 100);
    let disks = vec![(DeviceId { major: 8, minor: 0 }, false)];
    let mut counters = Counters::new(root.path(), CgroupVersion::V2, disks, "");
    let ours = root.path().join("minerva-background/background-b1");
    counters.set_ours(&ours, false, true);
    assert_eq!((counters.others(), counters.others()), (None, Some(0)));
    for (look, of_machine) in (1..).zip([103, 103, 110]) {
        for group in ["minerva-background", "minerva-background/background-b1"] {
            write(group, 50 * look);
        }
        write("machine", of_machine);
        assert_eq!(counters.others(), Some([3, 0, 7][look as usize - 1]));
    }
    counters.open_all();
    write("machine", 111);
    assert_eq!(counters.others(), Some(1), "nothing was opened anew");
    fs::remove_dir_all(root.path().join("minerva-background")).unwrap();
    counters.open_all();
    write("machine", 113);
    assert_eq!(counters.others(), Some(2), "it has ended");
}

#[test]
fn the_throttle_is_made_to_count_once_the_group_of_the_work_is_there() {
    let root = tempfile::tempdir().unwrap();
    let disks = vec![(DeviceId { major: 8, minor: 0 }, false)];
    let mut counters = Counters::new(root.path(), CgroupVersion::V1, disks, "blkio.throttle");
    let ours = root.path().join("minerva-background/background-b1");
    counters.set_ours(&ours, false, true);
    fs::create_dir_all(&ours).unwrap();
    let knob = ours.join("blkio.throttle.read_bps_device");
    counters.set_ours(&ours, false, true);
    assert_eq!(fs::read_to_string(&knob).unwrap(), format!("8:0 {NO_LIMIT}"));
    fs::remove_file(&knob).unwrap();
    counters.set_ours(&ours, false, true);
    assert!(!knob.exists(), "once");
    let tenants = root.path().join("tenant");
    fs::create_dir(&tenants).unwrap();
    counters.set_ours(&tenants, false, false);
    assert_eq!(fs::read_dir(&tenants).unwrap().count(), 0);
}
