//! What each guest has of the disk: all of it where everybody only reads, else a partition with the regions of its programs, as no
//! two servers may write one image.

use super::VmGuest;
use crate::disk::Disk;
use crate::error::Result;
use std::ops::Range;
use std::path::PathBuf;

/// The device that is a guest's disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuestPart {
    pub(super) device: PathBuf,
    /// Where on the whole disk it begins.
    pub(super) start: u64,
    /// The guest may write it.
    pub(super) is_writable: bool,
}

/// By guest.
pub(super) fn of_guests(guests: &[VmGuest], disk: &Disk) -> Result<Vec<GuestPart>> {
    if !guests.iter().any(VmGuest::writes) {
        let whole = GuestPart { device: disk.device().to_owned(), start: 0, is_writable: false };
        return Ok(vec![whole; guests.len()]);
    }
    let part = |(number, guest): (u32, &VmGuest)| {
        let extent = extent(guest);
        let device = disk.partition(number, extent.start, extent.end - extent.start)?;
        Ok(GuestPart { device, start: extent.start, is_writable: guest.writes() })
    };
    (1..).zip(guests).map(part).collect()
}

/// From the first byte to the last that a program of the guest touches.
fn extent(guest: &VmGuest) -> Range<u64> {
    let start = guest.readers.iter().map(|reader| reader.region_start).min().unwrap_or_default();
    let end = guest.readers.iter().map(|reader| reader.region_start + reader.region_bytes).max().unwrap_or_default();
    start..end
}
