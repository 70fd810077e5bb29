//! What a disk says of itself, by which it is known again when the kernel numbers it otherwise.

use crate::read::Reader;
use std::path::Path;

/// Where disks of each kind say it, the best first: world-wide names of NVMe and SCSI, serial numbers, device mapper and md.
const PLACES: [(&str, &str); 6] = [
    ("wwid", "wwid"),
    ("wwid", "device/wwid"),
    ("serial", "serial"),
    ("serial", "device/serial"),
    ("dm", "dm/uuid"),
    ("md", "md/uuid"),
];

/// Longer is no name.
const LENGTH_MAX: usize = 256;

/// What the disk of this directory in `/sys/block` says; of one that says nothing, its number with the kernel's count of disks, which no
/// other disk has in this boot. Empty where there is neither.
pub(crate) fn identity(folder: &Path, reader: &mut Reader) -> String {
    let said = PLACES.iter().find_map(|(kind, place)| {
        let text = reader.line(&folder.join(place));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty() && text.len() <= LENGTH_MAX).then(|| format!("{kind}:{text}"))
    });
    said.unwrap_or_else(|| {
        let (number, sequence) = (reader.line(&folder.join("dev")), reader.line(&folder.join("diskseq")));
        if number.is_empty() || sequence.is_empty() { String::new() } else { format!("diskseq:{number}#{sequence}") }
    })
}
