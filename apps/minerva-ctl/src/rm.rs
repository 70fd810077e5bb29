//! `minerva-ctl rm`: deleting in the background. Whatever becomes of Minerva, it deletes.

use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use crate::{figures, tenant, when};
use minerva_client::{Held, Level};
use minerva_linux_background::{Deletion, Left, Pace, Removed};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is to be deleted.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) recursive: bool,
    /// Percent of the time.
    pub(crate) pace: u32,
    pub(crate) paths: Vec<PathBuf>,
}

/// Deletes; whether something was left.
pub(crate) async fn run(file: &OperatorFile, wish: Wish, json: bool) -> anyhow::Result<CommandStatus> {
    let held = step_back(file).await;
    let mut pace = Pace::new(wish.pace);
    let mut is_left = false;
    for path in &wish.paths {
        let mut deletion = match Deletion::begin(path, wish.recursive) {
            Ok(deletion) => deletion,
            Err(error) => {
                eprintln!("minerva-ctl: {:#}", anyhow::Error::new(error));
                is_left = true;
                continue;
            }
        };
        loop {
            let began = Instant::now();
            if !deletion.step() {
                break;
            }
            // The level is held by a connection, which is served meanwhile.
            tokio::time::sleep(pace.worked(began.elapsed())).await;
        }
        is_left |= !deletion.left().is_empty();
        tell(path, deletion.removed(), deletion.left(), json)?;
    }
    drop(held);
    Ok(CommandStatus::found_if(is_left))
}

/// The level of this process's tenant while it deletes; without a server, or if it refuses, there is none.
async fn step_back(file: &OperatorFile) -> Option<Held> {
    let warn = |reason: String| eprintln!("minerva-ctl: {reason}; deletes at its pace without stepping back");
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
    if json {
        let left: Vec<_> =
            left.iter().map(|left| serde_json::json!({ "path": left.path, "reason": left.reason })).collect();
        output::json(&serde_json::json!({
            "path": path, "directories": directories, "files": files, "bytes": bytes, "left": left,
        }))?;
    } else {
        let bytes = figures::size(bytes as f64);
        output::text(&format!("{}: {directories} directories and {files} files deleted, {bytes}\n", path.display()))?;
    }
    for left in left {
        eprintln!("minerva-ctl: left {}: {}", left.path.display(), left.reason);
    }
    Ok(())
}
