//! What disks serve to others than background work, as it was measured last.

use crate::{Store, StoreError};
use minerva_model::DiskCalibration;
use rusqlite::OptionalExtension;

impl Store {
    /// Keeps what was measured of a disk, in place of what was before.
    pub fn keep_calibration(&self, disk: &str, calibration: &DiskCalibration) -> Result<(), StoreError> {
        let text = serde_json::to_string(calibration).map_err(|error| self.unreadable("write to", error))?;
        let sql = "INSERT INTO calibration VALUES (?1, ?2) ON CONFLICT (disk) DO UPDATE SET calibration = ?2";
        let kept = self.connection.execute(sql, rusqlite::params![disk, text]);
        kept.map(drop).map_err(|error| self.failed("write to", error))
    }

    /// What was measured of a disk, if it ever was.
    pub fn calibration(&self, disk: &str) -> Result<Option<DiskCalibration>, StoreError> {
        let select = "SELECT calibration FROM calibration WHERE disk = ?1";
        let found = self.connection.query_row(select, [disk], |row| row.get::<_, String>(0)).optional();
        let text = found.map_err(|error| self.failed("read from", error))?;
        text.map(|text| serde_json::from_str(&text).map_err(|error| self.unreadable("read from", error))).transpose()
    }
}
