//! The server: a socket for each VM disk, a worker for each physical one. `changes` is what becomes of them while guests run.

mod changes;

use crate::error::ServerError;
use crate::image::Image;
use crate::session::{Attachment, Session, channel};
use crate::tag::TagBounds;
use crate::worker::{self, Command, DiskCounters, NewDisk, QUEUES_MAX, WorkerHandle, WorkerOptions};
use minerva_blocksched::{BuildOptions, FlowParameters, SchedulerName};
use std::fs::File;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use vhost::vhost_user::BackendReqHandler;

/// A disk of this host, on which VM disks lie.
#[derive(Clone, Debug, PartialEq)]
pub struct PhysicalDisk {
    /// For the names of threads.
    pub name: String,
    /// What orders requests to it.
    pub scheduler: SchedulerName,
    /// What the scheduler is built for.
    pub build: BuildOptions,
    /// Threads and `preadv2` where the kernel would have io_uring too.
    pub is_pool_wanted: bool,
    /// Where each request that is done gets a line, with what it asked for and when; none as a rule.
    pub request_log: Option<PathBuf>,
}

/// A disk of a guest.
#[derive(Clone, Debug)]
pub struct VmDisk {
    /// Its name, which is also what the guest sees as serial number.
    pub name: String,
    /// What it is made of.
    pub image: Arc<Image>,
    /// Which of the physical disks it lies on, as the index in what [`Server::start`] is given.
    pub physical: usize,
    /// Where the front end connects.
    pub socket: PathBuf,
    /// What its scheduler promises it.
    pub parameters: FlowParameters,
    /// How the tags of its guest are bounded.
    pub tags: TagBounds,
    /// Rings that its guest may have, 1 to 64.
    pub queues: u16,
}

/// All that is served.
pub struct Server {
    workers: Vec<(WorkerHandle, JoinHandle<()>)>,
    disks: Vec<Served>,
}

struct Served {
    name: String,
    socket: PathBuf,
    attachment: Attachment,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
    counters: Arc<DiskCounters>,
}

/// Between a disk's thread and who ends it.
struct Shared {
    listener: UnixListener,
    state: Mutex<Listening>,
}

#[derive(Default)]
struct Listening {
    is_ending: bool,
    connection: Option<UnixStream>,
    /// The process that connected.
    front_end: Option<u32>,
    /// On which it is told that the configuration space has changed.
    channel: Option<UnixStream>,
}

impl Server {
    /// Listens at every socket, and serves whoever connects, one front end a disk at a time.
    pub fn start(physical: &[PhysicalDisk], disks: Vec<VmDisk>) -> Result<Self, ServerError> {
        // First all that can fail for what the operator did.
        let listeners = disks.iter().map(|disk| listen(&disk.socket)).collect::<Result<Vec<_>, _>>()?;
        let workers = physical.iter().map(start_worker).collect::<Result<Vec<_>, _>>()?;
        let mut server = Self { workers, disks: Vec::new() };
        for (disk, listener) in disks.into_iter().zip(listeners) {
            server.serve(disk, listener)?;
        }
        Ok(server)
    }

    fn serve(&mut self, disk: VmDisk, listener: UnixListener) -> Result<(), ServerError> {
        let gone = || ServerError::System { what: "start a worker", source: io::ErrorKind::BrokenPipe.into() };
        let (worker, _) = self.workers.get(disk.physical).ok_or_else(gone)?;
        let queues = disk.queues.clamp(1, QUEUES_MAX as u16);
        let counters = Arc::new(DiskCounters::default());
        let new = NewDisk {
            image: Some(Arc::clone(&disk.image)),
            serial: disk.name.clone(),
            parameters: disk.parameters,
            bounds: disk.tags,
            queues: usize::from(queues),
            counters: Arc::clone(&counters),
        };
        let number = worker.ask(|answer| Command::Add(new, answer)).ok_or_else(gone)?;
        let attachment = Attachment { image: disk.image, worker: worker.clone(), disk: number, queues };
        let shared = Arc::new(Shared { listener, state: Mutex::default() });
        let thread = std::thread::Builder::new().name(format!("blk-{}", disk.name));
        let run = {
            let (shared, attachment) = (Arc::clone(&shared), attachment.clone());
            move || shared.accept_all(&attachment)
        };
        let thread = thread.spawn(run).map_err(ServerError::system("start a thread"))?;
        self.disks.push(Served { name: disk.name, socket: disk.socket, attachment, shared, thread, counters });
        Ok(())
    }

    /// What each disk was asked for so far, in the order in which they were given.
    pub fn counters(&self) -> impl Iterator<Item = &DiskCounters> {
        self.disks.iter().map(|disk| &*disk.counters)
    }

    /// Ends: what guests sent is done and answered, and then nobody is served any more.
    pub fn stop(self) {
        for (worker, thread) in self.workers {
            worker.ask(Command::End);
            // A worker that panicked has answered nothing; its guests find that out by themselves.
            let _ = thread.join();
        }
        for disk in self.disks {
            disk.shared.end();
            let _ = disk.thread.join();
            // It may be gone already.
            let _ = std::fs::remove_file(&disk.socket);
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Listening> {
        // Nothing in between can be half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a connection; false when it is too late for one.
    fn begin(&self, connection: &UnixStream) -> bool {
        let mut state = self.lock();
        state.connection = connection.try_clone().ok();
        let peer = rustix::net::sockopt::socket_peercred(connection);
        state.front_end = peer.ok().and_then(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()).ok());
        !state.is_ending && state.connection.is_some()
    }

    fn end(&self) {
        let mut state = self.lock();
        state.is_ending = true;
        if let Some(connection) = state.connection.take() {
            // It has been hung up otherwise.
            let _ = connection.shutdown(std::net::Shutdown::Both);
        }
        // Ends the wait for the next one.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }

    fn accept_all(&self, attachment: &Attachment) {
        loop {
            let connection = self.listener.accept();
            if self.lock().is_ending {
                return;
            }
            let Ok((connection, _)) = connection else {
                // Out of descriptors, perhaps: not for ever.
                std::thread::sleep(std::time::Duration::from_millis(100));
                continue;
            };
            if !self.begin(&connection) {
                return;
            }
            self.serve_front_end(connection, attachment);
            let mut state = self.lock();
            (state.connection, state.front_end, state.channel) = (None, None, None);
        }
    }

    /// Until it goes. The first message that makes no sense is the last: the front end is hung up on.
    fn serve_front_end(&self, connection: UnixStream, attachment: &Attachment) {
        let Ok(mut peeked) = connection.try_clone() else { return };
        let session = Arc::new(Mutex::new(Session::new(attachment.clone())));
        let mut handler = BackendReqHandler::from_stream(connection, session);
        loop {
            match channel::take(&mut peeked) {
                Ok(Some(channel)) => self.lock().channel = Some(channel),
                Ok(None) if handler.handle_request().is_ok() => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

fn start_worker(disk: &PhysicalDisk) -> Result<(WorkerHandle, JoinHandle<()>), ServerError> {
    let PhysicalDisk { name, scheduler, build, is_pool_wanted, request_log } = disk;
    let options = WorkerOptions { scheduler: *scheduler, disk: *build, is_pool_wanted: *is_pool_wanted };
    let log = request_log.as_deref().map(File::create).transpose();
    worker::start(name, options, log.map_err(ServerError::system("make the log of requests"))?)
}

/// A socket of our own at `path`. One that a killed server left is removed; one at which somebody listens is not.
pub fn listen(path: &Path) -> Result<UnixListener, ServerError> {
    let failed = |source| ServerError::Listen { path: path.to_owned(), source };
    match UnixStream::connect(path) {
        Ok(_) => return Err(ServerError::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)?;
        }
        // Nothing there, or something that `bind` will refuse.
        Err(_) => {}
    }
    UnixListener::bind(path).map_err(failed)
}
