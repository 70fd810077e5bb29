//! A real `minerva-blk` with one disk for each tenant of a job.

use anyhow::{Context as _, bail, ensure};
use minerva_blocksched::SchedulerName;
use minerva_lab::disk::DiskInfo;
use minerva_linux_actuate::ask_server;
use minerva_model::{ControlRequest, ServerAnswer, ServerReport};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(10);

/// A tenant's disk, as the server is told of it.
pub(crate) struct GuestDisk {
    /// The part of the host's disk that it is.
    pub(crate) image: PathBuf,
    pub(crate) weight: u32,
}

/// The server, killed when dropped.
pub(crate) struct Server {
    child: Child,
    folder: tempfile::TempDir,
}

/// The name of a tenant's disk.
pub(crate) fn name_of(tenant: usize) -> String {
    format!("tenant{tenant}")
}

impl Server {
    /// Starts `program` on the disks, which lie on `device`, and waits until it serves all of them.
    pub(crate) fn start(
        program: &Path,
        device: &DiskInfo,
        (scheduler, depth): (SchedulerName, u32),
        disks: &[GuestDisk],
    ) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("minerva-conformance-").tempdir();
        let folder = folder.context("make a folder for minerva-blk")?;
        let (config, said) = (folder.path().join("blk.toml"), said(folder.path()));
        let mut text = format!("[server]\ncontrol = {:?}\n", control(folder.path()));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[devices.{}]\nscheduler = \"{scheduler}\"\ndepth = {depth}", device.kernel_name);
        for (tenant, GuestDisk { image, weight }) in disks.iter().enumerate() {
            let socket = socket(folder.path(), tenant);
            let name = name_of(tenant);
            let _ =
                writeln!(text, "[disks.{name}]\nimage = {image:?}\nsocket = {socket:?}\nqueues = 1\nweight = {weight}");
        }
        std::fs::write(&config, text).with_context(|| format!("write {}", config.display()))?;
        let errors = File::create(&said).with_context(|| format!("make {}", said.display()))?;
        let mut command = Command::new(program);
        command.arg("--config").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().with_context(|| format!("start {}", program.display()))?;
        let mut server = Self { child, folder };
        server.wait_until_served(disks.len())?;
        Ok(server)
    }

    fn wait_until_served(&mut self, disks: usize) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let report = self.report();
            if report.as_ref().is_ok_and(|report| report.disks.len() == disks) {
                return Ok(());
            }
            let is_over = begun.elapsed() > PATIENCE || report.is_ok() || self.child.try_wait()?.is_some();
            ensure!(!is_over, "minerva-blk does not serve {disks} disks: {}", self.said());
            std::thread::sleep(STEP);
        }
    }

    /// Where a tenant's front end connects.
    pub(crate) fn socket(&self, tenant: usize) -> PathBuf {
        socket(self.folder.path(), tenant)
    }

    /// What it says of itself and its disks.
    pub(crate) fn report(&self) -> anyhow::Result<ServerReport> {
        let answer = ask_server(&control(self.folder.path()), &ControlRequest::List, &[], PATIENCE);
        match answer.context("ask minerva-blk for its disks")? {
            ServerAnswer::Holds(text) => Ok(serde_json::from_str(&text).context("understand minerva-blk")?),
            other => bail!("minerva-blk does not tell its disks: {other:?}"),
        }
    }

    /// Ends it in order, as systemd does.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        // The child is not reaped before this, so the number cannot be another's.
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("end minerva-blk")?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().context("wait for minerva-blk")? {
                ensure!(status.success(), "minerva-blk ended with {status}: {}", self.said());
                return Ok(());
            }
            std::thread::sleep(STEP);
        }
        bail!("minerva-blk does not end: {}", self.said())
    }

    fn said(&self) -> String {
        std::fs::read_to_string(said(self.folder.path())).unwrap_or_default().trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn control(folder: &Path) -> PathBuf {
    folder.join("servers/blk")
}

fn socket(folder: &Path, tenant: usize) -> PathBuf {
    folder.join(format!("{}.sock", name_of(tenant)))
}

fn said(folder: &Path) -> PathBuf {
    folder.join("said")
}
