//! The guest's memory, as its front end shares it.

use std::fs::File;
use std::sync::Arc;
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestMemoryRegion, GuestRegionMmap};

/// Mapped into this process. Whoever has a request at the disk holds it, so that nothing is unmapped below the kernel's hands.
pub(crate) type Memory = GuestMemoryMmap<()>;

/// The memory, and how the front end's own addresses, by which it names rings, translate.
#[derive(Clone, Debug)]
pub(crate) struct MemoryTable {
    pub(crate) memory: Arc<Memory>,
    regions: Vec<Region>,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    user_address: u64,
    guest_address: u64,
    length: u64,
}

impl MemoryTable {
    /// Maps what the front end shares; none where it cannot be as it says.
    pub(crate) fn map(table: &[VhostUserMemoryRegion], files: Vec<File>) -> Option<Self> {
        let mut mapped = Vec::with_capacity(table.len());
        let mut regions = Vec::with_capacity(table.len());
        for (region, file) in table.iter().zip(files) {
            let (guest_address, length) = (region.guest_phys_addr, region.memory_size);
            let (user_address, offset) = (region.user_addr, region.mmap_offset);
            if !holds(&file, offset, length) {
                return None;
            }
            let file = FileOffset::new(file, offset);
            let address = GuestAddress(guest_address);
            mapped.push(GuestRegionMmap::from_range(address, usize::try_from(length).ok()?, Some(file)).ok()?);
            user_address.checked_add(length)?;
            regions.push(Region { user_address, guest_address, length });
        }
        mapped.sort_by_key(GuestRegionMmap::start_addr);
        Some(Self { memory: Arc::new(Memory::from_regions(mapped).ok()?), regions })
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

/// Whether a file is as long as somebody says: behind its end, memory that is mapped from it kills who touches it.
pub(crate) fn holds(file: &File, offset: u64, length: u64) -> bool {
    let end = offset.checked_add(length);
    file.metadata().is_ok_and(|facts| end.is_some_and(|end| end <= facts.len()))
}
