//! `kill -9` of the daemon at random moments under load: `minerva-ctl restore` must undo every knob and its effect, no row that the
//! store had acknowledged may be lost, and the next start must be clean.

mod bed;
mod effect;

pub use effect::{Bounds, EffectResult};

use super::race::Race;
use super::store_rows::{StoreRows, lost_rows};
use crate::daemon::{Daemon, DaemonConfig};
use crate::error::{At, LabError, Result};
use crate::workload::WorkerProgram;
use bed::Bed;
use effect::Referee;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A kill comes at most this long after the start, so that starts are hit too.
const LIFE_MS_MAX: u64 = 900;
/// A daemon that did not steer after this long does not.
const STEER_PATIENCE: Duration = Duration::from_secs(20);

/// What to do.
#[derive(Clone, Debug)]
pub struct KillPlan {
    /// How many kills.
    pub kills: u32,
    /// After so many of them, spread evenly, it is measured what equal tenants get.
    pub effect_checks: u32,
    /// How that is measured.
    pub effect: Bounds,
    /// Seed of the moments.
    pub seed: u64,
    /// `minervad`.
    pub daemon: PathBuf,
    /// `minerva-ctl`.
    pub tool: PathBuf,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KillResult {
    /// Kills after which everything was right.
    pub passed: u32,
    /// Kills that met a daemon which held at least one knob.
    pub held: u32,
    /// Kills before the daemon was ready.
    pub during_start: u32,
    /// What tenants of equal weight got, if that was to be measured.
    pub effect: Option<EffectResult>,
    /// Rows that were committed before the last kill.
    pub rows: usize,
    /// What was wrong, a line a kill.
    pub failures: Vec<String>,
}

/// Reads what a store has committed, without changing it.
pub type ReadStore<'a> = &'a dyn Fn(&Path) -> std::result::Result<StoreRows, String>;

/// Kills and restores. `watch` hears of progress.
pub fn kill_restore(
    plan: &KillPlan,
    program: &WorkerProgram,
    read_store: ReadStore<'_>,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(&str),
) -> Result<KillResult> {
    let bed = Bed::new(plan, program)?;
    let race = Race { disk: &bed.disk, program, interrupted };
    let (referee, effect) = match plan.effect_checks {
        0 => (None, None),
        _ => bed
            .at_rest(&bed.still(), || Referee::new(race, bed.plain_groups(), plan.effect))
            .map(|(one, two)| (Some(one), Some(two)))?,
    };
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut result = KillResult { effect, ..KillResult::default() };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| bed.churn(&over));
        let outcome = (1..=plan.kills).try_for_each(|number| {
            if interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let life = Duration::from_millis(random.u64(..LIFE_MS_MAX));
            let every = plan.kills.checked_div(plan.effect_checks).map_or(u32::MAX, |every| every.max(1));
            let referee = referee.as_ref().filter(|_| number % every == 0);
            let wrong = kill_once(plan, &bed, life, read_store, referee, &mut result)?;
            if wrong.is_empty() {
                result.passed += 1;
            } else {
                result.failures.push(format!("kill {number} after {life:?}: {}", wrong.join("; ")));
            }
            if number % 10 == 0 {
                watch(&format!("{} of {number} kills restored, {} held knobs", result.passed, result.held));
            }
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        outcome
    })?;
    Ok(result)
}

/// One kill and all that follows; the answer is what was wrong.
fn kill_once(
    plan: &KillPlan,
    bed: &Bed,
    life: Duration,
    read_store: ReadStore<'_>,
    referee: Option<&Referee<'_>>,
    result: &mut KillResult,
) -> Result<Vec<String>> {
    let store = DaemonConfig::store(bed.directory.path());
    let rows = || if store.exists() { read_store(&store) } else { Ok(StoreRows::default()) };
    let (before, was_ready) = live_and_die(plan, bed, life, rows, result)?;
    let mut wrong = restore_and_compare(plan, bed, referee, result)?;
    match (before, rows()) {
        (Ok(before), Ok(after)) => {
            result.rows = before.histories.len() + before.audit_rows as usize;
            wrong.extend(lost_rows(&before, &after));
        }
        // A kill may come before the first daemon has made the tables.
        (Err(_), Ok(_)) if !was_ready => {}
        (Err(error), _) => wrong.push(format!("the store could not be read before the kill: {error}")),
        (_, Err(error)) => wrong.push(format!("the store cannot be read: {error}")),
    }
    wrong.extend(clean_run(plan, bed)?);
    Ok(wrong)
}

/// Runs a daemon for `life` and kills it; the answer is what `rows` said just before, and whether the daemon was ready by then.
fn live_and_die<T>(
    plan: &KillPlan,
    bed: &Bed,
    life: Duration,
    rows: impl Fn() -> T,
    result: &mut KillResult,
) -> Result<(T, bool)> {
    let mut daemon = Daemon::launch(&plan.daemon, bed.directory.path())?;
    let begin = Instant::now();
    let mut ready = false;
    if life > Duration::from_millis(LIFE_MS_MAX / 4) {
        daemon.wait_until_ready()?;
        ready = true;
    }
    std::thread::sleep(life.saturating_sub(begin.elapsed()));
    let before = rows();
    daemon.kill()?;
    result.during_start += u32::from(!ready);
    Ok((before, ready))
}

/// Restores, with the load standing still, and says what differs from before the daemon.
fn restore_and_compare(
    plan: &KillPlan,
    bed: &Bed,
    referee: Option<&Referee<'_>>,
    result: &mut KillResult,
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let still = bed.still();
    result.held += u32::from(bed.differences(&still) > 0);
    let mut restore = Command::new(&plan.tool);
    restore.arg("--config").arg(bed.directory.path().join("minervad.toml")).arg("restore");
    if let Some(said) = failed_output(&mut restore)? {
        wrong.push(format!("restore said: {said}"));
    }
    let left = bed.differences(&still);
    if left > 0 {
        wrong.push(format!("{left} knobs were not put back: {}", bed.describe(&still)));
    }
    if let (Some(referee), Some(effect)) = (referee, &mut result.effect) {
        let error = bed.at_rest(&still, || referee.error())?;
        effect.checked += 1;
        effect.error_max = effect.error_max.max(error);
        if error > plan.effect.error_max {
            wrong.push(format!(
                "a tenant's part of the disk is {:.0} % off what it was before the first kill",
                error * 100.0
            ));
        }
    }
    Ok(wrong)
}

fn failed_output(command: &mut Command) -> Result<Option<String>> {
    let output = command.output().at("start", command.get_program())?;
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    Ok((!output.status.success()).then(|| String::from_utf8_lossy(&said).trim().to_owned()))
}

/// The next start: ready, steers, ends with status 0, leaves nothing, and finds its store whole.
fn clean_run(plan: &KillPlan, bed: &Bed) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut daemon = Daemon::start(&plan.daemon, bed.directory.path())?;
    let begin = Instant::now();
    while bed.differences(&bed.still()) == 0 {
        daemon.check()?;
        if begin.elapsed() > STEER_PATIENCE {
            wrong.push("the next daemon did not steer".to_owned());
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = daemon.end()?;
    if !status.success() {
        wrong.push(format!("the next daemon ended with {status}"));
    }
    let still = bed.still();
    if bed.differences(&still) > 0 {
        wrong.push(format!("the next daemon left behind: {}", bed.describe(&still)));
    }
    let state = DaemonConfig::store(bed.directory.path());
    let names = state.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten().flatten();
    if names.filter(|entry| entry.file_name().to_string_lossy().contains("corrupt")).count() > 0 {
        wrong.push("the store was found corrupt".to_owned());
    }
    Ok(wrong)
}
