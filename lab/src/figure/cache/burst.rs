//! A burst that a program writes as files, and the ways by which these come to their place.

use super::service::Service;
use crate::clock::boottime;
use crate::error::{At, LabError, Result};
use crate::workload::{Access, Appearance, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use serde::Serialize;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BLOCK_BYTES: u32 = 1 << 20;
const LOOK: Duration = Duration::from_millis(20);
/// What has not moved by then will not.
const MOVED_PATIENCE: Nanos = Nanos::from_secs(600);
pub(super) const TENANT: &str = "burst";

/// By which way a burst goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationArm {
    /// There is none.
    Nobody,
    /// To its place.
    Straight,
    /// To a fast disk, and copied back at once.
    Copy,
    /// Through the pool.
    Pool,
}

impl MigrationArm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nobody, Self::Straight, Self::Copy, Self::Pool];
}

/// Where a burst goes, and how.
pub(super) struct Burst<'a> {
    pub(super) arm: MigrationArm,
    pub(super) files: u32,
    pub(super) bytes: u64,
    /// On the busy disk.
    pub(super) place: &'a Path,
    /// On the fast one, beside the pool.
    pub(super) fast: &'a Path,
    pub(super) service: &'a Service,
    pub(super) program: &'a WorkerProgram,
    pub(super) group: &'a TenantCgroup,
    pub(super) interrupted: &'a AtomicBool,
}

/// When the parts of a burst were over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) began: Nanos,
    /// All is written and synced, as far as the program is concerned.
    pub(super) done: Nanos,
    /// All is at its place, on its disk.
    pub(super) placed: Nanos,
}

impl Burst<'_> {
    /// Writes it, and waits until it is at its place.
    pub(super) fn play(&self) -> Result<Written> {
        let began = boottime();
        for file in 0..self.files {
            self.write(&self.target(file)?)?;
        }
        let done = boottime();
        match self.arm {
            MigrationArm::Nobody | MigrationArm::Straight => (),
            MigrationArm::Copy => self.copy_back()?,
            MigrationArm::Pool => self.wait_until_moved()?,
        }
        Ok(Written { began, done, placed: boottime() })
    }

    fn name(file: u32) -> String {
        format!("part-{file}")
    }

    /// What the program is to write in place of a file.
    fn target(&self, file: u32) -> Result<PathBuf> {
        let path = self.place.join(Self::name(file));
        Ok(match self.arm {
            MigrationArm::Nobody | MigrationArm::Straight => path,
            MigrationArm::Copy => self.fast.join(Self::name(file)),
            MigrationArm::Pool => self.service.defer(TENANT, &path, self.bytes / u64::from(self.files))?,
        })
    }

    fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.bytes / u64::from(self.files);
        let spec = WorkloadSpec {
            tenant: TENANT.to_owned(),
            path: path.to_owned(),
            access: Access::WriteAndSync,
            bytes: Some(bytes),
            block_bytes: BLOCK_BYTES,
            region_start: 0,
            region_bytes: bytes.max(u64::from(BLOCK_BYTES)),
            depth: 1,
            compute: Compute::Nothing,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed: 1,
        };
        let mut worker = Worker::spawn(self.program, &spec, Some(self.group))?;
        worker.start()?;
        while !worker.is_done() {
            self.look()?;
        }
        worker.wait().map(drop)
    }

    /// What scripts do: copies all at once, and waits until it is on the disk.
    fn copy_back(&self) -> Result<()> {
        let script = "echo $$ > \"$1\" && cp \"$2\"/part-* \"$3\"/ && sync \"$3\"/part-*";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(self.group.processes_file()).arg(self.fast).arg(self.place);
        let mut copy = command.process_group(0).stdin(Stdio::null()).spawn().at("start", "sh")?;
        loop {
            match copy.try_wait().at("wait for", "cp")? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(LabError::BadPlan(format!("cp ended with {status}"))),
                None => {}
            }
            if let Err(error) = self.look() {
                let _ = copy.kill();
                let _ = copy.wait();
                return Err(error);
            }
        }
    }

    fn wait_until_moved(&self) -> Result<()> {
        let since = boottime();
        for file in 0..self.files {
            let path = self.place.join(Self::name(file));
            while fs::symlink_metadata(&path).at("examine", &path)?.is_symlink() {
                self.look()?;
                if boottime().since(since) > MOVED_PATIENCE {
                    let asked = serde_json::json!({ "ask": "deferred" });
                    return Err(LabError::BadPlan(format!("files do not move: {}", self.service.ask(&asked)?)));
                }
            }
        }
        Ok(())
    }

    fn look(&self) -> Result<()> {
        std::thread::sleep(LOOK);
        if self.interrupted.load(Ordering::Relaxed) { Err(LabError::Interrupted) } else { Ok(()) }
    }
}
