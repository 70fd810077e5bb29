//! Deferred files whose place changes: links that go, disks that fill, users who may no longer, and kills at each step.

use crate::deferred::{
    PATIENCE, assert_tidy, defer, files, flush, is_link, start, until, until_moved, until_told, write,
};
use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, Pool, Request, ask};
use rustix::fs::{CWD, RenameFlags, XattrFlags, renameat_with};
use std::ffi::CStr;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn a_link_that_was_renamed_is_followed_within_its_directory() {
    let (place, target) = start();
    let _service = place.serve();
    let (_, data) = defer(&place, &target.join("old"), Pool::Stable).unwrap();
    let file = File::create(&data).unwrap();
    fs::rename(target.join("old"), target.join("new")).unwrap();
    drop(file);
    until_moved(&place);
    assert!(!target.join("old").exists() && !is_link(&target.join("new")));
    assert!(target.join("new").exists());
}

#[test]
fn a_link_that_went_elsewhere_still_leads_to_the_file_and_moves_once_it_is_back() {
    let (place, target) = start();
    let mut service = place.serve();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let id = write(&place, &target.join("file"), b"text");
    fs::rename(target.join("file"), elsewhere.join("file")).unwrap();
    until(&place, "it is left", |files| files.iter().any(|file| file.step == "left"));
    assert_eq!(fs::read(elsewhere.join("file")).unwrap(), b"text");
    // Also over a restart.
    service.kill();
    let _service = place.serve();
    assert_eq!(files(&place)[0].step, "left");
    assert_eq!(fs::read(elsewhere.join("file")).unwrap(), b"text");
    fs::rename(elsewhere.join("file"), target.join("file")).unwrap();
    let begun = Instant::now();
    while !files(&place).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", files(&place));
        std::thread::sleep(Duration::from_millis(20));
        flush(&place);
    }
    assert_eq!(fs::read(target.join("file")).unwrap(), b"text");
    assert!(!is_link(&target.join("file")));
    assert!(matches!(ask(&place.socket(), &Request::Drop { id }).unwrap(), Answer::Refused { .. }));
}

#[test]
fn what_took_the_links_place_stays_and_what_is_left_can_be_dropped() {
    let (place, target) = start();
    let _service = place.serve();
    let (replaced, removed) = (target.join("replaced"), target.join("removed"));
    let ids = [write(&place, &replaced, b"old"), write(&place, &removed, b"old")];
    fs::remove_file(&removed).unwrap();
    fs::write(target.join("new"), "newer").unwrap();
    fs::rename(target.join("new"), &replaced).unwrap();
    until(&place, "both are left", |files| files.iter().all(|file| file.step == "left"));
    assert_eq!(fs::read(&replaced).unwrap(), b"newer");
    assert!(!removed.exists());
    for id in ids {
        assert_eq!(ask(&place.socket(), &Request::Drop { id }).unwrap(), Answer::Done { files: 1 });
    }
    assert_tidy(&place, &target);
}

#[test]
fn a_place_that_is_replaced_while_files_move_is_never_lost() {
    let (place, target) = start();
    let _service = place.serve();
    // Somebody replaces and removes links at drawn moments, as files move.
    let random = &mut fastrand::Rng::with_seed(3);
    for number in 0..40_u32 {
        let path = target.join(number.to_string());
        write(&place, &path, &vec![1; random.usize(..2_000_000)]);
        flush(&place);
        std::thread::sleep(Duration::from_micros(random.u64(..30_000)));
        fs::write(target.join("mine"), number.to_le_bytes()).unwrap();
        fs::rename(target.join("mine"), &path).unwrap();
    }
    until(&place, "all are moved or left", |files| files.iter().all(|file| file.step == "left"));
    for number in 0..40_u32 {
        assert_eq!(fs::read(target.join(number.to_string())).unwrap(), number.to_le_bytes(), "{number}");
    }
    for file in files(&place) {
        ask(&place.socket(), &Request::Drop { id: file.id }).unwrap();
    }
    assert_tidy(&place, &target);
}

#[test]
fn a_second_file_for_one_place_replaces_the_first() {
    let (place, target) = start();
    let _service = place.serve();
    let path = target.join("file");
    fs::write(&path, "of before").unwrap();
    write(&place, &path, b"first");
    write(&place, &path, b"second");
    assert_eq!(files(&place).len(), 1);
    // One whose link was renamed before is not the one that is replaced.
    fs::rename(&path, target.join("renamed")).unwrap();
    write(&place, &path, b"third");
    assert_eq!(files(&place).len(), 2);
    until_moved(&place);
    assert_eq!(fs::read(target.join("renamed")).unwrap(), b"second");
    assert_eq!(fs::read(&path).unwrap(), b"third");
    assert_tidy(&place, &target);
}

/// A file system of a test's own that is full, read-only or gone at will.
pub(crate) struct Other(pub(crate) PathBuf);

impl Other {
    pub(crate) fn mount(at: PathBuf) -> Self {
        Self::mount_with(at, c"size=4m")
    }

    fn mount_with(at: PathBuf, options: &CStr) -> Self {
        fs::create_dir_all(&at).unwrap();
        rustix::mount::mount("minerva-test", &at, "tmpfs", rustix::mount::MountFlags::empty(), Some(options)).unwrap();
        Self(at)
    }

    fn remount(&self, flags: rustix::mount::MountFlags) {
        rustix::mount::mount_remount(&self.0, flags, c"size=4m").unwrap();
    }

    pub(crate) fn unmount(&self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::empty()).unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_place_that_is_full_read_only_or_gone_keeps_the_file_in_the_pool() {
    let place = PoolFolder::new("");
    let other = Other::mount(place.folder.path().join("other"));
    let _service = place.serve();
    let path = other.0.join("file");
    let content = vec![5; 3 << 20];
    write(&place, &path, &content);
    // Full.
    fs::write(other.0.join("filler"), vec![0; 3 << 20]).unwrap();
    until_told(&place, "its disk has no room for it");
    // Read-only.
    other.remount(rustix::mount::MountFlags::RDONLY);
    until_told(&place, "its disk is read-only");
    other.remount(rustix::mount::MountFlags::empty());
    assert_eq!(fs::read(&path).unwrap(), content, "it reads through the link all the while");
    fs::remove_file(other.0.join("filler")).unwrap();
    until_moved(&place);
    assert_eq!(fs::read(&path).unwrap(), content);
    // Gone, and something else in its place.
    write(&place, &path, &content);
    let hidden = Other::mount(other.0.clone());
    until_told(&place, "is another directory than when it was asked for");
    assert!(!path.exists());
    hidden.unmount();
    until_moved(&place);
    assert!(!is_link(&path) && fs::read(&path).unwrap() == content);
}

#[test]
fn a_file_whose_attributes_have_no_place_there_stays() {
    let place = PoolFolder::new("");
    // Attributes of users have room for as many inodes there as are free, of 1 KiB each; before Linux 6.6 none.
    let other = Other::mount_with(place.folder.path().join("other"), c"size=4m,nr_inodes=4");
    let service = place.serve();
    let (_, data) = defer(&place, &other.0.join("file"), Pool::Stable).unwrap();
    fs::write(&data, "text").unwrap();
    rustix::fs::setxattr(&data, "user.large", &[0; 3000], XattrFlags::empty()).unwrap();
    until_told(&place, "its attribute user.large cannot be kept there");
    assert!(service.terminate());
    let names: Vec<_> = fs::read_dir(&other.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file"], "no copy is left");
}

#[test]
fn a_tenant_may_defer_only_where_it_may_write_and_only_into_its_own_tree() {
    let place = PoolFolder::with("user = \"65534\"", "[tenants.other]\nuser = \"1\"");
    let data = place.folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let _service = place.serve();
    let as_nobody = |place: &PoolFolder, path: &Path| {
        let parent = fs::metadata(path.parent().unwrap()).unwrap();
        let line = format!(
            "{{\"ask\":\"defer\",\"path\":\"{}\",\"directory\":[{},{}],\"mode\":420}}\n",
            path.display(),
            parent.dev(),
            parent.ino()
        );
        place.ask_as_nobody(&line)
    };
    let path = data.join("file");
    let refused = as_nobody(&place, &path);
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("Permission denied")), "{refused:?}");
    assert!(!path.exists() && !is_link(&path), "{refused:?}");
    assert_tidy(&place, &data);
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    let Answer::Deferring { data: at, .. } = as_nobody(&place, &path) else { panic!("it may write there now") };
    assert!(at.starts_with(place.stable()), "{}", at.display());
    fs::write(&at, "text").unwrap();
    assert_eq!((fs::metadata(&at).unwrap().uid(), path.symlink_metadata().unwrap().uid()), (65534, 65534));
    // It may no longer: the file stays in the pool.
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    until_told(&place, "its user may not write there any more");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    until_moved(&place);
    assert_eq!(fs::metadata(&path).unwrap().uid(), 65534);
    // Nothing of the directory of deferred files is a tenant's to remove or to rename.
    let Answer::Deferring { data: at, .. } = as_nobody(&place, &path) else { panic!("it may write there still") };
    let own = place.stable().join(".deferred");
    for tried in [fs::rename(&own, place.stable().join("gone")), fs::remove_dir(&own)] {
        assert_eq!(tried.unwrap_err().raw_os_error(), Some(libc::EPERM));
    }
    assert!(at.exists());
}

#[test]
fn where_nothing_is_to_be_deferred_that_is_said() {
    let (place, target) = start();
    place.write("stable = \"8MiB\"", "[migration]\ndefer_up_to = 50");
    let _service = place.serve();
    let refused = |path: &Path, says: &str| {
        let why = defer(&place, path, Pool::Stable).unwrap_err();
        assert!(why.contains(says), "{why}");
    };
    refused(&place.stable().join("file"), "is in the pool itself");
    fs::create_dir(target.join("directory")).unwrap();
    refused(&target.join("directory"), "is a directory");
    let request = |directory| Request::Defer {
        path: target.join("file"),
        directory,
        mode: 0o644,
        pool: Pool::Stable,
        tenant: None,
        bytes: 0,
    };
    let Answer::Refused { why } = ask(&place.socket(), &request((1, 2))).unwrap() else { panic!("another namespace") };
    assert!(why.contains("which has its own mount namespace"), "{why}");
    fs::write(place.stable().join("full"), vec![0; 5 << 20]).unwrap();
    refused(&target.join("file"), "50 % of the pool stable are used");
    assert_tidy(&place, &target);
}

#[test]
fn a_file_that_is_exchanged_by_a_program_is_no_link_of_ours() {
    let (place, target) = start();
    let _service = place.serve();
    let (first, second) = (target.join("first"), target.join("second"));
    write(&place, &first, b"1");
    write(&place, &second, b"2");
    renameat_with(CWD, &first, CWD, &second, RenameFlags::EXCHANGE).unwrap();
    until_moved(&place);
    assert_eq!((fs::read(&first).unwrap(), fs::read(&second).unwrap()), (b"2".to_vec(), b"1".to_vec()));
}

#[test]
fn two_pools_whose_files_go_to_one_directory_do_not_touch_each_others_copies() {
    let (first, target) = start();
    let second = PoolFolder::new("");
    let pools = [&first, &second];
    let _services = pools.map(PoolFolder::serve);
    let content = |pool: usize, round: usize| vec![(pool * 100 + round) as u8; 6_000_000];
    for round in 0..4 {
        // Both logs number their files alike.
        for (number, pool) in pools.into_iter().enumerate() {
            write(pool, &target.join(format!("{number}-{round}")), &content(number, round));
        }
        for pool in pools {
            flush(pool);
        }
        pools.into_iter().for_each(until_moved);
        for number in 0..2 {
            let path = target.join(format!("{number}-{round}"));
            assert!(!is_link(&path) && fs::read(&path).unwrap() == content(number, round), "{}", path.display());
        }
    }
    pools.into_iter().for_each(|pool| assert_tidy(pool, &target));
}
