//! Files that are at their place as a link at once and are moved there later: each way in which that can go wrong, and what becomes
//! of the file then.

use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, DeferredFile, MigrationStatus, Pool, Request, ask};
use rustix::fs::{CWD, FallocateFlags, Timespec, Timestamps, XattrFlags};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks for a file, as a service that may end meanwhile answers.
pub(crate) fn try_defer(place: &PoolFolder, path: &Path) -> std::io::Result<Answer> {
    ask(&place.socket(), &request(path, Pool::Stable))
}

pub(crate) fn request(path: &Path, pool: Pool) -> Request {
    let parent = fs::metadata(path.parent().unwrap()).unwrap();
    let directory = (parent.dev(), parent.ino());
    Request::Defer { path: path.to_owned(), directory, mode: 0o644, pool, tenant: None, bytes: 0 }
}

/// Asks for a file; its number and what is to be written.
pub(crate) fn defer(place: &PoolFolder, path: &Path, pool: Pool) -> Result<(u64, PathBuf), String> {
    match ask(&place.socket(), &request(path, pool)).unwrap() {
        Answer::Deferring { id, data } => Ok((id, data)),
        Answer::Refused { why } => Err(why),
        other => panic!("{other:?}"),
    }
}

/// Asks for a file and writes it.
pub(crate) fn write(place: &PoolFolder, path: &Path, data: &[u8]) -> u64 {
    let (id, at) = defer(place, path, Pool::Stable).unwrap();
    fs::write(at, data).unwrap();
    id
}

pub(crate) fn files(place: &PoolFolder) -> Vec<DeferredFile> {
    try_files(place).unwrap()
}

/// What waits, as a service says that may end meanwhile.
pub(crate) fn try_files(place: &PoolFolder) -> Option<Vec<DeferredFile>> {
    match ask(&place.socket(), &Request::Deferred { directory: None }).ok()? {
        Answer::Deferred { files } => Some(files),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn migration(place: &PoolFolder) -> MigrationStatus {
    match ask(&place.socket(), &Request::Status).unwrap() {
        Answer::Status { migration, .. } => migration,
        other => panic!("{other:?}"),
    }
}

/// What waits is to be moved beside others too, so that no test waits for this machine's disk to be quiet.
pub(crate) fn flush(place: &PoolFolder) {
    ask(&place.socket(), &Request::Flush { directory: None }).unwrap();
}

/// Waits until something is so, and asks all the while that files be moved.
pub(crate) fn until(place: &PoolFolder, what: &str, is_so: impl Fn(&[DeferredFile]) -> bool) {
    let begun = Instant::now();
    loop {
        flush(place);
        let files = files(place);
        if is_so(&files) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?} of {}", files.first(), files.len());
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn until_moved(place: &PoolFolder) {
    until(place, "all is moved", <[_]>::is_empty);
}

/// Waits until a file does not move because of something.
pub(crate) fn until_told(place: &PoolFolder, why: &str) {
    until(place, why, |files| files.iter().any(|file| file.why.contains(why)));
}

/// A pool and a directory that files are to go to.
pub(crate) fn start() -> (PoolFolder, PathBuf) {
    let place = PoolFolder::new("");
    let target = place.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    (place, target)
}

pub(crate) fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|shown| shown.is_symlink())
}

/// Nothing is left of moves but the files.
pub(crate) fn assert_tidy(place: &PoolFolder, directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_string_lossy().starts_with(".minerva-"), "{name:?} was left behind");
    }
    for tree in [place.temporary(), place.stable()] {
        let left = fs::read_dir(tree.join(".deferred")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "something was left in the pool");
    }
}

#[test]
fn a_file_is_at_its_place_at_once_and_is_moved_there_later() {
    let (place, target) = start();
    let service = place.serve();
    for pool in [Pool::Stable, Pool::Temporary] {
        let path = target.join(pool.as_str());
        let (_, data) = defer(&place, &path, pool).unwrap();
        assert!(is_link(&path) && data.starts_with(place.folder.path().join("mount")));
        let content: Vec<u8> = (0..3_000_001_u32).map(|at| (at / 3) as u8).collect();
        fs::write(&data, &content).unwrap();
        assert_eq!(fs::read(&path).unwrap(), content, "it reads through the link");
        until_moved(&place);
        assert!(!is_link(&path));
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_tidy(&place, &target);
    }
    assert_eq!(migration(&place).moved_files, 2);
    assert_eq!(place.status().stable.bytes, 0, "the pool has its room back");
    assert!(service.terminate());
}

#[test]
fn what_a_file_that_moved_occupied_is_free_for_the_next() {
    let place = PoolFolder::new("temporary = \"16MiB\"");
    let target = place.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    let service = place.serve();
    let path = target.join("out.bin");
    for number in 0..5 {
        let (_, data) = defer(&place, &path, Pool::Temporary).unwrap();
        fs::write(&data, vec![number; 12 << 20]).unwrap();
        until_moved(&place);
        assert_eq!(fs::read(&path).unwrap(), vec![number; 12 << 20]);
    }
    assert!(service.terminate());
}

#[test]
fn where_a_file_lies_and_what_comes_next_is_explained() {
    let (place, target) = start();
    let _service = place.serve();
    let explained = |path: &Path| match ask(&place.socket(), &Request::Explain { path: path.to_owned() }).unwrap() {
        Answer::Explained { lines } => lines.join("; "),
        other => panic!("{other:?}"),
    };
    fs::write(place.temporary().join("a"), "text").unwrap();
    fs::write(place.stable().join("b"), "text").unwrap();
    let (_, data) = defer(&place, &target.join("c"), Pool::Stable).unwrap();
    let file = File::create(data).unwrap();
    for (path, says) in [
        (place.temporary().join("a"), "lies in memory, in web's `temporary`"),
        (place.stable().join("b"), "lies on the disk of the pool, in web's `stable`"),
        (target.join("c"), "waits in the pool as"),
    ] {
        let said = explained(&path);
        assert!(said.contains(says), "{said}");
    }
    drop(file);
    let refused = ask(&place.socket(), &Request::Explain { path: target.join("nothing") }).unwrap();
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("is not in a pool of yours")), "{refused:?}");
}

#[test]
fn the_rust_client_defers_and_opens_files_of_its_tree() {
    let (place, target) = start();
    let _service = place.serve();
    let path = target.join("file");
    let mut file = minerva_client::cache::Deferral::new(&path).socket(place.socket()).bytes(4).create().unwrap();
    assert!(is_link(&path));
    file.write_all(b"text").unwrap();
    drop(file);
    until_moved(&place);
    assert_eq!(fs::read(&path).unwrap(), b"text");
}

#[test]
fn holes_attributes_lists_times_and_owner_go_along() {
    let (place, target) = start();
    let _service = place.serve();
    let path = target.join("file");
    let (_, data) = defer(&place, &path, Pool::Stable).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&data).unwrap();
    file.set_len(40 << 20).unwrap();
    file.write_all_at(b"begin", 0).unwrap();
    file.write_all_at(&[7; 100_000], (20 << 20) + 17).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 0x1000).unwrap();
    drop(file);
    rustix::fs::setxattr(&data, "user.note", b"kept", XattrFlags::empty()).unwrap();
    // user::rw-, user:65534:r--, group::r--, mask::r--, other::---
    let acl: Vec<u8> = [
        &2_u32.to_le_bytes()[..],
        &[1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff],
        &[2, 0, 4, 0, 0xfe, 0xff, 0, 0],
        &[4, 0, 4, 0, 0xff, 0xff, 0xff, 0xff],
        &[0x10, 0, 4, 0, 0xff, 0xff, 0xff, 0xff],
        &[0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
    ]
    .concat();
    rustix::fs::setxattr(&data, "system.posix_acl_access", &acl, XattrFlags::empty()).unwrap();
    std::os::unix::fs::chown(&data, Some(12), Some(34)).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o4640)).unwrap();
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time(1_000_000_007, 123_456_789), last_modification: time(-5, 987_654_321) };
    rustix::fs::utimensat(CWD, &data, &times, rustix::fs::AtFlags::empty()).unwrap();
    let before = fs::metadata(&data).unwrap();
    until_moved(&place);
    let after = path.symlink_metadata().unwrap();
    assert!(after.is_file());
    let shown = |shown: &fs::Metadata| {
        let (modified, accessed) = ((shown.mtime(), shown.mtime_nsec()), (shown.atime(), shown.atime_nsec()));
        (shown.len(), shown.mode(), shown.uid(), shown.gid(), modified, accessed)
    };
    assert_eq!(shown(&after), shown(&before));
    assert!(after.blocks() * 512 < 1 << 20, "{} blocks: holes were filled", after.blocks());
    let mut value = [0; 100];
    let length = rustix::fs::getxattr(&path, "user.note", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"kept");
    let length = rustix::fs::getxattr(&path, "system.posix_acl_access", &mut value[..]).unwrap();
    assert_eq!(value[..length], acl);
    let content = fs::read(&path).unwrap();
    assert!(content[..20 << 20].iter().all(|byte| *byte == 0), "the hole at the beginning is one");
    assert!(content[(20 << 20) + 17..][..100_000].iter().all(|byte| *byte == 7));
}

#[test]
fn whatever_is_written_arrives_as_it_was() {
    let (place, target) = start();
    let _service = place.serve();
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let random = &mut fastrand::Rng::with_seed(seed);
    for round in 0..6 {
        let mut written = Vec::new();
        for number in 0..8 {
            let path = target.join(format!("{round}-{number}"));
            let (_, data) = defer(&place, &path, if random.bool() { Pool::Stable } else { Pool::Temporary }).unwrap();
            let file = OpenOptions::new().write(true).open(data).unwrap();
            let mut expected = vec![0; random.usize(..3_000_000)];
            file.set_len(expected.len() as u64).unwrap();
            for _ in 0..random.usize(..6) {
                let at = random.usize(..=expected.len());
                let length = random.usize(..=(expected.len() - at).min(200_000));
                expected[at..at + length].fill(random.u8(1..));
                file.write_all_at(&expected[at..at + length], at as u64).unwrap();
            }
            written.push((path, expected));
        }
        until_moved(&place);
        for (path, expected) in written {
            assert!(!is_link(&path) && fs::read(&path).unwrap() == expected, "{} of seed {seed}", path.display());
        }
    }
    assert_tidy(&place, &target);
}

#[test]
fn who_has_it_open_keeps_it_and_what_they_write_arrives() {
    let (place, target) = start();
    let _service = place.serve();
    let path = target.join("file");
    let (_, data) = defer(&place, &path, Pool::Stable).unwrap();
    let mut file = File::create(&data).unwrap();
    file.write_all(b"first").unwrap();
    until_told(&place, "a program has it open");
    assert!(is_link(&path));
    file.write_all(b", last").unwrap();
    drop(file);
    // A mapping is a user like any other, though nothing is open.
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let both = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
    // SAFETY: a new mapping of a file of eleven bytes; written and unmapped below.
    let memory = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, both, rustix::mm::MapFlags::SHARED, &file, 0) };
    let memory = memory.unwrap().cast::<u8>();
    drop(file);
    until_told(&place, "a program has it open");
    // SAFETY: within the mapping above, which nobody else uses.
    unsafe { memory.write(b'F') };
    // SAFETY: as above; it is not used any more.
    unsafe { rustix::mm::munmap(memory.cast(), 4096) }.unwrap();
    until_moved(&place);
    assert_eq!(fs::read(&path).unwrap(), b"First, last");
}

#[test]
fn programs_that_open_and_write_while_files_move_lose_nothing() {
    let (place, target) = start();
    let _service = place.serve();
    for number in 0..4 {
        let path = target.join(number.to_string());
        write(&place, &path, &vec![0; 2_000_000]);
        // Numbers are appended by path, wherever it leads at the moment.
        let appended = 300_u32;
        for next in 0..appended {
            let mut file =
                OpenOptions::new().append(true).open(&path).unwrap_or_else(|error| panic!("{next}: {error}"));
            file.write_all(&next.to_le_bytes()).unwrap();
            drop(file);
            if next % 10 == 0 {
                flush(&place);
                std::thread::sleep(Duration::from_millis(3));
            }
        }
        until_moved(&place);
        let content = fs::read(&path).unwrap();
        let numbers = content[2_000_000..].chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
        assert_eq!(numbers.collect::<Vec<_>>(), (0..appended).collect::<Vec<_>>());
    }
}

#[test]
fn a_file_with_two_names_stays_until_it_has_one() {
    let (place, target) = start();
    let _service = place.serve();
    let path = target.join("file");
    let (_, data) = defer(&place, &path, Pool::Stable).unwrap();
    fs::write(&data, "text").unwrap();
    fs::hard_link(&data, place.stable().join("other")).unwrap();
    until_told(&place, "it has 2 names in the pool");
    assert!(is_link(&path));
    fs::remove_file(place.stable().join("other")).unwrap();
    until_moved(&place);
    assert_eq!(fs::read(&path).unwrap(), b"text");
}
