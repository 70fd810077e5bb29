//! What of deferred files was moved and is to be reported to the daemon, in the redo log beside the rows of the files.

use crate::StoreError;
use crate::deferred::{Deferral, RedoLog, signed, update};
use rusqlite::{Row, params};

/// Bytes of a file that were moved and are to be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedBytes {
    /// The file's number.
    pub id: u64,
    /// Up to here nothing of it is counted again.
    pub counted_bytes: u64,
    /// What is to be reported for it.
    pub moved: MovedRow,
}

/// A part of a report that was not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedRow {
    /// The report's key.
    pub report: String,
    /// The cache's tenant.
    pub tenant: String,
    /// The cgroup, as in [`Deferral::cgroup`].
    pub cgroup: String,
    /// Where to, as `MAJ:MIN`.
    pub device: String,
    /// How many bytes.
    pub bytes: u64,
}

impl RedoLog {
    /// Keeps what is to be reported of files, with how far each of them is counted from now on, and what changes of one row: all of it
    /// durable on return, or nothing.
    pub fn count(&self, counted: &[CountedBytes], row: Option<&Deferral>) -> Result<(), StoreError> {
        let write = || {
            let transaction = self.connection.unchecked_transaction()?;
            for CountedBytes { id, counted_bytes, moved } in counted {
                transaction
                    .prepare_cached("UPDATE deferral SET counted_bytes = max(counted_bytes, ?2) WHERE id = ?1")?
                    .execute([signed(*id), signed(*counted_bytes)])?;
                let sql = "INSERT INTO moved (report, tenant, cgroup, device, bytes) VALUES (?1, ?2, ?3, ?4, ?5)
                    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes";
                let MovedRow { report, tenant, cgroup, device, bytes } = moved;
                transaction.prepare_cached(sql)?.execute(params![report, tenant, cgroup, device, signed(*bytes)])?;
            }
            if let Some(row) = row {
                update(&transaction, row)?;
            }
            transaction.commit()
        };
        write().map_err(|error| self.failed("write to", error))
    }

    /// What was kept to be reported, by report.
    pub fn moved(&self) -> Result<Vec<MovedRow>, StoreError> {
        let read = || {
            let sql = "SELECT report, tenant, cgroup, device, bytes FROM moved ORDER BY report, device";
            let row = |row: &Row<'_>| {
                Ok(MovedRow {
                    report: row.get(0)?,
                    tenant: row.get(1)?,
                    cgroup: row.get(2)?,
                    device: row.get(3)?,
                    bytes: row.get::<_, i64>(4)?.cast_unsigned(),
                })
            };
            self.connection.prepare_cached(sql)?.query_map([], row)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed("read from", error))
    }

    /// A report was answered, durable on return.
    pub fn forget_report(&self, report: &str) -> Result<(), StoreError> {
        let forgotten = self.connection.execute("DELETE FROM moved WHERE report = ?1", [report]);
        forgotten.map(drop).map_err(|error| self.failed("write to", error))
    }
}

#[cfg(test)]
mod tests {
    use super::{CountedBytes, MovedRow};
    use crate::deferred::tests::row;
    use crate::{Deferral, DeferralStep, RedoLog};

    #[test]
    fn what_is_counted_stands_with_its_file_and_goes_with_its_report() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deferred.db");
        let (log, _) = RedoLog::open(&path).unwrap();
        let mut kept = row();
        kept.id = log.add(&kept).unwrap();
        let counted = |report: &str, bytes, counted_bytes| CountedBytes {
            id: kept.id,
            counted_bytes,
            moved: MovedRow {
                report: report.to_owned(),
                tenant: "web".to_owned(),
                cgroup: kept.cgroup.clone(),
                device: "8:0".to_owned(),
                bytes,
            },
        };
        log.count(&[counted("a", 5, 5), counted("a", 2, 7), counted("b", 1, 3)], None).unwrap();
        let switching = Deferral { step: DeferralStep::Switching, ..kept.clone() };
        log.count(&[counted("b", 1, 8)], Some(&switching)).unwrap();
        drop(log);
        let (log, _) = RedoLog::open(&path).unwrap();
        assert_eq!(log.all().unwrap(), [Deferral { counted_bytes: 8, ..switching.clone() }]);
        log.keep(&switching).unwrap();
        assert_eq!(log.all().unwrap()[0].counted_bytes, 8, "what is kept of a row later does not take it back");
        let bytes = || log.moved().unwrap().into_iter().map(|row| (row.report, row.bytes)).collect::<Vec<_>>();
        assert_eq!(bytes(), [("a".to_owned(), 7), ("b".to_owned(), 2)]);
        log.forget(kept.id).unwrap();
        log.forget_report("a").unwrap();
        assert_eq!(bytes(), [("b".to_owned(), 2)]);
    }
}
