//! A queue as the store has it, as the engine wants it, and as the worker does.

use minerva_clock::{boottime, unix_ns};
use minerva_linux_background::{FileIdentity, Found, Kind, Spec};
use minerva_model::{BackgroundQueue, DeviceId, Nanos};
use minerva_store::{BackgroundFound, BackgroundRow, LastingIdentity};
use std::path::PathBuf;

/// For the worker; nothing if a later version wrote a kind that this one does not know.
pub(crate) fn spec(row: &BackgroundRow) -> Option<Spec> {
    Some(Spec {
        id: row.id,
        name: row.name.clone(),
        kind: Kind::from_word(&row.kind)?,
        path: PathBuf::from(&row.path),
        identity: identity(row),
        command: row.command.clone(),
        never_stop: row.never_stop,
        position: row.position,
        found: Found {
            bytes: row.found.bytes,
            errors: row.found.errors,
            uncorrectable: row.found.uncorrectable,
            under_way: row.found.under_way,
        },
        used_percent_max: row.used_percent_max,
    })
}

/// What was at its path when it was asked for.
fn identity(row: &BackgroundRow) -> FileIdentity {
    let lasting = |kept: LastingIdentity| minerva_linux_background::LastingIdentity {
        file_system: kept.file_system,
        subvolume: kept.subvolume,
        born_ns: kept.born_ns,
    };
    let (device, inode) = row.identity;
    FileIdentity { device, inode, lasting: row.lasting_identity.map(lasting) }
}

/// The same for the store.
pub(crate) fn keep_identity(row: &mut BackgroundRow, identity: &FileIdentity) {
    let kept = |lasting: minerva_linux_background::LastingIdentity| LastingIdentity {
        file_system: lasting.file_system,
        subvolume: lasting.subvolume,
        born_ns: lasting.born_ns,
    };
    row.identity = (identity.device, identity.inode);
    row.lasting_identity = identity.lasting.map(kept);
}

/// How far its workers came, for the store.
pub(crate) fn keep_position(row: &mut BackgroundRow, position: u64, found: &Found) {
    let Found { bytes, errors, uncorrectable, under_way } = *found;
    row.position = position;
    row.found = BackgroundFound { bytes, errors, uncorrectable, under_way };
}

/// For the engine.
pub(crate) fn queue(row: &BackgroundRow, spec: &Spec, device: DeviceId, cgroup: String) -> BackgroundQueue {
    BackgroundQueue {
        id: row.id,
        name: row.name.clone(),
        device,
        cgroup,
        priority: row.priority,
        added: by_loop(row.added_unix_ms),
        due: row.due_unix_ms.map(by_loop),
        is_paused: row.is_paused,
        hold: spec.hold(),
        cost: row.cost,
        done_items: row.done_items,
        total_items: row.total_items,
    }
}

/// An instant of the wall clock by the loop's: 0 if that was before the boot.
fn by_loop(unix_ms: i64) -> Nanos {
    let ago_ns = i128::from(unix_ns()) - i128::from(unix_ms) * 1_000_000;
    Nanos(u64::try_from((i128::from(boottime().0) - ago_ns).max(0)).unwrap_or(u64::MAX))
}

/// The other way.
pub(crate) fn by_wall(instant: Nanos) -> i64 {
    let ahead = i128::from(instant.0) - i128::from(boottime().0);
    i64::try_from(i128::from(unix_ns()) + ahead).unwrap_or(i64::MAX)
}
