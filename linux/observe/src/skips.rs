//! What was passed over in a slice, merged by place so that ten thousand unreadable files are one row.

use crate::parse::Malformed;
use minerva_model::Skipped;
use rustix::io::Errno;
use std::collections::BTreeMap;

/// Collects what was passed over.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    by_place: BTreeMap<String, (String, u64)>,
}

impl Skips {
    /// Something at `place` was passed over `count` times; of the reasons the first is kept.
    pub(crate) fn note(&mut self, place: &str, count: u64, why: impl FnOnce() -> String) {
        match self.by_place.get_mut(place) {
            Some((_, counted)) => *counted += count,
            None => {
                self.by_place.insert(place.to_owned(), (why(), count));
            }
        }
    }

    /// A file could not be read. That it vanished is normal and no news.
    pub(crate) fn unreadable(&mut self, place: &str, what: &str, error: Errno) {
        if !crate::read::is_vanished(error) {
            self.note(place, 1, || format!("cannot read it of {what}: {}", std::io::Error::from(error)));
        }
    }

    /// Lines of a file did not parse.
    pub(crate) fn malformed(&mut self, place: &str, what: &str, malformed: &Malformed) {
        if let Some(first) = &malformed.first {
            self.note(place, malformed.count, || format!("line not understood, of {what}: {first:?}"));
        }
    }

    /// What was passed over elsewhere, and later.
    pub(crate) fn add(&mut self, others: Self) {
        for (place, (why, count)) in others.by_place {
            self.note(&place, count, || why);
        }
    }

    /// Hands over all rows, sorted by place.
    pub(crate) fn take(&mut self) -> Vec<Skipped> {
        let rows = std::mem::take(&mut self.by_place).into_iter();
        rows.map(|(place, (why, count))| Skipped { place, why, count }).collect()
    }
}
