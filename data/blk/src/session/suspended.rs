//! A connection between two servers: everything that a front end and one server agreed on, for another server to go on with.
//!
//! The descriptors come in this order: the connection, the channel if there is one, each region of memory, the inflight region if
//! there is one, and for each ring its kick and its call, as far as it has them.

use super::rings::{RingConfig, RingState};
use super::{Attachment, Session, channel};
use crate::error::HangUp;
use crate::inflight::{InflightRegion, InflightSource};
use crate::memory::{MemoryTable, Region};
use crate::worker::Command;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use vhost::vhost_user::{BackendReqHandler, Error, Result};

/// Requests of the protocol (`VHOST_USER_GET_FEATURES` and so on).
const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const GET_PROTOCOL_FEATURES: u32 = 15;
const SET_PROTOCOL_FEATURES: u32 = 16;

/// What of a connection is no descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConnectionState {
    features: u64,
    protocol_features: u64,
    has_writeback: Option<bool>,
    #[serde(default)]
    sectors_read: Option<u64>,
    has_channel: bool,
    regions: Vec<Region>,
    inflight: Option<InflightSource>,
    rings: Vec<RingState>,
}

/// A connection that nobody serves.
#[derive(Debug)]
pub(crate) struct SuspendedConnection {
    state: ConnectionState,
    files: Vec<OwnedFd>,
}

impl SuspendedConnection {
    /// What to tell the next server, and the descriptors that go with it.
    pub(crate) fn parts(&self) -> (&ConnectionState, impl Iterator<Item = BorrowedFd<'_>>) {
        (&self.state, self.files.iter().map(AsFd::as_fd))
    }

    /// As another server told it; none where descriptors are missing or too many.
    pub(crate) fn from_parts(state: ConnectionState, files: Vec<OwnedFd>) -> Option<Self> {
        let rings =
            state.rings.iter().map(|ring| usize::from(ring.has_kick) + usize::from(ring.has_call)).sum::<usize>();
        let others = usize::from(state.has_channel) + state.regions.len() + usize::from(state.inflight.is_some());
        (files.len() == 1 + others + rings).then_some(Self { state, files })
    }

    /// Agrees on all of it for a disk of this server. Nothing is served yet. It fails where this server could not serve what the one before
    /// did; what only the front end can have changed since costs its own connection.
    pub(crate) fn restore(self, attachment: Attachment) -> Result<Restored> {
        let session = Arc::new(Mutex::new(Session::new(attachment)));
        match self.restore_to(&session) {
            Ok(restored) => Ok(Restored::Connection(restored)),
            Err(error @ Error::InvalidParam) => {
                let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
                let why = session.hang_up(&error).unwrap_or_else(|| HangUp::Protocol(error.to_string()));
                Ok(Restored::HangUp(why))
            }
            Err(error) => Err(error),
        }
    }

    fn restore_to(self, session: &Arc<Mutex<Session>>) -> Result<RestoredConnection> {
        let Self { state, files } = self;
        let mut files = files.into_iter();
        let mut next = || files.next().ok_or(Error::InvalidParam);
        let stream = UnixStream::from(next()?);
        let channel = if state.has_channel { Some(UnixStream::from(next()?)) } else { None };
        let regions = state.regions.iter().map(|_| next().map(File::from)).collect::<Result<Vec<_>>>()?;
        let inflight = state.inflight.map(|source| next().map(|file| (source, File::from(file)))).transpose()?;
        let mut rings = Vec::with_capacity(state.rings.len());
        for told in &state.rings {
            let kick = if told.has_kick { Some(File::from(next()?)) } else { None };
            let call = if told.has_call { Some(File::from(next()?)) } else { None };
            rings.push(RingConfig::restore(told, kick, call));
        }
        let memory = (!state.regions.is_empty()).then(|| MemoryTable::map_regions(state.regions.clone(), regions));
        session.lock().unwrap_or_else(PoisonError::into_inner).restore(&state, rings, memory, inflight)?;
        let handler = handler(&state, Arc::clone(session), &stream).map_err(Error::ReqHandlerError)?;
        Ok(RestoredConnection { stream, channel, session: Arc::clone(session), handler })
    }
}

/// What becomes of a connection that another server had.
pub(crate) enum Restored {
    Connection(RestoredConnection),
    /// Its front end is hung up on, and may come again.
    HangUp(HangUp),
}

/// A connection that this server can go on with.
pub(crate) struct RestoredConnection {
    pub(crate) stream: UnixStream,
    pub(crate) channel: Option<UnixStream>,
    pub(crate) session: Arc<Mutex<Session>>,
    pub(crate) handler: BackendReqHandler<Mutex<Session>>,
}

impl Session {
    fn restore(
        &mut self,
        state: &ConnectionState,
        rings: Vec<RingConfig>,
        memory: Option<std::result::Result<MemoryTable, HangUp>>,
        inflight: Option<(InflightSource, File)>,
    ) -> Result<()> {
        if rings.len() > self.rings.len() {
            return Err(Error::InvalidParam);
        }
        self.rings.iter_mut().zip(rings).for_each(|(ring, restored)| *ring = restored);
        (self.has_writeback, self.sectors_read) = (state.has_writeback, state.sectors_read);
        memory.map_or(Ok(()), |memory| self.use_memory(memory))?;
        if let Some((source, file)) = inflight {
            let Some(region) = InflightRegion::map(file, source.offset, source.queues, source.queue_size) else {
                self.refusal = Some(HangUp::Protocol("it wrote to the region of what is under way".to_owned()));
                return Err(Error::InvalidParam);
            };
            self.inflight = Some(region);
            self.note_writeback();
        }
        Ok(())
    }

    /// Serves none of its rings any more, and says how to go on. What is at the disk is waited for.
    pub(crate) fn suspend(&mut self, stream: &UnixStream, channel: Option<&UnixStream>) -> Result<SuspendedConnection> {
        let left = self.ask(|answer| Command::Detach(self.attachment.disk, answer))?;
        let mut was_running = vec![false; self.rings.len()];
        for ring in left {
            self.rings[ring.queue].leave(ring.next_available, ring.begun);
            was_running[ring.queue] = true;
        }
        let clone = |file: BorrowedFd<'_>| file.try_clone_to_owned().map_err(Error::ReqHandlerError);
        let mut files = vec![clone(stream.as_fd())?];
        files.extend(channel.map(|channel| clone(channel.as_fd())).transpose()?);
        let mut regions = Vec::new();
        if let Some(memory) = &self.memory {
            let (told, opened) = memory.regions();
            regions.extend_from_slice(told);
            for file in opened {
                files.push(clone(file.as_fd())?);
            }
        }
        let source = self.inflight.as_ref().and_then(InflightRegion::source);
        if let Some((_, file)) = source {
            files.push(clone(file.as_fd())?);
        }
        let mut rings = Vec::with_capacity(self.rings.len());
        for (ring, was_running) in self.rings.iter().zip(was_running) {
            let (state, opened) = ring.suspend(was_running);
            rings.push(state);
            for file in opened {
                files.push(clone(file.as_fd())?);
            }
        }
        let state = ConnectionState {
            features: self.features,
            protocol_features: self.protocol_features,
            has_writeback: self.has_writeback,
            sectors_read: self.sectors_read,
            has_channel: channel.is_some(),
            regions,
            inflight: source.map(|(source, _)| source),
            rings,
        };
        Ok(SuspendedConnection { state, files })
    }

    /// Serves the rings that the server before did.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        (0..self.rings.len() as u32).try_for_each(|index| self.restart_ring(index))
    }
}

/// A handler that has seen what the front end agreed to. That is private to the crate (0.18) and comes by messages only, so it gets them
/// over a connection of its own, which the front end's then takes the place of.
fn handler(
    state: &ConnectionState,
    session: Arc<Mutex<Session>>,
    stream: &UnixStream,
) -> io::Result<BackendReqHandler<Mutex<Session>>> {
    let (mut speaker, heard) = UnixStream::pair()?;
    let mut handler = BackendReqHandler::from_stream(heard, session);
    let mut say = |request: u32, value: Option<u64>| {
        speaker.write_all(&channel::message(request, channel::VERSION, value.map_or(0, |_| 8)))?;
        value.map_or(Ok(()), |value| speaker.write_all(&value.to_ne_bytes()))?;
        handler.handle_request().map_err(io::Error::other)
    };
    say(GET_FEATURES, None)?;
    say(SET_FEATURES, Some(state.features))?;
    if state.protocol_features != 0 {
        say(GET_PROTOCOL_FEATURES, None)?;
        say(SET_PROTOCOL_FEATURES, Some(state.protocol_features))?;
    }
    // SAFETY: the handler owns this descriptor and goes on owning it: what it stands for changes, its number does not, and nothing
    // closes it here.
    let mut place = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(handler.as_raw_fd()) });
    rustix::io::dup3(stream, &mut place, rustix::io::DupFlags::CLOEXEC)?;
    Ok(handler)
}
