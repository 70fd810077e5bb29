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

/// How far the work is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// For how many seconds it ran.
    pub(super) ran_s: f64,
    /// It is done.
    pub(super) is_over: bool,
}

impl Tool<'_> {
    /// Adds the work, to be done within `sla_s` seconds.
    pub(super) fn add(&self, sla_s: u64, arguments: &[String]) -> Result<()> {
        let sla = format!("{sla_s}s");
        let mut words = vec!["background", "add", "--name", "work", "--sla", &sla];
        words.extend(arguments.iter().map(String::as_str));
        self.run(&words).map(drop)
    }

    /// How far the work is. One that failed is an error.
    pub(super) fn status(&self) -> Result<Told> {
        for _ in 0..TRIES {
            let text = self.run(&["--json", "background", "list"])?;
            let queue: Option<serde_json::Value> = text.lines().next().and_then(|line| serde_json::from_str(line).ok());
            let Some(queue) = queue else { continue };
            if queue["state"] == "failed" {
                return Err(LabError::BadPlan(format!("the background work failed: {queue}")));
            }
            if let Some(ran_s) = queue["ran_seconds"].as_f64() {
                return Ok(Told { ran_s, is_over: queue["state"] == "done" });
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
