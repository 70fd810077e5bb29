//! Tenants that come, use the disk and go, by the hundreds, on the real kernel: what the daemon still holds of them.

use crate::ENFORCE;
use crate::bed::{Bed, Daemon, until};
use std::fs;
use std::process::{Command, Stdio};

/// How many come and go after the first ones; a figure asks for more.
const TENANTS: &str = "MINERVA_CHURN";
const TENANTS_DEFAULT: usize = 600;
/// There at one time.
const AT_ONCE: usize = 100;
/// Before memory is looked at: caches and the allocator have their size by then.
const FIRST: usize = 400;
/// More is kept than caches and the allocator's holes explain.
const GROWTH_KIB_MAX: u64 = 4096;

/// Makes groups, lets a process in each read once, waits until the daemon has seen them, and removes them.
fn come_and_go(bed: &Bed, daemon: &Daemon, number: usize) {
    let groups: Vec<_> = (0..AT_ONCE).map(|index| bed.cgroup(&format!("passing-{number}-{index}"))).collect();
    groups.iter().for_each(|group| fs::create_dir(group).expect("a cgroup"));
    let read = format!("dd if=/dev/{} of=/dev/null bs=64k count=1 iflag=direct status=none", bed.device);
    let script = format!("for group do sh -c 'echo $$ > \"$0\"/cgroup.procs; exec {read}' \"$group\"; done");
    let readers = Command::new("sh").args(["-c", &script, "sh"]).args(&groups).stderr(Stdio::null()).status();
    assert!(readers.expect("a shell").success());
    daemon.pass_slices(2);
    for group in &groups {
        until("the group can be removed", || fs::remove_dir(group).is_ok());
    }
}

fn resident_kib(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).expect("it runs");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    resident.and_then(|kib| kib.trim().parse().ok()).expect("a number")
}

#[test]
fn tenants_that_came_and_went_leave_nothing_in_the_daemons_memory() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let daemon = bed.start();
    let tenants = std::env::var(TENANTS).ok().and_then(|count| count.parse().ok()).unwrap_or(TENANTS_DEFAULT);
    let batches = FIRST / AT_ONCE..(FIRST + tenants) / AT_ONCE;
    (0..batches.start).for_each(|batch| come_and_go(&bed, &daemon, batch));
    let first = resident_kib(&daemon);
    println!("resident after {FIRST} tenants: {first} KiB");
    for batch in batches {
        come_and_go(&bed, &daemon, batch);
        let passed = (batch + 1) * AT_ONCE;
        if passed.is_multiple_of(2_000) {
            println!("after {passed}: {} KiB", resident_kib(&daemon));
        }
    }
    daemon.until("they are gone", || {
        daemon.status().and_then(|status| status.slice).is_some_and(|slice| slice.tenants.len() == 2)
    });
    let last = resident_kib(&daemon);
    println!("after all of {}: {last} KiB", FIRST + tenants);
    assert!(last < first + GROWTH_KIB_MAX, "{last} KiB after {first}\n{}", daemon.log().len());
}

/// Makes a group of the user's, reads in it and removes it, over and over; each is there for a small part of a slice.
fn go_from_group_to_group(bed: &Bed) -> std::process::Child {
    let user = bed.cgroup("user");
    let read = format!("dd if=/dev/{} of=/dev/null bs=64k count=64 iflag=direct status=none", bed.device);
    let script = format!(
        "n=0; while g={}/$n && mkdir $g && sh -c 'echo $$ > '$g'/cgroup.procs; exec {read}'; do \
         until rmdir $g; do :; done; n=$((n+1)); sleep 0.05; done",
        user.display()
    );
    Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().expect("a shell")
}

#[test]
fn whoever_goes_from_one_brief_group_to_the_next_is_held_down_in_the_next_that_lasts() {
    let Some(mut bed) = Bed::new() else { return };
    if bed.hierarchy.back_end == "bfq-v1" {
        return eprintln!("skipped: needs cgroup v2; on v1 the kernel forgets what removed groups did");
    }
    let user = bed.cgroup("user");
    fs::create_dir(&user).expect("a cgroup");
    bed.hierarchy.make(&user);
    fs::create_dir(user.join("lasting")).expect("a cgroup");
    std::os::unix::fs::chown(&user, Some(1_000), None).expect("root may give a directory away");
    bed.write_config(ENFORCE);
    // Of a slice as it usually is a group is not there for a tenth; and below the parent of named tenants each group is one with all
    // below it.
    let text = fs::read_to_string(bed.config()).expect("the file").replace("slice = \"100ms\"", "slice = \"1s\"");
    let named = format!("parent = \"{}\"", bed.name);
    let text = text.replace(&named, &format!("parent = \"{}/named\"", bed.name));
    fs::write(bed.config(), text).expect("the file");
    let daemon = bed.start();
    let mut hopper = go_from_group_to_group(&bed);
    for tenant in ["sparing", "user/lasting"] {
        bed.start_reader(tenant, 2);
    }
    daemon.until("the user's lasting group pays for the brief ones", || {
        let [sparing, lasting] = ["sparing", "user/lasting"].map(|tenant| bed.weight(tenant));
        lasting < 50 && sparing > lasting
    });
    hopper.kill().and_then(|()| hopper.wait()).expect("an end");
}
