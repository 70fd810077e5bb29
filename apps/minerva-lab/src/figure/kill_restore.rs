//! `minerva-lab figure kill-restore`

use super::{Line, drawn_seed};
use crate::cli::KillRestoreArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{Bounds, EffectResult, KillPlan, KillResult, StoreRows, kill_restore};
use minerva_lab::workload::WorkerProgram;
use minerva_model::Nanos;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Instant;

/// Failures that the line shows.
const FAILURES_SHOWN: usize = 3;
/// After one kill in so many it is measured what tenants of equal weight get: after 20 of the 200 that are asked for.
const EFFECT_CHECKED_EVERY: u32 = 10;
/// So many kills are asked for, and parts of the disk within this of what they were: fewer, and others, meet no goal.
const KILLS_MIN: u32 = 200;
const ERROR_MAX: f64 = 0.1;

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
    let failures = &result.failures[..result.failures.len().min(FAILURES_SHOWN)];
    let line = Line {
        id: "kill-restore",
        value: f64::from(result.passed),
        unit: "kills restored",
        goal: format!("{KILLS_MIN} of {KILLS_MIN}, effects within {:.0} %", ERROR_MAX * 100.0),
        met: is_met(plan.kills, &result, error_max),
        detail: format!(
            "of {}, seed {}, {:.0} s: {} kills met held knobs, {} came before the daemon was ready; at the last {} rows were \
             acknowledged and none lost; {}{}{}",
            plan.kills,
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

/// Every kill of enough was restored, a quarter of them at least met knobs that were held, rows were there to be lost, and effects were seen to be gone: a
/// referee who sees some where there are none, or none where there is one, has shown nothing.
fn is_met(kills: u32, result: &KillResult, error_max: f64) -> bool {
    let checked_min = (kills / EFFECT_CHECKED_EVERY).max(1);
    let is_fair = |effect: &EffectResult| {
        error_max <= ERROR_MAX
            && effect.checked >= checked_min
            && effect.noise <= error_max
            && effect.control > error_max
    };
    kills >= KILLS_MIN
        && result.passed == kills
        && result.held >= kills / 4
        && result.rows > 0
        && result.effect.as_ref().is_some_and(is_fair)
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

#[cfg(test)]
mod tests {
    use super::{EffectResult, KillResult, is_met};

    #[test]
    fn kills_that_met_nothing_or_were_not_checked_by_effect_meet_no_goal() {
        let effect = EffectResult { checked: 20, error_max: 0.05, noise: 0.01, control: 0.8 };
        let good =
            KillResult { passed: 200, held: 187, rows: 5000, effect: Some(effect.clone()), ..KillResult::default() };
        assert!(is_met(200, &good, 0.1));
        assert!(!is_met(200, &KillResult { held: 0, ..good.clone() }, 0.1));
        assert!(!is_met(200, &KillResult { rows: 0, ..good.clone() }, 0.1));
        assert!(!is_met(200, &KillResult { effect: None, ..good.clone() }, 0.1));
        let few = EffectResult { checked: 2, ..effect.clone() };
        assert!(!is_met(200, &KillResult { effect: Some(few), ..good.clone() }, 0.1));
        assert!(!is_met(200, &good, 0.4), "the bound is not whoever measures's to choose");
        let short = KillResult { passed: 199, ..good.clone() };
        assert!(!is_met(199, &short, 0.1) && !is_met(200, &short, 0.1));
        let blind = EffectResult { control: 0.05, ..effect };
        assert!(!is_met(200, &KillResult { effect: Some(blind), ..good }, 0.1));
    }
}
