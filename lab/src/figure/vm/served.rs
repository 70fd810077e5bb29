//! `minerva-blk` over an emulated disk, with a log of its requests.

use super::part::GuestPart;
use super::{VmGuest, VmPlan};
use crate::disk::DiskInfo;
use crate::error::{At, LabError, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(10);

/// The server, killed when dropped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    log: PathBuf,
    said: PathBuf,
}

/// Where a guest's disk is served.
pub(super) fn socket(directory: &Path, guest: &VmGuest) -> PathBuf {
    directory.join(format!("{}.sock", guest.name))
}

impl Server {
    /// Starts it with one disk a guest, each the guest's part of the device, and waits until it serves.
    pub(super) fn start(
        plan: &VmPlan<'_>,
        scheduler: &str,
        (disk, parts): (&DiskInfo, &[GuestPart]),
        directory: &Path,
    ) -> Result<Self> {
        let config = directory.join("blk.toml");
        std::fs::write(&config, text(plan, scheduler, (disk, parts), directory)).at("write", &config)?;
        let said = directory.join("minerva-blk.log");
        let errors = File::create(&said).at("create", &said)?;
        let mut command = Command::new(plan.server);
        command.arg("--config").arg(&config).arg("--log-requests").arg(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().at("start", plan.server)?;
        let log = directory.join(format!("{}.csv", disk.kernel_name));
        let mut server = Self { child, log, said };
        let begun = Instant::now();
        while !plan.guests.iter().all(|guest| UnixStream::connect(socket(directory, guest)).is_ok()) {
            if begun.elapsed() > PATIENCE || server.child.try_wait().is_ok_and(|status| status.is_some()) {
                return Err(server.failure());
            }
            std::thread::sleep(STEP);
        }
        Ok(server)
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it in order; where its log is, which is whole then.
    pub(super) fn end(mut self) -> Result<PathBuf> {
        // The child is not reaped before this, so the number cannot be another's.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match self.child.try_wait().at("wait for", "minerva-blk")? {
                Some(status) if status.success() => return Ok(self.log.clone()),
                Some(_) => break,
                None => std::thread::sleep(STEP),
            }
        }
        Err(self.failure())
    }

    fn failure(&self) -> LabError {
        let said = std::fs::read_to_string(&self.said).unwrap_or_default();
        LabError::Controller { program: "minerva-blk".to_owned(), message: format!("does not serve: {}", said.trim()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(plan: &VmPlan<'_>, scheduler: &str, (disk, parts): (&DiskInfo, &[GuestPart]), directory: &Path) -> String {
    let control = directory.join("servers/blk");
    let device = &disk.kernel_name;
    let rest = &plan.device;
    let mut text =
        format!("[server]\ncontrol = {control:?}\n[devices.{device}]\nscheduler = \"{scheduler}\"\n{rest}\n");
    for (guest, part) in plan.guests.iter().zip(parts) {
        let socket = socket(directory, guest);
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "[disks.{}]\nimage = {:?}\nsocket = {socket:?}\nread_only = {}\nqueues = 1\n{}\n",
            guest.name, part.device, !part.is_writable, guest.served
        );
    }
    text
}
