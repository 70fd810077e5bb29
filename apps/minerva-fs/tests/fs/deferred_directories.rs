//! Deferred files whose directory is renamed, moved, removed or replaced while they wait, or is on a disk that is not there.

use crate::deferred::{assert_tidy, defer, files, is_link, start, until, until_moved, until_told, write};
use crate::deferred_places::Other;
use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, DeferredFile, Pool, Request, ask};
use minerva_store::{Deferral, DeferralStep, RedoLog};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn drop_it(place: &PoolFolder, id: u64) -> Result<(), String> {
    match ask(&place.socket(), &Request::Drop { id }).unwrap() {
        Answer::Done { .. } => Ok(()),
        Answer::Refused { why } => Err(why),
        other => panic!("{other:?}"),
    }
}

fn waiting_in(place: &PoolFolder, directory: &Path) -> Vec<DeferredFile> {
    match ask(&place.socket(), &Request::Deferred { directory: Some(directory.to_owned()) }).unwrap() {
        Answer::Deferred { files } => files,
        other => panic!("{other:?}"),
    }
}

fn until_left(place: &PoolFolder) {
    until(place, "it is left", |files| files.iter().all(|file| file.step == "left"));
}

#[test]
fn a_directory_that_was_renamed_or_is_in_one_that_was_is_followed_whatever_has_the_old_name() {
    for (below, is_replaced) in [("", false), ("", true), ("a/b", false)] {
        let (place, target) = start();
        fs::create_dir_all(target.join(below)).unwrap();
        let mut service = place.serve();
        let (_, data) = defer(&place, &target.join(below).join("file"), Pool::Stable).unwrap();
        let open = File::create(&data).unwrap();
        let renamed = target.with_file_name("renamed");
        fs::rename(&target, &renamed).unwrap();
        if is_replaced {
            fs::create_dir(&target).unwrap();
        }
        // Also over a restart.
        service.kill();
        drop(open);
        let _service = place.serve();
        let directory = renamed.join(below);
        fs::write(directory.join("file"), "text").unwrap();
        until_moved(&place);
        assert!(!is_link(&directory.join("file")) && fs::read(directory.join("file")).unwrap() == b"text");
        assert_eq!(target.exists(), is_replaced);
        assert_tidy(&place, &directory);
    }
}

#[test]
fn a_directory_that_was_moved_elsewhere_leaves_its_files_until_somebody_says_where_it_is() {
    let (place, target) = start();
    let mut service = place.serve();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    write(&place, &target.join("file"), b"text");
    let new = elsewhere.join("data");
    fs::rename(&target, &new).unwrap();
    until_left(&place);
    let left = files(&place).remove(0);
    assert!(left.why.contains("was removed, or moved elsewhere"), "{left:?}");
    assert_eq!(fs::read(new.join("file")).unwrap(), b"text", "links in it lead to the file as before");
    service.kill();
    let _service = place.serve();
    assert_eq!(files(&place)[0].step, "left");
    assert!(waiting_in(&place, &elsewhere).is_empty(), "it is not looked for in what is below");
    let found = waiting_in(&place, &new);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].path, new.join("file").to_str().unwrap());
    until_moved(&place);
    assert!(!is_link(&new.join("file")) && fs::read(new.join("file")).unwrap() == b"text");
    assert_tidy(&place, &new);
}

#[test]
fn files_of_a_directory_that_was_removed_are_kept_until_they_are_dropped() {
    let (place, target) = start();
    let _service = place.serve();
    let kept = place.folder.path().join("kept");
    let ids = ["one", "two"].map(|name| write(&place, &target.join(name), name.as_bytes()));
    fs::remove_dir_all(&target).unwrap();
    until_left(&place);
    let left = files(&place);
    assert_eq!(left.len(), 2);
    fs::copy(&left[0].data, &kept).unwrap();
    assert_eq!(fs::read(&kept).unwrap(), b"one");
    for id in ids {
        drop_it(&place, id).unwrap();
    }
    fs::create_dir(&target).unwrap();
    assert_tidy(&place, &target);
}

#[test]
fn a_file_can_be_dropped_as_soon_as_its_directory_is_gone_but_not_where_that_has_another_name() {
    let (place, target) = start();
    let _service = place.serve();
    let (id, data) = defer(&place, &target.join("file"), Pool::Stable).unwrap();
    // As long as somebody has it open no mover looks for the link.
    let _open = File::create(&data).unwrap();
    let renamed = target.with_file_name("renamed");
    fs::rename(&target, &renamed).unwrap();
    let refused = drop_it(&place, id).unwrap_err();
    assert!(refused.contains(&format!("{} still leads to it", renamed.join("file").display())), "{refused}");
    fs::remove_dir_all(&renamed).unwrap();
    drop_it(&place, id).unwrap();
    assert!(files(&place).is_empty());
}

#[test]
fn files_without_links_follow_their_directory_as_those_with_links_do() {
    let (place, target) = start();
    let _service = place.serve();
    let names = ["one", "two", "three"];
    let files: Vec<_> = names.map(|name| defer(&place, &target.join(name), Pool::Stable).unwrap().1).into();
    // As long as somebody has them open no mover looks for the links.
    let open: Vec<_> = files.iter().map(|data| File::create(data).unwrap()).collect();
    names.iter().for_each(|name| fs::remove_file(target.join(name)).unwrap());
    let renamed = target.with_file_name("renamed");
    fs::rename(&target, &renamed).unwrap();
    drop(open);
    until(&place, "all are left, in the directory by its new name", |files| {
        files.iter().all(|file| file.step == "left" && Path::new(&file.path).starts_with(&renamed))
    });
}

#[test]
fn what_was_left_is_not_dropped_once_its_directory_is_back() {
    let (place, target) = start();
    let _service = place.serve();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let id = write(&place, &target.join("file"), b"text");
    fs::rename(&target, elsewhere.join("data")).unwrap();
    until_left(&place);
    fs::rename(elsewhere.join("data"), &target).unwrap();
    // Refused, or moved already.
    drop_it(&place, id).unwrap_err();
    until_moved(&place);
    assert!(!is_link(&target.join("file")) && fs::read(target.join("file")).unwrap() == b"text");
}

#[test]
fn a_directory_whose_disk_is_not_there_keeps_its_files_waiting() {
    let place = PoolFolder::new("");
    let other = Other::mount(place.folder.path().join("other"));
    let _service = place.serve();
    let directory = other.0.join("a/b");
    fs::create_dir_all(&directory).unwrap();
    let id = write(&place, &directory.join("file"), b"text");
    // A part of its path is on another one.
    let hidden = Other::mount(other.0.clone());
    fs::create_dir(other.0.join("a")).unwrap();
    until_told(&place, "its directory");
    assert_eq!(files(&place)[0].step, "waiting");
    let refused = drop_it(&place, id).unwrap_err();
    assert!(refused.contains("still leads to it"), "{refused}");
    hidden.unmount();
    until_moved(&place);
    assert!(!is_link(&directory.join("file")) && fs::read(directory.join("file")).unwrap() == b"text");
}

/// What a kill in the middle of a move left, on a disk that has another number after the reboot.
#[test]
fn a_move_that_a_reboot_ended_goes_on_where_the_disk_has_another_number_since() {
    for is_exchanged in [false, true] {
        let (place, target) = start();
        let path = target.join("file");
        let mut service = place.serve();
        let (_, data) = defer(&place, &path, Pool::Stable).unwrap();
        let open = File::create(&data).unwrap();
        fs::write(&data, "text").unwrap();
        service.kill();
        drop(open);
        let log = RedoLog::open(&place.pool().join("deferred.db")).unwrap().0;
        let row = log.all().unwrap().remove(0);
        let copy = target.join(&row.copy_name);
        fs::write(&copy, "text").unwrap();
        let copy_inode = fs::metadata(&copy).unwrap().ino();
        if is_exchanged {
            fs::rename(&path, target.join("link")).unwrap();
            fs::rename(&copy, &path).unwrap();
            fs::rename(target.join("link"), &copy).unwrap();
        }
        let (device, inode) = row.directory_identity;
        let directory_identity = (device ^ 1, inode);
        log.keep(&Deferral { step: DeferralStep::Switching, copy_inode, directory_identity, ..row }).unwrap();
        drop(log);
        let service = place.serve();
        until_moved(&place);
        assert_eq!((fs::read(&path).unwrap(), is_link(&path)), (b"text".to_vec(), false));
        assert_tidy(&place, &target);
        assert!(service.terminate());
    }
}
