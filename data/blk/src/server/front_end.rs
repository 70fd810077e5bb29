//! The thread of one VM disk: front ends come and go at its socket, one at a time, until the disk ends or another server goes on.

use super::parking::{Parking, Wanted};
use super::{ServerError, VmDisk};
use crate::error::HangUp;
use crate::session::{Attachment, RestoredConnection, Session, SuspendedConnection, channel};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vhost::vhost_user::BackendReqHandler;

/// Before the next attempt to take a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// So long a front end may take to end a message, or to read answers. QEMU writes and reads a message at once.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(5);
/// How often the rest of a message is looked for: the kernel tells of its first byte only.
const MESSAGE_STEP: Duration = Duration::from_millis(10);

/// Between a disk's thread and who ends it.
pub(super) struct Shared {
    pub(super) listener: UnixListener,
    state: Mutex<Listening>,
    /// Where the thread is told to stand still, or to leave its front end as it is.
    pub(super) parking: Parking,
    /// The disk's name, and who is told of front ends that are hung up on.
    disk: String,
    tell: TellHangUp,
}

/// Told with the name of the disk and the reason when a front end is hung up on, by the disk's own thread.
pub type TellHangUp = fn(&str, &HangUp);

#[derive(Default)]
pub(super) struct Listening {
    is_ending: bool,
    connection: Option<UnixStream>,
    /// The process that connected.
    pub(super) front_end: Option<u32>,
    /// On which it is told that the configuration space has changed.
    pub(super) channel: Option<UnixStream>,
    /// Why the last front end was hung up on; none once one is served again.
    pub(super) hung_up: Option<HangUp>,
}

/// What a wait came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Ready,
    TooLong,
    /// Something else is wanted than to serve.
    Called,
}

/// A front end that is served.
struct FrontEnd {
    connection: UnixStream,
    session: Arc<Mutex<Session>>,
    handler: BackendReqHandler<Mutex<Session>>,
}

impl Shared {
    pub(super) fn new(listener: UnixListener, disk: &VmDisk) -> Result<Self, ServerError> {
        // So that a front end that hung up before it was accepted is not waited for.
        listener.set_nonblocking(true).map_err(ServerError::system("listen"))?;
        let parking = Parking::new().map_err(ServerError::system("make an event counter"))?;
        Ok(Self { listener, state: Mutex::default(), parking, disk: disk.name.clone(), tell: disk.tell_hang_up })
    }

    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, Listening> {
        // Nothing in between can be half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a connection; false when it is too late for one, or no descriptor is left for it.
    fn begin(&self, connection: &UnixStream) -> bool {
        let mut state = self.lock();
        state.connection = connection.try_clone().ok();
        let peer = rustix::net::sockopt::socket_peercred(connection);
        state.front_end = peer.ok().and_then(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()).ok());
        !state.is_ending && state.connection.is_some()
    }

    /// Ends the thread; its front end is hung up on.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_ending = true;
        if let Some(connection) = state.connection.take() {
            // It has been hung up otherwise.
            let _ = connection.shutdown(std::net::Shutdown::Both);
        }
        // Ends the wait for the next one.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        self.parking.want(Wanted::Serve);
    }

    /// Waits for this to happen, so long or for ever.
    fn wait(&self, what: &impl AsFd, events: PollFlags, patience: Option<Duration>) -> io::Result<Waited> {
        let mut set = [PollFd::new(&self.parking, PollFlags::IN), PollFd::new(what, events)];
        let timeout = patience.map(|patience| Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        });
        loop {
            match poll(&mut set, timeout.as_ref()) {
                Ok(0) => return Ok(Waited::TooLong),
                Ok(_) if set[0].revents().is_empty() => return Ok(Waited::Ready),
                Ok(_) => return Ok(Waited::Called),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits until a whole message is there and its answer would not be waited for: whoever handles it is held up by no front end, and this
    /// thread can leave in the middle of a message, which the next server then finds whole.
    fn wait_for_message(&self, connection: &UnixStream) -> io::Result<Waited> {
        match self.wait(connection, PollFlags::IN, None)? {
            Waited::Ready => {}
            other => return Ok(other),
        }
        let deadline = Instant::now() + MESSAGE_PATIENCE;
        while !channel::has_message(connection)? {
            if Instant::now() >= deadline {
                return Ok(Waited::TooLong);
            }
            // An end of the connection is to be heard too, which data that is there would hide.
            match self.wait(connection, PollFlags::RDHUP, Some(MESSAGE_STEP))? {
                Waited::TooLong => {}
                other => return Ok(other),
            }
        }
        self.wait(connection, PollFlags::OUT, Some(MESSAGE_PATIENCE))
    }

    /// The thread. A front end that another server had comes first.
    pub(super) fn accept_all(
        &self,
        attachment: &Attachment,
        restored: Option<RestoredConnection>,
    ) -> Option<SuspendedConnection> {
        if let Some(suspended) = restored.and_then(|restored| self.go_on(restored)) {
            return Some(suspended);
        }
        loop {
            if matches!(self.wait(&self.listener, PollFlags::IN, None), Ok(Waited::Called)) {
                match self.parking.stand_still() {
                    true => return None,
                    false => continue,
                }
            }
            let connection = self.listener.accept();
            if self.lock().is_ending {
                return None;
            }
            let connection = match connection {
                Ok((connection, _)) => connection,
                Err(error) => {
                    // It waits: not for ever, as descriptors come back.
                    let has_none = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
                    self.note_hang_up(has_none.then_some(HangUp::NoDescriptor));
                    std::thread::sleep(PAUSE);
                    continue;
                }
            };
            let front_end = if self.begin(&connection) { FrontEnd::new(connection, attachment) } else { None };
            match front_end {
                Some(front_end) => {
                    if let Some(suspended) = self.serve(front_end) {
                        return Some(suspended);
                    }
                }
                None if self.lock().is_ending => return None,
                None => {
                    self.turn_away(None, Some(HangUp::NoDescriptor));
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Serves a front end that another server had.
    fn go_on(&self, restored: RestoredConnection) -> Option<SuspendedConnection> {
        let RestoredConnection { stream, channel, session, handler } = restored;
        if !self.begin(&stream) {
            let is_ending = self.lock().is_ending;
            self.turn_away(None, (!is_ending).then_some(HangUp::NoDescriptor));
            return None;
        }
        self.lock().channel = channel;
        let went_on = {
            let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
            session.go_on().map_err(|error| session.hang_up(&error))
        };
        let front_end = FrontEnd { connection: stream, session, handler };
        match went_on {
            Ok(()) => self.serve(front_end),
            Err(why) => {
                self.turn_away(Some(front_end), why);
                None
            }
        }
    }

    /// What cannot be served is hung up on, and its front end comes again.
    fn turn_away(&self, front_end: Option<FrontEnd>, why: Option<HangUp>) {
        self.note_hang_up(why);
        drop(front_end);
        drop(self.forget_front_end());
    }

    /// Until the front end goes, or this thread leaves it: then how to go on with it. The first message that makes no sense is the
    /// last: the front end is hung up on.
    fn serve(&self, mut front_end: FrontEnd) -> Option<SuspendedConnection> {
        let FrontEnd { connection, session, handler } = &mut front_end;
        let suspended = loop {
            self.note_served(&mut session.lock().unwrap_or_else(PoisonError::into_inner));
            match self.wait_for_message(connection) {
                Ok(Waited::Ready) => {}
                Ok(Waited::TooLong) => {
                    self.note_hang_up(Some(HangUp::Stalled));
                    break None;
                }
                Ok(Waited::Called) if !self.parking.stand_still() => continue,
                Ok(Waited::Called) => {
                    let channel = self.lock().channel.take();
                    let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
                    break session.suspend(connection, channel.as_ref()).ok();
                }
                Err(_) => break None,
            }
            match channel::take(connection) {
                Ok(Some(channel)) => {
                    // As in `forget_front_end`.
                    let before = self.lock().channel.replace(channel);
                    drop(before);
                }
                Ok(None) => {
                    if let Err(error) = handler.handle_request() {
                        self.note_hang_up(session.lock().unwrap_or_else(PoisonError::into_inner).hang_up(&error));
                        break None;
                    }
                }
                Err(error) => {
                    let is_refused = error.kind() == io::ErrorKind::InvalidData;
                    self.note_hang_up(is_refused.then(|| HangUp::Protocol(error.to_string())));
                    break None;
                }
            }
        };
        drop(front_end);
        drop(self.forget_front_end());
        suspended
    }
}

impl Shared {
    /// Whoever is served has nothing to be told any more, but for a disk that grew while it did not hear of it.
    fn note_served(&self, session: &mut Session) {
        let mut state = self.lock();
        if session.is_served() {
            state.hung_up = None;
        }
        if let Some(channel) = &state.channel
            && session.has_to_be_told()
        {
            // One that has just gone is told when it comes back.
            let _ = channel::tell_change(channel);
        }
    }

    /// What is left of it, to be closed without the lock: what it sent and nobody read goes too, and may be of a file system that hangs.
    fn forget_front_end(&self) -> [Option<UnixStream>; 2] {
        let mut state = self.lock();
        state.front_end = None;
        [state.connection.take(), state.channel.take()]
    }

    /// One that comes again and again with the same mistake is told once.
    pub(super) fn note_hang_up(&self, why: Option<HangUp>) {
        let Some(why) = why else { return };
        if self.lock().hung_up.replace(why.clone()).as_ref() != Some(&why) {
            (self.tell)(&self.disk, &why);
        }
    }
}

impl FrontEnd {
    fn new(connection: UnixStream, attachment: &Attachment) -> Option<Self> {
        let session = Arc::new(Mutex::new(Session::new(attachment.clone())));
        let heard = connection.try_clone().ok()?;
        let handler = BackendReqHandler::from_stream(heard, Arc::clone(&session));
        Some(Self { connection, session, handler })
    }
}
