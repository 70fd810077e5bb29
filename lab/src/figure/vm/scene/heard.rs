//! What a guest's worker has reported so far.

use crate::workload::{Finished, Progress, Report, WorkerResult};
use minerva_model::Nanos;

/// Its reports, as they are found in what the guest's script has printed.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// So many bytes of what was printed are read.
    read: usize,
    is_ready: bool,
    progress: Vec<Progress>,
    /// With when it was heard, by the host's clock.
    finished: Option<(Finished, Nanos)>,
}

impl Heard {
    /// Reads what is new in all that was printed. A line that is cut at the end is read when it is whole.
    pub(super) fn hear(&mut self, printed: &str, now: Nanos) {
        let Some(length) = printed.get(self.read..).and_then(|new| new.rfind('\n')) else { return };
        let new = &printed[self.read..self.read + length];
        self.read += length + 1;
        for line in new.lines() {
            match serde_json::from_str(line) {
                Ok(Report::Ready) => self.is_ready = true,
                Ok(Report::Progress(progress)) => self.progress.push(progress),
                Ok(Report::Finished(finished)) => self.finished = Some((finished, now)),
                // Anything else is a worker gone wrong; that no end is reported will tell.
                Err(_) => {}
            }
        }
    }

    /// It waits for the word.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Its job is done.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// What it has read.
    pub(super) fn bytes(&self) -> u64 {
        self.progress.last().map_or(0, |progress| progress.bytes)
    }

    /// All of it by the host's clock, where the word was given at `word`; nothing if the job is not done. A guest's own clock begins when it
    /// boots.
    pub(super) fn result(self, word: Nanos) -> Option<WorkerResult> {
        let (finished, ended) = self.finished?;
        let of_host = |at: Nanos| (word + at.since(finished.started)).min(ended);
        let progress = self.progress.into_iter().map(|progress| Progress { at: of_host(progress.at), ..progress });
        Some(WorkerResult { progress: progress.collect(), finished: Finished { started: word, ended, ..finished } })
    }
}

#[cfg(test)]
mod tests {
    use super::Heard;
    use crate::workload::{Finished, Latency, Progress, Report};
    use minerva_model::Nanos;

    fn line(report: &Report) -> String {
        format!("{}\n", serde_json::to_string(report).unwrap())
    }

    fn progress(at: u64, bytes: u64) -> Report {
        Report::Progress(Progress { at: Nanos(at), bytes })
    }

    #[test]
    fn reports_are_read_once_when_they_are_whole_and_told_by_the_hosts_clock() {
        let finished =
            Finished { started: Nanos(10), ended: Nanos(30), bytes: 8, latency: Latency::default(), checksum: None };
        let text = [Report::Ready, progress(10, 0), progress(25, 8), Report::Finished(finished.clone())];
        let text: String = text.iter().map(line).collect();
        let mut heard = Heard::default();
        // Byte by byte, as a guest that is slow writes it.
        for length in 0..=text.len() {
            assert!(!heard.is_finished());
            heard.hear(&text[..length], Nanos(1_000 + length as u64));
        }
        assert!(heard.is_ready() && heard.is_finished() && heard.bytes() == 8);
        let result = heard.result(Nanos(1_000)).unwrap();
        assert_eq!(result.progress, [(1_000, 0), (1_015, 8)].map(|(at, bytes)| Progress { at: Nanos(at), bytes }));
        let ended = Nanos(1_000 + text.len() as u64);
        assert_eq!(result.finished, Finished { started: Nanos(1_000), ended, ..finished });
    }

    #[test]
    fn a_job_that_is_not_done_has_no_result() {
        let mut heard = Heard::default();
        heard.hear(&[Report::Ready, progress(10, 4096)].iter().map(line).collect::<String>(), Nanos(5));
        assert_eq!((heard.bytes(), heard.is_finished()), (4096, false));
        assert_eq!(heard.result(Nanos(1)), None);
    }
}
