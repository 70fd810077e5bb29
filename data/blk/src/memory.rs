//! The guest's memory, as its front end shares it: judged, and mapped.

use crate::error::HangUp;
use crate::mapped::Memory;
use rustix::fs::{SealFlags, fcntl_get_seals, fstatfs};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::sync::Arc;
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::{FileOffset, GuestAddress, GuestRegionMmap};

/// What the kernel calls the file system of hugepages (`include/uapi/linux/magic.h`).
const HUGETLBFS_MAGIC: u32 = 0x9584_58f6;

/// The memory, and how the front end's own addresses, by which it names rings, translate.
#[derive(Clone, Debug)]
pub(crate) struct MemoryTable {
    pub(crate) memory: Arc<Memory>,
    regions: Vec<Region>,
    /// What is mapped, in the order of `regions`.
    files: Vec<Arc<File>>,
}

/// A piece of it, by addresses of the front end and of the guest, and by where it lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Region {
    user_address: u64,
    guest_address: u64,
    length: u64,
    offset: u64,
}

impl MemoryTable {
    /// Maps what the front end shares; an error where it cannot be as it says.
    pub(crate) fn map(table: &[VhostUserMemoryRegion], files: Vec<File>) -> Result<Self, HangUp> {
        let region = |region: &VhostUserMemoryRegion| Region {
            user_address: region.user_addr,
            guest_address: region.guest_phys_addr,
            length: region.memory_size,
            offset: region.mmap_offset,
        };
        Self::map_regions(table.iter().map(region).collect(), files)
    }

    /// The same, for regions as [`MemoryTable::regions`] told them.
    pub(crate) fn map_regions(regions: Vec<Region>, files: Vec<File>) -> Result<Self, HangUp> {
        let mut mapped = Vec::with_capacity(regions.len());
        let files: Vec<Arc<File>> = files.into_iter().map(Arc::new).collect();
        for (region, file) in regions.iter().zip(&files) {
            let Region { user_address, guest_address, length, offset } = *region;
            judge(file, offset, length)?;
            let file = FileOffset::from_arc(Arc::clone(file), offset);
            let bytes = usize::try_from(length).map_err(|_| HangUp::NotMapped)?;
            let region = GuestRegionMmap::from_range(GuestAddress(guest_address), bytes, Some(file));
            mapped.push(region.map_err(|_| HangUp::NotMapped)?);
            user_address.checked_add(length).ok_or(HangUp::NotMapped)?;
        }
        let memory = Arc::new(Memory::new(mapped).ok_or(HangUp::NotMapped)?);
        (regions.len() == files.len()).then_some(Self { memory, regions, files }).ok_or(HangUp::NotMapped)
    }

    /// What it is made of, and the file of each piece.
    pub(crate) fn regions(&self) -> (&[Region], impl Iterator<Item = &File>) {
        (&self.regions, self.files.iter().map(|file| &**file))
    }

    /// The guest's address of what the front end has at `user_address`.
    pub(crate) fn guest_address(&self, user_address: u64) -> Option<GuestAddress> {
        let region = self
            .regions
            .iter()
            .find(|region| (region.user_address..region.user_address + region.length).contains(&user_address))?;
        Some(GuestAddress(region.guest_address + (user_address - region.user_address)))
    }
}

/// Whether a file is as long as somebody says, cannot get shorter, and has memory wherever it is touched: elsewhere, memory that is mapped
/// from it kills who touches it (`SIGBUS`), and with this process all its other guests would be without a disk. A seal is for good.
pub(crate) fn holds(file: &File, offset: u64, length: u64) -> bool {
    judge(file, offset, length).is_ok()
}

fn judge(file: &File, offset: u64, length: u64) -> Result<(), HangUp> {
    // First the seals, which only memory has: a file of another process's file system would answer nothing else before that wants to.
    if !fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
        return Err(HangUp::NotSealed);
    }
    // Pages of the hugepage pool are taken when they are touched, and who finds none there is killed. What was taken before does not help: the
    // front end can punch holes, and no seal is against that. A hole in other sealed memory is filled with zeroes when it is touched.
    if fstatfs(file).map_or(true, |facts| facts.f_type as u32 == HUGETLBFS_MAGIC) {
        return Err(HangUp::HugePages);
    }
    let end = offset.checked_add(length);
    let is_long_enough = file.metadata().is_ok_and(|facts| end.is_some_and(|end| end <= facts.len()));
    is_long_enough.then_some(()).ok_or(HangUp::TooShort)
}
