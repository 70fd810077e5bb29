//! Asking a running disk from another process: whoever connects to its socket gets one line of JSON with what the disk
//! is and what it has done.

use super::claim::{self, DiskInfo, leftover_names};
use super::service::{DiskStatistics, Message};
use crate::error::{At, LabError, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

/// A running disk, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStatus {
    /// What and where.
    pub disk: DiskInfo,
    /// What it has done.
    pub statistics: DiskStatistics,
}

/// The thread that answers.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    pub(super) fn serve(socket: &Path, info: DiskInfo, device: Sender<Message>) -> Result<Self> {
        let listener = UnixListener::bind(socket).at("listen on", socket)?;
        let accepting = listener.try_clone().at("listen on", socket)?;
        let answer = move || {
            while let Ok((mut stream, _)) = accepting.accept() {
                let status = DiskStatus { disk: info.clone(), statistics: super::ask_statistics(&device) };
                // Whoever asked may be gone; the disk goes on.
                let _ = serde_json::to_writer(&stream, &status).map(|()| stream.write_all(b"\n"));
            }
        };
        let thread = Builder::new().name("disk-control".to_owned()).spawn(answer).at("start the thread of", socket)?;
        Ok(Self { listener, thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // A shut down listener accepts no more, which ends the thread.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the disk `name` is and has done.
pub fn status(name: &str) -> Result<DiskStatus> {
    Ok(ask(name)?.0)
}

/// Every running disk.
pub fn list() -> Vec<DiskStatus> {
    leftover_names().iter().filter_map(|name| status(name).ok()).collect()
}

fn ask(name: &str) -> Result<(DiskStatus, UnixStream)> {
    let socket = claim::socket(name);
    let no_disk = |_| LabError::NoSuchDisk { name: name.to_owned() };
    let mut stream = UnixStream::connect(&socket).map_err(no_disk)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).at("read", &socket)?;
    let status = serde_json::from_str(&text).at("understand the answer of", &socket)?;
    Ok((status, stream))
}

/// Ends the process that owns the disk `name`, and waits until the disk is gone. The disk of a dead owner is swept.
///
/// The owner is known by the other end of its socket, so that a recycled process number cannot be hit.
pub fn destroy(name: &str) -> Result<()> {
    let Ok((_, stream)) = ask(name) else {
        return if claim::remove_leftover(name)? {
            Ok(())
        } else {
            Err(LabError::NoSuchDisk { name: name.to_owned() })
        };
    };
    let socket = claim::socket(name);
    let owner = rustix::net::sockopt::socket_peercred(&stream).at("find the owner of", &socket)?.pid;
    let process = pidfd_open(owner, PidfdFlags::empty()).at("find the owner of", &socket)?;
    pidfd_send_signal(&process, Signal::TERM).at("end the owner of", &socket)?;
    let patience = Timespec { tv_sec: 20, tv_nsec: 0 };
    let ended =
        poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)).at("wait for the owner of", &socket)?;
    if ended == 0 {
        let message = "does not end: look at the process with `ps`, then end it with `kill -9` and destroy once more";
        return Err(LabError::Controller {
            program: format!("process {owner}", owner = owner.as_raw_nonzero()),
            message: message.to_owned(),
        });
    }
    // An owner that ended without cleaning up leaves the name free to be swept.
    claim::remove_leftover(name).map(drop)
}
