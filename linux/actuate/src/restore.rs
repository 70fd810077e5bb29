//! Puts back what the journal says. Needs no daemon, may be killed and repeated at any point, and touches nothing that
//! Minerva did not journal.

use crate::elevator;
use crate::error::{ActuateError, KnobFailure};
use crate::journal::{self, Journal};
use crate::journal_lines::{JournalEntry, JournalProblem, parse_journal};
use crate::lease;
use crate::lock::{self, FileLock};
use crate::open_beneath::{Roots, is_disk_setting};
use crate::removal;
use crate::report::{KnobRestore, RestoreReport, RestoreResult};
use crate::runtime_dir::RuntimeDir;
use crate::settings::WriterSettings;
use minerva_model::{DeviceId, Nanos};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::path::Path;

/// On what condition to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreWhen {
    /// In any case. A daemon that still runs finds out and journals anew what it writes next; the report says that it runs.
    Always,
    /// Only if the lease ended longer than the grace ago; the instant is now, on `CLOCK_BOOTTIME`.
    IfLeaseExpired(Nanos),
    /// Only if no daemon holds the instance lock.
    IfDaemonGone,
}

/// Puts back every journalled knob: the newest first, disks last, because weights are lost with an elevator; but an elevator that
/// weighs comes before all, because weights need it. The journal
/// is removed when everything is restored or gone; otherwise what failed stays in it for the next attempt.
pub fn restore(settings: &WriterSettings, when: RestoreWhen) -> Result<RestoreReport, ActuateError> {
    let Some(dir) = RuntimeDir::open(&settings.runtime_dir)? else { return Ok(RestoreReport::default()) };
    let undo_lock = FileLock::open(&dir)?;
    let _held = undo_lock.hold()?;
    // Checked under the lock: until it is released no daemon can write anything.
    if journal::read(&dir)?.is_none() {
        return Ok(RestoreReport::default());
    }
    if let Some(why) = not_due(&dir, settings, when)? {
        return Ok(RestoreReport { not_due: Some(why), ..RestoreReport::default() });
    }
    let beside_daemon = if when == RestoreWhen::Always { lock::holder_in(&dir)? } else { None };
    let report = restore_locked(&dir, &Roots::open(settings))?;
    Ok(RestoreReport { beside_daemon, ..report })
}

/// Whether a runtime directory holds a journal of ours; one that others can write to holds none.
pub fn has_journal(runtime_dir: &Path) -> bool {
    let dir = RuntimeDir::open(runtime_dir).ok().flatten();
    dir.is_some_and(|dir| matches!(journal::read(&dir), Ok(Some(_))))
}

fn not_due(dir: &RuntimeDir, settings: &WriterSettings, when: RestoreWhen) -> Result<Option<String>, ActuateError> {
    Ok(match when {
        RestoreWhen::Always => None,
        RestoreWhen::IfLeaseExpired(now) => {
            let until = lease::valid_until(dir)?;
            let end = until + settings.lease_grace;
            (now <= end).then(|| format!("the lease holds for another {}", end.since(now)))
        }
        RestoreWhen::IfDaemonGone => lock::holder_in(dir)?.map(|pid| format!("minervad runs as process {pid}")),
    })
}

/// [`restore`] for a caller that holds the undo lock.
pub(crate) fn restore_locked(dir: &RuntimeDir, roots: &Roots) -> Result<RestoreReport, ActuateError> {
    let Some(bytes) = journal::read(dir)? else { return Ok(RestoreReport::default()) };
    let content = parse_journal(&bytes);
    if let Some(boot) = content.boot.filter(|boot| journal::boot_id().is_ok_and(|now| now != *boot)) {
        journal::keep(dir, &[])?;
        lease::remove(dir)?;
        return Ok(RestoreReport { earlier_boot: Some(boot), ..RestoreReport::default() });
    }
    let mut entries = content.entries;
    entries.sort_by_key(|entry| {
        (!elevator::is_needed_first(entry.file, &entry.undo), is_disk_setting(entry.file), Reverse(entry.sequence))
    });
    let mut report = RestoreReport { problems: content.problems, ..RestoreReport::default() };
    let mut journal = Journal::open(dir)?;
    let mut failed = Vec::new();
    for entry in &entries {
        let mut cleared = entry.cleared.clone();
        let result = put_back(roots, entry, |lines| {
            cleared = journal.note_cleared(dir, entry, lines)?;
            Ok(())
        });
        if matches!(result, RestoreResult::Failed(_)) {
            failed.push(JournalEntry { cleared, ..entry.clone() });
        }
        report.knobs.push(KnobRestore {
            target: entry.target.clone(),
            file: entry.file,
            device: entry.device,
            undo: entry.undo.clone(),
            result,
        });
        #[cfg(test)]
        crate::failpoint::reach();
    }
    let not_understood = (content.problem_count > 0).then_some(&*bytes);
    if let Err(error) = tidy(dir, not_understood, failed) {
        // A full disk, say. What was restored is restored, and restoring it once more will find it already so.
        let why = format!("failed to {}; the journal stays as it is until the next restore", error.in_full());
        report.problems.push(JournalProblem { line: 0, why });
    }
    Ok(report)
}

/// Leaves only what failed in the journal, and for people a copy of one that was not understood.
fn tidy(dir: &RuntimeDir, not_understood: Option<&[u8]>, mut failed: Vec<JournalEntry>) -> Result<(), ActuateError> {
    if let Some(bytes) = not_understood {
        journal::set_aside(dir, bytes)?;
    }
    // Kept in the order in which they were written.
    failed.sort_by_key(|entry| entry.sequence);
    journal::keep(dir, &failed)?;
    #[cfg(test)]
    crate::failpoint::reach();
    if failed.is_empty() {
        lease::remove(dir)?;
    }
    Ok(())
}

/// Puts one knob back, whose entry stays in the journal. Its caller holds the undo lock.
pub(crate) fn put_back(
    roots: &Roots,
    entry: &JournalEntry,
    note_cleared: impl FnOnce(&[String]) -> Result<(), ActuateError>,
) -> RestoreResult {
    match try_put_back(roots, entry, note_cleared) {
        Ok(result) => result,
        Err(KnobFailure::Vanished { why }) => RestoreResult::Gone(why),
        // No such file in a directory that is there, or a disk that no longer obeys it: the elevator or controller that
        // held the value went, and the value with it.
        Err(KnobFailure::Refused { errno: Some(Errno::NOENT | Errno::OPNOTSUPP), detail }) => {
            RestoreResult::Gone(detail)
        }
        Err(KnobFailure::Refused { detail, .. }) => RestoreResult::Failed(detail),
    }
}

fn try_put_back(
    roots: &Roots,
    entry: &JournalEntry,
    note_cleared: impl FnOnce(&[String]) -> Result<(), ActuateError>,
) -> Result<RestoreResult, KnobFailure> {
    let place = roots.place(&entry.target, entry.file, entry.device)?;
    if place.inode != entry.inode {
        let why = format!("{} belongs to another cgroup, disk or server of the same name now", place.shown(entry.file));
        return Err(KnobFailure::Vanished { why });
    }
    let found = place.read(entry.file)?;
    // A BFQ weight may be removed and in force all the same: then the file does not tell.
    let tells = !removal::is_removal(entry.file, entry.device, &entry.undo);
    let was_so = holds_undone_state(&found, entry);
    if was_so && tells && entry.queue.is_empty() {
        return Ok(RestoreResult::AlreadySo);
    }
    let text = removal::write_and_read_back(&place, entry, &entry.undo, note_cleared)?;
    if let Err(refused) = elevator::put_back_queue_settings(&place, &entry.queue) {
        let shown = place.shown(entry.file);
        return Ok(RestoreResult::Failed(format!("{shown} is as it was, but beside it the kernel refused: {refused}")));
    }
    if was_so && text == found {
        return Ok(RestoreResult::AlreadySo);
    }
    if holds_undone_state(&text, entry) {
        return Ok(RestoreResult::Restored);
    }
    let shown = place.shown(entry.file);
    let text = text.trim();
    Ok(RestoreResult::Failed(format!(
        "{shown} was given `{}` and reads `{text}`; somebody else may be writing it, so look who and try again",
        entry.undo
    )))
}

/// Whether a knob is as it was before Minerva. Others may have changed lines of other disks meanwhile, and the kernel may
/// keep a line for a disk that had none, so it is enough that either what the undo text names reads as it did before, or
/// that some line says all that the undo text says.
pub(crate) fn holds_undone_state(text: &str, entry: &JournalEntry) -> bool {
    let Some(subject) = entry.undo.split_whitespace().next() else { return text == entry.before };
    if text == entry.before {
        return true;
    }
    let is_of_a_disk = |word: &str| word.parse::<DeviceId>().is_ok();
    if (subject == "default" || is_of_a_disk(subject)) && lines_of(text, subject).eq(lines_of(&entry.before, subject)) {
        return true;
    }
    // A line of one disk never speaks for the whole group, nor the other way round.
    let same_sort = |line: &&str| line.split_whitespace().next().is_some_and(is_of_a_disk) == is_of_a_disk(subject);
    text.lines().filter(same_sort).any(|line| {
        let said: Vec<&str> = match selected(line) {
            Some(word) => vec![word],
            None => line.split_whitespace().collect(),
        };
        entry.undo.split_whitespace().all(|word| said.contains(&word))
    })
}

fn lines_of<'a>(text: &'a str, subject: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter(move |line| line.split_whitespace().next() == Some(subject))
}

/// The choice in a line such as `none [bfq]`.
fn selected(line: &str) -> Option<&str> {
    line.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}
