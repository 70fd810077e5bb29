//! What a guest's service does, without a guest: one service serves the trees of a machine, another moves files out of them as in that machine.
//! What a real one adds is in `tests/machine/`.

use crate::deferred::{PATIENCE, assert_tidy, files, flush, is_link, try_defer, until, until_moved, write};
use crate::pool_folder::{PoolFolder, Service, TENANT};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const IDS: u32 = 1_800_000;

/// The host with its service, the guest's place, and where its files are to go.
pub(crate) fn start() -> (PoolFolder, Service, PoolFolder, PathBuf) {
    let host = PoolFolder::new(&format!("machine = \"vm\"\nids = {IDS}"));
    let service = host.serve();
    let guest = PoolFolder { folder: tempfile::Builder::new().prefix("minerva-test-fs-").tempdir().unwrap() };
    let (path, trees) = (guest.folder.path().display(), host.folder.path().join("mount").join(TENANT));
    let text = format!(
        "[server]\nrole = \"guest\"\nmount = \"{}\"\nruntime = \"{path}/run\"\n[pools.stable]\npath = \"{path}/log\"\n\
         [migration]\ndaemon = \"{path}/nobody.sock\"\n",
        trees.display()
    );
    fs::write(guest.config(), text).unwrap();
    let target = guest.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    (host, service, guest, target)
}

#[test]
fn a_guests_file_is_its_users_waits_unasked_and_is_whole_whoever_comes_while_it_moves() {
    let (host, _service, guest, target) = start();
    let _mover = guest.serve();
    let path = target.join("file");
    write(&guest, &path, &vec![1; 24 << 20]);
    std::thread::sleep(Duration::from_secs(4));
    assert!(is_link(&path), "it moved though nobody said that its disk is quiet");
    assert!(files(&guest)[0].why.contains("not known"), "{:?}", files(&guest));
    // Writers come and go all the while, and none of what they write is lost.
    let begun = Instant::now();
    let mut written = 0_u32;
    while is_link(&path) && begun.elapsed() < PATIENCE {
        flush(&guest);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&written.to_le_bytes()).unwrap();
        written += 1;
        drop(file);
        std::thread::sleep(Duration::from_millis(u64::from(written) * 20));
    }
    assert!(!is_link(&path), "it never moved: {:?}", files(&guest));
    let mut data = Vec::new();
    fs::File::open(&path).unwrap().read_to_end(&mut data).unwrap();
    let tail: Vec<u8> = (0..written).flat_map(u32::to_le_bytes).collect();
    assert_eq!(data.len(), (24 << 20) + tail.len(), "after {written} writes");
    assert!(data.ends_with(&tail) && data[..24 << 20].iter().all(|byte| *byte == 1));
    assert_eq!(path.metadata().unwrap().uid(), 0);
    assert_tidy(&host, &target);
}

#[test]
fn whoever_has_a_guests_file_open_keeps_it_in_the_pool_and_whoever_comes_late_is_sent_to_its_place() {
    let (host, _service, guest, target) = start();
    let _mover = guest.serve();
    let path = target.join("file");
    write(&guest, &path, b"content");
    let data = fs::read_link(&path).unwrap();
    // By this one knows the file, not its name, as a guest's kernel does that has walked to it.
    let known = openat(CWD, &data, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let reader = fs::File::open(&path).unwrap();
    until(&guest, "it is open", |files| files.iter().any(|file| file.why.contains("open")));
    assert!(is_link(&path));
    drop(reader);
    until_moved(&guest);
    assert_eq!(fs::read(&path).unwrap(), b"content");
    let by_number = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&known));
    let refused = fs::File::open(by_number).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::STALE.raw_os_error()), "{refused}");
    let refused = fs::symlink_metadata(&data).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::STALE.raw_os_error()), "{refused}");
    // A name that never was is just not there, so that files can be made.
    let never = fs::symlink_metadata(host.stable().join(".deferred/never")).unwrap_err();
    assert_eq!(never.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn while_the_host_is_away_no_link_is_taken_for_one_to_nothing() {
    let (host, mut service, guest, target) = start();
    let _mover = guest.serve();
    let path = target.join("file");
    write(&guest, &path, b"content");
    service.kill();
    flush(&guest);
    std::thread::sleep(Duration::from_secs(3));
    assert!(is_link(&path), "the link is gone");
    assert_eq!(files(&guest).len(), 1);
    assert!(try_defer(&guest, &target.join("other")).is_ok_and(|answer| format!("{answer:?}").contains("Refused")));
    let _service = host.serve();
    until_moved(&guest);
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_tidy(&host, &target);
}

#[test]
fn what_is_no_tree_of_a_host_is_not_taken_for_an_empty_one_and_a_host_defers_nothing_for_a_machine() {
    let (host, _service, guest, target) = start();
    let answer = try_defer(&host, &target.join("file")).unwrap();
    assert!(format!("{answer:?}").contains("is a virtual machine"), "{answer:?}");
    let text = fs::read_to_string(guest.config()).unwrap();
    let trees = host.folder.path().join("mount").join(TENANT);
    let empty = guest.folder.path().join("empty");
    fs::create_dir_all(empty.join("stable")).unwrap();
    fs::create_dir_all(empty.join("temporary")).unwrap();
    fs::write(guest.config(), text.replace(trees.to_str().unwrap(), empty.to_str().unwrap())).unwrap();
    let output = guest.run(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("is no tree of the host: mount -t virtiofs minerva"), "{said}");
}
