//! `minerva-lab figure kill-restore`

use super::{Line, drawn_seed};
use crate::cli::KillRestoreArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{Bounds, EffectResult, KillPlan, StoreRows, kill_restore};
use minerva_lab::workload::WorkerProgram;
use minerva_model::Nanos;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Instant;

/// Failures that the line shows.
const FAILURES_SHOWN: usize = 3;

pub(super) fn run(arguments: &KillRestoreArguments) -> anyhow::Result<()> {
    let error_max = f64::from(arguments.effect_error_percent) / 100.0;
    let plan = KillPlan {
        kills: arguments.kills,
        effect_checks: arguments.effect_checks,
        effect: Bounds { window: Nanos::from_secs(arguments.effect_seconds.max(1)), error_max },
        seed: drawn_seed(arguments.seed),
        daemon: binaries::minervad(&arguments.output)?,
        tool: binaries::minerva_ctl(&arguments.output)?,
    };
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let begin = Instant::now();
    let read = |path: &Path| read_store(path).map_err(|error| error.to_string());
    let result = kill_restore(&plan, &program, &read, &interrupted, &mut |said| eprintln!("{said}"))?;
    // A referee who sees effects where there are none, or none where there is one, has shown nothing.
    let fair = result.effect.as_ref().is_none_or(|effect| effect.noise <= error_max && effect.control > error_max);
    let failures = &result.failures[..result.failures.len().min(FAILURES_SHOWN)];
    let line = Line {
        id: "kill-restore",
        value: f64::from(result.passed),
        unit: "kills restored",
        goal: format!("{} of {}", plan.kills, plan.kills),
        met: result.passed == plan.kills && fair,
        detail: format!(
            "seed {}, {:.0} s: {} kills met held knobs, {} came before the daemon was ready; at the last {} rows were \
             acknowledged and none lost; {}{}{}",
            plan.seed,
            begin.elapsed().as_secs_f64(),
            result.held,
            result.during_start,
            result.rows,
            result.effect.as_ref().map_or("effects not measured".to_owned(), of_effect),
            if failures.is_empty() { "" } else { ", but: " },
            failures.join(" | ")
        ),
    };
    line.print(arguments.output.json)?;
    Ok(())
}

fn of_effect(effect: &EffectResult) -> String {
    let percent = |part: f64| part * 100.0;
    format!(
        "after {} restores tenants of equal weight raced, each at most {:.1} % off its part of the disk before the first kill (two \
         races before it: {:.1} % off their mean; with an effect left on purpose: {:.0} %)",
        effect.checked,
        percent(effect.error_max),
        percent(effect.noise),
        percent(effect.control),
    )
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
