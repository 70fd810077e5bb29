//! Places of the kernel that could not be read, summed up so that a person is told once, and again when it grows worse by
//! a factor of ten.

use minerva_model::{Finding, FindingKind, Skipped};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Slices without trouble after which a place is forgotten, so that it is reported again when it comes back.
const SLICES_UNTIL_FORGOTTEN: u64 = 600;

/// What was reported of which place.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Unreadable {
    places: BTreeMap<String, UnreadablePath>,
    turn: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct UnreadablePath {
    digits: u32,
    last_turn: u64,
}

impl Unreadable {
    /// Findings on one slice.
    pub(crate) fn findings(&mut self, skipped: &[Skipped]) -> Vec<Finding> {
        self.turn += 1;
        let turn = self.turn;
        self.places.retain(|_, place| turn - place.last_turn <= SLICES_UNTIL_FORGOTTEN);
        let mut findings = Vec::new();
        for row in skipped {
            let Some(digits) = row.count.checked_ilog10().map(|log| log + 1) else { continue };
            if !self.places.contains_key(&row.place) {
                self.places.insert(row.place.clone(), UnreadablePath::default());
            }
            let Some(place) = self.places.get_mut(&row.place) else { continue };
            place.last_turn = turn;
            if digits > place.digits {
                place.digits = digits;
                findings.push(finding(row));
            }
        }
        findings
    }
}

fn finding(row: &Skipped) -> Finding {
    let Skipped { place, why, count } = row;
    Finding {
        kind: FindingKind::Unreadable,
        device: None,
        tenant: None,
        message: format!(
            "{place} could not be read {count} times in this slice: {why}. Those readings are passed over and the rest \
             goes on; it is reported again when there are ten times as many."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{SLICES_UNTIL_FORGOTTEN, Unreadable};
    use minerva_model::Skipped;

    #[test]
    fn a_place_is_reported_at_first_and_when_it_grows_tenfold() {
        let mut unreadable = Unreadable::default();
        let mut reported = |count| {
            let row = Skipped { place: "io.stat".to_owned(), why: "no number in `rbytes=`".to_owned(), count };
            unreadable.findings(&[row]).len()
        };
        let counts = [3, 7, 12, 9, 15, 0, 11, 150];
        assert_eq!(counts.map(&mut reported), [1, 0, 1, 0, 0, 0, 0, 1]);
        for _ in 0..=SLICES_UNTIL_FORGOTTEN {
            reported(0);
        }
        assert_eq!(reported(1), 1);
    }
}
