//! What the doctor finds in a pool and at its mounts.

use crate::deferred::{defer, files, until_moved, until_told};
use crate::pool_folder::{PoolFolder, is_mounted};
use minerva_api::cache::Pool;
use rustix::fs::{CWD, Timespec, Timestamps};
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::path::PathBuf;

/// Of each thing that was looked at, what was found.
fn findings(place: &PoolFolder) -> Vec<(String, String)> {
    let output = place.run(&["doctor", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let finding = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["is_good"], true);
        (value["what"].as_str().unwrap().to_owned(), value["detail"].as_str().unwrap().to_owned())
    };
    String::from_utf8(output.stdout).unwrap().lines().map(finding).collect()
}

fn of<'a>(findings: &'a [(String, String)], what: &str) -> Vec<&'a str> {
    findings.iter().filter(|finding| finding.0 == what).map(|finding| finding.1.as_str()).collect()
}

/// A file that does not move, as it has two names in the pool: its place, and where it lies.
fn waiting_file(place: &PoolFolder) -> (PathBuf, PathBuf) {
    let target = place.folder.path().join("waits");
    let data = defer(place, &target, Pool::Stable).unwrap().1;
    fs::write(&data, "text").unwrap();
    fs::hard_link(&data, place.stable().join("second")).unwrap();
    until_told(place, "it has 2 names in the pool");
    (target, data)
}

#[test]
fn waiting_files_orphans_and_how_quota_is_kept_are_told_with_and_without_a_service() {
    let place = PoolFolder::new("");
    let mut service = place.serve();
    let (target, _) = waiting_file(&place);
    let found = findings(&place);
    assert!(of(&found, "quota")[0].contains("; a walk finds the same"), "{found:?}");
    assert!(of(&found, "service")[0].contains("1 tenants are served"), "{found:?}");
    let deferred = of(&found, "deferred");
    let waits = format!("1 files of 0 MiB wait for migration; longest {}", target.display());
    assert!(deferred[0].contains(&waits) && deferred[0].contains("it has 2 names"), "{deferred:?}");
    assert!(of(&found, "orphan").is_empty() && of(&found, "stale mount").is_empty(), "{found:?}");
    // What no log knows is an orphan, unless it may be on its way in.
    let folder = place.pool().join("tenants/web/.deferred");
    for (name, age_seconds) in [("forgotten", 3600), ("just-made", 0)] {
        fs::write(folder.join(name), "text").unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
        let time = Timespec { tv_sec: now - age_seconds, tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, folder.join(name), &times, rustix::fs::AtFlags::empty()).unwrap();
    }
    let found = findings(&place);
    let orphans = of(&found, "orphan");
    assert!(orphans.len() == 1 && orphans[0].contains("/forgotten is in no log"), "{found:?}");
    assert!(of(&found, "quota")[0].contains("bytes counted"), "what was put there by hand was not counted: {found:?}");
    service.kill();
    let found = findings(&place);
    assert!(of(&found, "service")[0].starts_with("none answers"), "{found:?}");
    assert!(of(&found, "deferred")[0].starts_with("1 files wait for migration until the service runs"), "{found:?}");
    assert_eq!(of(&found, "orphan").len(), 1, "{found:?}");
    assert_eq!(of(&found, "stale mount").len(), 2, "{found:?}");
}

/// What a doctor leaves that is killed while it tries to serve.
fn interrupted(place: &PoolFolder, process: &str) -> PathBuf {
    let own = place.pool().join(format!(".doctor-{process}"));
    let at = own.join("at");
    fs::create_dir_all(&at).unwrap();
    fs::create_dir(own.join("below")).unwrap();
    fs::write(own.join("below/file"), "text").unwrap();
    let fuse = fs::File::options().read(true).write(true).open("/dev/fuse").unwrap();
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", std::os::fd::AsRawFd::as_raw_fd(&fuse));
    let options = std::ffi::CString::new(options).unwrap();
    mount("minerva-doctor", &at, "fuse", MountFlags::empty(), options.as_c_str()).unwrap();
    own
}

#[test]
fn what_an_interrupted_doctor_left_is_removed_by_the_next_and_by_a_start() {
    let place = PoolFolder::new("");
    drop(place.serve());
    let judge = |own: &PathBuf| {
        assert!(!is_mounted(&own.join("at")), "it is still mounted");
        assert!(!own.exists(), "it is still there");
    };
    let left = interrupted(&place, "1");
    // One that is at work.
    let at_work = place.pool().join(".doctor-2");
    fs::create_dir(&at_work).unwrap();
    let used = fs::File::open(&at_work).unwrap();
    rustix::fs::flock(&used, rustix::fs::FlockOperation::LockExclusive).unwrap();
    findings(&place);
    judge(&left);
    assert!(at_work.exists());
    let left = interrupted(&place, "3");
    let service = place.serve();
    judge(&left);
    assert!(at_work.exists());
    assert!(service.terminate());
}

#[test]
fn trees_and_memory_of_tenants_that_the_file_does_not_name_are_told() {
    let place = PoolFolder::with("", "[tenants.other]");
    let mut service = place.serve();
    let other = place.folder.path().join("mount/other");
    fs::write(other.join("temporary/kept"), "in memory").unwrap();
    service.kill();
    place.write("", "");
    let found = findings(&place);
    let stale = of(&found, "stale mount");
    assert!(stale.iter().any(|told| told.contains("umount -l") && told.contains("other/stable")), "{found:?}");
    let orphans = of(&found, "orphan");
    for part in ["pool/tenants/other belongs to no tenant", "run/temporary/other belongs to no tenant in the file"] {
        assert!(orphans.iter().any(|told| told.contains(part)), "{part}: {found:?}");
    }
}

#[test]
fn files_of_what_may_have_been_a_virtual_machine_are_not_called_nobodys() {
    let place = PoolFolder::new("");
    drop(place.serve());
    let folder = place.pool().join("tenants/machine/.deferred");
    fs::create_dir_all(&folder).unwrap();
    let file = fs::File::create(folder.join("file")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    let found = findings(&place);
    let orphans = of(&found, "orphan");
    assert!(orphans.len() == 1 && orphans[0].contains("they may be in that machine's"), "{orphans:?}");
}

#[test]
fn files_of_a_tenant_that_the_file_no_longer_names_are_told_with_its_name_and_never_called_nobodys() {
    let place = PoolFolder::new("");
    let mut service = place.serve();
    let (target, data) = waiting_file(&place);
    service.kill();
    place.write_tables("[tenants.other]");
    let judge = || {
        let found = findings(&place);
        let orphans = of(&found, "orphan");
        assert!(orphans.iter().all(|told| !told.contains("remove")), "{orphans:?}");
        let told = orphans.iter().find(|orphan| orphan.contains("1 deferred files wait in its trees"));
        assert!(told.is_some_and(|told| told.contains("name tenant `web` in the file again")), "{orphans:?}");
    };
    judge();
    let log = place.folder.path().join("log");
    let service = place.wait_with_log(place.command(), &log);
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("the file does not name `web`, of which 1 deferred files wait: it is served"), "{said}");
    let waiting = files(&place);
    assert!(waiting.len() == 1 && waiting[0].data == data.to_str().unwrap(), "{waiting:?}");
    judge();
    // Named again, it moves.
    place.write("", "[tenants.other]");
    assert!(place.run(&["reload"]).status.success());
    fs::remove_file(place.stable().join("second")).unwrap();
    until_moved(&place);
    assert_eq!(fs::read_to_string(&target).unwrap(), "text");
    assert!(service.terminate());
}
