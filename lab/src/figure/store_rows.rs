//! What the daemon's store has committed, and what of it is missing later.

use std::collections::BTreeMap;

/// Wall clock rounding of a row's instant.
const ROUNDING_MS: i64 = 10;

/// What the store has committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreRows {
    /// For each history, when it was true, in milliseconds since 1970.
    pub histories: BTreeMap<String, i64>,
    /// Decisions kept.
    pub audit_rows: u64,
}

/// Acknowledged rows that are missing or older than they were.
pub(super) fn lost_rows(before: &StoreRows, after: &StoreRows) -> Option<String> {
    let kept = |key: &str, at: i64| after.histories.get(key).is_some_and(|now| *now >= at - ROUNDING_MS);
    let lost = before.histories.iter().filter(|(key, at)| !kept(key, **at)).count();
    let audit = before.audit_rows.saturating_sub(after.audit_rows);
    (lost > 0 || audit > 0).then(|| format!("{lost} histories and {audit} decisions were lost"))
}

#[cfg(test)]
mod tests {
    use super::{StoreRows, lost_rows};

    #[test]
    fn a_row_that_went_or_went_back_is_lost() {
        let rows = |at, audit_rows| StoreRows { histories: [("a".to_owned(), at)].into(), audit_rows };
        assert_eq!(lost_rows(&rows(1000, 5), &rows(999, 6)), None);
        assert!(lost_rows(&rows(1000, 5), &rows(900, 5)).is_some());
        assert!(lost_rows(&rows(1000, 5), &rows(1000, 4)).is_some());
        assert!(lost_rows(&rows(1000, 5), &StoreRows { audit_rows: 5, ..StoreRows::default() }).is_some());
    }
}
