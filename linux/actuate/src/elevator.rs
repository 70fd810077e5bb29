//! What a change of a disk's elevator loses besides the elevator: BFQ's weights of single disks in every group, and the queue's
//! other settings, which the kernel sets anew. Both are journalled with the elevator and put back after it.

use crate::open_beneath::{OpenTarget, Roots};
use minerva_model::{CgroupRef, DeviceId, KnobFile, KnobTarget, KnobWrite, WriteId};
use std::path::Path;

/// The elevator whose weights of single disks end with it.
const WEIGHING: &str = "bfq";
/// Files of the queue that the kernel sets anew with an elevator.
const QUEUE_FILES: [&str; 2] = ["queue/nr_requests", "queue/wbt_lat_usec"];
/// The elevator's own settings.
const SETTINGS_DIRECTORY: &str = "queue/iosched";
/// In milliseconds and, with an ending, in microseconds.
const SLICE_IDLE: &str = "queue/iosched/slice_idle";
const STRICT_GUARANTEES: &str = "queue/iosched/strict_guarantees";
/// Groups nested deeper than this are not looked at; the kernel's own limit is of the same order.
const DEPTH_MAX: usize = 64;

/// Whether putting this elevator back comes before all else of its disk, because what else there is needs it.
pub(crate) fn is_needed_first(file: KnobFile, undo: &str) -> bool {
    file == KnobFile::Elevator && undo == WEIGHING
}

/// The settings that the kernel changes with this one, as they are.
pub(crate) fn lost_settings(disk: &OpenTarget, file: KnobFile) -> Vec<(String, String)> {
    match file {
        KnobFile::Elevator => queue_settings(disk),
        // Setting it raises a smaller `slice_idle` to 8 ms, and taking it away does not lower that again (tried on Linux 6.18).
        KnobFile::BfqStrictGuarantees => {
            queue_settings(disk).into_iter().filter(|(name, _)| name.starts_with(SLICE_IDLE)).collect()
        }
        KnobFile::BfqWeight
        | KnobFile::BfqV1Weight
        | KnobFile::BfqV1WeightDevice
        | KnobFile::IoWeight
        | KnobFile::IoMax
        | KnobFile::ThrottleReadBps
        | KnobFile::ThrottleWriteBps
        | KnobFile::IoCostQos
        | KnobFile::BfqLowLatency
        | KnobFile::ServerWeight => Vec::new(),
    }
}

/// The queue's settings as they are: paths below the disk's directory, and texts. Those that cannot be read are not there.
fn queue_settings(disk: &OpenTarget) -> Vec<(String, String)> {
    let own = disk.names_in(SETTINGS_DIRECTORY).into_iter().map(|name| format!("{SETTINGS_DIRECTORY}/{name}"));
    let all = QUEUE_FILES.iter().map(|name| (*name).to_owned()).chain(own);
    all.filter_map(|name| Some((disk.read_relative(&name).ok()?.trim().to_owned(), name)))
        .map(|(text, name)| (name, text))
        .collect()
}

/// Writes again what reads otherwise; says what the kernel refused.
pub(crate) fn put_back_queue_settings(disk: &OpenTarget, settings: &[(String, String)]) -> Result<(), String> {
    let stands = |(name, text): &(String, String)| disk.read_relative(name).is_ok_and(|found| found.trim() == text);
    // Setting this raises a smaller `slice_idle`, which therefore comes after it.
    let (first, others): (Vec<_>, Vec<_>) = settings.iter().partition(|(name, _)| name == STRICT_GUARANTEES);
    for setting in first.into_iter().chain(others).filter(|setting| !stands(setting)) {
        // What is refused is seen below, as is what one setting changes of another.
        let _ = disk.write_relative(&setting.0, &setting.1);
    }
    let refused: Vec<String> =
        settings.iter().filter(|setting| !stands(setting)).map(|(name, text)| format!("{name} was {text}")).collect();
    if refused.is_empty() { Ok(()) } else { Err(refused.join(", ")) }
}

/// The weights that groups have for this disk alone, as writes that change nothing and whose undo brings them back.
pub(crate) fn weights_of_groups(roots: &Roots, device: DeviceId) -> Vec<KnobWrite> {
    let mut found = Vec::new();
    look_below(roots.cgroup_root(), "", 0, &mut |group| {
        for file in [KnobFile::BfqWeight, KnobFile::BfqV1WeightDevice] {
            let text = std::fs::read_to_string(roots.cgroup_root().join(group).join(file.file_name()));
            let text = text.unwrap_or_default();
            let of_disk = |line: &&str| line.split_whitespace().next().is_some_and(|word| word.parse() == Ok(device));
            if let Some(line) = text.lines().find(of_disk) {
                let cgroup = CgroupRef { path: group.to_owned(), inode: 0 };
                let target = KnobTarget::Cgroup { tenant: None, cgroup };
                let text = line.to_owned();
                found.push(KnobWrite { id: WriteId(0), target, file, device, undo: text.clone(), text });
            }
        }
    });
    found
}

fn look_below(root: &Path, group: &str, depth: usize, see: &mut impl FnMut(&str)) {
    if depth > DEPTH_MAX {
        return;
    }
    see(group);
    for entry in std::fs::read_dir(root.join(group)).into_iter().flatten().flatten() {
        // Links are no groups, and are not followed. A name that is not text cannot be journalled as such.
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(name) = entry.file_name().into_string()
        {
            let below = if group.is_empty() { name } else { format!("{group}/{name}") };
            look_below(root, &below, depth + 1, see);
        }
    }
}
