//! The thread of one physical disk: takes requests from the rings of all VM disks that lie on it, lets one scheduler order them,
//! sends as many at once as the scheduler wants, and answers. One thread, so nothing on a request's way is locked.

mod command;
mod commands;
mod given;
mod log;
mod polling;
mod rounds;
mod send;
mod serve;
mod slots;
mod stops;
mod syncs;

pub(crate) use command::{Command, NewDisk, RingLeft, Unanswered, WorkerHandle};
pub use command::{DiskCounters, DiskMeasures, VmTerms};
pub use log::RequestLog;
pub(crate) use slots::RingKey;

use crate::chain::Chain;
use crate::error::ServerError;
use crate::failure::Failures;
use crate::measure::Measures;
use crate::ring::{RING_SIZE_MAX, Ring};
use crate::signal::Signaller;
use crate::tag::STREAMS;
use crate::transfer::{self, Done, Transfer, TransferKind};
use command::InboxReader;
use log::LogWriter;
use minerva_blocksched::{BuildOptions, FlowId, Promise, Request, Scheduler, SchedulerName};
use minerva_model::Nanos;
use polling::Polling;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};
use slots::Slots;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use syncs::Syncs;

/// Requests that are at the disk at once beside those that the scheduler wants there, at most: of disks that are being stopped. While others
/// are served it is fewer; see [`Worker::beside_max`].
const BESIDE_MAX: u32 = 64;
const EVENTS_AT_ONCE: usize = 64;
/// After so many requests, taken or done, the guest is told: it goes on while the rest is done. Fewer cost more looks at what it wants to
/// hear of, and with more it and the worker wait for each other in turns. A scheduler that orders requests sees all that there are.
const FEW: u16 = 8;

const EVENT_COMMAND: u64 = 0;
const EVENT_DONE: u64 = 1;
const EVENT_RINGS: u64 = 2;
/// Rings of one disk; see [`RingKey`].
pub(crate) const QUEUES_MAX: usize = 64;

/// What a worker is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WorkerOptions {
    pub(crate) scheduler: SchedulerName,
    pub(crate) disk: BuildOptions,
    pub(crate) transfer: TransferKind,
    /// How long it looks for more before it sleeps, at most.
    pub(crate) poll_max: Nanos,
}

/// A VM disk in service.
struct Disk {
    new: NewDisk,
    rings: Vec<Option<Served>>,
    failures: Failures,
    /// Where it lies in the page cache.
    syncs: Option<Syncs>,
    /// What of it went past the scheduler and was not made up for in turn.
    unearned_bytes: u64,
    /// It is being stopped, and drained then.
    drain_at: Option<Nanos>,
    /// Until then nothing is taken from its rings: it is being stopped, and what it had would have to be earned.
    held_until: Option<Nanos>,
    /// A write is durable when it is answered.
    is_durable: bool,
    /// The front end has gone; told when nothing of it is under way any more, with where its rings are.
    detached: Option<(Sender<Vec<RingLeft>>, Vec<RingLeft>)>,
}

struct Served {
    ring: Ring,
    /// It is looked at without a kick.
    is_awake: bool,
    /// So many of the next chains were there before their guest could know of the last sync that failed.
    early: u16,
    /// It is being stopped; told when nothing of it is under way any more. Nothing more is taken from it.
    stopping: Option<Stopping>,
}

enum Stopping {
    Asked(Sender<u16>),
    /// By the end of the connection or of the worker.
    Unasked,
}

struct Worker {
    scheduler: Box<dyn Scheduler>,
    /// So many requests at the disk are enough to keep it busy, and so many may be there with those that hang.
    depth: u32,
    places: u32,
    has_tags: bool,
    /// So many requests are taken from a ring at once, at most.
    take_max: u16,
    transfer: Box<dyn Transfer>,
    signaller: Rc<Signaller>,
    epoll: OwnedFd,
    inbox: InboxReader,
    disks: Vec<Disk>,
    /// By the numbers of disks.
    measures: Measures,
    slots: Slots,
    /// Sent by the scheduler and not done.
    at_disk: u32,
    /// Of disks that are being stopped: what is sent past the scheduler, the oldest first.
    draining: VecDeque<u32>,
    /// Of them, sent and not done.
    beside: u32,
    chain: Chain,
    done: Vec<Done>,
    cancelled: Vec<Request>,
    /// Rings whose guests kicked. They are looked at until the worker sleeps.
    awake: Vec<RingKey>,
    /// Rings with answers of which their guests were not told.
    answered: Vec<RingKey>,
    /// Some ring is being stopped, or some disk detached or held for that.
    has_stops: bool,
    polling: Polling,
    events: Vec<epoll::Event>,
    ending: Option<Sender<()>>,
    /// The transfer has jobs that the kernel did not take yet.
    must_retry: bool,
    log: Option<LogWriter>,
}

/// Starts the thread. Each request that is done gets a line in `log`.
pub(crate) fn start(
    name: &str,
    options: WorkerOptions,
    log: Option<&RequestLog>,
) -> Result<(WorkerHandle, JoinHandle<()>), ServerError> {
    let (handle, inbox) = WorkerHandle::new().map_err(ServerError::system("make an event counter"))?;
    let places = options.scheduler.places(options.disk).max(1);
    // Made here, so that what the kernel refuses is told to who starts the server.
    let transfer = transfer::open(places + BESIDE_MAX, options.transfer)
        .map_err(ServerError::system("start threads for input and output"))?;
    let signaller = Signaller::open().map_err(ServerError::system(
        "get asynchronous I/O from the kernel (`CONFIG_AIO`), to signal guests with; where others use it up raise `fs.aio-max-nr`",
    ))?;
    let thread = std::thread::Builder::new().name(format!("blk-{name}"));
    let log = log.map(LogWriter::new);
    let run = move || {
        // Where it cannot be made nobody is served: whoever asks hears that there is no worker.
        if let Ok(mut worker) = Worker::new(options, (transfer, signaller), inbox) {
            worker.log = log;
            worker.run();
        }
    };
    let thread = thread.spawn(run).map_err(ServerError::system("start a thread"))?;
    Ok((handle, thread))
}

/// The instant, on the clock of schedulers.
fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

impl Worker {
    fn new(
        options: WorkerOptions,
        (transfer, signaller): (Box<dyn Transfer + Send>, Signaller),
        inbox: InboxReader,
    ) -> rustix::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let inputs = epoll::EventFlags::IN;
        epoll::add(&epoll, inbox.signal(), epoll::EventData::new_u64(EVENT_COMMAND), inputs)?;
        epoll::add(&epoll, transfer.descriptor(), epoll::EventData::new_u64(EVENT_DONE), inputs)?;
        Ok(Self {
            scheduler: options.scheduler.build(options.disk),
            depth: options.scheduler.depth(options.disk).max(1),
            places: options.scheduler.places(options.disk).max(1),
            has_tags: options.scheduler.keeps(Promise::Tags),
            take_max: if options.scheduler == SchedulerName::Noop { FEW } else { RING_SIZE_MAX },
            transfer,
            signaller: Rc::new(signaller),
            epoll,
            inbox,
            disks: Vec::new(),
            measures: Measures::new(now()),
            slots: Slots::default(),
            at_disk: 0,
            draining: VecDeque::new(),
            beside: 0,
            chain: Chain::default(),
            done: Vec::new(),
            cancelled: Vec::new(),
            awake: Vec::new(),
            answered: Vec::new(),
            has_stops: false,
            polling: Polling::new(options.poll_max),
            events: Vec::with_capacity(EVENTS_AT_ONCE),
            ending: None,
            must_retry: false,
            log: None,
        })
    }

    /// The flow of a stream of a disk. A contract is for a disk as a whole, a tag for a stream of its guest.
    fn flow(&self, disk: usize, stream: u8) -> FlowId {
        let flow = if self.has_tags { disk * usize::from(STREAMS) + usize::from(stream) } else { disk };
        FlowId(u32::try_from(flow).unwrap_or(u32::MAX))
    }

    fn flows(&self, disk: usize) -> impl Iterator<Item = FlowId> + use<> {
        let count = if self.has_tags { u32::from(STREAMS) } else { 1 };
        let first = self.flow(disk, 0).0;
        (first..first + count).map(FlowId)
    }
}
