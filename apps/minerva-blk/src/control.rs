//! The control socket: a connection is one line there and one back (`minerva_model::ControlRequest`, `ServerRequest`), from root,
//! the server's own user and the operators' group only.

use crate::hand_over;
use crate::host::{Answered, Host, OpenedDisk};
use crate::privileges::Identity;
use anyhow::Context;
use minerva_linux_observe::PeerCredentials;
use minerva_model::{CONTROL_BYTES_MAX, CONTROL_VERSION, ControlRequest, ServerAnswer, ServerRequest};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Who says nothing for so long has nothing to say.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections at once. More wait.
const CONNECTIONS_MAX: usize = 16;
/// Descriptors that come with one piece of a request.
const DESCRIPTORS_MAX: usize = 4;

/// Listening, but not yet serving.
pub(crate) struct Control {
    listener: Arc<UnixListener>,
    group: Option<u32>,
}

impl Control {
    /// Makes the socket, as whoever starts the server.
    pub(crate) fn open(path: &Path, identity: &Identity) -> anyhow::Result<Self> {
        if let Some(folder) = path.parent() {
            // Others may look for the socket, and nobody else may make one: what is asked there is obeyed.
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.with_context(|| format!("failed to make {}; name another `server.control`", folder.display()))?;
        }
        let listener = minerva_blk::listen(path).context("`server.control`")?;
        identity.open_to_operators(path)?;
        Ok(Self::taken(listener, identity))
    }

    /// One that another server made.
    pub(crate) fn taken(listener: UnixListener, identity: &Identity) -> Self {
        Self { listener: Arc::new(listener), group: identity.operator_group() }
    }

    /// Serves it, until the process ends.
    pub(crate) fn start(self, host: Arc<Mutex<Option<Host>>>) -> anyhow::Result<()> {
        let serve = move || {
            let open = Arc::new(AtomicUsize::new(0));
            loop {
                let connection = self.listener.accept();
                let (Ok((connection, _)), true) = (connection, open.load(Ordering::Relaxed) < CONNECTIONS_MAX) else {
                    // Out of descriptors or of patience: who asks is hung up on, and may ask again.
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                };
                let (host, busy, group) = (Arc::clone(&host), Arc::clone(&open), self.group);
                let control = Arc::clone(&self.listener);
                open.fetch_add(1, Ordering::Relaxed);
                let converse = move || {
                    // Who hung up needs no answer.
                    let _ = converse(connection, group, &host, &control);
                    busy.fetch_sub(1, Ordering::Relaxed);
                };
                if std::thread::Builder::new().name("control".to_owned()).spawn(converse).is_err() {
                    open.fetch_sub(1, Ordering::Relaxed);
                }
            }
        };
        std::thread::Builder::new().name("control".to_owned()).spawn(serve).context("failed to start a thread")?;
        Ok(())
    }
}

fn converse(
    mut connection: UnixStream,
    group: Option<u32>,
    host: &Mutex<Option<Host>>,
    control: &UnixListener,
) -> io::Result<()> {
    let peer = PeerCredentials::of(&connection)?;
    let own = rustix::process::geteuid().as_raw();
    let may = peer.uid == 0 || peer.uid == own || group.is_some_and(|group| peer.is_member(group));
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let (line, opened) = receive(&connection)?;
    // Operators may change what is served; who serves it is for who could read the images anyway.
    if line == hand_over::GREETING && (peer.uid == 0 || peer.uid == own) {
        if let Err(error) = hand_over::give(&connection, host, control) {
            eprintln!("minerva-blk: nothing was handed over, and this server goes on: {error:#}");
        }
        return Ok(());
    }
    let answer = match may {
        true => answer(&line, opened, host),
        false => ServerAnswer::Refused("only root and the members of `server.operator_group` may ask".to_owned()),
    };
    connection.write_all(format!("{answer}\n").as_bytes())
}

fn answer(line: &str, opened: Vec<OwnedFd>, host: &Mutex<Option<Host>>) -> ServerAnswer {
    let request = match line.split_once(' ') {
        Some((CONTROL_VERSION, request)) => serde_json::from_str::<ControlRequest>(request),
        _ => {
            return match line.parse::<ServerRequest>() {
                Ok(request) => with(host, |host| Ok(host.knob(&request))).unwrap_or_else(refused),
                Err(why) => {
                    ServerAnswer::Refused(format!("{why}, nor begins with `{CONTROL_VERSION}`, which is spoken here"))
                }
            };
        }
    };
    let answered = request.map_err(anyhow::Error::from).and_then(|request| perform(request, opened, host));
    match answered {
        Ok(Some(text)) => ServerAnswer::Holds(text),
        Ok(None) => ServerAnswer::Gone,
        Err(error) => refused(error),
    }
}

/// Does what an operator asks for.
fn perform(request: ControlRequest, opened: Vec<OwnedFd>, host: &Mutex<Option<Host>>) -> Answered {
    let opened = match &request {
        // The lock of an image may be waited for, and `minervad` and other operators do not wait that long.
        ControlRequest::Add { disk } => {
            with(host, |host| host.judge_new(disk))?;
            Some(OpenedDisk::lock(disk, opened)?)
        }
        ControlRequest::List
        | ControlRequest::Set { .. }
        | ControlRequest::Remove { .. }
        | ControlRequest::Resize { .. }
        | ControlRequest::Protect { .. } => None,
    };
    with(host, |host| host.control(request, opened))
}

fn with<T>(host: &Mutex<Option<Host>>, then: impl FnOnce(&mut Host) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut host = host.lock().unwrap_or_else(PoisonError::into_inner);
    then(host.as_mut().context("the server is ending")?)
}

/// An answer is one line.
fn refused(error: anyhow::Error) -> ServerAnswer {
    ServerAnswer::Refused(format!("{error:#}").replace('\n', " "))
}

/// A line, and what came with it.
fn receive(connection: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let (mut line, mut opened, mut piece) = (Vec::new(), Vec::new(), [0; 4096]);
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = recvmsg(connection, &mut [IoSliceMut::new(&mut piece)], &mut ancillary, flags)?.bytes;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                opened.extend(descriptors);
            }
        }
        line.extend_from_slice(&piece[..got]);
        if line.ends_with(b"\n") {
            line.pop();
            let line = String::from_utf8(line).map_err(io::Error::other)?;
            return Ok((line, opened));
        }
        if got == 0 || line.len() > CONTROL_BYTES_MAX || opened.len() > DESCRIPTORS_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}
