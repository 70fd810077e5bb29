//! A queue as the store has it, as the engine wants it, and as the worker does.

use minerva_clock::{boottime, unix_ns};
use minerva_linux_background::{FileIdentity, Kind, Spec};
use minerva_model::{BackgroundQueue, DeviceId, Nanos};
use minerva_store::BackgroundRow;
use std::path::PathBuf;

/// For the worker; nothing if a later version wrote a kind that this one does not know.
pub(crate) fn spec(row: &BackgroundRow) -> Option<Spec> {
    Some(Spec {
        id: row.id,
        name: row.name.clone(),
        kind: Kind::from_word(&row.kind)?,
        path: PathBuf::from(&row.path),
        identity: FileIdentity { device: row.identity.0, inode: row.identity.1 },
        command: row.command.clone(),
        never_stop: row.never_stop,
        position: row.position,
        used_percent_max: row.used_percent_max,
    })
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
