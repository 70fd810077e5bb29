//! A knob of a server of ours: asked and told over its socket, `servers/NAME` in the runtime directory. The messages are
//! `minerva_model::ServerRequest` and `ServerAnswer`.
//!
//! A server is another process and may hang: no message takes longer than [`PATIENCE`], and one that did not answer is not asked
//! again for [`REST`], so that a hundred of its disks do not hold up a slice a hundred times.

use crate::error::{KnobFailure, name_of};
use crate::opening;
use minerva_model::{KnobFile, ServerAnswer, ServerRequest, is_served_name};
use rustix::fs::{AtFlags, FileType, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The folder of the sockets, in the runtime directory.
const FOLDER: &str = "servers";
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
    /// One line there and one back, on a connection of its own.
    fn converse(&self, request: &str) -> std::io::Result<String> {
        let end = Instant::now() + PATIENCE;
        let left = || Some(end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        // Not blocking, because a server that accepts nothing would hold up `connect` for ever.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", self.socket.as_raw_fd()))?;
        rustix::net::connect(&socket, &address)?;
        let mut stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(left())?;
        stream.write_all(format!("{request}\n").as_bytes())?;
        let (mut answer, mut piece) = (Vec::new(), [0; 512]);
        loop {
            stream.set_read_timeout(left())?;
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => answer.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if answer.len() > ANSWER_BYTES_MAX {
                return Err(std::io::Error::other("it says more than a line"));
            }
            if answer.ends_with(b"\n") {
                break;
            }
            if Instant::now() >= end {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}
