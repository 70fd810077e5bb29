//! The lines of the undo journal: one JSON object each. The first line names the format and the boot. A `held` line is one knob and
//! what undoes Minerva's writes to it; it is synced before the first write, and later writes add none. A `released` line
//! takes one back: the knob is as it was, and from then on it may be changed by others, which a restore must not undo.
//! Only the last lines can be torn.
//!
//! A second `held` line of the same number adds what an undo is about to clear for a moment (`removal`). A Minerva that does not
//! know of it passes over the addition and puts back all the same.

use crate::elevator;
use crate::error::ActuateError;
use crate::open_beneath::OpenTarget;
use minerva_model::{DeviceId, KnobFile, KnobTarget, KnobWrite};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

const VERSION: u32 = 1;
/// Problems told in full; the rest is counted. A file of garbage must not cost more than its own size.
const PROBLEMS_TOLD_MAX: usize = 16;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    minerva_undo_journal: u32,
    boot: String,
}

/// Every further line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line<Entry> {
    Held(Entry),
    /// The sequence number of the entry.
    Released(u64),
}

/// One knob that Minerva holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Counts up in the order in which knobs were first written.
    pub sequence: u64,
    /// Whose.
    pub target: KnobTarget,
    /// The inode of the directory that was written to, so that a later one of the same name is left alone.
    pub inode: u64,
    /// Which file.
    pub file: KnobFile,
    /// For which disk.
    pub device: DeviceId,
    /// What to write to have it back.
    pub undo: String,
    /// The whole file before the first write, to recognise the state by.
    pub before: String,
    /// Lines of other disks, held by nobody, which the undo clears for a moment: whoever goes on with it writes them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleared: Vec<String>,
    /// Of a disk's own setting: those others that the kernel changes with it, as paths below the disk's directory and texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<(String, String)>,
}

/// Something wrong with a journal, such as a line that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalProblem {
    /// Counted from 1; 0 if it is about the whole.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl JournalEntry {
    /// What is to be journalled before `request` is performed at `place`, where the knob now reads `before`. The journal
    /// numbers it.
    pub(crate) fn new(place: &OpenTarget, request: &KnobWrite, before: String) -> Self {
        Self {
            sequence: 0,
            target: request.target.clone(),
            inode: place.inode,
            file: request.file,
            device: request.device,
            undo: request.undo.clone(),
            before,
            cleared: Vec::new(),
            queue: elevator::lost_settings(place, request.file),
        }
    }
}

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalContent {
    /// The boot it belongs to, if the first line is whole.
    pub boot: Option<String>,
    /// The knobs that are held, in the order of the file.
    pub entries: Vec<JournalEntry>,
    /// The first lines that are not understood.
    pub problems: Vec<JournalProblem>,
    /// How many there are in all.
    pub problem_count: usize,
    /// The last line is cut. That is no problem: the write it announces cannot have happened.
    pub torn: bool,
}

impl JournalContent {
    fn hold(&mut self, entry: JournalEntry) {
        let adds = |earlier: &JournalEntry| {
            earlier.sequence == entry.sequence
                && *earlier == JournalEntry { cleared: earlier.cleared.clone(), ..entry.clone() }
        };
        let earlier = if entry.cleared.is_empty() { None } else { self.entries.iter().rposition(adds) };
        match earlier.and_then(|index| self.entries.get_mut(index)) {
            Some(earlier) => *earlier = entry,
            None => self.entries.push(entry),
        }
    }
}

/// Reads a journal of any content: what is not understood is passed over and told, everything else is used.
pub fn parse_journal(bytes: &[u8]) -> JournalContent {
    let mut content = JournalContent::default();
    let mut released = BTreeSet::new();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let whole = line.last() == Some(&b'\n');
        let line = line.trim_ascii();
        let outcome = match index {
            _ if line.is_empty() => continue,
            0 => serde_json::from_slice::<Header>(line).map(|header| {
                let newer = header.minerva_undo_journal > VERSION;
                content.boot = Some(header.boot);
                newer.then(|| format!("written by a newer Minerva (format {})", header.minerva_undo_journal))
            }),
            _ => serde_json::from_slice(line).map(|line| {
                match line {
                    Line::Held(entry) => content.hold(entry),
                    Line::Released(sequence) => drop(released.insert(sequence)),
                }
                None
            }),
        };
        let problem = match outcome {
            Ok(problem) => problem,
            Err(_) if !whole => {
                content.torn = true;
                None
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = problem {
            content.problem_count += 1;
            if content.problems.len() < PROBLEMS_TOLD_MAX {
                content.problems.push(JournalProblem { line: index + 1, why });
            }
        }
    }
    content.entries.retain(|entry: &JournalEntry| !released.contains(&entry.sequence));
    content
}

/// A whole journal.
pub(crate) fn encode<'a>(
    boot: &str,
    entries: impl IntoIterator<Item = &'a JournalEntry>,
    path: &Path,
) -> Result<Vec<u8>, ActuateError> {
    let mut bytes = Vec::new();
    add_line(&mut bytes, &Header { minerva_undo_journal: VERSION, boot: boot.to_owned() }, path)?;
    bytes.extend(lines_of(entries, path)?);
    Ok(bytes)
}

pub(crate) fn lines_of<'a>(
    entries: impl IntoIterator<Item = &'a JournalEntry>,
    path: &Path,
) -> Result<Vec<u8>, ActuateError> {
    let mut bytes = Vec::new();
    for entry in entries {
        add_line(&mut bytes, &Line::Held(entry), path)?;
    }
    Ok(bytes)
}

pub(crate) fn add_line(bytes: &mut Vec<u8>, value: &impl Serialize, path: &Path) -> Result<(), ActuateError> {
    serde_json::to_writer(&mut *bytes, value).map_err(ActuateError::io("encode a line of", path))?;
    bytes.push(b'\n');
    Ok(())
}
