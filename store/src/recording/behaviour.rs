//! What the engine answers differently than earlier versions did, although nothing in the recording says so: why a replay of an old
//! recording may come out otherwise.

/// What changed, with the revision at which it did, oldest first. What the settings in a recording tell apart is no change: the engine
/// answers an old recording as it did then.
///
/// If the engine is to answer the same events with other effects than before and no setting can keep the former answer, add a row with
/// the next number. Rows that were in a release stay as they are.
const CHANGES: &[(u32, &str)] = &[
    (1, "a reload sets caps again that were left to another program"),
    (1, "what a group weighed for the tenants beneath it is taken back when it becomes a tenant itself"),
    (1, "operations of one maker of groups beyond four times operations_max are refused"),
    (1, "of more than 1,024 names of jobs, another one than before is forgotten"),
    (1, "an operation that is told to begin while coordination is switched off does not go ahead"),
    (1, "forgets_peaks = true is ignored"),
];

/// The revision of what the engine does in this program. A recording holds the one of the program that made it; those that were made
/// before there was a number count as 0.
pub const BEHAVIOUR_REVISION: u32 = CHANGES[CHANGES.len() - 1].0;

/// What the engine does differently since a recording of this revision was made, oldest first.
pub fn changes_since(revision: u32) -> impl Iterator<Item = &'static str> {
    CHANGES.iter().filter(move |(changed_at, _)| *changed_at > revision).map(|(_, change)| *change)
}

#[cfg(test)]
mod tests {
    use super::{BEHAVIOUR_REVISION, CHANGES, changes_since};

    #[test]
    fn each_revision_has_a_change_and_only_later_ones_are_told() {
        let mut revisions: Vec<u32> = CHANGES.iter().map(|(revision, _)| *revision).collect();
        assert!(revisions.is_sorted(), "{revisions:?}");
        revisions.dedup();
        assert_eq!(revisions, (1..=BEHAVIOUR_REVISION).collect::<Vec<_>>());
        assert_eq!(changes_since(0).count(), CHANGES.len());
        let of_last = CHANGES.iter().filter(|(revision, _)| *revision == BEHAVIOUR_REVISION).count();
        assert_eq!(changes_since(BEHAVIOUR_REVISION - 1).count(), of_last);
        assert_eq!(changes_since(BEHAVIOUR_REVISION).next(), None);
        assert_eq!(changes_since(u32::MAX).next(), None);
    }
}
