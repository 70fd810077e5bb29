//! The redo log of deferred files, damaged.

use minerva_store::{RedoLog, StoreNote};
use rusqlite::Connection;

/// Bytes beyond which the daemon's store is checked while it is used.
const LARGE_BYTES: usize = 16 << 20;

#[test]
fn a_damaged_log_is_moved_aside_however_large_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("deferred.db");
    drop(RedoLog::open(&path).expect("opens"));
    let connection = Connection::open(&path).expect("opens");
    connection
        .execute_batch(
            "INSERT INTO deferral (tenant, pool, source, directory, directory_device, directory_inode, name, link_inode,
                 copy_inode, user, user_group, user_groups, added_unix_ms, is_asked_for, step, cgroup)
             WITH RECURSIVE row (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM row WHERE number < 18000)
             SELECT 'web', 'stable', x'37', x'2f', 1, 2, x'61', 3, 4, 0, 0, '[]', 5, 0, 'waiting', printf('%01000d', number)
             FROM row",
        )
        .expect("written");
    drop(connection);
    assert_eq!(RedoLog::check(&path).expect("checked"), None);
    let (log, notes) = RedoLog::open(&path).expect("opens");
    assert_eq!(
        (log.all().expect("read").len(), notes),
        (18_000, Vec::new()),
        "there is nobody who would check it later"
    );
    drop(log);
    let mut bytes = std::fs::read(&path).expect("read");
    assert!(bytes.len() > LARGE_BYTES);
    let middle = bytes.len() / 4096 / 2 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(&path, &bytes).expect("written");
    assert!(RedoLog::check(&path).expect("checked").is_some());
    assert_eq!(std::fs::read(&path).expect("there"), bytes, "whoever only looks leaves it");
    let (log, notes) = RedoLog::open(&path).expect("opens");
    assert!(matches!(&notes[..], [StoreNote::MovedAside { .. }]), "{notes:?}");
    assert_eq!(log.all().expect("read"), []);
}
