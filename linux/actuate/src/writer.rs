//! Journal, write, read back.

use crate::error::{ActuateError, KnobFailure};
use crate::journal::Journal;
use crate::lease::Lease;
use crate::lock::{Gate, InstanceLock};
use crate::open_beneath::Roots;
use crate::restore::{RestoreReport, restore_behind_gate};
use crate::runtime_dir::RuntimeDir;
use crate::settings::WriterSettings;
use minerva_model::{KnobInspection, KnobWrite, Nanos, Outcome};

/// The kernel takes no more than a page in one write to a knob, its newline included.
const TEXT_BYTES_MAX: usize = 4095;

/// Performs inspections and writes. One a runtime directory, which [`InstanceLock`] sees to.
///
/// Dropping it leaves the knobs as they are and the journal in place: that is what a crash does. A clean end is
/// [`Writer::close_clean`].
#[derive(Debug)]
pub struct Writer {
    dir: RuntimeDir,
    gate: Gate,
    roots: Roots,
    journal: Journal,
    lease: Lease,
}

impl Writer {
    /// Opens the writer. If an earlier daemon left a journal, everything in it is put back first, and the report says
    /// what; what could not be put back stays journalled with the undo text of that time.
    pub fn open(settings: &WriterSettings, _alone: &InstanceLock) -> Result<(Self, RestoreReport), ActuateError> {
        let dir = RuntimeDir::create(&settings.runtime_dir)?;
        let gate = Gate::open(&dir)?;
        let roots = Roots::open(settings);
        let held = gate.hold()?;
        let report = restore_behind_gate(&dir, &roots)?;
        let journal = Journal::open(&dir)?;
        let mut lease = Lease::new();
        if journal.len() > 0 {
            lease.begin(&dir)?;
        }
        drop(held);
        Ok((Self { dir, gate, roots, journal, lease }, report))
    }

    /// How many knobs are held.
    pub fn held(&self) -> usize {
        self.journal.len()
    }

    /// Reads a knob as it stands.
    pub fn inspect(&mut self, request: &KnobInspection) -> Outcome {
        let read =
            self.roots.place(&request.target, request.file, request.device).and_then(|place| place.read(request.file));
        match read {
            Ok(text) => Outcome::Text(text),
            Err(failure) => failure.into(),
        }
    }

    /// Journals the knob if it is not journalled yet, writes it, and reads it back.
    pub fn write(&mut self, request: &KnobWrite) -> Outcome {
        match self.perform(request) {
            Ok(text) => Outcome::Text(text),
            Err(failure) => failure.into(),
        }
    }

    fn perform(&mut self, request: &KnobWrite) -> Result<String, KnobFailure> {
        check_text("text", &request.text)?;
        check_text("undo text", &request.undo)?;
        let place = self.roots.place(&request.target, request.file, request.device)?;
        let not_written = |error: ActuateError| {
            let shown = place.shown(request.file);
            let why = error.in_full();
            KnobFailure::guard(format!(
                "{shown} was not written, because what undoes it could not be journalled: failed to {why}"
            ))
        };
        let _held = self.gate.hold().map_err(not_written)?;
        #[cfg(test)]
        crate::failpoint::reach();
        if !self.journal.refresh(&self.dir).map_err(not_written)? {
            self.lease.forget();
        }
        if !self.journal.holds(&place, request) {
            let before = place.read(request.file)?;
            if !self.lease.is_in_force() {
                self.lease.begin(&self.dir).map_err(not_written)?;
            }
            #[cfg(test)]
            crate::failpoint::reach();
            self.journal.add(&self.dir, &place, request, before).map_err(not_written)?;
        }
        #[cfg(test)]
        crate::failpoint::reach();
        place.write(request.file, &request.text)?;
        #[cfg(test)]
        crate::failpoint::reach();
        place.read(request.file)
    }

    /// Makes what is held valid until the given instant of `CLOCK_BOOTTIME`. To be called each slice before its writes;
    /// while nothing is held it costs nothing.
    pub fn renew_lease(&mut self, until_boottime: Nanos) -> Result<(), ActuateError> {
        self.lease.renew(&self.dir, until_boottime)
    }

    /// The clean end, after the engine put everything back: makes sure of it, putting back what it left, and removes the
    /// journal. In the report a knob that the engine had put back is [`crate::RestoreResult::AlreadySo`].
    pub fn close_clean(self) -> Result<RestoreReport, ActuateError> {
        let _held = self.gate.hold()?;
        restore_behind_gate(&self.dir, &self.roots)
    }
}

/// A line of its own: a second one would be a second command to the kernel, which nobody checked.
fn check_text(what: &str, text: &str) -> Result<(), KnobFailure> {
    if text.trim().is_empty() {
        return Err(KnobFailure::guard(format!("the {what} is empty, so nothing was written")));
    }
    if text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(KnobFailure::guard(format!(
            "the {what} is not one line of at most {TEXT_BYTES_MAX} bytes, so nothing was written: {:?}",
            text.chars().take(80).collect::<String>()
        )));
    }
    Ok(())
}
