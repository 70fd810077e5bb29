//! The kernel's own count of a tenant's files, on a disk whose file system has project quotas.

use crate::{TIMEOUT, line};
use minerva_lab::guest::Guest;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first project that is ours.
const FIRST: u32 = 0x4d4e_0000;

/// Programs of the service, stripped so that they fit a guest's memory; nothing, with the reason printed, where one is not there.
fn programs(folder: &Path) -> Option<Vec<PathBuf>> {
    let beside = |name: &str| Path::new(env!("CARGO_BIN_EXE_minerva-fs")).with_file_name(name);
    let mut found = Vec::new();
    for name in ["minerva-fs", "minerva-ctl"] {
        let copy = folder.join(name);
        let stripped = Command::new("strip").arg("-o").arg(&copy).arg(beside(name)).status();
        if !stripped.is_ok_and(|status| status.success()) {
            println!("skipped: needs {name} built beside minerva-fs (cargo build -p {name}), and `strip`");
            return None;
        }
        found.push(copy);
    }
    for name in ["mkfs.ext4", "lsattr", "chattr"] {
        let places = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
        let Some(program) = places.iter().map(|place| Path::new(place).join(name)).find(|path| path.exists()) else {
            println!("skipped: needs {name} (Debian 12: e2fsprogs)");
            return None;
        };
        found.push(program);
    }
    Some(found)
}

#[test]
fn the_kernel_counts_a_tenants_files_by_project_what_differs_is_told_and_nothing_of_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    let Some(programs) = programs(folder.path()) else { return };
    let mut guest = Guest::builder().cpus(2).memory_mib(768).disk_mib(192);
    for module in ["crc32c_generic", "quota_v2", "ext4", "fuse"] {
        guest = guest.with_module(module, "");
    }
    for program in programs {
        guest = guest.with_binary(program);
    }
    let output = match guest.run(include_str!("projects.sh"), TIMEOUT) {
        Ok(output) => output,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    let line = |name: &str| line(&output, name);
    let context = format!("{}\n{}", output.stdout, output.stderr);
    assert_eq!((line("mounted"), line("before")), ("0".into(), "0".into()), "{context}");
    let project = line("project");
    assert!(project.starts_with(&FIRST.to_string()) && project.contains("as project"), "{context}");
    assert_eq!(line("stranger"), "4242 1", "{context}");
    assert_eq!((line("moved"), line("linked"), line("full")), ("0".into(), "0".into(), "1".into()), "{context}");
    assert_eq!((line("same"), line("doctor")), ("0 0".into(), "1 1".into()), "{context}");
    assert_eq!(line("differs"), "1 1", "{context}");
    assert_eq!((line("again"), line("goes-on")), (format!("0 {FIRST}"), format!("{FIRST} {FIRST}")), "{context}");
    let left = line("left");
    let (left, other) = left.split_once(' ').expect(&context);
    assert!(left == "0" && other.parse::<u32>().is_ok_and(|other| other >= FIRST), "{context}");
    assert_eq!((line("off"), line("ended")), ("0 0".into(), "0".into()), "{context}");
}
