//! How much the files of a tree tie, by some of them.
//!
//! They are chosen by their inodes' numbers, so that of each all names that it has in the tree are seen: only where it has none elsewhere
//! will it be freed. Of the inodes those with the least keys are kept, which are in no order that means anything.

use std::collections::BTreeMap;

/// Inodes that are kept.
const KEPT: usize = 256;
/// 2^64 by the golden ratio: numbers that follow each other are far from each other when multiplied by it (Knuth, TAOCP 3, 6.4).
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// What is known of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    /// Names that it has anywhere.
    pub(crate) links: u32,
    /// Bytes that are allocated to it.
    pub(crate) bytes: u64,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// By key, with how many names were seen.
    kept: BTreeMap<u64, (Inode, u64)>,
    names: u64,
}

impl Sample {
    /// Takes a name of the inode of this number, which is looked at if it is to be kept.
    pub(crate) fn name(&mut self, number: u64, look: impl FnOnce() -> Option<Inode>) {
        self.names += 1;
        let key = number.wrapping_mul(SCATTER);
        if let Some((_, names)) = self.kept.get_mut(&key) {
            *names += 1;
            return;
        }
        // What is not kept now is not kept in the end: the greatest key only gets less.
        let is_full = self.kept.len() >= KEPT;
        if is_full && self.kept.last_key_value().is_some_and(|(last, _)| *last < key) {
            return;
        }
        let Some(inode) = look() else { return };
        self.kept.insert(key, (inode, 1));
        if is_full {
            self.kept.pop_last();
        }
    }

    /// Bytes that are freed once all names are gone.
    pub(crate) fn tied_bytes(&self) -> f64 {
        let names: u64 = self.kept.values().map(|(_, names)| names).sum();
        let freed = self.kept.values().filter(|(inode, names)| *names >= u64::from(inode.links));
        let bytes: u64 = freed.map(|(inode, _)| inode.bytes).sum();
        bytes as f64 * self.names as f64 / names.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Inode, Sample};

    /// What is tied, of files that lie next to each other, of which each has so many names here and in all.
    fn tied(files: u64, here: u64, links: u32) -> f64 {
        let mut sample = Sample::default();
        for _ in 0..here {
            (0..files).for_each(|file| sample.name(70_000 + file, || Some(Inode { links, bytes: 4096 })));
        }
        sample.tied_bytes()
    }

    #[test]
    fn a_file_is_tied_once_if_all_its_names_are_seen_however_many_files_there_are() {
        assert_eq!([tied(10, 1, 1), tied(10, 7, 7), tied(10, 6, 7), tied(0, 1, 1)], [40_960.0, 40_960.0, 0.0, 0.0]);
        assert_eq!(
            [tied(100_000, 1, 1), tied(100_000, 7, 7), tied(100_000, 6, 7)],
            [409_600_000.0, 409_600_000.0, 0.0]
        );
    }

    #[test]
    fn files_anywhere_in_a_tree_count_for_as_much() {
        let mut sample = Sample::default();
        // The first half is small.
        (0..20_000).for_each(|file| sample.name(file, || Some(Inode { links: 1, bytes: file / 10_000 * 1000 })));
        let mean = sample.tied_bytes() / 20_000.0;
        assert!((450.0..550.0).contains(&mean), "{mean}");
    }

    #[test]
    fn what_cannot_be_looked_at_ties_nothing() {
        let mut sample = Sample::default();
        sample.name(7, || None);
        assert_eq!(sample.tied_bytes(), 0.0);
    }
}
