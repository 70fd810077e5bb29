//! Removing a BFQ weight of one disk so that its effect goes as well.
//!
//! `MAJ:MIN default` removes the line of a disk, but the kernel hands the weight in force to the group as its default one: two
//! equal readers, one of which had weight 800, still share 7:1 afterwards (tried on Linux 6.18 with `blkio.bfq.weight_device`;
//! `io.bfq.weight` is the same code). Only a write of the group's own weight sets the weight in force anew. It also removes the
//! lines of *all* disks of that group. So a removal is: the group's own weight, as it stands; then the lines of the other disks.
//! A kill between the two must not lose those: what nobody holds of them is journalled before.

use crate::error::{ActuateError, KnobFailure};
use crate::journal_lines::JournalEntry;
use crate::open_beneath::OpenTarget;
use minerva_model::{DeviceId, KnobFile};
use rustix::io::Errno;

/// The writes that take the place of a removal, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Removal {
    /// The group's own weight as it stands. It removes the lines of all disks.
    own: String,
    /// The lines of the other disks, to be written again.
    others: Vec<String>,
}

/// What to write instead of `text` to a knob that reads `stands`; `None` if `text` does what it says. `cleared` are lines that an
/// earlier try of the same removal may have lost: those that are still missing are written as well.
fn removal(file: KnobFile, device: DeviceId, text: &str, stands: &str, cleared: &[String]) -> Option<Removal> {
    if !is_removal(file, device, text) {
        return None;
    }
    // Without this line there is nothing that could be set anew, nor are there lines of disks (Linux before 5.4).
    let own = stands.lines().find_map(|line| line.trim().strip_prefix("default "))?;
    let own: u32 = own.trim().parse().ok()?;
    let mut others: Vec<String> = Vec::new();
    for line in stands.lines().chain(cleared.iter().map(String::as_str)) {
        let Some(other) = device_of(line).filter(|other| *other != device) else { continue };
        if !others.iter().any(|line| device_of(line) == Some(other)) {
            others.push(line.trim().to_owned());
        }
    }
    Some(Removal { own: format!("default {own}"), others })
}

/// Writes `text` to the knob of `entry`, so that it takes effect also where it removes a weight, and answers with what stands
/// there then. `note_cleared` gets the lines of other disks before they are cleared.
pub(crate) fn write_and_read_back(
    place: &OpenTarget,
    entry: &JournalEntry,
    text: &str,
    note_cleared: impl FnOnce(&[String]) -> Result<(), ActuateError>,
) -> Result<String, KnobFailure> {
    let file = entry.file;
    if !is_removal(file, entry.device, text) {
        return place.write_and_read_back(file, text);
    }
    let Some(removal) = removal(file, entry.device, text, &place.read(file)?, &entry.cleared) else {
        return place.write_and_read_back(file, text);
    };
    note_cleared(&removal.others).map_err(|error| {
        let (shown, why) = (place.shown(file), error.in_full());
        KnobFailure::guard(format!("{shown} was not written, as what that clears could not be journalled: {why}"))
    })?;
    let mut stands = place.write_and_read_back(file, &removal.own)?;
    for line in &removal.others {
        match place.write_and_read_back(file, line) {
            Ok(text) => stands = text,
            // That disk is gone, or has left BFQ, and its weight with it.
            Err(KnobFailure::Vanished { .. } | KnobFailure::Refused { errno: Some(Errno::OPNOTSUPP), .. }) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(stands)
}

/// The disk that a line of a weight file is about.
pub(crate) fn device_of(line: &str) -> Option<DeviceId> {
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Whether `text` removes the disk's line from a file of BFQ weights.
pub(crate) fn is_removal(file: KnobFile, device: DeviceId, text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    matches!(file, KnobFile::BfqWeight | KnobFile::BfqV1WeightDevice)
        && words.next().is_some_and(|id| id.parse() == Ok(device))
        && (words.next(), words.next()) == (Some("default"), None)
}

#[cfg(test)]
mod unit_tests {
    use super::{Removal, removal};
    use minerva_model::{DeviceId, KnobFile};

    const DEVICE: DeviceId = DeviceId { major: 7, minor: 0 };

    #[test]
    fn a_removal_sets_the_groups_own_weight_and_then_the_other_disks() {
        // What stands, what an earlier try lost, and what is written.
        let table: [(&str, &[&str], &str, &[&str]); 7] = [
            ("default 100\n7:0 800\n", &[], "default 100", &[]),
            ("default 100\n", &[], "default 100", &[]),
            ("default 250\n7:1 300\n7:0 800\n8:0 9\n", &[], "default 250", &["7:1 300", "8:0 9"]),
            ("default 100\n7:0 800\n", &["7:1 300"], "default 100", &["7:1 300"]),
            ("default 100\n7:1 301\n", &["7:1 300", "8:0 9"], "default 100", &["7:1 301", "8:0 9"]),
            ("default 100\n7:0 800\n", &["7:0 5"], "default 100", &[]),
            ("default 100\nnonsense\n7:1 300\n", &["more"], "default 100", &["7:1 300"]),
        ];
        for (stands, cleared, own, others) in table {
            let cleared: Vec<String> = cleared.iter().map(ToString::to_string).collect();
            let others = others.iter().map(ToString::to_string).collect();
            let wanted = Some(Removal { own: own.to_owned(), others });
            for file in [KnobFile::BfqWeight, KnobFile::BfqV1WeightDevice] {
                assert_eq!(removal(file, DEVICE, "7:0 default", stands, &cleared), wanted, "{stands:?}");
            }
        }
    }

    #[test]
    fn what_takes_effect_by_itself_is_written_as_it_is() {
        let table = [
            (KnobFile::BfqV1WeightDevice, "7:0 50", "default 100\n7:0 800\n"),
            (KnobFile::BfqV1WeightDevice, "7:1 default", "default 100\n7:0 800\n"),
            (KnobFile::BfqWeight, "default 100", "default 100\n7:0 800\n"),
            (KnobFile::BfqWeight, "7:0 default", "100\n"),
            (KnobFile::BfqV1Weight, "100", "100\n"),
            (KnobFile::IoWeight, "7:0 default", "default 100\n7:0 800\n"),
            (KnobFile::IoMax, "7:0 rbps=max wbps=max", "7:0 rbps=5 wbps=max riops=max wiops=max\n"),
        ];
        for (file, text, stands) in table {
            assert_eq!(removal(file, DEVICE, text, stands, &[]), None, "{text}");
        }
    }
}
