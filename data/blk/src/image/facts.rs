//! What the kernel, and its first bytes, say of the file of an image.

use rustix::fs::{AtFlags, StatxFlags, fstatfs, major};
use std::fs::File;

/// Formats that are not raw, by their first bytes: a guest would see their headers as its disk.
const FORMATS: [(&[u8], &str); 4] =
    [(b"QFI\xfb", "qcow2"), (b"KDMV", "VMDK"), (b"vhdxfile", "VHDX"), (b"QED\0", "QED")];
/// What the kernel calls FUSE, and those of its own file systems that tell no block device (`include/uapi/linux/magic.h`).
const FUSE_MAGIC: u32 = 0x6573_5546;
const OWN_MAGICS: [u32; 2] = [0x9123_683e, 0x0102_1994];

/// Whether a file, which lies on this device, is on a file system for which another process or another host answers: on none of
/// the kernel's own.
pub(super) fn is_of_others(file: &File, device: u64) -> bool {
    let kind = fstatfs(file).map_or(0, |facts| facts.f_type as u32);
    kind == FUSE_MAGIC || major(device) == 0 && !OWN_MAGICS.contains(&kind)
}

/// What direct I/O asks of offsets and of addresses, as the kernel says it (since 6.1); else what every disk takes.
pub(super) fn alignment(file: &File) -> (u32, usize) {
    let facts = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::from_bits_retain(libc::STATX_DIOALIGN));
    let told = facts.ok().filter(|facts| facts.stx_mask & libc::STATX_DIOALIGN != 0);
    match told.map(|facts| (facts.stx_dio_offset_align, facts.stx_dio_mem_align)) {
        Some((offset, memory)) if offset > 0 && memory > 0 => (offset.max(512), memory as usize),
        _ => (512, 512),
    }
}

/// The format of one that is not raw.
pub(super) fn other_format(file: &File) -> Option<&'static str> {
    /// Aligned as direct I/O may ask.
    #[repr(align(4096))]
    struct Block([u8; 4096]);
    let mut first = Block([0; 4096]);
    let read = rustix::io::pread(file, &mut first.0[..], 0).ok()?;
    FORMATS.iter().find(|(magic, _)| first.0[..read].starts_with(magic)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::is_of_others;
    use std::fs::File;

    #[test]
    fn who_answers_for_a_file_is_known_by_its_file_system() {
        let file = |place: &str| tempfile::tempfile_in(place).unwrap();
        let none = rustix::fs::makedev(0, 7);
        assert!(!is_of_others(&file("/dev/shm"), none), "memory");
        assert!(is_of_others(&File::open("/proc/self/stat").unwrap(), none), "neither disk nor memory");
        assert!(!is_of_others(&file("/dev/shm"), rustix::fs::makedev(8, 1)), "a disk");
    }
}
