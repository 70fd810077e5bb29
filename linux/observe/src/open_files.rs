//! Open files of processes. To look at one costs microseconds, and a server has thousands, so that a slice looks at
//! [`FILES_A_SLICE`] of them: processes have turns, and of one whose turn it is not, sockets and sizes are those of its last
//! turn. Their number is always that of now, where the kernel says it without a listing; a process that has as many as before is
//! looked at in one turn of [`LOOKS_EVERY`] only, as what it has open is most often the same.

use crate::read::for_each_entry;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use std::ops::ControlFlow;
use std::path::Path;

/// Open files of a process whose type and size are looked at; the rest is only counted.
const FILES_A_PROCESS_MAX: u64 = 256;
/// Open files looked at in one slice; the last process of those whose turn it is may exceed it.
const FILES_A_SLICE: u64 = 256;
/// Where the kernel does not say how many there are, they are counted up to this: a process may have a million, and to list them takes
/// most of a second.
const COUNTED_MAX: u64 = 16_384;
/// A process that came too late in so many slices is looked at all the same: others that use the disk come first in each.
const WAITS_MAX: u32 = 8;
/// Open files looked at in one slice of such processes, and of tenants that begin: a tenant may have hundreds of processes with hundreds of
/// files each, and all at once take longer than a round waits.
const URGENT_FILES_A_SLICE: u64 = 1024;
/// Of a process that has as many files open as before, sizes grow, and one may be another by now.
const LOOKS_EVERY: u32 = 4;

/// The open files of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Files {
    pub(crate) open: u64,
    pub(crate) sockets: u64,
    /// Sum of the sizes of the regular ones.
    pub(crate) bytes: u64,
    /// The turn in which they were looked at; 0 before the first.
    turn: u64,
    /// Slices of this turn in which others had used up what may be looked at.
    waits: u32,
    /// Turns that it may yet pass if their number stays.
    rests: u32,
}

/// Whose open files are looked at: those of each process once in a turn, and a turn has as many slices as it needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileTurns {
    turn: u64,
    /// Files that may yet be looked at in this slice.
    left: u64,
    /// The same, of those that are urgent.
    urgent_left: u64,
    /// Somebody has to wait for another slice of this turn.
    is_unfinished: bool,
    /// Processes that were looked at: those that come at once do not pass the same turns.
    looked_at: u32,
}

impl FileTurns {
    /// Another slice.
    pub(crate) fn begin_slice(&mut self) {
        self.turn += u64::from(!std::mem::take(&mut self.is_unfinished));
        self.left = FILES_A_SLICE;
        self.urgent_left = URGENT_FILES_A_SLICE;
    }

    /// The open files of a process that were `before` what they are in `folder`. That of a tenant that begins is looked at although it had
    /// its turn: what it has open now is what it will read.
    pub(crate) fn look(&mut self, folder: &Path, before: Files, is_beginning: bool) -> Files {
        let is_beginning = is_beginning && self.urgent_left > 0;
        if before.turn == self.turn && !is_beginning {
            return count_files(folder, before);
        }
        let is_urgent = is_beginning || before.waits >= WAITS_MAX && self.urgent_left > 0;
        if self.left == 0 && !is_urgent {
            self.is_unfinished = true;
            return count_files(folder, Files { waits: before.waits + 1, ..before });
        }
        let Some((directory, counted)) = open_files_of(folder) else { return Files { turn: self.turn, ..before } };
        if counted > 0 && counted == before.open && before.rests > 0 && !is_beginning {
            return Files { turn: self.turn, waits: 0, rests: before.rests - 1, ..before };
        }
        let (files, looked_at) = look_at_files(&directory, counted);
        self.left = self.left.saturating_sub(looked_at);
        if is_urgent {
            self.urgent_left = self.urgent_left.saturating_sub(looked_at);
        }
        let is_first = before.turn == 0;
        self.looked_at = self.looked_at.wrapping_add(u32::from(is_first));
        let rests = if is_first { self.looked_at % LOOKS_EVERY } else { LOOKS_EVERY - 1 };
        Files { turn: self.turn, rests, ..files }
    }
}

/// The directory of a process's open files, and how many they are: since Linux 6.2 that is its size, 0 before.
fn open_files_of(folder: &Path) -> Option<(OwnedFd, u64)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(folder.join("fd"), flags, Mode::empty()).ok()?;
    let counted = rustix::fs::fstat(&directory).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
    Some((directory, counted))
}

/// How many files a process has open now; what else was known of them stays, as far as it can be.
fn count_files(folder: &Path, before: Files) -> Files {
    match open_files_of(folder) {
        Some((directory, counted)) => {
            let open = if counted > 0 { counted } else { entries_of(directory) };
            Files { open, sockets: before.sockets.min(open), ..before }
        }
        None => before,
    }
}

fn goes_on_if(goes_on: bool) -> ControlFlow<()> {
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// How many entries a directory has, for kernels that do not say.
fn entries_of(directory: OwnedFd) -> u64 {
    let mut entries = 0;
    for_each_entry(directory, |_, _| {
        entries += 1;
        goes_on_if(entries < COUNTED_MAX)
    });
    entries
}

/// Looks at a process's open files; and at how many. Types and sizes are asked for from what the kernel has, without asking a
/// server: a FUSE or network file system that hangs must not hang Minerva.
fn look_at_files(directory: &OwnedFd, counted: u64) -> (Files, u64) {
    let mut files = Files::default();
    let mut seen = 0;
    for_each_entry(directory, |name, _| {
        seen += 1;
        if seen > FILES_A_PROCESS_MAX {
            // A server with thousands of them need not be counted through.
            return goes_on_if(counted == 0 && seen < COUNTED_MAX);
        }
        let wanted = StatxFlags::TYPE | StatxFlags::SIZE;
        let Ok(stat) = rustix::fs::statx(directory, name, AtFlags::STATX_DONT_SYNC, wanted) else {
            return ControlFlow::Continue(());
        };
        match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
            FileType::Socket => files.sockets += 1,
            FileType::RegularFile => files.bytes = files.bytes.saturating_add(stat.stx_size),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    let is_more = seen > FILES_A_PROCESS_MAX;
    files.open = if is_more { seen.max(counted) } else { seen };
    (files, seen.min(FILES_A_PROCESS_MAX))
}

#[cfg(test)]
mod tests {
    use super::{
        COUNTED_MAX, FILES_A_PROCESS_MAX, FILES_A_SLICE, FileTurns, Files, URGENT_FILES_A_SLICE, WAITS_MAX,
        count_files, entries_of, look_at_files, open_files_of,
    };
    use rustix::fd::OwnedFd;
    use rustix::process::{Resource, getrlimit, setrlimit};
    use std::path::Path;

    /// As many as the machine allows: as root a million.
    #[test]
    fn a_process_with_a_million_descriptors_is_looked_at_no_longer_than_one_with_256() {
        let before = getrlimit(Resource::Nofile);
        for most in [1_010_000, before.maximum.unwrap_or(1_010_000)] {
            let limit = rustix::process::Rlimit { current: Some(most), maximum: Some(most) };
            if setrlimit(Resource::Nofile, limit).is_ok() {
                break;
            }
        }
        let most = getrlimit(Resource::Nofile).current.unwrap_or(1024);
        let wanted = most.saturating_sub(most / 8).min(1_000_000);
        let file = std::fs::File::open("/dev/null").unwrap();
        let many: Vec<OwnedFd> = (0..wanted).map_while(|_| rustix::io::dup(&file).ok()).collect();
        assert!(many.len() as u64 > FILES_A_PROCESS_MAX, "only {} of {wanted}", many.len());
        let own = Path::new("/proc/self");
        let (directory, counted) = open_files_of(own).unwrap();
        let (files, looked_at) = look_at_files(&directory, counted);
        assert_eq!(looked_at, FILES_A_PROCESS_MAX);
        // Older kernels do not say how many there are.
        let told = if counted > 0 { many.len() as u64 } else { COUNTED_MAX.min(many.len() as u64) };
        assert!(files.open >= told, "{files:?} of {}", many.len());
        assert!(count_files(own, Files::default()).open >= told);
        let listed = entries_of(directory);
        assert!(listed == COUNTED_MAX || (many.len() as u64..COUNTED_MAX).contains(&listed), "{listed}");
    }

    /// As of a tenant with hundreds of processes that waited long, or begins.
    #[test]
    fn a_slice_looks_at_so_many_files_of_those_that_are_urgent_and_no_more() {
        let files: Vec<std::fs::File> = (0..300).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let own = Path::new("/proc/self");
        for is_beginning in [false, true] {
            let mut turns = FileTurns { turn: 7, ..FileTurns::default() };
            turns.begin_slice();
            let overdue = Files { waits: WAITS_MAX, ..Files::default() };
            let looked_at = |turns: &mut FileTurns| turns.look(own, overdue, is_beginning).turn == turns.turn;
            let looks = (0..512).filter(|_| looked_at(&mut turns)).count() as u64;
            assert_eq!(looks, URGENT_FILES_A_SLICE / FILES_A_PROCESS_MAX, "beginning: {is_beginning}");
            turns.begin_slice();
            assert!(looked_at(&mut turns), "the others have their turn in the next slices");
        }
        drop(files);
    }

    #[test]
    fn a_process_that_has_as_many_files_open_as_before_is_looked_at_in_one_turn_of_four() {
        let mut child =
            std::process::Command::new("sleep").arg("600").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let folder = Path::new("/proc").join(child.id().to_string());
        let (mut turns, mut files, mut looks) = (FileTurns::default(), Files::default(), 0);
        // By then it has become `sleep`, with the files that it keeps.
        std::thread::sleep(std::time::Duration::from_millis(200));
        for _ in 0..40 {
            turns.begin_slice();
            files = turns.look(&folder, files, false);
            looks += u32::from(turns.left < FILES_A_SLICE);
            assert_eq!(files.open, open_files_of(&folder).map_or(0, |(directory, _)| entries_of(directory)));
        }
        let (_, counted) = open_files_of(&folder).unwrap();
        let expected = if counted > 0 { 10..=11 } else { 40..=40 };
        assert!(expected.contains(&looks), "{looks} looks of 40 turns");
        // Another number is no rest.
        let other = Files { open: files.open + 1, ..files };
        turns.begin_slice();
        turns.look(&folder, other, false);
        assert!(turns.left < FILES_A_SLICE);
        child.kill().and_then(|()| child.wait()).unwrap();
    }
}
