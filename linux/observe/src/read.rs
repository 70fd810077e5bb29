//! Reading small kernel files without following links, into one buffer that is used again and again.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::path::Path;

/// Longest text that is read; what is longer is cut. `/proc/diskstats` of a thousand disks has 120 KiB.
const TEXT_BYTES_MAX: usize = 8 << 20;
/// First size of the buffer: most files fit, and a kernel `seq_file` then hands them over in one read.
const BUFFER_BYTES: usize = 64 << 10;
/// A `seq_file` hands over as many whole records as fit into a page. So a text shorter than this has ended, where no record is longer,
/// and need not be read once more to see that.
const ENDED_BYTES: usize = 2 << 10;

/// A buffer for texts, and a count of what was done with it, since tests and benchmarks compare counts, not times.
#[derive(Debug)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
    /// Files read since the start.
    pub(crate) files_read: u64,
    /// Of these, files opened for it.
    pub(crate) files_opened: u64,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], files_read: 0, files_opened: 0 }
    }

    /// Reads the file `path` below `directory`. Symbolic links, mounts and `..` that lead out are refused by the kernel.
    pub(crate) fn below(&mut self, directory: BorrowedFd<'_>, path: &str) -> Result<&[u8], Errno> {
        let file = open_below(directory, path, OFlags::RDONLY)?;
        self.files_opened += 1;
        self.whole(&file, ENDED_BYTES)
    }

    /// Reads an open file from its beginning. The kernel makes its text anew for whoever reads there, and hands it over whole where
    /// there is room: a text that leaves some has ended, so that this is one call.
    pub(crate) fn again(&mut self, file: &OwnedFd) -> Result<&[u8], Errno> {
        self.files_read += 1;
        let mut filled = 0;
        loop {
            match rustix::io::pread(file, &mut self.buffer[filled..], filled as u64) {
                Ok(count) => filled += count,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            }
            if filled < self.buffer.len() || filled >= TEXT_BYTES_MAX {
                return Ok(&self.buffer[..filled]);
            }
            self.buffer.resize(filled * 2, 0);
        }
    }

    /// Reads a file of `/proc` or `/sys`, which only the kernel fills and which are full of links of its own.
    pub(crate) fn path(&mut self, path: &Path) -> Result<&[u8], Errno> {
        let file = self.open(path)?;
        self.whole(&file, ENDED_BYTES)
    }

    /// The same of one with records of any length, such as the mount table.
    pub(crate) fn table(&mut self, path: &Path) -> Result<&[u8], Errno> {
        let file = self.open(path)?;
        self.whole(&file, 0)
    }

    fn open(&mut self, path: &Path) -> Result<OwnedFd, Errno> {
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
        self.files_opened += 1;
        Ok(file)
    }

    /// The same, as text without the final newline; empty when it cannot be read.
    pub(crate) fn line(&mut self, path: &Path) -> String {
        self.path(path).map(|text| String::from_utf8_lossy(text).trim_end().to_owned()).unwrap_or_default()
    }

    /// Reads to the end; a text of less than `ended_bytes` after the first reading has ended.
    fn whole(&mut self, file: &OwnedFd, ended_bytes: usize) -> Result<&[u8], Errno> {
        self.files_read += 1;
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                if filled >= TEXT_BYTES_MAX {
                    break;
                }
                self.buffer.resize(filled * 2, 0);
            }
            match rustix::io::read(file, &mut self.buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            if filled < ended_bytes {
                break;
            }
        }
        Ok(&self.buffer[..filled])
    }
}

/// Opens what `path` names below `directory`, refusing links and anything that leads out of it. The empty path is the
/// directory itself.
pub(crate) fn open_below(directory: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { "." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    loop {
        match rustix::fs::openat2(directory, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve) {
            // The kernel asks for another try when a rename raced with its check of `..`.
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

/// What tells one directory from another of the same name, and whether its sub-directories changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryFacts {
    pub(crate) inode: u64,
    /// Two, and one for each sub-directory.
    pub(crate) links: u64,
    /// Whose it is, and who else may make directories in it.
    pub(crate) access: Access,
}

/// Who may make directories in a directory: its owner, and by its mode perhaps its group, or everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    user: u32,
    /// The group, where it may write.
    group: Option<u32>,
    everyone: bool,
}

impl Access {
    /// Somebody besides root, and the owner of the hierarchy's root, may make directories here.
    pub(crate) fn is_delegated(self, root: Self) -> bool {
        (self.user != 0 && self.user != root.user)
            || self.everyone
            || self.group.is_some_and(|group| group != 0 && Some(group) != root.group)
    }
}

/// The facts of the directory `path`, or `None` when it is gone or is not a directory any more, such as a link.
pub(crate) fn directory_facts(root: impl AsFd, path: &str) -> Option<DirectoryFacts> {
    let path = if path.is_empty() { "." } else { path };
    let wanted =
        StatxFlags::TYPE | StatxFlags::INO | StatxFlags::NLINK | StatxFlags::MODE | StatxFlags::UID | StatxFlags::GID;
    let stat = rustix::fs::statx(root, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    let is_directory = FileType::from_raw_mode(u32::from(stat.stx_mode)) == FileType::Directory;
    let access = Access {
        user: stat.stx_uid,
        group: (stat.stx_mode & 0o020 != 0).then_some(stat.stx_gid),
        everyone: stat.stx_mode & 0o002 != 0,
    };
    is_directory.then_some(DirectoryFacts { inode: stat.stx_ino, links: u64::from(stat.stx_nlink), access })
}

/// Whether the error only says that the thing went away: a group removed between two looks, a process that ended.
pub(crate) const fn is_vanished(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NODEV | Errno::SRCH | Errno::NXIO)
}

/// Calls `with` for each entry of a directory until it breaks off. Names that are no text are passed over.
pub(crate) fn for_each_entry(directory: impl AsFd, mut with: impl FnMut(&str, FileType) -> ControlFlow<()>) {
    // For each entry of `/proc/<pid>/fd` the kernel makes an inode: no more are asked for at once than are soon looked at.
    let mut room = [MaybeUninit::uninit(); 4 << 10];
    let mut entries = RawDir::new(directory, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(name) = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | ".."))
            && with(name, entry.file_type()).is_break()
        {
            return;
        }
    }
}
