//! The reader's bursts and pauses, and what background work does meanwhile.

use super::plan::GAPS_DEADLINE_S;
use super::tool::Told;
use super::{BLOCK_BYTES, SETTLE, SLICE_MS, Stage};
use crate::clock::boottime;
use crate::error::Result;
use crate::figure::idle::{Window, end};
use crate::figure::race::wait_until;
use minerva_model::Nanos;
use serde::Serialize;

/// What a window brought. Of one with work only bursts before its end count, and of the one beside it the same. A reader that never pauses has
/// one burst: with work until that is done, without for as long as its rate needs to be known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// The reader, burst by burst.
    pub bursts: Vec<Window>,
    /// Seconds in all bursts.
    pub busy_s: f64,
    /// Requests a second in all bursts.
    pub requests_per_s: f64,
    /// The part of the pauses in which background work ran, of a reader without any that of the whole window; 0 without work. Of work that
    /// ends within the window only pauses before the one that it ended in count, and there may be none.
    pub used: Option<f64>,
    /// The part of the bursts in which it ran beside the reader, of one that pauses.
    pub beside: f64,
    /// The work was over before the window was.
    pub is_over: bool,
    /// Seconds from adding the work until it was seen to be done; nothing without work, and of work that was not done within [`GAPS_DEADLINE_S`].
    pub done_s: Option<f64>,
}

impl Bursts {
    /// Leaves the first `count` bursts.
    pub(super) fn leave(&mut self, count: usize, spans: &[(u64, u64)]) {
        self.bursts.truncate(count);
        let busy = |(window, (burst_ms, _)): (&Window, &(u64, u64))| {
            let burst_s = *burst_ms as f64 / 1e3;
            (window.mb_per_s * 1e6 / f64::from(BLOCK_BYTES) * burst_s, burst_s)
        };
        let all = self.bursts.iter().zip(spans).map(busy);
        let (requests, busy_s) = all.fold((0.0, 0.0), |sum, burst| (sum.0 + burst.0, sum.1 + burst.1));
        self.busy_s = busy_s;
        self.requests_per_s = if busy_s > 0.0 { requests / busy_s } else { 0.0 };
    }
}

impl Stage<'_> {
    /// One window, and how many of its bursts were over before the work was.
    pub(super) fn window(&self, spans: &[(u64, u64)], has_work: bool) -> Result<(Bursts, usize)> {
        let mut bursts = Vec::new();
        // At the begin of each burst and each pause.
        let mut ran = Vec::new();
        let told = || if has_work { self.tool.status() } else { Ok(Told::default()) };
        for (number, (burst_ms, pause_ms)) in (1..).zip(spans) {
            let mut worker = self.worker(number)?;
            worker.start()?;
            ran.push(self.told_within(*burst_ms, told)?);
            bursts.push(end(worker)?);
            ran.push(self.told_within(*pause_ms, told)?);
        }
        // What ran in the last slice is told after it.
        if has_work {
            let mut worker = self.worker(0)?;
            worker.start()?;
            self.wait(SETTLE)?;
            end(worker)?;
        }
        ran.push(told()?);
        let (used, beside) = parts(&ran, spans);
        let is_over = ran.last().is_some_and(|last| last.is_over);
        let counted = ran.iter().skip(1).step_by(2).take_while(|at_pause| !at_pause.is_over).count();
        let mut window = Bursts { bursts, busy_s: 0.0, requests_per_s: 0.0, used, beside, is_over, done_s: None };
        window.leave(spans.len(), spans);
        Ok((window, counted))
    }

    /// Goes on with bursts and pauses until the work that was added at `added` is done, for as long as it was given. Answers after how many
    /// seconds it was.
    pub(super) fn until_done(&self, spans: &[(u64, u64)], added: Nanos) -> Result<Option<f64>> {
        let due = added + Nanos::from_secs(GAPS_DEADLINE_S);
        for (number, (burst_ms, pause_ms)) in (1..).zip(spans.iter().cycle()) {
            let mut worker = self.worker(number)?;
            worker.start()?;
            let in_burst = self.done_within(*burst_ms, due)?;
            end(worker)?;
            let done = if in_burst.is_none() { self.done_within(*pause_ms, due)? } else { in_burst };
            if let Some(done) = done {
                return Ok(Some(done.since(added).as_secs_f64()));
            }
            if boottime() >= due {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Waits, asks in each slice, and answers when the work was seen to be done, if it was.
    pub(super) fn done_within(&self, span_ms: u64, due: Nanos) -> Result<Option<Nanos>> {
        let end = (boottime() + Nanos::from_millis(span_ms)).min(due);
        while boottime() < end {
            if self.tool.status()?.is_over {
                return Ok(Some(boottime()));
            }
            wait_until(end.min(boottime() + Nanos::from_millis(SLICE_MS)), self.interrupted)?;
        }
        Ok(None)
    }

    /// Waits, and asks `told` a slice after the begin: it tells then what ran until the begin.
    fn told_within(&self, span_ms: u64, told: impl Fn() -> Result<Told>) -> Result<Told> {
        let end = boottime() + Nanos::from_millis(span_ms);
        self.wait(Nanos::from_millis(SLICE_MS.min(span_ms)))?;
        let answer = told()?;
        wait_until(end, self.interrupted)?;
        Ok(answer)
    }
}

/// The parts of the pauses and of the bursts in which work ran. `ran` is for how many seconds it had run at the begin of each burst and of each
/// pause in turn, and at the end, and whether it was over; `spans` how many milliseconds each burst and the pause after it were. What a pause
/// cannot hold is told late of a burst, and counts as nobody's; so does the pause in which the work ended, as it is not known when.
fn parts(ran: &[Told], spans: &[(u64, u64)]) -> (Option<f64>, f64) {
    let (mut used_s, mut pauses_s, mut beside_s, mut bursts_s) = (0.0, 0.0, 0.0, 0.0);
    for (told, (burst_ms, pause_ms)) in ran.windows(3).step_by(2).zip(spans) {
        let [at_burst, at_pause, at_end] = [told[0], told[1], told[2]];
        let (burst_s, pause_s) = (*burst_ms as f64 / 1e3, *pause_ms as f64 / 1e3);
        beside_s += (at_pause.ran_s - at_burst.ran_s).clamp(0.0, burst_s);
        bursts_s += burst_s;
        if !at_end.is_over {
            used_s += (at_end.ran_s - at_pause.ran_s).clamp(0.0, pause_s);
            pauses_s += pause_s;
        }
    }
    ((pauses_s > 0.0).then(|| used_s / pauses_s), beside_s / bursts_s.max(1e-3))
}

#[cfg(test)]
mod tests {
    use super::{Told, parts};

    fn told((ran_s, is_over): (f64, bool)) -> Told {
        Told { ran_s, is_over }
    }

    #[test]
    fn what_ran_in_bursts_is_no_use_of_pauses() {
        let spans = [(4_000, 2_000), (3_000, 6_000)];
        let of = |ran: [f64; 5]| parts(&ran.map(|ran_s| told((ran_s, false))), &spans);
        // Half of the first pause, five sixths of the second.
        assert_eq!(of([0.0, 0.0, 1.0, 1.0, 6.0]), (Some(0.75), 0.0));
        // In bursts only.
        assert_eq!(of([0.0, 4.0, 4.0, 7.0, 7.0]), (Some(0.0), 1.0));
        // More than a pause holds was told late.
        assert_eq!(of([0.0, 0.0, 3.0, 3.0, 9.0]), (Some(1.0), 0.0));
    }

    #[test]
    fn the_pause_in_which_work_ended_says_nothing() {
        let spans = [(4_000, 2_000), (3_000, 6_000)];
        // Over within the second pause, told in the burst after it; then within the first.
        let ran = [(0.0, false), (0.0, false), (1.5, false), (1.5, false), (2.0, true)].map(told);
        assert_eq!(parts(&ran, &spans), (Some(0.75), 0.0));
        let ran = [(0.0, false), (0.0, false), (1.5, true), (1.5, true), (1.5, true)].map(told);
        assert_eq!(parts(&ran, &spans), (None, 0.0));
    }
}
