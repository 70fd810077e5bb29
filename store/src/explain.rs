//! Which decisions were in force for a tenant.

use crate::{AuditRow, Store, StoreError};
use rusqlite::params;

impl Store {
    /// The decisions that were in force for the tenant of this name that was in `cgroup`, one a disk: the latest, or the latest at or before
    /// `at_unix_ms`. Several tenants may have one name, and a virtual machine is in another cgroup after each start: without a cgroup
    /// it is that of the latest decision.
    ///
    /// The latest is the last that was stored: what was stamped while the wall clock was ahead is not.
    pub fn explain(
        &self,
        tenant_name: &str,
        cgroup: Option<&str>,
        at_unix_ms: Option<i64>,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let read = || {
            // The number breaks ties: of two decisions of one millisecond the later one is in force.
            let latest_first = if at_unix_ms.is_some() { "at_unix_ms DESC, id DESC" } else { "id DESC" };
            let mut select = self.connection.prepare_cached(&format!(
                "SELECT at_unix_ms, tenant, cgroup, account, device, text, decision FROM (
                     SELECT *, row_number() OVER (PARTITION BY device ORDER BY {latest_first}) AS place
                     FROM audit WHERE tenant = ?1 AND at_unix_ms <= ?2 AND cgroup = coalesce(?3,
                         (SELECT cgroup FROM audit WHERE tenant = ?1 AND at_unix_ms <= ?2 ORDER BY {latest_first} LIMIT 1))
                 ) WHERE place = 1 ORDER BY device"
            ))?;
            let rows = select.query_map(params![tenant_name, at_unix_ms.unwrap_or(i64::MAX), cgroup], |row| {
                let columns = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
                Ok((columns, row.get::<_, String>(6)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = read().map_err(|error| self.failed("read from", error))?;
        let audit_row = |((at_unix_ms, tenant_name, cgroup_path, account, device_name, text), json): (_, String)| {
            let decision = serde_json::from_str(&json).map_err(|error| self.unreadable("read from", error))?;
            Ok(AuditRow { at_unix_ms, tenant_name, cgroup_path, account, device_name, decision, text })
        };
        rows.into_iter().map(audit_row).collect()
    }
}
