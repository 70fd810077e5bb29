//! The undo journal: one JSON object a line. The first line names the format and the boot; each further line is one knob
//! and what undoes Minerva's writes to it. A line is synced before the first write of its knob, and a later write of the
//! same knob adds none, so the journal is as long as what is held and its last line alone can be torn.
//!
//! It exists exactly while something is held.

use crate::error::ActuateError;
use crate::open_beneath::Place;
use crate::runtime_dir::RuntimeDir;
use minerva_model::{DeviceId, KnobFile, KnobTarget, KnobWrite};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const JOURNAL_FILE: &str = "undo.journal";
/// What could not be understood is kept here for people when the journal is removed.
const CORRUPT_FILE: &str = "undo.journal.corrupt";
const VERSION: u32 = 1;
/// Problems told in full; the rest is counted. A file of garbage must not cost more than its own size.
const PROBLEMS_TOLD_MAX: usize = 16;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    minerva_undo_journal: u32,
    boot: String,
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
    pub(crate) fn new(place: &Place, request: &KnobWrite, before: String) -> Self {
        Self {
            sequence: 0,
            target: request.target.clone(),
            inode: place.inode,
            file: request.file,
            device: request.device,
            undo: request.undo.clone(),
            before,
        }
    }
}

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalContent {
    /// The boot it belongs to, if the first line is whole.
    pub boot: Option<String>,
    /// Its knobs, in the order of the file.
    pub entries: Vec<JournalEntry>,
    /// The first lines that are not understood.
    pub problems: Vec<JournalProblem>,
    /// How many there are in all.
    pub problem_count: usize,
    /// The last line is cut. That is no problem: the write it announces cannot have happened.
    pub torn: bool,
}

/// Reads a journal of any content: what is not understood is passed over and told, everything else is used.
pub fn parse_journal(bytes: &[u8]) -> JournalContent {
    let mut content = JournalContent::default();
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
            _ => serde_json::from_slice(line).map(|entry| {
                content.entries.push(entry);
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
    content
}

/// Names a knob, without the tenant's number, which the next daemon gives anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    target: KnobTarget,
    inode: u64,
    file: KnobFile,
    device: DeviceId,
}

impl Key {
    fn of(target: &KnobTarget, inode: u64, file: KnobFile, device: DeviceId) -> Self {
        let mut target = target.clone();
        if let KnobTarget::Cgroup { tenant, cgroup } = &mut target {
            *tenant = None;
            cgroup.inode = inode;
        }
        Self { target, inode, file, device }
    }
}

/// The journal as the writer holds it. Its caller holds the gate.
#[derive(Debug)]
pub(crate) struct Journal {
    boot: String,
    /// The file and its length up to the last whole line; absent while nothing is held.
    open: Option<(File, u64)>,
    keys: BTreeSet<Key>,
    sequence_next: u64,
}

impl Journal {
    /// Takes over what a restore left behind.
    pub(crate) fn open(dir: &RuntimeDir) -> Result<Self, ActuateError> {
        let mut journal = Self { boot: boot_id()?, open: None, keys: BTreeSet::new(), sequence_next: 1 };
        journal.load(dir)?;
        Ok(journal)
    }

    /// How many knobs are held.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if the journal is still the one that is known. Somebody may have restored (the guard while this process was
    /// stopped, or an operator): then what was held is held no longer, and must be journalled anew.
    pub(crate) fn refresh(&mut self, dir: &RuntimeDir) -> Result<bool, ActuateError> {
        let Some((file, _)) = &self.open else { return Ok(true) };
        let status = file.metadata().map_err(ActuateError::io("examine", &dir.path_of(JOURNAL_FILE)))?;
        if status.nlink() > 0 {
            return Ok(true);
        }
        self.load(dir)?;
        Ok(false)
    }

    /// Whether a knob is journalled, so that it may be written.
    pub(crate) fn holds(&self, place: &Place, request: &KnobWrite) -> bool {
        self.keys.contains(&Key::of(&request.target, place.inode, request.file, request.device))
    }

    /// Journals knobs, synced once for all. On an error the journal is as it was, and none of them may be written.
    pub(crate) fn add(&mut self, dir: &RuntimeDir, mut entries: Vec<JournalEntry>) -> Result<(), ActuateError> {
        let path = dir.path_of(JOURNAL_FILE);
        let mut sequence_next = self.sequence_next;
        for entry in &mut entries {
            entry.sequence = sequence_next;
            sequence_next += 1;
        }
        match &mut self.open {
            None => {
                let bytes = encode(&self.boot, &entries, &path)?;
                self.open = Some((dir.replace(JOURNAL_FILE, &bytes)?, bytes.len() as u64));
            }
            Some((file, length)) => {
                let lines = lines_of(&entries, &path)?;
                let appended = file.write_all_at(&lines, *length).and_then(|()| {
                    #[cfg(test)]
                    crate::failpoint::reach();
                    file.sync_data()
                });
                if let Err(error) = appended {
                    // The next line overwrites what there is of this one, so a failure to cut it off costs nothing.
                    drop(file.set_len(*length));
                    return Err(ActuateError::io("append to", &path)(error));
                }
                *length += lines.len() as u64;
            }
        }
        self.sequence_next = sequence_next;
        self.keys.extend(entries.iter().map(|entry| Key::of(&entry.target, entry.inode, entry.file, entry.device)));
        Ok(())
    }

    fn load(&mut self, dir: &RuntimeDir) -> Result<(), ActuateError> {
        self.open = None;
        self.keys.clear();
        let Some(bytes) = dir.read(JOURNAL_FILE)? else { return Ok(()) };
        let Some(file) = dir.open_existing(JOURNAL_FILE)? else { return Ok(()) };
        for entry in &parse_journal(&bytes).entries {
            self.keys.insert(Key::of(&entry.target, entry.inode, entry.file, entry.device));
            self.sequence_next = self.sequence_next.max(entry.sequence.saturating_add(1));
        }
        // A cut last line is overwritten by the next.
        let length = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.open = Some((file, length as u64));
        Ok(())
    }
}

/// The journal as it stands, if there is one.
pub(crate) fn read(dir: &RuntimeDir) -> Result<Option<Vec<u8>>, ActuateError> {
    dir.read(JOURNAL_FILE)
}

/// Leaves only `entries` in the journal, or removes it when there are none.
pub(crate) fn keep(dir: &RuntimeDir, entries: &[&JournalEntry]) -> Result<(), ActuateError> {
    if entries.is_empty() {
        return dir.remove(JOURNAL_FILE);
    }
    let bytes = encode(&boot_id()?, entries.iter().copied(), &dir.path_of(JOURNAL_FILE))?;
    dir.replace(JOURNAL_FILE, &bytes).map(drop)
}

/// Puts a journal that is not understood in full aside for people.
pub(crate) fn set_aside(dir: &RuntimeDir, bytes: &[u8]) -> Result<(), ActuateError> {
    dir.replace(CORRUPT_FILE, bytes).map(drop)
}

/// Names this boot.
pub(crate) fn boot_id() -> Result<String, ActuateError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = std::fs::read_to_string(path).map_err(ActuateError::io("read", path))?;
    Ok(text.trim().to_owned())
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

fn lines_of<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>, path: &Path) -> Result<Vec<u8>, ActuateError> {
    let mut bytes = Vec::new();
    for entry in entries {
        add_line(&mut bytes, entry, path)?;
    }
    Ok(bytes)
}

fn add_line(bytes: &mut Vec<u8>, value: &impl Serialize, path: &Path) -> Result<(), ActuateError> {
    serde_json::to_writer(&mut *bytes, value).map_err(ActuateError::io("encode a line of", path))?;
    bytes.push(b'\n');
    Ok(())
}
