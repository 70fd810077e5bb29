//! What people call a disk: by its kernel name, not by its number, for as long as it is there.

use minerva_api::v1;

/// The kernel name of the disk with this number, such as `sda`; the number where it is gone.
pub(crate) fn of<'a>(slice: &'a v1::Slice, number: &'a str) -> &'a str {
    slice.devices.iter().find(|device| device.number == number).map_or(number, |device| &device.name)
}
