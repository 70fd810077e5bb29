//! Deferred files whose pool or log fails: what was written stays, and is moved or removed once that works again.

use crate::deferred::{
    PATIENCE, assert_tidy, defer, files, flush, is_link, migration, start, until, until_moved, until_told, write,
};
use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, Pool, Request, ask};
use minerva_store::{Deferral, DeferralStep, RedoLog};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The pool's directory of deferred files, from which nothing can be removed; as before when dropped.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn make(place: &PoolFolder) -> Self {
        let at = own(place);
        for options in [&["--bind", at.to_str().unwrap()][..], &["-o", "remount,bind,ro"]] {
            assert!(Command::new("mount").args(options).arg(&at).status().unwrap().success());
        }
        Self(at)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

/// Where deferred files of `stable` lie.
fn own(place: &PoolFolder) -> PathBuf {
    place.pool().join("tenants/web/.deferred")
}

fn log(place: &PoolFolder) -> RedoLog {
    RedoLog::open(&place.pool().join("deferred.db")).unwrap().0
}

/// The one file that was asked for and written before the service was killed, as the log has it.
fn left_by_a_killed_service(place: &PoolFolder, path: &Path, content: &str) -> Deferral {
    let mut service = place.serve();
    let (_, data) = defer(place, path, Pool::Stable).unwrap();
    let mut open = File::create(data).unwrap();
    open.write_all(content.as_bytes()).unwrap();
    service.kill();
    log(place).all().unwrap().remove(0)
}

fn drop_it(place: &PoolFolder, id: u64) -> Result<(), String> {
    match ask(&place.socket(), &Request::Drop { id }).unwrap() {
        Answer::Done { .. } => Ok(()),
        Answer::Refused { why } => Err(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_move_whose_end_fails_is_ended_later_and_not_begun_anew() {
    let (place, target) = start();
    let path = target.join("file");
    let row = left_by_a_killed_service(&place, &path, "text");
    // As after a kill between the exchange and the end of the file in the pool.
    fs::write(target.join("copy"), "text").unwrap();
    let copy_inode = fs::metadata(target.join("copy")).unwrap().ino();
    log(&place).keep(&Deferral { step: DeferralStep::Switching, copy_inode, ..row }).unwrap();
    fs::rename(target.join("copy"), &path).unwrap();
    let read_only = ReadOnly::make(&place);
    let service = place.serve();
    let begun = Instant::now();
    while migration(&place).failed < 4 {
        flush(&place);
        assert!(begun.elapsed() < PATIENCE, "{:?}", files(&place));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(files(&place)[0].step, "switching");
    drop(read_only);
    until_moved(&place);
    assert_eq!((fs::read(&path).unwrap(), is_link(&path)), (b"text".to_vec(), false));
    assert_tidy(&place, &target);
    assert!(service.terminate());
}

/// A disk may have another number after a reboot, and the log has the one of before.
#[test]
fn a_file_goes_to_its_directory_on_a_disk_that_has_another_number_by_now() {
    let (place, target) = start();
    let path = target.join("file");
    let row = left_by_a_killed_service(&place, &path, "text");
    let (device, inode) = row.directory_identity;
    let asked_for = |directory_identity| log(&place).keep(&Deferral { directory_identity, ..row.clone() }).unwrap();
    asked_for((device ^ 1, inode + 1));
    let mut service = place.serve();
    until_told(&place, "is another directory than when it was asked for");
    service.kill();
    assert!(is_link(&path));
    asked_for((device ^ 1, inode));
    let _service = place.serve();
    until_moved(&place);
    assert_eq!((fs::read(&path).unwrap(), is_link(&path)), (b"text".to_vec(), false));
    assert_tidy(&place, &target);
}

#[test]
fn a_file_is_dropped_only_once_it_is_removed() {
    let (place, target) = start();
    let mut service = place.serve();
    let id = write(&place, &target.join("file"), b"text");
    fs::remove_file(target.join("file")).unwrap();
    until(&place, "it is left", |files| files.iter().all(|file| file.step == "left"));
    service.kill();
    let log = log(&place);
    let row = log.all().unwrap().remove(0);
    let file = own(&place).join(&row.source);
    let (source, copy_name) = ("other".into(), ".minerva-other.part".into());
    let of_nobody = log.add(&Deferral { tenant: "gone".to_owned(), source, copy_name, ..row }).unwrap();
    drop(log);
    let read_only = ReadOnly::make(&place);
    let _service = place.serve();
    for (id, why) in [(id, "Read-only file system"), (of_nobody, "its tenant gone is not served")] {
        let refused = drop_it(&place, id).unwrap_err();
        assert!(refused.starts_with("it was not dropped: ") && refused.contains(why), "{refused}");
    }
    assert_eq!((files(&place).len(), fs::read(file).unwrap()), (2, b"text".to_vec()));
    drop(read_only);
    drop_it(&place, id).unwrap();
    assert_eq!((files(&place).len(), fs::read_dir(own(&place)).unwrap().count()), (1, 0));
}

#[test]
fn a_file_whose_row_cannot_be_kept_is_taken_back_and_its_place_is_free() {
    let (place, target) = start();
    assert!(place.serve().terminate());
    // The log takes a new row, and no change of one.
    let trigger = "CREATE TRIGGER refuse BEFORE UPDATE ON deferral BEGIN SELECT RAISE(ABORT, 'a test'); END;";
    let database = place.pool().join("deferred.db");
    assert!(Command::new("sqlite3").arg(&database).arg(trigger).status().unwrap().success());
    let service = place.serve();
    let refused = defer(&place, &target.join("file"), Pool::Stable).unwrap_err();
    assert!(refused.contains("the log of deferred files failed"), "{refused}");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "nothing stands at its place");
    assert_tidy(&place, &target);
    assert!(service.terminate());
    assert_eq!(log(&place).all().unwrap(), []);
}

#[test]
fn what_was_written_to_a_file_that_was_being_put_is_not_removed() {
    // The second was there once, and its link was removed while another was about to take its place.
    for (content, link_inode, kept) in [("text", 0, 1), ("text", 1, 1), ("", 0, 0)] {
        let (place, target) = start();
        let path = target.join("file");
        let row = left_by_a_killed_service(&place, &path, content);
        log(&place).keep(&Deferral { step: DeferralStep::Placing, link_inode, ..row }).unwrap();
        fs::remove_file(&path).unwrap();
        let _service = place.serve();
        let files = files(&place);
        assert!(files.len() == kept && files.iter().all(|file| file.step == "left"), "{files:?}");
        for file in files {
            assert_eq!(fs::read_to_string(file.data).unwrap(), content);
        }
        assert_eq!(fs::read_dir(own(&place)).unwrap().count(), kept);
    }
}
