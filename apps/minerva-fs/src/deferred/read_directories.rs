//! Which directories were read, and how they were then: one in which no name has changed since need not be read again.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A file system's clock takes steps, those of network file systems long ones: a name may change unnoticed for so long after another.
const STEP_SECONDS: i64 = 5;
/// Directories of which it is remembered; beyond that all are read once more.
const REMEMBERED_MAX: usize = 10_000;

/// A directory, by its path and what was there.
pub(super) type Directory = (PathBuf, (u64, u64));

/// When a name was last made, removed or replaced in each when it was read.
#[derive(Debug, Default)]
pub(super) struct ReadDirectories(BTreeMap<Directory, (i64, u64)>);

impl ReadDirectories {
    /// Whether no name in a directory has changed since it was read.
    pub(super) fn is_as_read(&self, directory: &Directory, changed: (i64, u64)) -> bool {
        self.0.get(directory) == Some(&changed)
    }

    /// A directory was read that was last changed then, if the next change is sure to have another time.
    pub(super) fn note(&mut self, directory: Directory, changed: (i64, u64), now_seconds: i64) {
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        if changed.0 + STEP_SECONDS < now_seconds {
            self.0.insert(directory, changed);
        } else {
            self.0.remove(&directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{REMEMBERED_MAX, ReadDirectories, STEP_SECONDS};

    #[test]
    fn a_directory_is_read_again_only_where_a_name_may_have_changed_since() {
        let mut directories = ReadDirectories::default();
        let [one, other] = ["/one", "/other"].map(|path| (path.into(), (8, 1)));
        assert!(!directories.is_as_read(&one, (100, 5)));
        directories.note(one.clone(), (100, 5), 101 + STEP_SECONDS);
        assert!(directories.is_as_read(&one, (100, 5)) && !directories.is_as_read(&other, (100, 5)));
        assert!(!directories.is_as_read(&one, (100, 6)), "it was changed");
        directories.note(one.clone(), (200, 0), 200 + STEP_SECONDS);
        assert!(!directories.is_as_read(&one, (200, 0)), "another change may have come in the same step of the clock");
        for number in 0..=REMEMBERED_MAX as u64 {
            directories.note(("/many".into(), (8, number)), (100, 5), 1000);
        }
        assert!(directories.0.len() <= REMEMBERED_MAX);
    }
}
