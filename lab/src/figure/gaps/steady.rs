//! A reader that never pauses, looked at until background work beside it is done.

use super::plan::{GAPS_DEADLINE_S, STEADY_ALONE};
use super::{BLOCK_BYTES, Bursts, Stage};
use crate::clock::boottime;
use crate::error::Result;
use crate::figure::idle::end;
use crate::workload::Worker;
use minerva_model::Nanos;

impl Stage<'_> {
    /// The reader from the moment at which work was added until that is done, at most for as long as it was given.
    pub(super) fn steady_beside(&self, added: Nanos) -> Result<Bursts> {
        let due = added + Nanos::from_secs(GAPS_DEADLINE_S);
        let mut worker = self.worker(1)?;
        worker.start()?;
        let begun = boottime();
        let done = self.done_within(GAPS_DEADLINE_S * 1_000, due)?;
        let mut window = self.steady_ended(worker, begun)?;
        let told = self.tool.status()?;
        window.used = Some((told.ran_s / window.busy_s).min(1.0));
        window.is_over = told.is_over;
        window.done_s = done.map(|done| done.since(added).as_secs_f64());
        Ok(window)
    }

    /// The reader without work.
    pub(super) fn steady_alone(&self) -> Result<Bursts> {
        let mut worker = self.worker(1)?;
        worker.start()?;
        let begun = boottime();
        self.wait(STEADY_ALONE)?;
        self.steady_ended(worker, begun)
    }

    fn steady_ended(&self, worker: Worker, begun: Nanos) -> Result<Bursts> {
        let reader = end(worker)?;
        let requests_per_s = reader.mb_per_s * 1e6 / f64::from(BLOCK_BYTES);
        let busy_s = boottime().since(begun).as_secs_f64().max(1e-3);
        Ok(Bursts {
            bursts: vec![reader],
            busy_s,
            requests_per_s,
            used: None,
            beside: 0.0,
            is_over: false,
            done_s: None,
        })
    }
}
