//! A knob of a server of ours: asked and told over its socket, `servers/NAME` in the runtime directory. The messages are
//! `minerva_model::ServerRequest` and `ServerAnswer`.
//!
//! A server is another process and may hang: no message takes longer than [`PATIENCE`], and one that did not answer is not asked
//! again for [`REST`], so that a hundred of its disks do not hold up a slice a hundred times.

use crate::conversation::{FOLDER, converse};
use crate::error::{KnobFailure, name_of};
use crate::opening;
use minerva_model::{KnobFile, ServerAnswer, ServerRequest, is_served_name};
use rustix::fs::{AtFlags, FileType, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 4096;
/// For the whole of a message and its answer.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a server that did not answer is left alone.
const REST: Duration = Duration::from_secs(5);

/// The servers below one runtime directory.
#[derive(Debug)]
pub(crate) struct Servers {
    folder: PathBuf,
    /// Those that did not answer, and since when.
    silent: Mutex<BTreeMap<String, Instant>>,
}

/// A disk at a server.
#[derive(Debug)]
pub(crate) struct ServedKnob {
    /// The socket, which is connected to by this descriptor, so that it cannot be another one.
    socket: OwnedFd,
    server: String,
    disk: String,
}

impl Servers {
    pub(crate) fn open(runtime_dir: &Path) -> Self {
        Self { folder: runtime_dir.join(FOLDER), silent: Mutex::default() }
    }

    /// The disk of a server, and what tells this server from a later one of the same name.
    pub(crate) fn find(&self, server: &str, disk: &str) -> Result<(ServedKnob, u64, String), KnobFailure> {
        let shown = self.folder.join(server).display().to_string();
        if let Some(name) = [server, disk].into_iter().find(|name| !is_served_name(name)) {
            return Err(KnobFailure::guard(format!("`{name}` is no name of a server or of its disk")));
        }
        let failed = |errno| match errno {
            Errno::NOENT => KnobFailure::Vanished { why: format!("{shown} is gone") },
            _ => KnobFailure::Refused { errno: Some(errno), detail: format!("opening {shown}: {}", name_of(errno)) },
        };
        // Opened each time: the first server makes the folder.
        let folder = opening::open_root(&self.folder).map_err(failed)?;
        let socket = opening::open2(folder, server, OFlags::PATH | OFlags::NOFOLLOW).map_err(failed)?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let status = rustix::fs::statx(&socket, "", AtFlags::EMPTY_PATH, wanted).map_err(failed)?;
        if FileType::from_raw_mode(status.stx_mode.into()) != FileType::Socket {
            return Err(KnobFailure::guard(format!("{shown} is no socket; remove it and start the server again")));
        }
        let knob = ServedKnob { socket, server: server.to_owned(), disk: disk.to_owned() };
        Ok((knob, identity(&status), format!("{shown}/{disk}")))
    }

    fn silent(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a knob, or sets it, and tells what it holds then.
    pub(crate) fn say(&self, knob: &ServedKnob, file: KnobFile, text: Option<&str>) -> Result<String, KnobFailure> {
        let ServedKnob { server, disk, .. } = knob;
        let refuse = |why: &str| KnobFailure::guard(format!("{server} {why}"));
        if self.silent().get(server).is_some_and(|since| since.elapsed() < REST) {
            return Err(refuse("did not answer a moment ago, and is asked again later"));
        }
        let request = ServerRequest { knob: file, disk: disk.clone(), text: text.map(str::to_owned) };
        match knob.converse(&request.to_string()) {
            Ok(line) => {
                self.silent().remove(server);
                match line.trim_end_matches('\n').parse() {
                    Ok(ServerAnswer::Holds(text)) => Ok(text),
                    Ok(ServerAnswer::Gone) => {
                        Err(KnobFailure::Vanished { why: format!("{server} serves no disk {disk} any more") })
                    }
                    Ok(ServerAnswer::Refused(why)) => Err(refuse(&format!("refused `{request}`: {why}"))),
                    Err(why) => {
                        Err(refuse(&format!("answered `{request}` with what Minerva does not understand: {why}")))
                    }
                }
            }
            // The socket outlives its server, and what the server was told does not.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                Err(KnobFailure::Vanished { why: format!("{server} has ended") })
            }
            Err(error) => {
                self.silent().insert(server.clone(), Instant::now());
                Err(refuse(&format!("did not answer `{request}`: {error}; restart it if that goes on")))
            }
        }
    }
}

/// A server makes its socket anew, and file systems give inodes out again: so the inode and when it was made.
fn identity(status: &Statx) -> u64 {
    let made = if status.stx_mask & StatxFlags::BTIME.bits() == 0 { status.stx_ctime } else { status.stx_btime };
    let made_ns = made.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(made.tv_nsec.into());
    status.stx_ino.rotate_left(40) ^ made_ns
}

impl ServedKnob {
    fn converse(&self, request: &str) -> std::io::Result<String> {
        let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", self.socket.as_raw_fd()))?;
        converse(&address, request, &[], PATIENCE, ANSWER_BYTES_MAX)
    }
}
