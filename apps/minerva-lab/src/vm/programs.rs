//! The programs of a run with guests: the server, and the reader, small enough for a guest.

use crate::binaries;
use crate::figure::in_guest;
use crate::options::Output;
use anyhow::Context as _;
use minerva_lab::figure::{VmArm, VmGuest, VmPlan, VmRun, run_vms};
use minerva_lab::guest::guest_directory;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Where they are.
pub(crate) struct Programs {
    server: PathBuf,
    reader: PathBuf,
    _directory: tempfile::TempDir,
}

/// One run.
pub(crate) struct Played<'a> {
    pub(crate) arm: VmArm,
    pub(crate) guests: Vec<VmGuest>,
    /// The rest of the disk's table in the server's file.
    pub(crate) device: String,
    pub(crate) profile: &'a str,
    pub(crate) seconds: u64,
    pub(crate) log: Option<PathBuf>,
}

impl Programs {
    /// Finds them, and makes the guests' one small.
    pub(crate) fn prepare(output: &Output) -> anyhow::Result<Self> {
        let server = binaries::minerva_blk(output)?;
        let directory = guest_directory()?;
        let own = std::env::current_exe().context("failed to find this program")?;
        let reader = in_guest::stripped(&own, directory.path())?;
        Ok(Self { server, reader, _directory: directory })
    }

    /// The guests boot, and read together for some seconds.
    pub(crate) fn run(&self, played: Played<'_>, interrupted: &AtomicBool) -> anyhow::Result<VmRun> {
        let Played { arm, guests, device, profile, seconds, log } = played;
        let (server, reader, profile) = (&self.server, &self.reader, profile.to_owned());
        Ok(run_vms(&VmPlan { arm, guests, device, profile, seconds, server, reader, log }, interrupted)?)
    }
}
