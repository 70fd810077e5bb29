//! The operator's tool, on the daemon of the scene.

use super::GapsPlan;
use crate::error::{At, LabError, Result};
use std::path::Path;
use std::process::Command;

/// How often the daemon is asked again.
const TRIES: u32 = 50;

/// The tool and its daemon.
pub(super) struct Tool<'a> {
    pub(super) plan: &'a GapsPlan,
    pub(super) directory: &'a Path,
}

impl Tool<'_> {
    pub(super) fn add(&self, arguments: &[String]) -> Result<()> {
        let mut words = vec!["background", "add", "--name", "work"];
        words.extend(arguments.iter().map(String::as_str));
        self.run(&words).map(drop)
    }

    /// For how long the work ran so far, and whether it is over.
    pub(super) fn status(&self) -> Result<(f64, bool)> {
        for _ in 0..TRIES {
            let text = self.run(&["--json", "background", "list"])?;
            let queue: Option<serde_json::Value> = text.lines().next().and_then(|line| serde_json::from_str(line).ok());
            let status = |queue: serde_json::Value| {
                let is_over = matches!(queue.get("state")?.as_str()?, "done" | "failed");
                Some((queue.get("ran_seconds")?.as_f64()?, is_over))
            };
            if let Some(status) = queue.and_then(status) {
                return Ok(status);
            }
        }
        Err(LabError::BadPlan("the daemon says nothing of the background work".to_owned()))
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        let tool = &self.plan.tool;
        let socket = self.directory.join("control.sock");
        let output = Command::new(tool).arg("--socket").arg(socket).args(arguments).output().at("start", tool)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(LabError::BadPlan(format!("{} {} failed: {said}", tool.display(), arguments.join(" "))))
    }
}
