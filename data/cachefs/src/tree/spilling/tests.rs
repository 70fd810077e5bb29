//! Spilling beside others who spill, look up and remove the same files.

use crate::file_system::{Caller, FileSystem, WriteOrigin};
use crate::{Account, Descriptors, DiskQueue, SpillArea, Tree, TreeOptions};
use minerva_blocksched::Kind;
use rustix::io::Errno;
use rustix::process::{getgid, getuid};
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

const ORIGIN: WriteOrigin = WriteOrigin { ends_privileges: false, is_mapped: false };
const BYTES: usize = 64 << 10;

/// A tree that spills, with what it and its spill area use of their quotas.
struct Fixture {
    tree: Tree,
    stable: Arc<Account>,
    folders: Arc<[TempDir; 2]>,
}

impl Fixture {
    fn new(options: TreeOptions) -> Self {
        Self::on(Arc::new([tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()]), options)
    }

    fn on(folders: Arc<[TempDir; 2]>, options: TreeOptions) -> Self {
        let (memory, stable) = (Arc::new(Account::new(1 << 30, 1000)), Arc::new(Account::new(1 << 30, 1000)));
        let spill = SpillArea::open(folders[1].path(), Arc::clone(&stable)).unwrap();
        let tree = Tree::open(folders[0].path(), memory, options, Some(spill)).unwrap();
        Self { tree, stable, folders }
    }

    /// Writes a file and lets the kernel forget it.
    fn make(&self, number: usize) {
        let caller = Caller { uid: getuid().as_raw(), gid: getgid().as_raw(), umask: 0 };
        let (shown, opened) =
            self.tree.create(caller, 1, OsStr::new(&number.to_string()), 0o600, libc::O_RDWR).unwrap();
        self.tree.write(opened.handle, 0, &content(number), ORIGIN).unwrap();
        self.tree.release(opened.handle).unwrap();
        self.tree.forget(shown.node, 1);
    }

    /// What a program reads by the name.
    fn read(&self, number: usize) -> Vec<u8> {
        let shown = self.tree.lookup(1, OsStr::new(&number.to_string())).unwrap();
        let opened = self.tree.open(shown.node, libc::O_RDONLY).unwrap();
        let mut into = vec![0; BYTES + 1];
        let read = self.tree.read(opened.handle, 0, &mut into).unwrap();
        into.truncate(read);
        self.tree.release(opened.handle).unwrap();
        self.tree.forget(shown.node, 1);
        into
    }
}

fn options() -> TreeOptions {
    TreeOptions { descriptors: Arc::new(Descriptors::new(10_000, 1)), ..TreeOptions::default() }
}

fn content(number: usize) -> Vec<u8> {
    (0..BYTES).map(|at| (at * 7 + number * 31) as u8).collect()
}

#[test]
fn a_file_that_the_kernel_knows_goes_only_with_a_descriptor_for_its_copy() {
    const ALL: u64 = 10;
    let descriptors = Arc::new(Descriptors::new(ALL, 1));
    let fixture = Fixture::new(TreeOptions { descriptors, ..TreeOptions::default() });
    (0..6).for_each(|number| fixture.make(number));
    let known: Vec<_> =
        (0..6).map(|number| fixture.tree.lookup(1, OsStr::new(&number.to_string())).unwrap().node).collect();
    assert_eq!(fixture.tree.descriptors(), 6);
    let spill = || fixture.tree.spill_some(0, &|| false).files;
    assert_eq!((spill(), spill()), (4, 0), "the others stay in memory");
    assert_eq!(fixture.tree.descriptors(), ALL);
    known.into_iter().for_each(|node| fixture.tree.forget(node, 1));
    assert_eq!(fixture.tree.descriptors(), 0);
    assert_eq!(spill(), 2, "nobody knows them any more");
    assert_eq!(fixture.tree.descriptors(), 0);
    // Who is told of it again holds both.
    fixture.tree.lookup(1, OsStr::new("0")).unwrap();
    assert_eq!(fixture.tree.descriptors(), 2);
}

#[test]
fn a_file_that_outgrows_memory_while_it_is_written_needs_no_descriptor_more_for_its_copy() {
    const ALL: u64 = 2;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let spill = SpillArea::open(folders[1].path(), Arc::new(Account::new(1 << 30, 1000))).unwrap();
    let options = TreeOptions { descriptors: Arc::new(Descriptors::new(ALL, 1)), spills_when_full: true, ..options() };
    let tree =
        Tree::open(folders[0].path(), Arc::new(Account::new(2 * BYTES as u64, 9)), options, Some(spill)).unwrap();
    let caller = Caller { uid: getuid().as_raw(), gid: getgid().as_raw(), umask: 0 };
    let (shown, opened) = tree.create(caller, 1, OsStr::new("0"), 0o600, libc::O_RDWR).unwrap();
    for number in 0..4 {
        assert_eq!(tree.descriptors(), ALL);
        let written = tree.write(opened.handle, (number * BYTES) as u64, &content(number), ORIGIN);
        assert_eq!(written, Ok(BYTES), "{number}");
    }
    assert_eq!((tree.usage().bytes, tree.spill_some(0, &|| false).files), (0, 0));
    tree.forget(tree.lookup(1, OsStr::new("0")).unwrap().node, 1);
    tree.release(opened.handle).unwrap();
    assert_eq!(tree.descriptors(), ALL, "of the copy, which stays open");
    let mut read = vec![0; BYTES];
    let opened = tree.open(shown.node, libc::O_RDONLY);
    assert_eq!(opened.err(), Some(Errno::NFILE), "it takes one more");
    tree.forget(shown.node, 1);
    assert_eq!(tree.descriptors(), 0);
    File::open(folders[1].path().join(shown.node.to_string())).unwrap().read_exact_at(&mut read, 0).unwrap();
    assert!(read == content(0));
}

#[test]
fn who_was_killed_between_the_copy_and_the_emptying_is_not_counted_twice() {
    let fixture = Fixture::new(options());
    fixture.make(0);
    fixture.make(1);
    let number = fixture.tree.lookup(1, OsStr::new("0")).unwrap().node;
    let folders = Arc::clone(&fixture.folders);
    drop(fixture);
    fs::copy(folders[0].path().join("0"), folders[1].path().join(number.to_string())).unwrap();
    let again = Fixture::on(folders, options());
    let (memory, stable) = (again.tree.usage().bytes, again.stable.usage().bytes);
    assert_eq!((memory, stable), (BYTES as u64, BYTES as u64), "one lies in memory and the other on the disk");
    assert_eq!(again.tree.found().bytes, BYTES as u64);
    assert_eq!((again.read(0), again.read(1)), (content(0), content(1)));
}

#[test]
fn what_another_spilled_or_removed_since_it_was_chosen_is_left_alone() {
    let fixture = Fixture::new(options());
    (0..4).for_each(|number| fixture.make(number));
    let [chosen, again] = [(); 2].map(|()| fixture.tree.oldest(None).0);
    fixture.tree.remove(1, OsStr::new("3"), false).unwrap();
    let mut pass = super::SpillPass::default();
    for candidate in chosen.into_iter().chain(again) {
        fixture.tree.spill_candidate(candidate, &mut pass, &|| false);
    }
    assert_eq!((pass.files, pass.error), (3, None));
    assert_eq!((fixture.tree.usage().bytes, fixture.stable.usage().bytes), (0, 3 * BYTES as u64));
    for number in 0..3 {
        assert!(fixture.read(number) == content(number), "{number}");
    }
}

#[test]
fn threads_that_spill_the_same_files_beside_readers_lose_none() {
    let fixture = Fixture::new(options());
    for round in 0..20 {
        let numbers = round * 10..round * 10 + 10;
        numbers.clone().for_each(|number| fixture.make(number));
        thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(|| fixture.tree.spill_down_to(0))));
            for number in numbers.clone() {
                let fixture = &fixture;
                scope.spawn(move || assert!(fixture.read(number) == content(number), "{number}"));
            }
        });
        fixture.tree.spill_down_to(0);
        for number in numbers {
            assert!(fixture.read(number) == content(number), "{number}");
        }
    }
    assert_eq!((fixture.tree.usage().bytes, fixture.stable.usage().bytes), (0, 200 * BYTES as u64));
}

#[test]
fn who_reads_an_open_file_while_it_is_spilled_finds_no_false_end() {
    let fixture = Fixture::new(options());
    for number in 0..200 {
        fixture.make(number);
        let tree = &fixture.tree;
        let shown = tree.lookup(1, OsStr::new(&number.to_string())).unwrap();
        let opened = tree.open(shown.node, libc::O_RDWR).unwrap();
        let is_spilled = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut into = [0; 64];
                while !is_spilled.load(Ordering::Relaxed) {
                    assert_eq!(tree.read(opened.handle, 0, &mut into), Ok(64), "{number}");
                }
            });
            let node = tree.node(shown.node).unwrap();
            // As a write does that memory has no room for.
            let spilled = tree.spill_node(&node, &mut node.lock(), &|| false);
            is_spilled.store(true, Ordering::Relaxed);
            assert_eq!(spilled, Ok(Some(BYTES as u64)));
        });
        tree.release(opened.handle).unwrap();
        tree.forget(shown.node, 1);
    }
}

#[test]
fn a_file_that_is_spilled_while_its_name_is_looked_up_is_found_on_the_disk() {
    let fixture = Fixture::new(options());
    fixture.make(0);
    let (taken, tree) = (fixture.tree.hold(10_000).unwrap(), &fixture.tree);
    let shown = thread::scope(|scope| {
        let looking = scope.spawn(|| {
            loop {
                match tree.lookup(1, OsStr::new("0")) {
                    Err(Errno::NFILE) => (),
                    found => return found.unwrap(),
                }
            }
        });
        // It waits for a descriptor by then, and has looked where the data lie; where it has not, there is less to see.
        thread::sleep(Duration::from_millis(20));
        assert_eq!(tree.spill_down_to(0).files, 1);
        drop(taken);
        looking.join().unwrap()
    });
    assert_eq!(shown.size, BYTES as u64);
    let opened = tree.open(shown.node, libc::O_RDWR).unwrap();
    tree.write(opened.handle, 0, b"new", ORIGIN).unwrap();
    tree.release(opened.handle).unwrap();
    tree.forget(shown.node, 1);
    assert_eq!(fixture.read(0), [b"new", &content(0)[3..]].concat());
}

#[test]
fn a_retired_tree_ends_its_pass_and_spills_nothing_beside_the_next_tree_on_its_directories() {
    let old = Fixture::new(options());
    (0..4).for_each(|number| old.make(number));
    let asked = AtomicU32::new(0);
    let pass = old.tree.spill_some(0, &|| {
        // In the middle of the second file.
        let is_time = asked.fetch_add(1, Ordering::Relaxed) == 3;
        assert!(!is_time || !old.tree.retire(), "a pass is under way");
        false
    });
    assert_eq!(pass.files, 2, "what was begun is whole, and no more is begun");
    assert!(old.tree.retire());
    let new = Fixture::on(Arc::clone(&old.folders), options());
    // Somebody still had the old one in hand.
    assert_eq!((old.tree.spill_some(0, &|| false).files, old.tree.spill_down_to(0).files), (0, 0));
    for number in 0..4 {
        assert!(new.read(number) == content(number), "{number}");
    }
    // Who is named again before it has left is served by the tree that it had.
    assert!(new.tree.retire());
    new.tree.forget_all();
    assert_eq!(new.tree.spill_down_to(0).files, 2);
    for number in 0..4 {
        assert!(new.read(number) == content(number), "{number}");
    }
}

#[test]
fn however_many_older_files_are_mapped_a_younger_one_goes() {
    let fixture = Fixture::new(options());
    // As many as one pass looks at.
    let mapped = super::BATCH * super::WALKS_MAX as usize;
    let below = |number: usize| fixture.folders[0].path().join(number.to_string());
    let held: Vec<File> = (0..mapped)
        .map(|number| {
            fs::write(below(number), "text").unwrap();
            File::open(below(number)).unwrap()
        })
        .collect();
    let at = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    held.iter().for_each(|file| file.set_times(FileTimes::new().set_accessed(at).set_modified(at)).unwrap());
    fixture.make(mapped);
    // Nothing of it can be moved by the first, and the second goes on where that ended.
    let passes = [(); 2].map(|()| fixture.tree.spill_some(0, &|| false).files);
    assert_eq!(passes, [0, 1]);
    // Once nobody has them they go too.
    drop(held);
    fixture.tree.account.correct(0, (mapped * BYTES) as u64);
    assert_eq!(fixture.tree.spill_some(0, &|| false).files, super::BATCH as u64);
}

#[test]
fn a_pass_looks_at_each_file_that_cannot_be_moved_once() {
    let fixture = Fixture::new(options());
    let below = |number: usize| fixture.folders[0].path().join(number.to_string());
    fixture.make(0);
    let mut held = vec![File::open(below(0)).unwrap()];
    let walks = || {
        let pass = fixture.tree.spill_some(0, &|| false);
        assert_eq!((pass.files, pass.error), (0, None));
        pass.walks
    };
    // From the oldest, from the oldest again, and from after the youngest.
    assert_eq!([walks(), walks()], [1, 1]);
    let age_of = |candidates: &[super::Candidate], at: usize| Some(candidates[at].key());
    *fixture.tree.passes.stuck_up_to() = age_of(&fixture.tree.oldest(None).0, 0);
    assert_eq!(walks(), 2);
    // From the middle of more than two batches: to the youngest, and up to where it began.
    held.extend((1..=2 * super::BATCH).map(|number| {
        fs::write(below(number), "text").unwrap();
        File::open(below(number)).unwrap()
    }));
    *fixture.tree.passes.stuck_up_to() = age_of(&fixture.tree.oldest(None).0, super::BATCH - 1);
    assert_eq!(walks(), 3);
    // What could not be moved before goes as soon as it can.
    drop(held);
    assert!(fixture.tree.spill_some(0, &|| false).files > 0);
}

#[test]
fn however_many_older_files_the_disk_has_no_room_for_a_shorter_one_goes() {
    let fixture = Fixture::new(options());
    let at = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let times = FileTimes::new().set_accessed(at).set_modified(at);
    // More than one pass looks at.
    let long = super::BATCH * super::WALKS_MAX as usize + 1;
    for number in 1..=long {
        let file = File::create(fixture.folders[0].path().join(number.to_string())).unwrap();
        file.write_all_at(&[1; 8192], 0).unwrap();
        file.set_times(times).unwrap();
    }
    fixture.tree.account.correct(0, long as u64 * 8192);
    fixture.make(0);
    let short = fixture.folders[0].path().join("0");
    File::options().write(true).open(&short).unwrap().set_len(4096).unwrap();
    fixture.stable.set_limits(4096, 1000);
    let spill = || {
        let pass = fixture.tree.spill_some(0, &|| false);
        (pass.files, pass.error)
    };
    assert_eq!([spill(), spill()], [(1, None), (0, Some(Errno::NOSPC))]);
    assert_eq!(fixture.read(0), content(0)[..4096]);
    // Once there is room the others go too, the one used longest ago first.
    fixture.stable.set_limits(1 << 30, 1000);
    assert_eq!(spill(), (super::BATCH as u64, None));
}

#[test]
fn what_spills_waits_its_turn_beside_others() {
    let queue = DiskQueue::new(1);
    let (own, other) = (queue.flow(100), queue.flow(100));
    let fixture = Fixture::new(TreeOptions { disk: Some(Arc::clone(&own)), ..options() });
    fixture.make(0);
    assert!(own.enter(Kind::Write, 1).is_none());
    let busy = other.enter(Kind::Write, 1).unwrap();
    thread::scope(|scope| {
        let spilling = scope.spawn(|| fixture.tree.spill_down_to(0));
        while queue.queued() == 0 {
            assert!(!spilling.is_finished(), "it did not ask for the disk");
            thread::yield_now();
        }
        drop(busy);
        assert_eq!(spilling.join().unwrap().files, 1);
    });
    assert!(fixture.read(0) == content(0));
}
