//! The undo journal: one JSON object a line. The first line names the format and the boot. A `held` line is one knob and
//! what undoes Minerva's writes to it; it is synced before the first write, and later writes add none. A `released` line
//! takes one back: the knob is as it was, and from then on it may be changed by others, which a restore must not undo.
//! Only the last lines can be torn. Now and then the journal is written anew without what is released or gone.
//!
//! A second `held` line of the same number adds what an undo is about to clear for a moment (`removal`). A Minerva that does not
//! know of it passes over the addition and puts back all the same.
//!
//! It exists exactly while something is held.

use crate::error::ActuateError;
use crate::open_beneath::Place;
use crate::removal;
use crate::runtime_dir::RuntimeDir;
use minerva_model::{DeviceId, KnobFile, KnobTarget, KnobWrite};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const JOURNAL_FILE: &str = "undo.journal";
/// What could not be understood is kept here for people when the journal is removed.
const CORRUPT_FILE: &str = "undo.journal.corrupt";
const VERSION: u32 = 1;
/// Problems told in full; the rest is counted. A file of garbage must not cost more than its own size.
const PROBLEMS_TOLD_MAX: usize = 16;

/// Released lines, and tenants that are gone, may make up so many lines before the journal is written anew.
const SPARE_LINES_MAX: usize = 1024;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    minerva_undo_journal: u32,
    boot: String,
}

/// Every further line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line<Entry> {
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
            cleared: Vec::new(),
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

    fn of_entry(entry: &JournalEntry) -> Self {
        Self::of(&entry.target, entry.inode, entry.file, entry.device)
    }
}

/// The journal as the writer holds it. Its caller holds the gate.
#[derive(Debug)]
pub(crate) struct Journal {
    boot: String,
    /// The file and its length up to the last whole line; absent while nothing is held.
    open: Option<(File, u64)>,
    held: BTreeMap<Key, JournalEntry>,
    /// Lines that the journal may have before it is written anew, and those that it has.
    lines_max: usize,
    lines: usize,
    sequence_next: u64,
}

impl Journal {
    /// Takes over what a restore left behind.
    pub(crate) fn open(dir: &RuntimeDir) -> Result<Self, ActuateError> {
        let (held, lines_max) = (BTreeMap::new(), SPARE_LINES_MAX);
        let mut journal = Self { boot: boot_id()?, open: None, held, lines_max, lines: 0, sequence_next: 1 };
        journal.load(dir)?;
        Ok(journal)
    }

    /// How many knobs are held.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
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

    /// What is journalled of a knob; only then it may be written.
    pub(crate) fn entry(&self, place: &Place, request: &KnobWrite) -> Option<&JournalEntry> {
        self.find(&request.target, place.inode, request.file, request.device)
    }

    /// The same, by its parts.
    pub(crate) fn find(
        &self,
        target: &KnobTarget,
        inode: u64,
        file: KnobFile,
        device: DeviceId,
    ) -> Option<&JournalEntry> {
        self.held.get(&Key::of(target, inode, file, device))
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
                append(file, length, &lines, File::sync_data).map_err(ActuateError::io("append to", &path))?;
            }
        }
        self.sequence_next = sequence_next;
        self.lines += entries.len();
        self.held.extend(entries.into_iter().map(|entry| (Key::of_entry(&entry), entry)));
        Ok(())
    }

    /// The undo of a held knob is about to clear these lines of other disks. Journals those that are nobody's, synced, and
    /// answers which: what is held has an entry of its own that puts it back.
    pub(crate) fn note_cleared(
        &mut self,
        dir: &RuntimeDir,
        entry: &JournalEntry,
        lines: &[String],
    ) -> Result<Vec<String>, ActuateError> {
        let is_held = |device| self.find(&entry.target, entry.inode, entry.file, device).is_some();
        let free = lines.iter().filter(|line| !removal::device_of(line).is_some_and(is_held));
        let cleared: Vec<String> = free.cloned().collect();
        if cleared.is_empty() || cleared == entry.cleared {
            return Ok(cleared);
        }
        let Some((file, length)) = &mut self.open else { return Ok(cleared) };
        let path = dir.path_of(JOURNAL_FILE);
        let entry = JournalEntry { cleared: cleared.clone(), ..entry.clone() };
        let bytes = lines_of([&entry], &path)?;
        append(file, length, &bytes, File::sync_data).map_err(ActuateError::io("append to", &path))?;
        self.lines += 1;
        self.held.insert(Key::of_entry(&entry), entry);
        Ok(cleared)
    }

    /// Takes back an entry, because the knob is as it was. Not synced: a process that is killed loses nothing that it
    /// wrote, and a power cut ends the knobs too. True if nothing is held any more, and the journal is removed.
    pub(crate) fn release(&mut self, dir: &RuntimeDir, entry: &JournalEntry) -> Result<bool, ActuateError> {
        let path = dir.path_of(JOURNAL_FILE);
        let key = Key::of_entry(entry);
        if self.held.len() == 1 && self.held.contains_key(&key) {
            dir.remove(JOURNAL_FILE)?;
            self.open = None;
        } else if let Some((file, length)) = &mut self.open {
            let mut line = Vec::new();
            add_line(&mut line, &Line::<&JournalEntry>::Released(entry.sequence), &path)?;
            append(file, length, &line, |_| Ok(())).map_err(ActuateError::io("append to", &path))?;
            self.lines += 1;
        }
        self.held.remove(&key);
        Ok(self.held.is_empty())
    }

    /// Writes the journal anew if it has grown much beyond what is held, without what is no longer there.
    pub(crate) fn compact(
        &mut self,
        dir: &RuntimeDir,
        is_there: impl Fn(&JournalEntry) -> bool,
    ) -> Result<(), ActuateError> {
        if self.lines <= self.lines_max || self.open.is_none() {
            return Ok(());
        }
        let mut held = self.held.clone();
        held.retain(|_, entry| is_there(entry));
        let mut entries: Vec<&JournalEntry> = held.values().collect();
        entries.sort_by_key(|entry| entry.sequence);
        let bytes = encode(&self.boot, entries, &dir.path_of(JOURNAL_FILE))?;
        self.open = Some((dir.replace(JOURNAL_FILE, &bytes)?, bytes.len() as u64));
        self.held = held;
        self.lines = self.held.len();
        self.lines_max = 2 * self.lines + SPARE_LINES_MAX;
        Ok(())
    }

    fn load(&mut self, dir: &RuntimeDir) -> Result<(), ActuateError> {
        self.open = None;
        self.held.clear();
        self.lines = 0;
        self.lines_max = SPARE_LINES_MAX;
        let Some(bytes) = dir.read(JOURNAL_FILE)? else { return Ok(()) };
        let Some(file) = dir.open_existing(JOURNAL_FILE)? else { return Ok(()) };
        for entry in parse_journal(&bytes).entries {
            self.sequence_next = self.sequence_next.max(entry.sequence.saturating_add(1));
            self.held.insert(Key::of_entry(&entry), entry);
        }
        self.lines = self.held.len();
        self.lines_max = 2 * self.lines + SPARE_LINES_MAX;
        // A cut last line is overwritten by the next.
        let length = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.open = Some((file, length as u64));
        Ok(())
    }
}

/// Appends whole lines, or none.
fn append(file: &File, length: &mut u64, lines: &[u8], sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let appended = file.write_all_at(lines, *length).and_then(|()| {
        #[cfg(test)]
        crate::failpoint::reach();
        sync(file)
    });
    match appended {
        Ok(()) => *length += lines.len() as u64,
        // The next line overwrites what there is of this one, so a failure to cut it off costs nothing.
        Err(_) => drop(file.set_len(*length)),
    }
    appended
}

/// The journal as it stands, if there is one.
pub(crate) fn read(dir: &RuntimeDir) -> Result<Option<Vec<u8>>, ActuateError> {
    dir.read(JOURNAL_FILE)
}

/// Leaves only `entries` in the journal, or removes it when there are none.
pub(crate) fn keep(dir: &RuntimeDir, entries: &[JournalEntry]) -> Result<(), ActuateError> {
    if entries.is_empty() {
        return dir.remove(JOURNAL_FILE);
    }
    let bytes = encode(&boot_id()?, entries, &dir.path_of(JOURNAL_FILE))?;
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
        add_line(&mut bytes, &Line::Held(entry), path)?;
    }
    Ok(bytes)
}

fn add_line(bytes: &mut Vec<u8>, value: &impl Serialize, path: &Path) -> Result<(), ActuateError> {
    serde_json::to_writer(&mut *bytes, value).map_err(ActuateError::io("encode a line of", path))?;
    bytes.push(b'\n');
    Ok(())
}
