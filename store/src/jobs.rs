//! Runs of batch jobs, so that what a name does is known after a restart.

use crate::{Store, StoreError};
use minerva_model::{JobPhase, JobProfile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs of one name that are kept.
const RUNS_OF_NAME_MAX: u32 = 10;
/// Runs that are kept in all.
const RUNS_MAX: u32 = 2_000;
/// Whoever has more of them pushes out its own.
const RUNS_OF_OWNER_MAX: u32 = RUNS_MAX / 10;

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRunRow {
    /// The job's name.
    pub name: String,
    /// The tenant's name then.
    pub tenant_name: String,
    /// [`minerva_model::Tenant::owner`]; empty in rows of earlier versions.
    #[serde(default)]
    pub owner: String,
    /// The name of the disk that it used most.
    pub device_name: String,
    /// When.
    pub ended_unix_ms: i64,
    /// What was declared that it would move.
    pub declared_bytes: Option<u64>,
    /// What it was like.
    pub profile: JobProfile,
}

/// What is to be known of a run after a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPast {
    /// Read and written.
    pub bytes: u64,
    /// What it did.
    pub phases: Vec<JobPhase>,
}

/// Of a row only this, as all rows are read at a start.
#[derive(Default, Deserialize)]
struct PhasesOnly {
    profile: PhasesOfProfile,
}

#[derive(Default, Deserialize)]
struct PhasesOfProfile {
    phases: Vec<JobPhase>,
}

impl Store {
    /// Keeps a run in one transaction, durable on return; of those of its name the oldest beyond a bound go. Beyond one of all, the oldest goes: of the owner that has most where that is
    /// much, as who calls each run another name pushes out his own, else of all. The owner is in the column `tenant`, which has the name of
    /// the tenant in rows of earlier versions.
    pub fn keep_job_run(&self, row: &JobRunRow) -> Result<(), StoreError> {
        let text = serde_json::to_string(row).map_err(|error| self.unreadable("write to", error))?;
        let bytes = row.profile.read_bytes.saturating_add(row.profile.write_bytes);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.transact(|connection| {
            let insert = "INSERT INTO job_run (name, bytes, run, tenant) VALUES (?1, ?2, ?3, ?4)";
            connection.execute(insert, rusqlite::params![row.name, bytes, text, row.owner])?;
            let of_name = "DELETE FROM job_run WHERE name = ?1 AND id NOT IN
                (SELECT id FROM job_run WHERE name = ?1 ORDER BY id DESC LIMIT ?2)";
            connection.execute(of_name, rusqlite::params![row.name, RUNS_OF_NAME_MAX])?;
            let of_all = "DELETE FROM job_run WHERE id = coalesce(
                    (SELECT min(id) FROM job_run WHERE tenant <> '' GROUP BY tenant HAVING count(*) > ?2
                     ORDER BY count(*) DESC, min(id) LIMIT 1),
                    (SELECT min(id) FROM job_run))
                AND (SELECT count(*) FROM job_run) > ?1";
            connection.execute(of_all, [RUNS_MAX, RUNS_OF_OWNER_MAX]).map(drop)
        })
    }

    /// The runs of a name that are kept, oldest first.
    pub fn job_runs(&self, name: &str) -> Result<Vec<JobRunRow>, StoreError> {
        let read = || {
            let mut select = self.connection.prepare_cached("SELECT run FROM job_run WHERE name = ?1 ORDER BY id")?;
            select.query_map([name], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()
        };
        let texts = read().map_err(|error| self.failed("read from", error))?;
        let parse = |text: String| serde_json::from_str(&text).map_err(|error| self.unreadable("read from", error));
        texts.into_iter().map(parse).collect()
    }

    /// What the kept runs of each name moved, and in which phases, oldest first; first those names that have not run for the longest time. The
    /// phases of a run that cannot be read are none.
    pub fn job_pasts(&self) -> Result<Vec<(String, Vec<JobPast>)>, StoreError> {
        let read = || {
            let mut select = self.connection.prepare_cached("SELECT name, bytes, run FROM job_run ORDER BY id")?;
            let past = |row: &rusqlite::Row<'_>| {
                let (name, bytes) = (row.get::<_, String>(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0));
                let phases: PhasesOnly = serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default();
                Ok((name, JobPast { bytes, phases: phases.profile.phases }))
            };
            select.query_map([], past)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut names: BTreeMap<String, (usize, Vec<JobPast>)> = BTreeMap::new();
        for (place, (name, past)) in read().map_err(|error| self.failed("read from", error))?.into_iter().enumerate() {
            let (latest, pasts) = names.entry(name).or_default();
            *latest = place;
            pasts.push(past);
        }
        let mut names: Vec<_> = names.into_iter().map(|(name, (latest, pasts))| (latest, name, pasts)).collect();
        names.sort_unstable_by_key(|(latest, ..)| *latest);
        Ok(names.into_iter().map(|(_, name, pasts)| (name, pasts)).collect())
    }
}
