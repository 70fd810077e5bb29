//! What the demonstration needs of the machine, looked at before minutes are spent on building. `minerva-lab` looks again, more
//! closely; this must not need it.

use crate::packages::is_root;
use crate::shell::{is_installed, program};
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

/// Says all that is missing for the demonstration, with what to do.
pub(crate) fn check_for_demo() -> Result<()> {
    let needs = [
        (
            is_root() || is_installed("sudo"),
            "root: install sudo, by which it then runs the laboratory, or run it as root",
        ),
        (
            Path::new("/dev/fuse").exists(),
            "FUSE: run `modprobe fuse`, or start the container with `--device /dev/fuse`",
        ),
        (
            Path::new("/dev/loop-control").exists(),
            "loop devices: run `modprobe loop`, or start the container with `--device /dev/loop-control`",
        ),
        (has_bfq(), "the elevator bfq: run `modprobe bfq`, or boot a kernel that has CONFIG_IOSCHED_BFQ"),
        (
            has_disk_controller(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()),
            "the io controller of cgroup v2 or the blkio controller of v1: mount one, or start the container with the host's \
             /sys/fs/cgroup, writable",
        ),
    ];
    let missing: Vec<String> =
        needs.iter().filter(|(there, _)| !there).map(|(_, what)| format!("\n- {what}")).collect();
    if !missing.is_empty() {
        bail!("the demonstration cannot run here; it needs{}", missing.concat());
    }
    Ok(())
}

/// Every disk offers it, or the module can be loaded.
fn has_bfq() -> bool {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut offers = disks.map(|disk| fs::read_to_string(disk.path().join("queue/scheduler")).unwrap_or_default());
    offers.any(|text| text.contains("bfq"))
        // The second for users who are not root, whose PATH may not have it.
        || ["modprobe", "/sbin/modprobe"].iter().any(|modprobe| {
            program(modprobe).args(["--dry-run", "--quiet", "bfq"]).status().is_ok_and(|status| status.success())
        })
}

fn has_disk_controller(mounts: &str) -> bool {
    mounts.lines().any(|line| {
        let Some((place, kind)) = line.split_once(" - ") else { return false };
        let mut kind = kind.split_whitespace();
        match (kind.next(), place.split_whitespace().nth(4)) {
            (Some("cgroup"), _) => kind.nth(1).is_some_and(|options| options.split(',').any(|one| one == "blkio")),
            (Some("cgroup2"), Some(at)) => fs::read_to_string(Path::new(at).join("cgroup.controllers"))
                .is_ok_and(|text| text.split_whitespace().any(|one| one == "io")),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::has_disk_controller;

    #[test]
    fn the_controller_is_found_among_the_mounts() {
        let v1 = "36 28 0:32 / /sys/fs/cgroup/blkio rw,nosuid - cgroup cgroup rw,blkio\n";
        assert!(has_disk_controller(v1));
        assert!(!has_disk_controller(&v1.replace("rw,blkio", "rw,memory")));
        assert!(!has_disk_controller("36 28 0:32 / /nonexistent rw - cgroup2 cgroup2 rw\nbroken\n"));
    }
}
