//! The server: a socket for each VM disk, a worker for each physical one. `changes` is what becomes of them while guests run,
//! `hand_over` how another process goes on with them.

mod changes;
mod front_end;
mod hand_over;
mod parking;
mod placement;

pub use front_end::TellHangUp;
pub use hand_over::{FrontEndState, Resumption, SuspendedDisk};

use crate::error::ServerError;
use crate::failure::TellFailure;
use crate::image::Image;
use crate::session::{Attachment, RestoredConnection, SuspendedConnection};
use crate::transfer::TransferKind;
use crate::worker::{
    self, Command, DiskCounters, DiskMeasures, NewDisk, QUEUES_MAX, RequestLog, VmTerms, WorkerHandle, WorkerOptions,
};
use front_end::Shared;
use minerva_blocksched::{BuildOptions, SchedulerName};
use minerva_model::Nanos;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Front ends that may wait at a socket.
const BACKLOG: i32 = 128;

/// A disk of this host, on which VM disks lie.
#[derive(Clone, Debug)]
pub struct PhysicalDisk {
    /// For the names of threads.
    pub name: String,
    /// What orders requests to it.
    pub scheduler: SchedulerName,
    /// What the scheduler is built for.
    pub build: BuildOptions,
    /// By what bytes get there and back.
    pub transfer: TransferKind,
    /// How long its thread looks for more before it sleeps, at most; 0 for not at all.
    pub poll_max: Nanos,
    /// Processors on which its threads run; none for all.
    pub cpus: Vec<u16>,
    /// Where each request that is done gets a line, with what it asked for and when; none as a rule.
    pub request_log: Option<RequestLog>,
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
    /// What it is promised.
    pub terms: VmTerms,
    /// Rings that its guest may have, 1 to 64.
    pub queues: u16,
    /// Who is told of front ends that are hung up on.
    pub tell_hang_up: TellHangUp,
    /// Who is told of requests that the image fails: of each kind once an hour.
    pub tell_failure: TellFailure,
}

/// All that is served.
pub struct Server {
    workers: Vec<(WorkerHandle, JoinHandle<()>)>,
    disks: Vec<Served>,
    /// Disks that were removed, with the threads that wait for what they have under way.
    leaving: Vec<(String, JoinHandle<()>)>,
}

struct Served {
    name: String,
    socket: PathBuf,
    attachment: Attachment,
    shared: Arc<Shared>,
    thread: JoinHandle<Option<SuspendedConnection>>,
    counters: Arc<DiskCounters>,
    /// As its worker told last.
    measures: Mutex<DiskMeasures>,
}

/// A server that listens and serves nobody yet: in between a process can give up what serving does not take. What it gave up later
/// the threads that the kernel starts for requests would keep.
pub struct Listening {
    server: Server,
    waiting: Vec<(VmDisk, UnixListener)>,
}

impl Listening {
    /// Of disks with the sockets at which they are listened for.
    pub fn with(physical: &[PhysicalDisk], waiting: Vec<(VmDisk, UnixListener)>) -> Result<Self, ServerError> {
        let workers = physical.iter().map(start_worker).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { server: Server { workers, disks: Vec::new(), leaving: Vec::new() }, waiting })
    }

    /// Serves whoever connects.
    pub fn serve(self) -> Result<Server, ServerError> {
        let Self { mut server, waiting } = self;
        for (disk, listener) in waiting {
            server.serve(disk, listener)?;
        }
        Ok(server)
    }
}

impl Server {
    /// Listens at every socket, and serves whoever connects, one front end a disk at a time.
    pub fn start(physical: &[PhysicalDisk], disks: Vec<VmDisk>) -> Result<Self, ServerError> {
        // First all that can fail for what the operator did.
        let listeners = disks.iter().map(|disk| listen(&disk.socket)).collect::<Result<Vec<_>, _>>()?;
        Listening::with(physical, disks.into_iter().zip(listeners).collect())?.serve()
    }

    fn serve(&mut self, disk: VmDisk, listener: UnixListener) -> Result<(), ServerError> {
        let (attachment, counters) = self.attach(&disk)?;
        let shared = Shared::new(listener, &disk)?;
        self.spawn(disk, attachment, counters, shared, None)
    }

    /// Gives a disk to its worker.
    fn attach(&self, disk: &VmDisk) -> Result<(Attachment, Arc<DiskCounters>), ServerError> {
        let gone = || ServerError::System { what: "start a worker", source: io::ErrorKind::BrokenPipe.into() };
        let (worker, _) = self.workers.get(disk.physical).ok_or_else(gone)?;
        let queues = disk.queues.clamp(1, QUEUES_MAX as u16);
        let counters = Arc::new(DiskCounters::default());
        let new = NewDisk {
            image: Some(Arc::clone(&disk.image)),
            serial: disk.name.clone(),
            terms: disk.terms,
            queues: usize::from(queues),
            counters: Arc::clone(&counters),
            tell_failure: disk.tell_failure,
        };
        let number = worker.ask(|answer| Command::Add(new, answer)).ok_or_else(gone)?;
        let image = Arc::clone(&disk.image);
        Ok((Attachment { image, worker: worker.clone(), disk: number, queues }, counters))
    }

    /// Starts the thread of a disk, which goes on with a front end that another server had, if there is one.
    fn spawn(
        &mut self,
        disk: VmDisk,
        attachment: Attachment,
        counters: Arc<DiskCounters>,
        shared: Shared,
        restored: Option<RestoredConnection>,
    ) -> Result<(), ServerError> {
        let shared = Arc::new(shared);
        let thread = std::thread::Builder::new().name(format!("blk-{}", disk.name));
        let run = {
            let (shared, attachment) = (Arc::clone(&shared), attachment.clone());
            move || shared.accept_all(&attachment, restored)
        };
        let thread = thread.spawn(run).map_err(ServerError::system("start a thread"))?;
        let measures = Mutex::default();
        self.disks.push(Served {
            name: disk.name,
            socket: disk.socket,
            attachment,
            shared,
            thread,
            counters,
            measures,
        });
        Ok(())
    }

    /// What each disk was asked for so far, in the order in which they were given.
    pub fn counters(&self) -> impl Iterator<Item = &DiskCounters> {
        self.disks.iter().map(|disk| &*disk.counters)
    }

    /// Ends: what guests sent is done and answered, and then nobody is served any more.
    pub fn stop(self) {
        // All end before the first is joined, as what each gives back to the kernel takes some 30 ms.
        for (worker, _) in &self.workers {
            worker.ask(Command::End);
        }
        for (_, thread) in self.workers {
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

fn start_worker(disk: &PhysicalDisk) -> Result<(WorkerHandle, JoinHandle<()>), ServerError> {
    let PhysicalDisk { name, scheduler, build, transfer, poll_max, cpus, request_log } = disk;
    let options = WorkerOptions { scheduler: *scheduler, disk: *build, transfer: *transfer, poll_max: *poll_max };
    placement::start_on(cpus, || worker::start(name, options, request_log.as_ref()))
}

/// A socket of our own at `path`. One that a killed server left is removed; one at which somebody listens is not, nor a file of another
/// kind.
pub fn listen(path: &Path) -> Result<UnixListener, ServerError> {
    make_room(path)?;
    UnixListener::bind(path).map_err(|source| ServerError::Listen { path: path.to_owned(), source })
}

/// The socket of a disk that is not served yet: who connects is refused, and may come back. Somebody who were let wait could do nothing else
/// meanwhile, as QEMU's main loop cannot.
#[derive(Debug)]
pub struct ReservedSocket {
    socket: OwnedFd,
    path: PathBuf,
}

impl ReservedSocket {
    /// At `path`, as [`listen`] makes it.
    pub fn new(path: &Path) -> Result<Self, ServerError> {
        make_room(path)?;
        let bound = || {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            bind(&socket, &SocketAddrUnix::new(path)?)?;
            rustix::io::Result::Ok(socket)
        };
        match bound() {
            Ok(socket) => Ok(Self { socket, path: path.to_owned() }),
            Err(error) => Err(ServerError::Listen { path: path.to_owned(), source: error.into() }),
        }
    }

    /// One that another process made at `path`.
    pub fn of(socket: OwnedFd, path: PathBuf) -> Self {
        Self { socket, path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on who connects waits to be served.
    pub fn listen(self) -> Result<UnixListener, ServerError> {
        match rustix::net::listen(&self.socket, BACKLOG) {
            Ok(()) => Ok(self.socket.into()),
            Err(error) => Err(ServerError::Listen { path: self.path, source: error.into() }),
        }
    }
}

impl AsFd for ReservedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn make_room(path: &Path) -> Result<(), ServerError> {
    let failed = |source| ServerError::Listen { path: path.to_owned(), source };
    match UnixStream::connect(path) {
        Ok(_) => return Err(ServerError::InUse { path: path.to_owned() }),
        // So says the kernel of a socket that nobody listens at any more, and of any other file too.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            if !std::fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket() {
                return Err(ServerError::NoSocket { path: path.to_owned() });
            }
            std::fs::remove_file(path).map_err(failed)?;
        }
        // Nothing there, or something that `bind` will refuse.
        Err(_) => {}
    }
    Ok(())
}
