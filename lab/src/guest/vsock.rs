//! A guest's vsock, served by a program in user space, so that the host needs neither the vhost module nor a free CID.

use super::GuestFolder;
use super::error::GuestError;
use super::machine::Process;
use crate::lifetime::die_with_this_thread;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "vhost-device-vsock";

/// The socket, in the guest's directory, over which QEMU and the program speak.
pub(super) const CONTROL: &str = "vsock.control";

/// The guest's number. Each has a program of its own, so all can have the same.
const GUEST_CID: u32 = 3;

/// A healthy program listens within a fraction of a second.
const START_MAX: Duration = Duration::from_secs(20);
const START_STEP: Duration = Duration::from_millis(10);

/// Starts the program, and returns when QEMU can connect to it.
pub(super) fn start(place: &GuestFolder<'_>, path: &Path) -> Result<Process, GuestError> {
    let (control, log) = (place.at(CONTROL), place.at("vsock.log"));
    let errors = File::create(&log).map_err(GuestError::at("make", &log))?;
    let mut command = Command::new(PROGRAM);
    command.args(["--guest-cid", &GUEST_CID.to_string()]);
    command.arg("--socket").arg(&control).arg("--uds-path").arg(path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    die_with_this_thread(&mut command);
    let mut program = Process(command.spawn().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => GuestError::MissingVsockDevice,
        _ => GuestError::at("start", PROGRAM)(source),
    })?);
    let begin = Instant::now();
    while !control.exists() {
        let ended = program.0.try_wait().map_err(GuestError::at("wait for", PROGRAM))?;
        if ended.is_some() || begin.elapsed() > START_MAX {
            return Err(GuestError::VsockDevice { detail: place.text("vsock.log") });
        }
        std::thread::sleep(START_STEP);
    }
    Ok(program)
}
