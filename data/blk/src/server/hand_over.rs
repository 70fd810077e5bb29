//! From one server to the next, without an error in a guest: all disks are left as they are, and another process goes on with them, or
//! this one does after all.

use super::front_end::Shared;
use super::parking::Wanted;
use super::{PhysicalDisk, Server, VmDisk};
use crate::error::ServerError;
use crate::image::Image;
use crate::session::{Attachment, ConnectionState, Restored, RestoredConnection, SuspendedConnection};
use crate::worker::{Command, DiskCounters};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A disk that nobody serves, with all that it takes to serve it.
pub struct SuspendedDisk {
    /// Its name.
    pub name: String,
    /// Open, and locked for as long as anybody has it open.
    pub image: Arc<Image>,
    /// Front ends that come meanwhile wait there.
    pub listener: UnixListener,
    front_end: Option<SuspendedConnection>,
}

/// What of a front end's connection is no descriptor, to be told to another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrontEndState(ConnectionState);

impl SuspendedDisk {
    /// Of a disk whose image and socket came from another process.
    pub fn new(name: String, image: Arc<Image>, listener: UnixListener) -> Self {
        Self { name, image, listener, front_end: None }
    }

    /// The front end that is connected, if one is: what to tell the next server of it, and the descriptors that go with it.
    pub fn front_end(&self) -> Option<(FrontEndState, Vec<BorrowedFd<'_>>)> {
        self.front_end.as_ref().map(|connection| {
            let (state, files) = connection.parts();
            (FrontEndState(state.clone()), files.collect())
        })
    }

    /// Sets the front end, as another server told it; false where descriptors are missing or too many.
    pub fn set_front_end(&mut self, FrontEndState(state): FrontEndState, files: Vec<OwnedFd>) -> bool {
        self.front_end = SuspendedConnection::from_parts(state, files);
        self.front_end.is_some()
    }
}

/// A server that is ready to go on, and serves nobody yet.
pub struct Resumption {
    server: Server,
    waiting: Vec<Waiting>,
}

struct Waiting {
    disk: VmDisk,
    attachment: Attachment,
    counters: Arc<DiskCounters>,
    shared: Shared,
    restored: Option<RestoredConnection>,
}

impl Server {
    /// The image and the socket of a disk, for another process.
    pub fn offered(&self, name: &str) -> Option<(&Image, BorrowedFd<'_>)> {
        let served = self.disks.iter().find(|served| served.name == name)?;
        Some((&served.attachment.image, served.shared.listener.as_fd()))
    }

    /// Lets no front end change anything any more, while all guests are served on, so that [`Server::suspend`] need not wait for a message that
    /// takes long, as a stop of a disk that has much to do. Fails where one takes longer than `patience`, or where a disk was removed whose
    /// requests nobody answers, since its worker ends with the last of them: then all goes on as before.
    pub fn park(&self, patience: Duration) -> Result<(), ServerError> {
        if let Some((disk, _)) = self.leaving.iter().find(|(_, thread)| !thread.is_finished()) {
            return Err(ServerError::Leaving { disk: disk.clone() });
        }
        let deadline = Instant::now() + patience;
        self.want(Wanted::Park);
        let is_busy = |disk: &&super::Served| !disk.shared.parking.is_parked(deadline) && !disk.thread.is_finished();
        let busy = self.disks.iter().find(is_busy).map(|disk| ServerError::Busy { disk: disk.name.clone() });
        busy.map_or(Ok(()), |error| {
            self.unpark();
            Err(error)
        })
    }

    /// Listens to front ends again.
    pub fn unpark(&self) {
        self.want(Wanted::Serve);
    }

    fn want(&self, wanted: Wanted) {
        self.disks.iter().for_each(|disk| disk.shared.parking.want(wanted));
    }

    /// Leaves every disk as it is: what is at the disk is waited for and answered, what is queued is left to whoever goes on. Guests wait from now
    /// on, so that [`Server::park`] comes first.
    pub fn suspend(self) -> Vec<SuspendedDisk> {
        // All at once, as each waits for its disk.
        self.want(Wanted::Leave);
        let suspend = |disk: super::Served| {
            // A thread that panicked has ended the process.
            let front_end = disk.thread.join().unwrap_or_default();
            let image = Arc::clone(&disk.attachment.image);
            let listener = disk.shared.listener.as_fd().try_clone_to_owned().ok()?.into();
            Some(SuspendedDisk { name: disk.name, image, listener, front_end })
        };
        let disks = self.disks.into_iter().filter_map(suspend).collect();
        for (worker, _) in self.workers {
            // Not joined: guests wait, and what it still has to give back to the kernel takes some 30 ms for each disk of the host.
            worker.ask(Command::End);
        }
        disks
    }
}

impl Resumption {
    /// With a worker for each disk of this host.
    pub fn prepare(physical: &[PhysicalDisk]) -> Result<Self, ServerError> {
        let workers = physical.iter().map(super::start_worker).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { server: Server { workers, disks: Vec::new(), leaving: Vec::new() }, waiting: Vec::new() })
    }

    /// Takes a disk. It fails where its front end agreed to something that this server does not have. One that changed what it shares, so that
    /// it cannot be served any more, is hung up on: it must not be able to end a hand-over.
    pub fn add(&mut self, disk: VmDisk, suspended: SuspendedDisk) -> Result<(), ServerError> {
        let SuspendedDisk { listener, front_end, .. } = suspended;
        let (attachment, counters) = self.server.attach(&disk)?;
        let restored = front_end.map(|front_end| front_end.restore(attachment.clone())).transpose();
        let restored =
            restored.map_err(|why| ServerError::FrontEnd { disk: disk.name.clone(), why: why.to_string() })?;
        let shared = Shared::new(listener, &disk)?;
        let restored = match restored {
            Some(Restored::Connection(connection)) => Some(connection),
            Some(Restored::HangUp(why)) => {
                shared.note_hang_up(Some(why));
                None
            }
            None => None,
        };
        self.waiting.push(Waiting { disk, attachment, counters, shared, restored });
        Ok(())
    }

    /// Serves all of them.
    pub fn go_on(mut self) -> Result<Server, ServerError> {
        for Waiting { disk, attachment, counters, shared, restored } in self.waiting {
            self.server.spawn(disk, attachment, counters, shared, restored)?;
        }
        Ok(self.server)
    }
}
