//! The undo journal as a file: held, synced, appended to, written anew. Its lines are [`crate::journal_lines`]'s.
//!
//! Now and then it is written anew without what is released or gone. It exists exactly while something is held.

use crate::error::ActuateError;
use crate::journal_lines::{JournalEntry, Line, add_line, encode, lines_of, parse_journal};
use crate::open_beneath::OpenTarget;
use crate::removal;
use crate::runtime_dir::RuntimeDir;
use minerva_model::{DeviceId, KnobFile, KnobTarget, KnobWrite};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const JOURNAL_FILE: &str = "undo.journal";
/// What could not be understood is kept here for people when the journal is removed.
const CORRUPT_FILE: &str = "undo.journal.corrupt";

/// Released lines, and tenants that are gone, may make up so many lines before the journal is written anew.
const SPARE_LINES_MAX: usize = 1024;

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

/// The journal as the writer holds it. Its caller holds the undo lock.
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
    /// Times that lines were synced.
    syncs: u64,
}

impl Journal {
    /// Takes over what a restore left behind.
    pub(crate) fn open(dir: &RuntimeDir) -> Result<Self, ActuateError> {
        let (held, lines_max) = (BTreeMap::new(), SPARE_LINES_MAX);
        let mut journal = Self { boot: boot_id()?, open: None, held, lines_max, lines: 0, sequence_next: 1, syncs: 0 };
        journal.load(dir)?;
        Ok(journal)
    }

    /// How many knobs are held.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Times that lines were synced since it was opened.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Whether the journal is no longer the one that is known. Somebody has restored then (the guard while this process was
    /// stopped, or an operator): what was held is held no longer, and must be journalled anew. Needs no lock.
    pub(crate) fn is_replaced(&self, dir: &RuntimeDir) -> Result<bool, ActuateError> {
        let Some((file, _)) = &self.open else { return Ok(false) };
        let status = file.metadata().map_err(ActuateError::io("examine", &dir.path_of(JOURNAL_FILE)))?;
        Ok(status.nlink() == 0)
    }

    /// What is journalled of a knob; only then it may be written.
    pub(crate) fn entry(&self, place: &OpenTarget, request: &KnobWrite) -> Option<&JournalEntry> {
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

    /// The weights of this disk alone that are held, in every group.
    pub(crate) fn weights_on(&self, device: DeviceId) -> Vec<JournalEntry> {
        let is_weight = |file| matches!(file, KnobFile::BfqWeight | KnobFile::BfqV1WeightDevice);
        self.held.values().filter(|entry| entry.device == device && is_weight(entry.file)).cloned().collect()
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
        self.syncs += 1;
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
        self.syncs += 1;
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
        self.syncs += 1;
        self.lines = self.held.len();
        self.lines_max = 2 * self.lines + SPARE_LINES_MAX;
        Ok(())
    }

    /// Reads what is held.
    pub(crate) fn load(&mut self, dir: &RuntimeDir) -> Result<(), ActuateError> {
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
