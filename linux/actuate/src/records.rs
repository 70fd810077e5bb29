//! What the writer remembers: the runtime directory with the journal and its lease, kept in step. Callers hold the undo lock.

use crate::elevator;
use crate::error::{ActuateError, KnobFailure};
use crate::journal::Journal;
use crate::journal_lines::JournalEntry;
use crate::lease::{self, Lease};
use crate::open_beneath::{OpenTarget, Roots};
use crate::removal;
use crate::report::RestoreResult;
use crate::restore::{holds_undone_state, put_back};
use crate::runtime_dir::RuntimeDir;
use minerva_model::{DeviceId, KnobRelease, KnobWrite, Nanos, WriteId};

/// The journal and the lease of a running writer.
#[derive(Debug)]
pub(crate) struct Records {
    dir: RuntimeDir,
    journal: Journal,
    lease: Lease,
    /// Somebody else has restored, and nobody was told yet.
    restored: bool,
}

impl Records {
    /// Takes over what a restore could not put back.
    pub(crate) fn open(dir: RuntimeDir) -> Result<Self, ActuateError> {
        let journal = Journal::open(&dir)?;
        let mut lease = Lease::new();
        if journal.len() > 0 {
            lease.begin(&dir)?;
        }
        Ok(Self { dir, journal, lease, restored: false })
    }

    pub(crate) fn dir(&self) -> &RuntimeDir {
        &self.dir
    }

    pub(crate) fn len(&self) -> usize {
        self.journal.len()
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.journal.syncs()
    }

    pub(crate) fn entry(&self, place: &OpenTarget, request: &KnobWrite) -> Option<&JournalEntry> {
        self.journal.entry(place, request)
    }

    /// Needs no lock.
    pub(crate) fn renew_lease(&mut self, until: Nanos) -> Result<(), ActuateError> {
        self.lease.renew(&self.dir, until)
    }

    /// Whether somebody has restored, of which no note was taken yet. Needs no lock.
    pub(crate) fn is_restored(&self) -> Result<bool, ActuateError> {
        self.journal.is_replaced(&self.dir)
    }

    /// Somebody may have restored since the last write; then what was held is held no longer, but for what could not be put back.
    pub(crate) fn take_note_of_restores(&mut self) -> Result<(), ActuateError> {
        if !self.is_restored()? {
            return Ok(());
        }
        self.restored = true;
        self.lease.forget();
        self.journal.load(&self.dir)?;
        if self.journal.len() > 0 { self.lease.begin(&self.dir) } else { Ok(()) }
    }

    /// Whether somebody has restored since this was last asked.
    pub(crate) const fn take_restored(&mut self) -> bool {
        std::mem::replace(&mut self.restored, false)
    }

    /// Journals knobs, under a lease.
    pub(crate) fn hold(&mut self, entries: Vec<JournalEntry>, roots: &Roots) -> Result<(), ActuateError> {
        if entries.is_empty() {
            return Ok(());
        }
        if !self.lease.is_in_force() {
            self.lease.begin(&self.dir)?;
        }
        #[cfg(test)]
        crate::failpoint::reach();
        self.journal.compact(&self.dir, |entry| is_there(roots, entry))?;
        self.journal.add(&self.dir, entries)
    }

    /// Writes a knob that is journalled, and reads it back.
    pub(crate) fn write(&mut self, place: &OpenTarget, request: &KnobWrite) -> Result<String, KnobFailure> {
        let Self { dir, journal, .. } = self;
        let Some(entry) = journal.entry(place, request).cloned() else {
            return Err(KnobFailure::guard(format!("{} is not journalled", place.shown(request.file))));
        };
        let text = removal::write_and_read_back(place, &entry, &request.text, |lines| {
            journal.note_cleared(dir, &entry, lines).map(drop)
        })?;
        if request.text == entry.undo {
            elevator::put_back_queue_settings(place, &entry.queue).map_err(KnobFailure::guard)?;
        }
        Ok(text)
    }

    /// The elevator that weighs is back: so are the weights that went with it, and what others write there from now on is theirs.
    pub(crate) fn put_back_weights(&mut self, device: DeviceId, roots: &Roots) -> Result<(), ActuateError> {
        for entry in self.journal.weights_on(device) {
            let Self { dir, journal, .. } = self;
            let result = put_back(roots, &entry, |lines| journal.note_cleared(dir, &entry, lines).map(drop));
            // What failed stays for the next restore.
            if !matches!(result, RestoreResult::Failed(_)) {
                self.release(&entry)?;
            }
        }
        Ok(())
    }

    /// Releases a knob that was put back, or whose first write was refused: what others write there from now on is
    /// theirs. On a disk that is gone there is nothing to put back.
    pub(crate) fn release_if_undone(
        &mut self,
        place: &OpenTarget,
        request: &KnobWrite,
        written: &Result<String, KnobFailure>,
    ) -> Result<(), ActuateError> {
        let Some(entry) = self.journal.entry(place, request) else { return Ok(()) };
        let undone = match written {
            Ok(text) => request.text == entry.undo && holds_undone_state(text, entry),
            Err(KnobFailure::Vanished { .. }) if request.text == entry.undo => true,
            Err(_) => place.read(request.file).is_ok_and(|text| holds_undone_state(&text, entry)),
        };
        if !undone {
            return Ok(());
        }
        let entry = entry.clone();
        self.release(&entry)
    }

    /// Releases a knob whatever stands there. Where somebody else removed a weight of Minerva's, its effect goes as well.
    pub(crate) fn let_go(&mut self, place: &OpenTarget, request: &KnobRelease) -> Result<(), ActuateError> {
        let KnobRelease { target, file, device } = request;
        let Some(entry) = self.journal.find(target, place.inode, *file, *device).cloned() else { return Ok(()) };
        let says = |text: &str| text.lines().any(|line| removal::device_of(line) == Some(*device));
        let text = format!("{device} default");
        if removal::is_removal(*file, *device, &text) && place.read(*file).is_ok_and(|stands| !says(&stands)) {
            let (target, undo) = (target.clone(), entry.undo.clone());
            let removed = KnobWrite { id: WriteId(0), target, file: *file, device: *device, text, undo };
            // The knob is another's now: what he does to it later takes effect by itself.
            drop(self.write(place, &removed));
        }
        self.release(&entry)
    }

    fn release(&mut self, entry: &JournalEntry) -> Result<(), ActuateError> {
        let is_last = self.journal.release(&self.dir, entry)?;
        #[cfg(test)]
        crate::failpoint::reach();
        if is_last {
            self.lease.forget();
            lease::remove(&self.dir)?;
        }
        Ok(())
    }
}

fn is_there(roots: &Roots, entry: &JournalEntry) -> bool {
    match roots.place(&entry.target, entry.file, entry.device) {
        Ok(place) => place.inode == entry.inode,
        Err(failure) => !matches!(failure, KnobFailure::Vanished { .. }),
    }
}
