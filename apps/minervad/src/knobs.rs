//! What is written to the kernel, who else writes it, and who puts it back if this process dies.

use crate::clock::boottime;
use crate::guard;
use crate::overwriters::{Overwriter, OverwriterWatch};
use anyhow::{Context, bail};
use minerva_config::Config;
use minerva_linux_actuate::{Guard, Writer, WriterSettings};
use minerva_linux_observe::Roots;
use minerva_model::{Effect, KnobInspection, KnobRelease, KnobWatch, KnobWrite, Nanos, Outcome};

/// The lease outlasts this many slices. Two that came late must not undo what is meant to stay.
const LEASE_SLICES: u64 = 3;

/// All knobs.
pub(crate) struct Knobs {
    writer: Writer,
    overwriters: OverwriterWatch,
    guard: Option<Guard>,
}

impl Knobs {
    pub(crate) fn new(writer: Writer, settings: &WriterSettings, guard: Option<Guard>) -> Self {
        Self { writer, overwriters: OverwriterWatch::open(settings), guard }
    }

    /// Limits are valid for some slices only: a loop that hangs undoes them. True if they were undone since the last time, for that
    /// reason or by an operator.
    pub(crate) fn renew_lease(&mut self, slice: Nanos) -> bool {
        let until = boottime() + Nanos(slice.0.saturating_mul(LEASE_SLICES));
        if let Err(error) = self.writer.renew_lease(until) {
            tracing::warn!(error = format!("{:#}", anyhow::Error::new(error)), "the lease was not renewed");
        }
        self.writer.take_restored()
    }

    /// Everything was put back since the last time, by the guard or an operator, as was found out when a knob was read or written.
    pub(crate) const fn take_restored(&mut self) -> bool {
        self.writer.take_restored()
    }

    /// Journals all writes with one sync, instead of one each.
    pub(crate) fn prepare(&mut self, wanted: &[Effect]) {
        let write = |effect: &Effect| if let Effect::Write(write) = effect { Some(write.clone()) } else { None };
        let writes: Vec<KnobWrite> = wanted.iter().filter_map(write).collect();
        if writes.len() > 1 {
            self.writer.prepare(&writes);
        }
    }

    /// What a knob holds.
    pub(crate) fn inspect(&mut self, inspection: &KnobInspection) -> Outcome {
        let outcome = self.writer.inspect(inspection);
        tracing::trace!(?inspection, ?outcome, "inspected");
        outcome
    }

    /// Writes one, and reads it back.
    pub(crate) fn write(&mut self, write: &KnobWrite) -> Outcome {
        let outcome = self.writer.write(write);
        tracing::trace!(?write, ?outcome, "wrote");
        outcome
    }

    /// Somebody else has won a knob: it is theirs, and who writes it is nobody's business any more.
    pub(crate) fn let_go(&mut self, release: &KnobRelease) {
        if let Err(error) = self.writer.let_go(release) {
            let error = format!("{:#}", anyhow::Error::new(error));
            tracing::warn!(error, ?release, "a knob that was left to somebody else is still journalled");
        }
        self.overwriters.let_go(release);
    }

    /// Somebody else wrote a knob: from now on the kernel is asked who it was.
    pub(crate) fn overwritten(&mut self, watch: &KnobWatch) {
        self.overwriters.watch(watch);
    }

    /// Those who wrote such knobs since the last call, each process once a knob.
    pub(crate) fn take_overwriters(&mut self) -> Vec<Overwriter> {
        self.overwriters.take_unnamed()
    }

    /// How often the journal was synced.
    pub(crate) fn syncs(&self) -> u64 {
        self.writer.syncs()
    }

    /// The guard's process id.
    pub(crate) fn guard_pid(&self) -> Option<u32> {
        self.guard.as_ref().map(Guard::pid)
    }

    /// Starts another guard when the one there was has died, with the settings that the daemon started with.
    pub(crate) fn keep_guard(&mut self, config: &Config, roots: &Roots) {
        let Some(guard) = &mut self.guard else { return };
        if matches!(guard.is_alive(), Ok(true)) {
            return;
        }
        tracing::warn!("the guard has died, starting another");
        match guard::spawn(config, roots) {
            Ok(guard) => self.guard = Some(guard),
            Err(error) => tracing::error!("there is no guard now, a crash leaves limits behind: {error:#}"),
        }
    }

    /// Puts everything back.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        let report = self.writer.close_clean().context("failed to put everything back; run `minerva-ctl restore`")?;
        for knob in report.failed() {
            tracing::error!("{knob}");
        }
        if report.is_complete() {
            if let Some(guard) = self.guard {
                guard.finish().context("failed to wait for the guard")?;
            }
            tracing::info!("stopped, and everything is as it was");
            return Ok(());
        }
        // The guard waits for the end of this process, to try once more: nobody may wait for it here.
        drop(self.guard);
        bail!("some knobs could not be put back, as logged; run `minerva-ctl restore` when the cause is mended")
    }
}
