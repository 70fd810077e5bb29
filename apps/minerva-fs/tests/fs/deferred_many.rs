//! Very many deferred files that cannot move, beside those that can.

use crate::deferred::{defer, files, start, until, write};
use minerva_api::cache::Pool;
use minerva_store::{Deferral, RedoLog};
use std::fs::{self, File};

/// More than a policy is asked about at once.
const WAITING: usize = 1000;
/// More than were ever looked for in the longest pause between two looks.
const LEFT: usize = 150;

#[test]
fn files_of_a_tenant_that_is_not_served_keep_no_others_from_their_disk() {
    let (place, target) = start();
    let mut service = place.serve();
    let (_, data) = defer(&place, &target.join("first"), Pool::Stable).unwrap();
    let open = File::create(data).unwrap();
    service.kill();
    drop(open);
    let (log, _) = RedoLog::open(&place.pool().join("deferred.db")).unwrap();
    let row = log.all().unwrap().remove(0);
    for number in 0..WAITING {
        let (name, source) = (number.to_string().into(), format!("source-{number}").into());
        let copy_name = format!(".minerva-source-{number}.part").into();
        let (tenant, added_unix_ms) = ("gone".to_owned(), row.added_unix_ms - 1000);
        log.add(&Deferral { tenant, name, source, copy_name, added_unix_ms, ..row.clone() }).unwrap();
    }
    drop(log);
    let _service = place.serve();
    write(&place, &target.join("file"), b"text");
    until(&place, "what is served moves", |files| files.len() == WAITING);
    assert_eq!(fs::read(target.join("file")).unwrap(), b"text");
    until(&place, "the others say why", |files| files.iter().all(|file| file.why == "its tenant gone is not served"));
}

#[test]
fn however_many_files_are_left_the_link_of_any_is_found_once_it_is_back() {
    let (place, target) = start();
    let mut service = place.serve();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for number in 0..LEFT {
        let name = number.to_string();
        let (_, data) = defer(&place, &target.join(&name), Pool::Stable).unwrap();
        let open = File::create(data).unwrap();
        fs::rename(target.join(&name), elsewhere.join(&name)).unwrap();
        drop(open);
    }
    until(&place, "all are left", |files| files.iter().all(|file| file.step == "left"));
    let last = (LEFT - 1).to_string();
    fs::rename(elsewhere.join(&last), target.join("last")).unwrap();
    until(&place, "the last moves", |files| files.len() == LEFT - 1);
    assert!(!target.join("last").is_symlink());
    // What is back by the next start is found as well, and nobody waits for it.
    service.kill();
    fs::rename(elsewhere.join("7"), target.join("7")).unwrap();
    let _service = place.serve();
    assert!(files(&place).len() >= LEFT - 2);
    until(&place, "it moves", |files| files.len() == LEFT - 2);
    assert!(!target.join("7").is_symlink());
}
