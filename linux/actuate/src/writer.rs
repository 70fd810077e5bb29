//! Journal, write, read back.

use crate::elevator;
use crate::error::{ActuateError, KnobFailure};
use crate::journal_lines::JournalEntry;
use crate::lock::{FileLock, InstanceLock};
use crate::open_beneath::Roots;
use crate::records::Records;
use crate::report::RestoreReport;
use crate::restore::restore_locked;
use crate::runtime_dir::RuntimeDir;
use crate::settings::WriterSettings;
use minerva_model::{KnobInspection, KnobRelease, KnobWrite, Nanos, Outcome};
use std::collections::BTreeSet;

/// The kernel takes no more than a page in one write to a knob, its newline included.
const TEXT_BYTES_MAX: usize = 4095;

/// Performs inspections and writes. One a runtime directory, which [`InstanceLock`] sees to.
///
/// Dropping it leaves the knobs as they are and the journal in place: that is what a crash does. A clean end is
/// [`Writer::close_clean`].
#[derive(Debug)]
pub struct Writer {
    undo_lock: FileLock,
    roots: Roots,
    records: Records,
}

impl Writer {
    /// Opens the writer. If an earlier daemon left a journal, everything in it is put back first, and the report says
    /// what; what could not be put back stays journalled with the undo text of that time.
    pub fn open(settings: &WriterSettings, _alone: &InstanceLock) -> Result<(Self, RestoreReport), ActuateError> {
        let dir = RuntimeDir::create(&settings.runtime_dir)?;
        let undo_lock = FileLock::open(&dir)?;
        let roots = Roots::open(settings);
        let held = undo_lock.hold()?;
        let report = restore_locked(&dir, &roots)?;
        let records = Records::open(dir)?;
        drop(held);
        Ok((Self { undo_lock, roots, records }, report))
    }

    /// How many knobs are held.
    pub fn held(&self) -> usize {
        self.records.len()
    }

    /// How often lines of the journal were synced.
    pub fn syncs(&self) -> u64 {
        self.records.syncs()
    }

    /// Reads a knob as it stands. Busy while somebody puts everything back: what stands there then would pass for another's doing. Whether
    /// somebody did so before is known afterwards, see [`Writer::take_restored`].
    pub fn inspect(&mut self, request: &KnobInspection) -> Outcome {
        match self.read(request) {
            Ok(Some(text)) => Outcome::Text(text),
            Ok(None) => Outcome::Busy,
            Err(failure) => failure.into(),
        }
    }

    /// Nothing while somebody puts everything back, or looks whether that is due.
    fn read(&mut self, request: &KnobInspection) -> Result<Option<String>, KnobFailure> {
        let place = self.roots.place(&request.target, request.file, request.device)?;
        let not_read = |why: &str| KnobFailure::guard(format!("{} was not read: {why}", place.shown(request.file)));
        // Not waited for: a restore that is stuck would hold up every look.
        let held = self.undo_lock.try_hold().map_err(|error| not_read(&format!("failed to {}", error.in_full())))?;
        let Some(_held) = held else { return Ok(None) };
        self.records.take_note_of_restores().map_err(|error| not_read(&format!("failed to {}", error.in_full())))?;
        place.read(request.file).map(Some)
    }

    /// Journals the knob if it is not journalled yet, writes it, and reads it back. When what was written is the undo text
    /// and it took effect, the knob is released: a restore no longer touches it.
    pub fn write(&mut self, request: &KnobWrite) -> Outcome {
        match self.perform(request) {
            Ok(text) => Outcome::Text(text),
            Err(failure) => failure.into(),
        }
    }

    /// Journals those of `requests` that are not journalled yet, with one sync for all instead of one each, which counts
    /// where the runtime directory is on a disk and a first slice takes hold of a thousand knobs. Whatever stands in the
    /// way of one of them is left for [`Writer::write`] to tell.
    pub fn prepare(&mut self, requests: &[KnobWrite]) {
        // What fails here fails again in `write`, which answers for it.
        drop(self.try_prepare(requests));
    }

    fn try_prepare(&mut self, requests: &[KnobWrite]) -> Result<(), ActuateError> {
        let _held = self.undo_lock.hold()?;
        self.records.take_note_of_restores()?;
        let mut asked = BTreeSet::new();
        let mut entries = Vec::new();
        for request in requests {
            let is_first = asked.insert((&request.target, request.file, request.device));
            let is_sound = check_text("text", &request.text).and(check_text("undo text", &request.undo)).is_ok();
            // With such an elevator weights are lost, which are journalled when its turn comes.
            let is_alone = !elevator::is_needed_first(request.file, &request.undo);
            if !is_first || !is_sound || !is_alone {
                continue;
            }
            let Ok(place) = self.roots.place(&request.target, request.file, request.device) else { continue };
            if self.records.entry(&place, request).is_some() {
                continue;
            }
            if let Ok(before) = place.read(request.file) {
                entries.push(JournalEntry::new(&place, request, before));
            }
        }
        self.records.hold(entries, &self.roots)
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
        let _held = self.undo_lock.hold().map_err(not_written)?;
        #[cfg(test)]
        crate::failpoint::reach();
        self.records.take_note_of_restores().map_err(not_written)?;
        if self.records.entry(&place, request).is_none() {
            let entry = JournalEntry::new(&place, request, place.read(request.file)?);
            let mut entries = self.lost_with(&entry);
            entries.push(entry);
            self.records.hold(entries, &self.roots).map_err(not_written)?;
        }
        #[cfg(test)]
        crate::failpoint::reach();
        let brings_back_weights = self
            .records
            .entry(&place, request)
            .is_some_and(|entry| elevator::is_needed_first(entry.file, &entry.undo) && request.text == entry.undo);
        let written = self.records.write(&place, request);
        // A knob that stays journalled although it was put back costs no more than a look at the next restore.
        drop(self.records.release_if_undone(&place, request, &written));
        if brings_back_weights && written.is_ok() {
            drop(self.records.put_back_weights(request.device, &self.roots));
        }
        written
    }

    /// What the groups lose when the elevator of this entry gives way to another. Their own entries put it back.
    fn lost_with(&self, entry: &JournalEntry) -> Vec<JournalEntry> {
        if !elevator::is_needed_first(entry.file, &entry.undo) {
            return Vec::new();
        }
        let weights = elevator::weights_of_groups(&self.roots, entry.device).into_iter();
        let entries = weights.filter_map(|weight| {
            // A group that has just gone has lost its weight with itself.
            let place = self.roots.place(&weight.target, weight.file, weight.device).ok()?;
            let is_held = self.records.entry(&place, &weight).is_some();
            let before = place.read(weight.file).ok()?;
            (!is_held).then(|| JournalEntry::new(&place, &weight, before))
        });
        entries.collect()
    }

    /// Forgets what undoes a knob that was left to somebody else: neither the end of the daemon nor a restore writes over
    /// what stands there. A knob that is not journalled, or gone, needs nothing.
    pub fn let_go(&mut self, request: &KnobRelease) -> Result<(), ActuateError> {
        let Ok(place) = self.roots.place(&request.target, request.file, request.device) else { return Ok(()) };
        let _held = self.undo_lock.hold()?;
        self.records.take_note_of_restores()?;
        self.records.let_go(&place, request)
    }

    /// Makes what is held valid until the given instant of `CLOCK_BOOTTIME`, and looks whether somebody has put it back. To be
    /// called each slice before its writes; while nothing is held it costs nothing.
    pub fn renew_lease(&mut self, until_boottime: Nanos) -> Result<(), ActuateError> {
        self.records.renew_lease(until_boottime)?;
        if self.records.is_restored()? {
            let _held = self.undo_lock.hold()?;
            self.records.take_note_of_restores()?;
        }
        Ok(())
    }

    /// True once after the guard or an operator has put back what was held: it is held no longer, and what stands in the knobs is
    /// not known, nor what was read or written last says anything of it. Found out when the lease is renewed, and at each look and write.
    pub const fn take_restored(&mut self) -> bool {
        self.records.take_restored()
    }

    /// The clean end, after the engine put everything back: makes sure of it, putting back what it left, and removes the
    /// journal. The report is empty if nothing was left.
    pub fn close_clean(self) -> Result<RestoreReport, ActuateError> {
        let _held = self.undo_lock.hold()?;
        restore_locked(self.records.dir(), &self.roots)
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
