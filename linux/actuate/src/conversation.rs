//! A line to a server of ours and the line it answers with, on a connection of their own.

use minerva_model::{CONTROL_BYTES_MAX, CONTROL_VERSION, ControlRequest, ServerAnswer, is_served_name};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    sendmsg,
};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folder of the sockets, in the runtime directory.
pub(crate) const FOLDER: &str = "servers";
/// Descriptors that go with one request.
const DESCRIPTORS_MAX: usize = 4;

/// Where a server of ours listens.
pub fn server_socket(runtime_dir: &Path, server: &str) -> PathBuf {
    runtime_dir.join(FOLDER).join(server)
}

/// The servers that have a socket below a runtime directory, by name. Whether they still run only asking tells.
pub fn server_names(runtime_dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(runtime_dir.join(FOLDER)).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    let mut names: Vec<String> = sockets.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| is_served_name(name));
    names.sort_unstable();
    names
}

/// Asks the server at `socket`, with what it is to have open, and waits for its answer no longer than `patience`.
pub fn ask_server(
    socket: &Path,
    request: &ControlRequest,
    opened: &[BorrowedFd<'_>],
    patience: Duration,
) -> io::Result<ServerAnswer> {
    let line = format!("{CONTROL_VERSION} {}", serde_json::to_string(request)?);
    let answer = converse(&SocketAddrUnix::new(socket)?, &line, opened, patience, CONTROL_BYTES_MAX)?;
    answer.trim_end_matches('\n').parse().map_err(io::Error::other)
}

/// One line there and one back.
pub(crate) fn converse(
    address: &SocketAddrUnix,
    line: &str,
    opened: &[BorrowedFd<'_>],
    patience: Duration,
    answer_bytes_max: usize,
) -> io::Result<String> {
    let end = Instant::now() + patience;
    let left = || Some(end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
    // Not blocking, because a server that accepts nothing would hold up `connect` for ever.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, address)?;
    let mut stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(left())?;
    send(&mut stream, format!("{line}\n").as_bytes(), opened)?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        stream.set_read_timeout(left())?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if answer.len() > answer_bytes_max {
            return Err(io::Error::other("it says more than a line"));
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

/// The descriptors go with the first bytes.
fn send(stream: &mut UnixStream, bytes: &[u8], opened: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut sent = 0;
    if !opened.is_empty() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(opened)) {
            return Err(io::Error::other("too many descriptors for one request"));
        }
        sent = sendmsg(&*stream, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    }
    stream.write_all(&bytes[sent..])
}
