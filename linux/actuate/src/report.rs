//! What a restore did, for people and programs.

use crate::journal_lines::JournalProblem;
use minerva_model::{DeviceId, KnobFile, KnobTarget};
use serde::Serialize;
use std::fmt;

/// What became of one knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreResult {
    /// Written back, and read back.
    Restored,
    /// It already held what it held before Minerva.
    AlreadySo,
    /// The cgroup, the disk or the knob is gone, and its value with it.
    Gone(String),
    /// It could not be put back: why, and what to do. It stays in the journal.
    Failed(String),
}

/// One knob of a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnobRestore {
    /// Whose.
    pub target: KnobTarget,
    /// Which file.
    pub file: KnobFile,
    /// For which disk.
    pub device: DeviceId,
    /// The text that undoes Minerva's writes.
    pub undo: String,
    /// What became of it.
    pub result: RestoreResult,
}

/// What a restore did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// Each knob of the journal, in the order in which they were put back.
    pub knobs: Vec<KnobRestore>,
    /// What is wrong with the journal itself. One with lines that are not understood is set aside beside it.
    pub problems: Vec<JournalProblem>,
    /// The journal was of this earlier boot and discarded: its knobs ended with that boot.
    pub earlier_boot: Option<String>,
    /// Nothing was done, for this reason, although there is a journal.
    pub not_due: Option<String>,
    /// It was done beside a daemon that runs and will write again: its process id, 0 if that is not known.
    pub beside_daemon: Option<u32>,
}

impl RestoreReport {
    /// Nothing that Minerva wrote is left behind, as far as the journal could be read.
    pub fn is_complete(&self) -> bool {
        self.not_due.is_none() && self.problems.is_empty() && self.failed().next().is_none()
    }

    /// There was no journal.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The knobs that could not be put back.
    pub fn failed(&self) -> impl Iterator<Item = &KnobRestore> {
        self.knobs.iter().filter(|knob| matches!(knob.result, RestoreResult::Failed(_)))
    }
}

impl fmt::Display for KnobRestore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.target {
            KnobTarget::Cgroup { cgroup, .. } => &cgroup.path,
            KnobTarget::Disk { name } => name,
            KnobTarget::Server { disk, .. } => disk,
        };
        write!(f, "{place} {} {}: ", self.file.file_name(), self.device)?;
        match &self.result {
            RestoreResult::Restored => write!(f, "restored (`{}`)", self.undo),
            RestoreResult::AlreadySo => write!(f, "already so"),
            RestoreResult::Gone(why) => write!(f, "gone ({why})"),
            RestoreResult::Failed(detail) => write!(f, "FAILED ({detail})"),
        }
    }
}

impl fmt::Display for RestoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.not_due {
            return write!(f, "nothing was restored: {why}");
        }
        if let Some(boot) = &self.earlier_boot {
            return write!(
                f,
                "the journal was of an earlier boot ({boot}), whose knobs ended with it; it was discarded"
            );
        }
        for knob in &self.knobs {
            writeln!(f, "{knob}")?;
        }
        for problem in &self.problems {
            match problem.line {
                0 => writeln!(f, "journal: {}", problem.why)?,
                line => writeln!(f, "journal line {line} was not understood: {}", problem.why)?,
            }
        }
        let count = |wanted: fn(&RestoreResult) -> bool| self.knobs.iter().filter(|knob| wanted(&knob.result)).count();
        write!(
            f,
            "{} restored, {} already so, {} gone, {} failed",
            count(|result| *result == RestoreResult::Restored),
            count(|result| *result == RestoreResult::AlreadySo),
            count(|result| matches!(result, RestoreResult::Gone(_))),
            count(|result| matches!(result, RestoreResult::Failed(_))),
        )?;
        if let Some(pid) = self.beside_daemon {
            write!(f, "\nminervad (pid {pid}) runs and will write again; stop it or set mode = \"shadow\"")?;
        }
        Ok(())
    }
}
