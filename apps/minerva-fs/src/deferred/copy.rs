//! Copies a file to its own disk, a piece at a time, past the page cache where the file system lets it: after a piece nothing of it is
//! under way any more, so that whoever comes back to the disk waits for one piece at most.

use minerva_cachefs::{Attributes, Moment};
use rustix::fs::{
    AtFlags, FallocateFlags, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, Uid, XattrFlags, fallocate, fchmod,
    fchown, fdatasync, fsetxattr, fstat, fstatvfs, fsync, ftruncate, futimens, openat, seek, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;

/// What is written at once.
pub(super) const PIECE: usize = 1 << 20;
/// What direct writes are aligned to.
const BLOCK: u64 = 4096;
/// The unit in which `stat` counts.
const SECTOR: u64 = 512;
/// The mode of a copy that is not whole.
const UNFINISHED: Mode = Mode::RUSR.union(Mode::WUSR);
const SELINUX: &str = "security.selinux";

/// An extended attribute: its name and its value.
pub(super) type Xattr = (OsString, Vec<u8>);

/// A copy under way.
#[derive(Debug)]
pub(super) struct Copy {
    to: OwnedFd,
    is_direct: bool,
    /// As it was before it was read.
    from: Attributes,
    at: u64,
    /// Up to here what was copied is counted for whoever asked, by this copy or an earlier one.
    counted: u64,
    /// Copied beyond that since it was last asked for.
    fresh: u64,
    buffer: Vec<u8>,
}

impl Copy {
    /// Makes the copy, empty, with room for all that is to come: a full disk is met here and not in the middle.
    pub(super) fn begin(directory: &OwnedFd, name: &OsStr, from: &Attributes, counted: u64) -> io::Result<Self> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (to, is_direct) = match openat(directory, name, flags | OFlags::DIRECT, UNFINISHED) {
            // Some file systems make the file and then refuse the flag. That one goes: whoever may write in the directory can have put
            // a link to a file of somebody else's under the name since, and what is opened here is given away at the end.
            Err(Errno::INVAL) => {
                match unlinkat(directory, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => (),
                    Err(error) => return Err(error.into()),
                }
                (openat(directory, name, flags, UNFINISHED)?, false)
            }
            opened => (opened?, true),
        };
        let (occupied, below) = (from.blocks * SECTOR, fstatvfs(&to)?);
        if below.f_bavail.saturating_mul(below.f_frsize) < occupied {
            return Err(Errno::NOSPC.into());
        }
        let is_whole = occupied >= from.size && from.size > 0;
        match if is_whole { fallocate(&to, FallocateFlags::empty(), 0, from.size) } else { Ok(()) } {
            // Then it is met in the middle after all.
            Ok(()) | Err(Errno::OPNOTSUPP) => (),
            Err(error) => return Err(error.into()),
        }
        Ok(Self { to, is_direct, from: *from, at: 0, counted, fresh: 0, buffer: vec![0; PIECE + BLOCK as usize] })
    }

    /// Gives it its owner and attributes before any data: a place that refuses one of them is met here and not at the end.
    pub(super) fn prepare(&self, xattrs: &[Xattr]) -> io::Result<()> {
        self.set_attributes(xattrs)?;
        // Until it is whole nobody whom an access control list names may open it: the group's bits of the mode limit them all.
        Ok(fchmod(&self.to, UNFINISHED)?)
    }

    fn set_attributes(&self, xattrs: &[Xattr]) -> io::Result<()> {
        fchown(&self.to, Some(Uid::from_raw(self.from.uid)), Some(Gid::from_raw(self.from.gid)))?;
        // After the owner, whose change would take capabilities away.
        for (name, value) in xattrs {
            match fsetxattr(&self.to, name, value, XattrFlags::empty()) {
                Err(error) if is_dispensable(name, error) => (),
                set => set.map_err(|error| {
                    let why = io::Error::from(error);
                    io::Error::new(why.kind(), format!("its attribute {} cannot be kept there: {why}", name.display()))
                })?,
            }
        }
        Ok(())
    }

    /// Copies the next piece; whether there was one.
    pub(super) fn piece(&mut self, from: &OwnedFd) -> io::Result<bool> {
        if self.at >= self.from.size {
            return Ok(false);
        }
        let data = match seek(from, SeekFrom::Data(self.at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let start = data / BLOCK * BLOCK;
        let hole = seek(from, SeekFrom::Hole(data))?.min(self.from.size);
        let want = hole.div_ceil(BLOCK) * BLOCK - start;
        let want = want.min(PIECE as u64) as usize;
        let offset = self.buffer.as_ptr().align_offset(BLOCK as usize);
        let piece = &mut self.buffer[offset..offset + want];
        let mut read = 0;
        while read < want {
            match pread(from, &mut piece[read..], start + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(Errno::INTR) => (),
                Err(error) => return Err(error.into()),
            }
        }
        piece[read..].fill(0);
        // Up to the end of a block; what is beyond the end of the file is cut off at last.
        let length = read.div_ceil(BLOCK as usize) * BLOCK as usize;
        let mut written = 0;
        while written < length {
            match pwrite(&self.to, &piece[written..length], start + written as u64) {
                Ok(more) => written += more,
                Err(Errno::INTR) => (),
                Err(error) => return Err(error.into()),
            }
        }
        if !self.is_direct {
            fdatasync(&self.to)?;
        }
        self.at = start + want as u64;
        let end = (start + length as u64).min(self.from.size);
        self.fresh += end.saturating_sub(start.max(self.counted));
        self.counted = end.max(self.counted);
        Ok(true)
    }

    /// Bytes copied since it was last asked, without those that an earlier copy had, and up to where they are counted.
    pub(super) fn take_fresh(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.fresh), self.counted)
    }

    /// Bytes up to where it has come.
    pub(super) fn done(&self) -> u64 {
        self.at.min(self.from.size)
    }

    /// Makes it the file in all but its name, durable; its inode.
    pub(super) fn finish(&self, xattrs: &[Xattr]) -> io::Result<u64> {
        let from = &self.from;
        ftruncate(&self.to, self.from.size)?;
        // Once more, since writes took capabilities away, and before the mode, which holds a part of an access control list.
        self.set_attributes(xattrs)?;
        fchmod(&self.to, Mode::from_raw_mode(from.mode & 0o7777))?;
        futimens(&self.to, &Timestamps { last_access: time(from.accessed), last_modification: time(from.modified) })?;
        fsync(&self.to)?;
        Ok(fstat(&self.to)?.st_ino)
    }
}

/// Whether a file may go without an attribute that its place refuses: the label of SELinux there is for the policy of that place to say, and
/// a file system that was mounted with one label for all keeps no other.
fn is_dispensable(name: &OsStr, error: Errno) -> bool {
    name == SELINUX && matches!(error, Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS | Errno::INVAL)
}

fn time(moment: Moment) -> Timespec {
    Timespec { tv_sec: moment.seconds, tv_nsec: moment.nanoseconds.into() }
}

#[cfg(test)]
mod tests {
    use super::{Copy, is_dispensable};
    use minerva_cachefs::Attributes;
    use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
    use rustix::io::Errno;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::ffi::OsStr;
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// What `stat` shows of an empty file.
    fn empty() -> Attributes {
        Attributes { node: 2, mode: 0o100_600, links: 1, block_size: 4096, ..Attributes::default() }
    }

    fn directory(path: &Path) -> OwnedFd {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty()).unwrap()
    }

    #[test]
    fn a_copy_is_a_file_of_ours_whoever_puts_a_link_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        // It makes a file and then refuses to open it past the page cache.
        if let Err(error) = mount("minerva-test", folder.path(), "ramfs", MountFlags::empty(), None) {
            println!("skipped: cannot mount a ramfs: {error}");
            return;
        }
        let (victim, name) = (folder.path().join("victim"), folder.path().join("copy"));
        fs::write(&victim, "somebody else's").unwrap();
        let victims = fs::metadata(&victim).unwrap().ino();
        let from = empty();
        let directory = directory(folder.path());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    if fs::remove_file(&name).is_ok() {
                        let _ = fs::hard_link(&victim, &name);
                    }
                }
            });
            let mut taken = 0;
            for _ in 0..3000 {
                // Where somebody is in the way it fails.
                if let Ok(copy) = Copy::begin(&directory, OsStr::new("copy"), &from, 0) {
                    taken += u64::from(fstat(&copy.to).unwrap().st_ino == victims);
                }
                let _ = fs::remove_file(&name);
            }
            done.store(true, Ordering::Relaxed);
            assert_eq!(taken, 0, "copies went to the file of somebody else");
        });
        drop(directory);
        unmount(folder.path(), UnmountFlags::DETACH).unwrap();
    }

    #[test]
    fn a_label_of_selinux_is_the_only_attribute_that_a_file_may_lose() {
        let folder = tempfile::tempdir().unwrap();
        // It keeps no attribute at all.
        if let Err(error) = mount("minerva-test", folder.path(), "ramfs", MountFlags::empty(), None) {
            println!("skipped: cannot mount a ramfs: {error}");
            return;
        }
        let directory = directory(folder.path());
        let copy = Copy::begin(&directory, OsStr::new("copy"), &empty(), 0).unwrap();
        let xattr = |name: &str| (name.into(), b"value".to_vec());
        copy.prepare(&[xattr("security.selinux")]).unwrap();
        copy.finish(&[xattr("security.selinux")]).unwrap();
        for name in ["security.capability", "user.name"] {
            let refused = copy.prepare(&[xattr("security.selinux"), xattr(name)]).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("its attribute {name} cannot be kept there")), "{refused}");
        }
        assert!(!is_dispensable(OsStr::new("security.selinux"), Errno::NOSPC));
        drop((copy, directory));
        unmount(folder.path(), UnmountFlags::DETACH).unwrap();
    }
}
