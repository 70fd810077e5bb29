//! Files that are at their place as a link at once and are moved there later: each way in which that can go wrong, and what becomes
//! of the file then.

use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, DeferredFile, MigrationStatus, Pool, Request, ask};
use rustix::fs::{CWD, FallocateFlags, RenameFlags, Timespec, Timestamps, XattrFlags, renameat_with};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks for a file, as a service that may end meanwhile answers.
pub(crate) fn try_defer(place: &PoolFolder, path: &Path) -> std::io::Result<Answer> {
    ask(&place.socket(), &request(path, Pool::Stable))
}

fn request(path: &Path, pool: Pool) -> Request {
    let parent = fs::metadata(path.parent().unwrap()).unwrap();
    let directory = (parent.dev(), parent.ino());
    Request::Defer { path: path.to_owned(), directory, mode: 0o644, pool, tenant: None, bytes: 0 }
}

/// Asks for a file; its number and what is to be written.
fn defer(place: &PoolFolder, path: &Path, pool: Pool) -> Result<(u64, PathBuf), String> {
    match ask(&place.socket(), &request(path, pool)).unwrap() {
        Answer::Deferring { id, data } => Ok((id, data)),
        Answer::Refused { why } => Err(why),
        other => panic!("{other:?}"),
    }
}

/// Asks for a file and writes it.
fn write(place: &PoolFolder, path: &Path, data: &[u8]) -> u64 {
    let (id, at) = defer(place, path, Pool::Stable).unwrap();
    fs::write(at, data).unwrap();
    id
}

fn files(place: &PoolFolder) -> Vec<DeferredFile> {
    match ask(&place.socket(), &Request::Deferred { directory: None }).unwrap() {
        Answer::Deferred { files } => files,
        other => panic!("{other:?}"),
    }
}

fn migration(place: &PoolFolder) -> MigrationStatus {
    match ask(&place.socket(), &Request::Status).unwrap() {
        Answer::Status { migration, .. } => migration,
        other => panic!("{other:?}"),
    }
}

/// What waits is to be moved beside others too, so that no test waits for this machine's disk to be quiet.
fn flush(place: &PoolFolder) {
    ask(&place.socket(), &Request::Flush { directory: None }).unwrap();
}

/// Waits until something is so, and asks all the while that files be moved.
fn until(place: &PoolFolder, what: &str, is_so: impl Fn(&[DeferredFile]) -> bool) {
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
fn until_told(place: &PoolFolder, why: &str) {
    until(place, why, |files| files.iter().any(|file| file.why.contains(why)));
}

/// A pool and a directory that files are to go to.
fn start() -> (PoolFolder, PathBuf) {
    let place = PoolFolder::new("");
    let target = place.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    (place, target)
}

fn is_link(path: &Path) -> bool {
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
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("is in no pool of yours")), "{refused:?}");
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
struct Other(PathBuf);

impl Other {
    fn mount(at: PathBuf) -> Self {
        fs::create_dir_all(&at).unwrap();
        let options = c"size=4m";
        rustix::mount::mount("minerva-test", &at, "tmpfs", rustix::mount::MountFlags::empty(), Some(options)).unwrap();
        Self(at)
    }

    fn remount(&self, flags: rustix::mount::MountFlags) {
        rustix::mount::mount_remount(&self.0, flags, c"size=4m").unwrap();
    }

    fn unmount(&self) {
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
    let other = Other::mount(place.folder.path().join("other"));
    let _service = place.serve();
    let (_, data) = defer(&place, &other.0.join("file"), Pool::Stable).unwrap();
    // Memory keeps attributes of users since Linux 6.6, up to a limit; before it keeps none.
    rustix::fs::setxattr(&data, "user.large", &[0; 1000], XattrFlags::empty()).unwrap();
    let probe = other.0.join("probe");
    fs::write(&probe, "").unwrap();
    if rustix::fs::setxattr(&probe, "user.large", &[0; 1000], XattrFlags::empty()).is_ok() {
        println!("skipped: memory keeps attributes of users here");
        return;
    }
    until_told(&place, "its attribute user.large cannot be kept there");
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
        let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(sys.argv[2].encode())\n\
                      print(s.makefile().readline())";
        let mut command = std::process::Command::new("python3");
        command.arg("-c").arg(script).arg(place.socket()).arg(&line);
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
        std::os::unix::process::CommandExt::gid(&mut command, 65534);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Answer>(&output.stdout).unwrap()
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
    assert!(why.contains("in a namespace of its own"), "{why}");
    fs::write(place.stable().join("full"), vec![0; 5 << 20]).unwrap();
    refused(&target.join("file"), "50 % of the pool stable are used");
    assert_tidy(&place, &target);
}

#[test]
fn at_every_step_a_kill_loses_nothing_and_leaves_nothing_half() {
    // Steps of placing one file, of moving it, and one more, so that the last kill comes after the end.
    let mut died = 0;
    for step in 1..40 {
        let (place, target) = start();
        let path = target.join("file");
        let content = vec![9; 2_500_000];
        let mut service = place.serve_dying(step);
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write(&place, &path, &content)));
        if asked.is_ok() {
            let begun = Instant::now();
            while service.0.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
                if ask(&place.socket(), &Request::Flush { directory: None }).is_ok()
                    && matches!(ask(&place.socket(), &Request::Deferred { directory: None }), Ok(Answer::Deferred { files }) if files.is_empty())
                {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let has_died = service.0.try_wait().unwrap().is_some();
        died += u32::from(has_died);
        service.kill();
        let service = place.serve();
        until_moved(&place);
        assert!(!is_link(&path), "step {step}: a link was left");
        if asked.is_ok() {
            assert!(fs::read(&path).unwrap() == content, "step {step}");
        } else {
            // It was not acknowledged: there is nothing, or an empty file.
            assert!(fs::read(&path).is_ok_and(|data| data.is_empty()) || !path.exists(), "step {step}");
        }
        assert_tidy(&place, &target);
        assert!(service.terminate());
        if asked.is_ok() && !has_died {
            break;
        }
    }
    println!("killed at {died} steps");
    assert!(died > 10, "only {died} steps were met");
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
