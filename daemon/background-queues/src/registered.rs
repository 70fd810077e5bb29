//! A queue as the store has it, as the engine wants it, and as the worker does.

use minerva_background::SLA_DEFAULT;
use minerva_clock::{boottime, unix_ns};
use minerva_linux_background::{FileIdentity, Found, Kind, Spec};
use minerva_model::{BackgroundQueue, DeviceId, Nanos};
use minerva_store::{BackgroundFound, BackgroundRow, LastingIdentity};
use std::path::PathBuf;

/// The time that work is given for which none was named.
pub(crate) const SLA_DEFAULT_MS: i64 = (SLA_DEFAULT.0 / 1_000_000) as i64;

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
            corrected: row.found.corrected,
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
    FileIdentity { device, inode, lasting: row.lasting_identity.map(lasting), parent_inode: row.parent_inode }
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
    row.parent_inode = identity.parent_inode;
}

/// How far its workers came, for the store.
pub(crate) fn keep_position(row: &mut BackgroundRow, position: u64, found: &Found) {
    let Found { bytes, errors, uncorrectable, corrected, under_way } = *found;
    row.position = position;
    row.found = BackgroundFound { bytes, errors, uncorrectable, corrected, under_way };
}

/// Now, by the wall clock and by the loop's.
pub(crate) fn both_clocks() -> (i64, Nanos) {
    (unix_ns(), boottime())
}

/// How far the wall clock is ahead of the loop's.
pub(crate) fn ahead_ns((unix_ns, boottime): (i64, Nanos)) -> i128 {
    i128::from(unix_ns) - i128::from(boottime.0)
}

/// For the engine, where both clocks tell `now`.
pub(crate) fn queue(
    row: &BackgroundRow,
    spec: &Spec,
    (device, cgroup): (DeviceId, String),
    now: (i64, Nanos),
) -> BackgroundQueue {
    let due_unix_ms = due_unix_ms(row);
    BackgroundQueue {
        id: row.id,
        name: row.name.clone(),
        device,
        cgroup,
        priority: row.priority,
        added: by_loop(row.added_unix_ms, now),
        due: Some(by_loop(due_unix_ms, now)),
        given: Some(Nanos::from_millis(due_unix_ms.abs_diff(row.added_unix_ms))),
        is_paused: row.is_paused,
        hold: spec.hold(),
        cost: row.cost,
        done_items: row.done_items,
        total_items: row.total_items,
    }
}

/// By when it is to be done. Earlier versions kept nothing where no deadline was named.
pub(crate) fn due_unix_ms(row: &BackgroundRow) -> i64 {
    row.due_unix_ms.unwrap_or_else(|| row.added_unix_ms.saturating_add(SLA_DEFAULT_MS))
}

/// An instant of the wall clock by the loop's, where both tell `now`: 0 if that was before the boot.
fn by_loop(unix_ms: i64, (unix_ns, boottime): (i64, Nanos)) -> Nanos {
    let ago_ns = i128::from(unix_ns) - i128::from(unix_ms) * 1_000_000;
    Nanos(u64::try_from((i128::from(boottime.0) - ago_ns).max(0)).unwrap_or(u64::MAX))
}

/// The other way.
pub(crate) fn by_wall(instant: Nanos) -> i64 {
    let ahead = i128::from(instant.0) - i128::from(boottime().0);
    i64::try_from(i128::from(unix_ns()) + ahead).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{SLA_DEFAULT_MS, by_loop, due_unix_ms};
    use crate::requests::row;
    use minerva_api::v1;
    use minerva_linux_background::Kind;
    use minerva_model::{BackgroundId, Nanos};

    const DAY: u64 = 86_400;

    #[test]
    fn a_reboot_does_not_begin_the_time_anew_that_work_is_given() {
        // Days since the boot; 20 days after 1970 the work was added, to be done within 30 days, and it is 48 days after 1970 now.
        for up in [0, 2, 28, 40] {
            let now = (48 * DAY as i64 * 1_000_000_000, Nanos::from_secs(up * DAY));
            let [added, due] = [20, 50].map(|day| by_loop(day * DAY as i64 * 1000, now));
            assert_eq!(added, Nanos::from_secs(up.saturating_sub(28) * DAY));
            assert_eq!(due, Nanos::from_secs((up + 2) * DAY), "in two days");
        }
    }

    #[test]
    fn work_without_a_deadline_has_one_in_a_month_also_where_an_earlier_version_kept_none() {
        let row = |sla_ns| row(BackgroundId(1), Kind::Delete, v1::AddBackgroundRequest { sla_ns, ..<_>::default() });
        let kept = row(None).expect("it can be meant");
        assert_eq!(kept.due_unix_ms, Some(kept.added_unix_ms + SLA_DEFAULT_MS));
        let mut of_earlier = kept.clone();
        of_earlier.due_unix_ms = None;
        assert_eq!(due_unix_ms(&of_earlier), due_unix_ms(&kept));
        let named = row(Some(7 * DAY * 1_000_000_000)).expect("it can be meant");
        assert_eq!(due_unix_ms(&named) - named.added_unix_ms, 7 * DAY as i64 * 1000);
    }
}
