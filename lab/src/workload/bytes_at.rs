//! What a workload had done at an instant.

use super::Progress;
use minerva_model::Nanos;

/// Bytes done at an instant, by straight lines between the reports: zero before the first, all after the last.
pub(crate) fn bytes_at(progress: &[Progress], at: Nanos) -> f64 {
    let after = progress.partition_point(|report| report.at <= at);
    let Some(left) = after.checked_sub(1).map(|index| progress[index]) else { return 0.0 };
    let Some(right) = progress.get(after) else { return left.bytes as f64 };
    let part = at.since(left.at).0 as f64 / right.at.since(left.at).0.max(1) as f64;
    left.bytes as f64 + part * (right.bytes.saturating_sub(left.bytes)) as f64
}

#[cfg(test)]
mod tests {
    use super::bytes_at;
    use crate::workload::Progress;
    use minerva_model::Nanos;

    #[test]
    fn bytes_between_reports_lie_on_a_line() {
        let progress = [(10, 0), (20, 100), (30, 100), (40, 400)].map(|(at, bytes)| Progress { at: Nanos(at), bytes });
        let read = |at| bytes_at(&progress, Nanos(at));
        assert_eq!([read(5), read(10), read(15), read(25), read(35), read(99)], [0.0, 0.0, 50.0, 100.0, 250.0, 400.0]);
        assert_eq!(bytes_at(&[], Nanos(3)), 0.0);
    }
}
