//! `minerva-lab figure kill-restore`

use super::Line;
use crate::cli::KillRestoreArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{KillPlan, StoreRows, kill_restore};
use minerva_lab::workload::WorkerProgram;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Instant;

/// Failures that the line shows.
const FAILURES_SHOWN: usize = 3;

pub(super) fn run(arguments: &KillRestoreArguments) -> anyhow::Result<()> {
    let plan = KillPlan {
        kills: arguments.kills,
        effect_checks: arguments.effect_checks,
        seed: arguments.seed,
        daemon: binaries::minervad(&arguments.output)?,
        tool: binaries::minerva_ctl(&arguments.output)?,
    };
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let begin = Instant::now();
    let read = |path: &Path| read_store(path).map_err(|error| error.to_string());
    let result = kill_restore(&plan, &program, &read, &interrupted, &mut |said| eprintln!("{said}"))?;
    let failures = &result.failures[..result.failures.len().min(FAILURES_SHOWN)];
    let line = Line {
        id: "kill-restore",
        value: f64::from(result.passed),
        unit: "kills restored",
        goal: format!("{} of {}", plan.kills, plan.kills),
        met: result.passed == plan.kills,
        detail: format!(
            "seed {}, {:.0} s: {} kills met held knobs, {} came before the daemon was ready; at the last {} rows were \
             acknowledged and none lost; after {} restores tenants of equal weight were compared, at most {:.1} % from their mean{}{}",
            plan.seed,
            begin.elapsed().as_secs_f64(),
            result.held,
            result.during_start,
            result.rows,
            result.effects_checked,
            result.effect_error_max * 100.0,
            if failures.is_empty() { "" } else { ", but: " },
            failures.join(" | ")
        ),
    };
    line.print(arguments.output.json)?;
    Ok(())
}

/// What is committed is what another connection sees.
fn read_store(path: &Path) -> rusqlite::Result<StoreRows> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut select = connection.prepare("SELECT key, boot, major, minor, true_at_unix_ms FROM history")?;
    let rows = select.query_map([], |row| {
        let (key, boot): (String, String) = (row.get(0)?, row.get(1)?);
        let (major, minor): (i64, i64) = (row.get(2)?, row.get(3)?);
        Ok((format!("{key} {boot} {major}:{minor}"), row.get(4)?))
    })?;
    let histories = rows.collect::<rusqlite::Result<_>>()?;
    let audit_rows: i64 = connection.query_row("SELECT count(*) FROM audit", [], |row| row.get(0))?;
    Ok(StoreRows { histories, audit_rows: u64::try_from(audit_rows).unwrap_or(0) })
}
