//! What a tenant takes part in, in a few words.

use minerva_api::v1;
use minerva_model::MicroCredits;

/// For a narrow column; empty when there is nothing to say. Credits alone are no news.
pub(crate) fn brief(part: &v1::Part) -> String {
    let mut words = Vec::new();
    if !part.level.is_empty() {
        words.push(part.level.clone());
    }
    if part.boosted_slices_left > 0 {
        words.push(format!("boost {}", part.boosted_slices_left));
    }
    if part.operations_waiting > 0 {
        words.push(format!("waits {}", part.operations_waiting));
    }
    if part.operations_running > 0 {
        words.push(format!("runs {}", part.operations_running));
    }
    words.join(" ")
}

/// A line of its own.
pub(crate) fn full(part: &v1::Part) -> String {
    let mut words = Vec::new();
    if !part.level.is_empty() {
        words.push(format!("steps back to {}", part.level));
    }
    if part.boosted_slices_left > 0 {
        words.push(format!("boosted for {} more slices", part.boosted_slices_left));
    }
    let operations = [(part.operations_waiting, "waiting"), (part.operations_running, "under way")];
    for (count, stage) in operations.into_iter().filter(|(count, _)| *count > 0) {
        let plural = if count == 1 { "" } else { "s" };
        words.push(format!("{count} operation{plural} {stage}"));
    }
    words.push(format!("holds {} credits", MicroCredits(part.held_micro_credits)));
    if let Some(report) = &part.report {
        let (processes, seconds) = (report.processes.len(), part.report_age_ns / 1_000_000_000);
        words.push(format!("its agent reported {processes} processes {seconds} s ago"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{brief, full};
    use minerva_api::v1;

    #[test]
    fn a_part_is_told_in_short_and_in_full() {
        let part = v1::Part {
            level: "idle".to_owned(),
            held_micro_credits: 2_500_000,
            boosted_slices_left: 12,
            operations_waiting: 1,
            operations_running: 2,
            ..v1::Part::default()
        };
        assert_eq!(brief(&part), "idle boost 12 waits 1 runs 2");
        let text = "steps back to idle, boosted for 12 more slices, 1 operation waiting, 2 operations under way, \
                    holds 2.5 credits";
        assert_eq!(full(&part), text);
        assert_eq!(brief(&v1::Part::default()), "");
    }
}
