//! Files that nobody has open and somebody has mapped. Where the kernel reads by itself it maps the file below, and tells of a closed file
//! while its mapping lives: stores go on, and what a file without a name occupies is not free. The kernel says by a lease who else has the
//! file, but not when that ends, so it is looked again and again.

use super::Tree;
use crate::lease::is_shared;
use crate::node::{Node, NodeState};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files that one look looks at; a later one goes on with the others.
const LOOKED_AT: usize = 1000;

/// The files that are looked at, each counted once more in the table of nodes: the kernel may forget it before its last store was seen.
#[derive(Debug, Default)]
pub(super) struct Mapped(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    nodes: BTreeMap<u64, Arc<Node>>,
    looked_up_to: u64,
}

impl Mapped {
    /// The kernel knows none of them any more.
    pub(super) fn clear(&self) {
        *self.files() = Files::default();
    }

    /// Those whose turn it is.
    fn in_turn(&self) -> Vec<Arc<Node>> {
        let mut files = self.files();
        let later = files.nodes.range((Bound::Excluded(files.looked_up_to), Bound::Unbounded)).take(LOOKED_AT);
        let found: Vec<_> = later.map(|(_, node)| Arc::clone(node)).collect();
        files.looked_up_to = if found.len() < LOOKED_AT { 0 } else { found.last().map_or(0, |last| last.number) };
        found
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tree {
    /// Looks whether files that were mapped when they were closed still are, and counts what was stored meanwhile.
    pub fn look_at_mapped(&self) {
        for node in self.mapped.in_turn() {
            // One that is busy is in use; the next look finds it.
            let Some(mut state) = node.try_lock() else { continue };
            // Who closes it last says whether it is to be looked at again.
            if state.opens > 0 || self.is_over(&node, &mut state) {
                self.let_go(&node);
            }
        }
    }

    /// Nobody has the file open any more.
    pub(super) fn close(&self, node: &Arc<Node>, state: &mut NodeState) {
        if self.is_over(node, state) {
            return;
        }
        let is_known = self.nodes.count_again(node);
        if is_known && self.mapped.files().nodes.insert(node.number, Arc::clone(node)).is_some() {
            self.nodes.forget(node.number, 1);
        }
    }

    /// Whether nobody can change it any more but by opening it; then it is counted as it is, or, without a name, no longer.
    fn is_over(&self, node: &Node, state: &mut NodeState) -> bool {
        if state.may_be_mapped {
            // Where it cannot be opened that is found out later.
            state.may_be_mapped = node.open_data(state).map_or(true, |data| is_shared(&data));
        }
        if state.may_be_mapped && (state.is_gone || state.may_be_stored_to) {
            self.settle(node, state, 0);
            return false;
        }
        if state.is_gone {
            self.refund(node, state);
        } else if state.may_be_stored_to {
            self.settle(node, state, 0);
        }
        state.may_be_stored_to = false;
        true
    }

    fn let_go(&self, node: &Node) {
        if self.mapped.files().nodes.remove(&node.number).is_some() {
            self.nodes.forget(node.number, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::file_system::{Caller, Changes, FileSystem, WriteOrigin};
    use crate::{Account, Descriptors, Tree, TreeOptions};
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
            self.tree.write(handle, 0, &data, WriteOrigin { ends_privileges: false }).unwrap();
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
            let close = || assert_eq!(fixture.tree.release(handle).unwrap().node, node);
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
    }
}
