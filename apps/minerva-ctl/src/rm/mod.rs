//! `minerva-ctl rm`: deleting in the background. Where a daemon takes it, by its plan; else by a part of the time. Whatever becomes of
//! Minerva, it deletes.

mod planned;

use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use crate::signals::Signals;
use crate::{figures, tenant, when};
use minerva_client::{Held, Level};
use minerva_linux_background::{Deletion, Left, Pace, Removed};
use planned::Planned;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Percent of the time where there is no plan.
const PACE_DEFAULT: u32 = 20;

/// What is to be deleted.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) recursive: bool,
    /// Percent of the time; with it no plan is followed.
    pub(crate) pace: Option<u32>,
    /// By the plan it is done within this.
    pub(crate) sla: Duration,
    pub(crate) paths: Vec<PathBuf>,
}

/// What became of a path.
enum Outcome {
    Deleted,
    /// Something of it was left.
    Left,
    /// This signal came, and the rest was left.
    Interrupted(i32),
}

/// Deletes; whether something was left.
pub(crate) async fn run(file: &OperatorFile, socket: &Path, wish: Wish, json: bool) -> anyhow::Result<CommandStatus> {
    let mut planned = match wish.pace {
        Some(_) => None,
        None => Planned::connect(socket, wish.sla).await.ok(),
    };
    let mut by_time = ByTime { file, pace: Pace::new(wish.pace.unwrap_or(PACE_DEFAULT)), held: None, is_ready: false };
    let mut signals = Signals::catch()?;
    let mut is_left = false;
    for path in &wish.paths {
        let deletion = match Deletion::begin(path, wish.recursive) {
            Ok(deletion) => deletion,
            Err(error) => {
                output::note(&format!("{:#}", anyhow::Error::new(error)));
                is_left = true;
                continue;
            }
        };
        let outcome = match &mut planned {
            Some(planned) => match planned.delete(path, deletion.seen(), &mut signals, json).await? {
                Ok(outcome) => outcome,
                Err(why) => {
                    let shown = output::path(path);
                    let why = output::one_line(&why);
                    output::note(&format!("{shown}: not by the plan, but at a pace of its own: {why}"));
                    by_time.delete(path, deletion, &mut signals, json).await?
                }
            },
            None => by_time.delete(path, deletion, &mut signals, json).await?,
        };
        match outcome {
            Outcome::Deleted => {}
            Outcome::Left => is_left = true,
            Outcome::Interrupted(signal) => return Ok(CommandStatus::Signalled(signal)),
        }
    }
    drop(by_time.held);
    Ok(CommandStatus::found_if(is_left))
}

/// Deletes for a part of the time.
struct ByTime<'a> {
    file: &'a OperatorFile,
    pace: Pace,
    /// The level, held for as long as anything is deleted.
    held: Option<Held>,
    is_ready: bool,
}

impl ByTime<'_> {
    async fn delete(
        &mut self,
        path: &Path,
        mut deletion: Deletion,
        signals: &mut Signals,
        json: bool,
    ) -> anyhow::Result<Outcome> {
        if !std::mem::replace(&mut self.is_ready, true) {
            self.held = step_back(self.file).await;
        }
        let mut interrupted = None;
        while interrupted.is_none() {
            let began = Instant::now();
            if !deletion.step() {
                break;
            }
            // The level is held by a connection, which is served meanwhile.
            interrupted = tokio::select! {
                biased;
                came = signals.next() => Some(came.number),
                () = tokio::time::sleep(self.pace.worked(began.elapsed())) => None,
            };
        }
        tell(path, deletion.removed(), deletion.left(), json)?;
        Ok(match interrupted {
            Some(signal) => Outcome::Interrupted(signal),
            None if deletion.left().is_empty() => Outcome::Deleted,
            None => Outcome::Left,
        })
    }
}

/// The level of this process's tenant while it deletes; without a server, or if it refuses, there is none.
async fn step_back(file: &OperatorFile) -> Option<Held> {
    let warn = |reason: String| output::note(&format!("{reason}; deletes at its pace without stepping back"));
    let client = match tenant::connect(file).await {
        Ok(client) => client,
        Err(error) => {
            warn(format!("{error:#}"));
            return None;
        }
    };
    let held = client.hold_level(Level::Idle).await.map_err(|error| warn(error.to_string())).ok();
    when::warn_of_absence(&client);
    held
}

fn tell(path: &Path, removed: Removed, left: &[Left], json: bool) -> anyhow::Result<()> {
    let Removed { directories, files, bytes } = removed;
    // What is no UTF-8 in a path is a mark in JSON too.
    let shown = path.to_string_lossy();
    if json {
        let left: Vec<_> = left
            .iter()
            .map(|left| serde_json::json!({ "path": left.path.to_string_lossy(), "reason": left.reason }))
            .collect();
        output::json(&serde_json::json!({
            "path": shown, "directories": directories, "files": files, "bytes": bytes, "left": left,
        }))?;
    } else {
        let bytes = figures::size(bytes as f64);
        output::text(&format!(
            "{}: {directories} directories and {files} files deleted, {bytes}\n",
            output::path(path)
        ))?;
    }
    for left in left {
        output::note(&format!("left {}: {}", output::path(&left.path), left.reason));
    }
    Ok(())
}
