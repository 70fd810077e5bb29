//! The image or block device behind a VM disk: opened once, locked, and measured.

mod facts;
mod locks;

use crate::error::ImageError;
use crate::request::{Geometry, SECTOR_BYTES};
use facts::{alignment, is_of_others, other_format};
use locks::{lock, unlock};
use rustix::fs::{AtFlags, OFlags, StatxFlags, fcntl_getfl};
use std::fs::{File, FileType, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long locks are waited for: a process that was killed holds its locks until its last request has come back from the
/// disk, and until then nobody else may write.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// A guest's blocks are no larger: its file system could not be mounted.
const BLOCK_BYTES_MAX: u32 = 4096;

/// How an image is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageOptions {
    /// Nothing is written to it, and others may read it too.
    pub is_read_only: bool,
    /// Past the page cache (`O_DIRECT`). Without it what tenants read and write stays in the host's memory, and the schedulers order
    /// copies and not the disk.
    pub is_direct: bool,
}

/// An image that is open, and that another process may have locked.
#[derive(Debug)]
pub struct UnlockedImage {
    file: File,
    path: PathBuf,
    options: ImageOptions,
}

/// An open image. The lock goes with it, and with the last request that the kernel still has of it.
#[derive(Debug)]
pub struct Image {
    file: File,
    /// For people.
    path: PathBuf,
    /// As it was at first.
    geometry: Geometry,
    /// Its length now.
    sectors: AtomicU64,
    is_file: bool,
    is_direct: bool,
    may_hang: bool,
    /// What addresses of buffers must be multiples of; 1 through the page cache.
    memory_alignment: usize,
    /// The device it is or lies on, as `stat` tells it.
    device: u64,
}

impl Image {
    /// Opens and locks it, waiting for another process's lock as long as a killed server may need.
    pub fn open(path: &Path, options: ImageOptions) -> Result<Self, ImageError> {
        Self::open_until(path, options, Instant::now() + LOCK_PATIENCE)
    }

    /// The same, for one of many images that wait together: until then at most.
    pub fn open_until(path: &Path, options: ImageOptions, deadline: Instant) -> Result<Self, ImageError> {
        UnlockedImage::open(path, options)?.lock(deadline)
    }

    /// Locks one that somebody else opened, as `options` say, and who is no longer root cannot; `path` is for people only.
    pub fn of(file: File, path: &Path, options: ImageOptions) -> Result<Self, ImageError> {
        Self::locked(file, path, options, Instant::now() + LOCK_PATIENCE, None)
    }

    /// The same of one that another server serves, as a disk of so many bytes. What its guest wrote there, and that somebody made the file
    /// shorter, is no reason to serve it no more.
    pub fn taken_over(file: File, path: &Path, options: ImageOptions, length_bytes: u64) -> Result<Self, ImageError> {
        Self::locked(file, path, options, Instant::now() + LOCK_PATIENCE, Some(length_bytes))
    }

    fn locked(
        mut file: File,
        path: &Path,
        options: ImageOptions,
        deadline: Instant,
        told_bytes: Option<u64>,
    ) -> Result<Self, ImageError> {
        let failed = |source| ImageError::Open { path: path.to_owned(), source };
        let metadata = file.metadata().map_err(failed)?;
        let kind = metadata.file_type();
        judge_kind(kind, path)?;
        let flags = fcntl_getfl(&file).map_err(|errno| failed(errno.into()))?;
        let access = if options.is_read_only { OFlags::RDONLY } else { OFlags::RDWR };
        if flags.contains(OFlags::DIRECT) != options.is_direct || flags & OFlags::RWMODE != access {
            let why = "not opened as `read_only` and `direct` say".to_owned();
            return Err(refused(path, why, "open it with `minerva-ctl disk add`, which does both"));
        }
        lock(&file, path, options.is_read_only, deadline)?;
        let length = told_bytes.map_or_else(|| judged_length(&mut file, path), Ok)?;
        let (block_bytes, memory_alignment) = if options.is_direct { alignment(&file) } else { (512, 1) };
        if block_bytes > BLOCK_BYTES_MAX || !length.is_multiple_of(u64::from(block_bytes)) {
            let why = format!("its disk has blocks of {block_bytes} bytes, and its length is not a multiple of that");
            return Err(refused(path, why, "make it a multiple, or set `direct = false`"));
        }
        let geometry = Geometry { sectors: length / SECTOR_BYTES, block_bytes, is_read_only: options.is_read_only };
        let device = if kind.is_block_device() { metadata.rdev() } else { metadata.dev() };
        let sectors = AtomicU64::new(geometry.sectors);
        let (path, is_file) = (path.to_owned(), kind.is_file());
        let may_hang = is_file && is_of_others(&file, device);
        let is_direct = options.is_direct;
        Ok(Self { file, path, geometry, sectors, memory_alignment, device, is_file, is_direct, may_hang })
    }

    /// Where it was opened; for people only.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it longer: a file to `bytes`, or as long as it has become; a block device as long as it has become. How long it is
    /// then. It never gets shorter, which would take from the guest what it wrote.
    pub fn grow(&self, bytes: Option<u64>) -> Result<u64, ImageError> {
        let failed = |source| ImageError::Open { path: self.path.clone(), source };
        let refused = |why: String, remedy: &'static str| refused(&self.path, why, remedy);
        let now = self.geometry().sectors * SECTOR_BYTES;
        let there = (&self.file).seek(SeekFrom::End(0)).map_err(failed)?;
        let wanted = bytes.unwrap_or(there);
        if !wanted.is_multiple_of(u64::from(self.geometry.block_bytes)) {
            let why = format!("{wanted} bytes are not a whole number of blocks of {} bytes", self.geometry.block_bytes);
            return Err(refused(why, "name a multiple of 4096"));
        }
        if wanted < now {
            let why = format!("{now} bytes long, and shrinking it to {wanted} would lose data of its guest");
            return Err(refused(why, "give a larger size: disks only grow"));
        }
        if wanted > there {
            if self.geometry.is_read_only || !self.is_file {
                let why = format!("only {there} bytes long");
                return Err(refused(
                    why,
                    "extend it first, for example with `lvextend`, then use `disk resize` without a size",
                ));
            }
            self.file.set_len(wanted).map_err(failed)?;
        }
        self.sectors.store(wanted / SECTOR_BYTES, Ordering::Relaxed);
        Ok(wanted)
    }

    /// As the guest sees it.
    pub fn geometry(&self) -> Geometry {
        Geometry { sectors: self.sectors.load(Ordering::Relaxed), ..self.geometry }
    }

    /// The number of the block device that it is, or that holds it.
    pub fn device(&self) -> u64 {
        self.device
    }

    pub(crate) fn is_block_device(&self) -> bool {
        !self.is_file
    }

    /// Whether it is read and written past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Whether another process or another host answers for it, and may not.
    pub(crate) fn may_hang(&self) -> bool {
        self.may_hang
    }

    /// Whether its file has no name any more: it ends with the last one who has it open. As far as the kernel knows without asking a server:
    /// a network or FUSE file system that hangs must not hang whoever is told of this, and with them all disks.
    pub(crate) fn is_removed(&self) -> bool {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        self.is_file
            && rustix::fs::statx(&self.file, "", flags, StatxFlags::NLINK)
                .is_ok_and(|facts| facts.stx_mask & StatxFlags::NLINK.bits() != 0 && facts.stx_nlink == 0)
    }

    /// What to do then, while this process has it open.
    pub(crate) fn removed_remedy(&self) -> String {
        format!(
            "its image {} was removed, and its guest loses the disk when this server ends; copy it first, best with the guest stopped: \
             `cp --sparse=always /proc/{}/fd/{} NEW`",
            self.path.display(),
            std::process::id(),
            self.file.as_raw_fd()
        )
    }

    pub(crate) fn memory_alignment(&self) -> usize {
        self.memory_alignment
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl UnlockedImage {
    /// Opens it, and looks at nothing in it: who has the lock may be writing.
    pub fn open(path: &Path, options: ImageOptions) -> Result<Self, ImageError> {
        let failed = |source| ImageError::Open { path: path.to_owned(), source };
        let kind = match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let remedy = "make it (`truncate --size=20G IMAGE`), or name the image or block device that there is";
                return Err(refused(path, "there is no such file".to_owned(), remedy));
            }
            metadata => metadata.map_err(failed)?.file_type(),
        };
        judge_kind(kind, path)?;
        let mut flags = OFlags::NONBLOCK;
        if options.is_direct {
            flags |= OFlags::DIRECT;
        }
        if kind.is_block_device() && !options.is_read_only {
            // Neither mounted nor opened by others who say so too.
            flags |= OFlags::EXCL;
        }
        let mut open = OpenOptions::new();
        open.read(true).write(!options.is_read_only).custom_flags(flags.bits() as i32);
        let file = open.open(path).map_err(|source| match source.raw_os_error() {
            Some(libc::EINVAL) if options.is_direct => refused(
                path,
                "its file system has no direct I/O".to_owned(),
                "set `direct = false`, or move the image to a file system of a disk",
            ),
            Some(libc::EBUSY) => {
                refused(path, "in use, perhaps mounted".to_owned(), "unmount it, or stop what else uses it")
            }
            _ => failed(source),
        })?;
        Ok(Self { file, path: path.to_owned(), options })
    }

    /// Locks it, waiting until then at most, and judges what is in it.
    pub fn lock(&self, deadline: Instant) -> Result<Image, ImageError> {
        // The same open file: the lock goes with whichever of the two is closed last.
        let failed = |source| ImageError::Open { path: self.path.clone(), source };
        Image::locked(self.file.try_clone().map_err(failed)?, &self.path, self.options, deadline, None)
    }

    /// Gives back the lock, which otherwise stays with this open file although the [`Image`] of it is closed.
    pub fn unlock(&self) {
        unlock(&self.file);
    }
}

impl AsFd for Image {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// How long a new image is, and that it is a raw one.
fn judged_length(file: &mut File, path: &Path) -> Result<u64, ImageError> {
    let failed = |source| ImageError::Open { path: path.to_owned(), source };
    let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
    if length == 0 || !length.is_multiple_of(SECTOR_BYTES) {
        let remedy = "make it a multiple of 512 bytes: `truncate --size=%4096 IMAGE`";
        return Err(refused(path, format!("{length} bytes long, which is not a whole number of sectors"), remedy));
    }
    match other_format(file) {
        Some(format) => {
            Err(refused(path, format!("a {format} image"), "convert it: `qemu-img convert -O raw IMAGE NEW`"))
        }
        None => Ok(length),
    }
}

fn judge_kind(kind: FileType, path: &Path) -> Result<(), ImageError> {
    if kind.is_file() || kind.is_block_device() {
        return Ok(());
    }
    Err(refused(path, "neither a file nor a block device".to_owned(), "name a raw image or a block device"))
}

fn refused(path: &Path, why: String, remedy: &'static str) -> ImageError {
    ImageError::Refused { path: path.to_owned(), why, remedy }
}

#[cfg(test)]
mod tests {
    use super::{Image, ImageOptions, UnlockedImage};
    use crate::error::ImageError;
    use std::fs::File;
    use std::io::Write;
    use std::time::Instant;

    const OPTIONS: ImageOptions = ImageOptions { is_read_only: false, is_direct: false };

    #[test]
    fn images_that_are_no_raw_disks_are_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let refusal = |path: &std::path::Path| Image::open(path, OPTIONS).expect_err("refused").to_string();
        assert!(refusal(&path).contains("there is no such file; make it"), "{}", refusal(&path));
        assert!(refusal(folder.path()).contains("neither a file nor a block device"));
        let mut file = File::create(&path).unwrap();
        assert!(refusal(&path).contains("0 bytes long"));
        file.set_len(1000).unwrap();
        assert!(refusal(&path).contains("1000 bytes long"));
        file.set_len(4096).unwrap();
        file.write_all(b"QFI\xfb").unwrap();
        assert!(refusal(&path).contains("a qcow2 image; convert it"), "{}", refusal(&path));
    }

    #[test]
    fn an_image_is_written_by_one_and_read_by_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let reading = ImageOptions { is_read_only: true, ..OPTIONS };
        let one = Image::open(&path, reading).unwrap();
        let other = Image::open(&path, reading).unwrap();
        assert_eq!(one.geometry().sectors, 2048);
        drop((one, other));
        let _writer = Image::open(&path, OPTIONS).unwrap();
        // The patience of `open` would hold up the test: the lock itself is looked at.
        let probe = File::open(&path).unwrap();
        let mut read_lock = super::locks::whole(libc::F_RDLCK);
        nix::fcntl::fcntl(&probe, nix::fcntl::FcntlArg::F_OFD_GETLK(&mut read_lock)).unwrap();
        assert_eq!(i32::from(read_lock.l_type), libc::F_WRLCK, "held by the writer");
    }

    #[test]
    fn an_image_that_is_given_back_is_anothers_though_it_is_still_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let open = || UnlockedImage::open(&path, OPTIONS).unwrap();
        let (one, other, now) = (open(), open(), Instant::now());
        drop(one.lock(now).unwrap());
        assert!(matches!(other.lock(now), Err(ImageError::Locked { .. })), "it goes with the open file");
        one.unlock();
        assert!(other.lock(now).is_ok());
    }

    #[test]
    fn an_image_grows_and_never_shrinks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let image = Image::open(&path, OPTIONS).unwrap();
        assert_eq!(image.grow(Some(2 << 20)).unwrap(), 2 << 20);
        assert_eq!((image.geometry().sectors, path.metadata().unwrap().len()), (4096, 2 << 20));
        assert!(image.grow(Some(1 << 20)).unwrap_err().to_string().contains("disks only grow"));
        assert!(image.grow(Some((2 << 20) + 100)).unwrap_err().to_string().contains("not a whole number of blocks"));
        File::options().write(true).open(&path).unwrap().set_len(3 << 20).unwrap();
        assert_eq!(image.grow(None).unwrap(), 3 << 20, "as long as somebody else made it");
        assert_eq!(image.geometry().sectors, 6144);
    }

    #[test]
    fn what_somebody_else_opened_is_judged_alike() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let read_only = File::open(&path).unwrap();
        let why = Image::of(read_only, &path, OPTIONS).unwrap_err().to_string();
        assert!(why.contains("not opened as"), "{why}");
        let both = File::options().read(true).write(true).open(&path).unwrap();
        assert_eq!(Image::of(both, &path, OPTIONS).unwrap().geometry().sectors, 2048);
    }

    /// Otherwise a guest could keep the server of all guests from being replaced.
    #[test]
    fn what_a_guest_wrote_and_that_its_file_became_shorter_is_no_reason_against_an_image_in_service() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        for (bytes, length) in [(&b"QFI\xfb"[..], 1 << 20), (b"", 1000), (b"", 0)] {
            std::fs::write(&path, bytes).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            file.set_len(length).unwrap();
            assert!(Image::of(file.try_clone().unwrap(), &path, OPTIONS).is_err(), "a new one of {length} bytes");
            let image = Image::taken_over(file, &path, OPTIONS, 1 << 20).unwrap();
            assert_eq!(image.geometry().sectors, 2048);
        }
    }
}
