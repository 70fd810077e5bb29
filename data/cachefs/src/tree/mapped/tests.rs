//! What is stored, held and given in advance while nobody tells.

use crate::file_system::{Caller, Changes, FileSystem, WriteOrigin};
use crate::{Account, Descriptors, Tree, TreeOptions};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{getgid, getuid};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "file";
const BYTES: u64 = 64 << 10;

/// A tree that the kernel would read by itself.
struct Fixture {
    tree: Tree,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = TreeOptions {
            has_passthrough: true,
            descriptors: Arc::new(Descriptors::new(1000, 1)),
            ..TreeOptions::default()
        };
        let tree = Tree::open(folder.path(), Arc::new(Account::new(1 << 30, 100)), options, None).unwrap();
        Self { tree, folder }
    }

    fn below(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    fn bytes(&self) -> u64 {
        self.tree.usage().bytes
    }

    /// Makes a file; its node, and the handle that writes it.
    fn make(&self) -> (u64, u64) {
        let caller = Caller { uid: getuid().as_raw(), gid: getgid().as_raw(), umask: 0 };
        let (shown, opened) = self.tree.create(caller, 1, OsStr::new(NAME), 0o600, libc::O_RDWR).unwrap();
        assert!(opened.backing.is_some());
        (shown.node, opened.handle)
    }

    fn write(&self, handle: u64) {
        let data = vec![1; BYTES as usize];
        self.tree.write(handle, 0, &data, WriteOrigin { ends_privileges: false, is_mapped: false }).unwrap();
    }
}

/// What the kernel keeps of the file below for as long as a mapping lives.
fn map(below: &Path) -> File {
    File::options().read(true).write(true).open(below).unwrap()
}

#[test]
fn a_file_without_a_name_is_counted_until_nobody_has_it_mapped() {
    for is_closed_first in [true, false] {
        let fixture = Fixture::new();
        let (node, handle) = fixture.make();
        fixture.write(handle);
        let mapping = map(&fixture.below());
        let remove = || fixture.tree.remove(1, OsStr::new(NAME), false).unwrap();
        let close = || fixture.tree.release(handle).unwrap();
        if is_closed_first {
            close();
            remove();
        } else {
            remove();
            close();
        }
        // As the kernel would only once the mapping is gone.
        fixture.tree.forget(node, 1);
        fixture.tree.look_at_mapped();
        assert_eq!(fixture.bytes(), BYTES, "{is_closed_first}");
        drop(mapping);
        fixture.tree.look_at_mapped();
        assert_eq!((fixture.bytes(), fixture.tree.known().0), (0, 0), "{is_closed_first}");
    }
}

#[test]
fn a_file_whose_mapping_has_ended_is_free_as_soon_as_it_is_removed() {
    let fixture = Fixture::new();
    let (node, handle) = fixture.make();
    fixture.write(handle);
    let mapping = map(&fixture.below());
    fixture.tree.release(handle).unwrap();
    // Known for as long as it is mapped.
    fixture.tree.forget(node, 1);
    assert_eq!(fixture.tree.known().0, 1);
    drop(mapping);
    fixture.tree.remove(1, OsStr::new(NAME), false).unwrap();
    assert_eq!((fixture.bytes(), fixture.tree.known().0), (0, 0), "nobody has it open below either");
}

#[test]
fn a_file_that_nobody_has_mapped_is_free_at_once() {
    let fixture = Fixture::new();
    let (_, handle) = fixture.make();
    fixture.write(handle);
    fixture.tree.release(handle).unwrap();
    fixture.tree.remove(1, OsStr::new(NAME), false).unwrap();
    assert_eq!(fixture.bytes(), 0);
}

#[test]
fn what_is_stored_to_a_file_after_it_was_closed_is_counted() {
    for reads_last in [false, true] {
        let fixture = Fixture::new();
        let (node, handle) = fixture.make();
        let size = Changes { size: Some(BYTES), ..Changes::default() };
        let caller = Caller { uid: 0, gid: 0, umask: 0 };
        fixture.tree.set_attributes(caller, node, &size).unwrap();
        let mapping = map(&fixture.below());
        let reader = fixture.tree.open(node, libc::O_RDONLY).unwrap().handle;
        let [first, last] = if reads_last { [handle, reader] } else { [reader, handle] };
        fixture.tree.release(first).unwrap();
        fixture.tree.release(last).unwrap();
        assert_eq!(fixture.bytes(), 0);
        mapping.write_all_at(&[1; 4096], 0).unwrap();
        fixture.tree.look_at_mapped();
        assert_eq!(fixture.bytes(), 4096, "{reads_last}");
        mapping.write_all_at(&[1; 4096], 8192).unwrap();
        drop(mapping);
        fixture.tree.forget(node, 1);
        fixture.tree.look_at_mapped();
        assert_eq!((fixture.bytes(), fixture.tree.known().0), (8192, 0), "{reads_last}");
    }
}

#[test]
fn what_was_stored_is_counted_when_a_writer_closes_though_a_reader_goes_on() {
    let fixture = Fixture::new();
    let (node, handle) = fixture.make();
    fixture.tree.open(node, libc::O_RDONLY).unwrap();
    map(&fixture.below()).write_all_at(&[1; 4096], 0).unwrap();
    fixture.tree.release(handle).unwrap();
    assert_eq!(fixture.bytes(), 4096);
    map(&fixture.below()).write_all_at(&[1; 4096], 8192).unwrap();
    fixture.tree.look_at_mapped();
    assert_eq!(fixture.bytes(), 8192, "the mapping may live on");
}

#[test]
fn what_is_stored_to_a_file_that_stays_open_is_counted_from_look_to_look() {
    let fixture = Fixture::new();
    let (node, handle) = fixture.make();
    for number in 1..=3 {
        map(&fixture.below()).write_all_at(&[1; 4096], number * 8192).unwrap();
        fixture.tree.look_at_mapped();
        assert_eq!(fixture.bytes(), number * 4096);
    }
    fixture.tree.release(handle).unwrap();
    fixture.tree.forget(node, 1);
    assert_eq!(fixture.tree.known().0, 0, "nothing is left to be looked at");
}

#[test]
fn who_cannot_store_by_a_mapping_is_not_looked_at() {
    let fixture = Fixture::new();
    let (node, handle) = fixture.make();
    fixture.tree.release(handle).unwrap();
    for access in [libc::O_RDONLY, libc::O_WRONLY] {
        fixture.tree.open(node, access).unwrap();
        assert!(fixture.tree.mapped.files().nodes.is_empty(), "{access}");
    }
}

/// What XFS would do by itself, on every file system that can keep room beyond a file's end.
fn give_in_advance(fixture: &Fixture) {
    fallocate(map(&fixture.below()), FallocateFlags::KEEP_SIZE, BYTES, BYTES).unwrap();
}

fn take_back(fixture: &Fixture) {
    map(&fixture.below()).set_len(BYTES).unwrap();
}

/// What is counted, and how many files are known.
fn counted(fixture: &Fixture) -> (u64, usize) {
    (fixture.bytes(), fixture.tree.known().0)
}

#[test]
fn room_given_in_advance_is_counted_until_it_is_taken_back() {
    let fixture = Fixture::new();
    let (node, handle) = fixture.make();
    fixture.write(handle);
    give_in_advance(&fixture);
    fixture.tree.release(handle).unwrap();
    fixture.tree.forget(node, 1);
    fixture.tree.look_at_mapped();
    assert_eq!(counted(&fixture), (2 * BYTES, 1));
    take_back(&fixture);
    fixture.tree.look_at_mapped();
    assert_eq!(counted(&fixture), (BYTES, 0));
}

#[test]
fn room_that_is_taken_back_while_somebody_reads_is_off_the_account() {
    for is_looked_at in [true, false] {
        let fixture = Fixture::new();
        let (node, handle) = fixture.make();
        fixture.write(handle);
        give_in_advance(&fixture);
        fixture.tree.release(handle).unwrap();
        let reader = fixture.tree.open(node, libc::O_RDONLY).unwrap().handle;
        fixture.tree.look_at_mapped();
        if !is_looked_at {
            // It took longer than anybody waited for it.
            fixture.tree.nodes.get(node).unwrap().lock().shrinks_until = None;
            fixture.tree.look_at_mapped();
        }
        take_back(&fixture);
        fixture.tree.look_at_mapped();
        assert_eq!(fixture.bytes(), if is_looked_at { BYTES } else { 2 * BYTES });
        fixture.tree.release(reader).unwrap();
        fixture.tree.forget(node, 1);
        assert_eq!(counted(&fixture), (BYTES, 0), "{is_looked_at}");
    }
}

#[test]
fn room_that_is_taken_back_after_the_last_writer_is_off_the_account_though_a_reader_stays() {
    let fixture = Fixture::new();
    let (node, handle) = fixture.make();
    fixture.tree.release(handle).unwrap();
    fixture.tree.open(node, libc::O_RDONLY).unwrap();
    for _ in 0..2 {
        let writer = fixture.tree.open(node, libc::O_WRONLY).unwrap().handle;
        fixture.write(writer);
        give_in_advance(&fixture);
        fixture.tree.release(writer).unwrap();
        assert_eq!(fixture.bytes(), 2 * BYTES);
        take_back(&fixture);
        fixture.tree.look_at_mapped();
        assert_eq!(fixture.bytes(), BYTES);
    }
}

#[test]
fn however_many_files_are_open_one_that_shrinks_is_looked_at_and_no_more_of_these_than_one_look_reaches() {
    for (shrinking, known) in [(0, 1), (super::LOOKED_AT as u64, 0)] {
        let fixture = Fixture::new();
        let (node, handle) = fixture.make();
        fixture.write(handle);
        give_in_advance(&fixture);
        let open = fixture.tree.nodes.get(node).unwrap();
        let others = (1..=super::LOOKED_AT as u64).map(|other| node + other);
        fixture.tree.mapped.files().nodes.extend(others.clone().map(|other| (other, Arc::clone(&open))));
        fixture.tree.mapped.files().shrinking.extend(others.take(shrinking as usize));
        fixture.tree.release(handle).unwrap();
        fixture.tree.forget(node, 1);
        assert_eq!(counted(&fixture), (2 * BYTES, known));
    }
}
