//! Work of the program's own that can wait: how much there is, by when, and when it may be done.

use crate::error::Error;
use crate::hold::{Holding, Keeper};
use crate::link::{Link, Participation};
use crate::operation::nanoseconds;
use crate::working_device::{self, DiskLooks};
use minerva_api::v1;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tonic::{Response, Status, Streaming};

/// How far work is, is told no more often than this.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// Work that was put off, such as deleting snapshots, returning unmapped blocks, or rebuilding a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    /// One of the tenant's at a time: 1 to 64 letters, digits, `.`, `_` or `-`.
    pub name: String,
    /// How much there is.
    pub owing: Owing,
    /// It should be done within so long; absent: 30 days.
    pub done_within: Option<Duration>,
    /// On which disk, as `MAJ:MIN` of the host; absent: the one below `path`.
    pub device: Option<String>,
    /// What it will work on, or something beside it; absent: the working directory.
    pub path: Option<PathBuf>,
}

/// How much work there is, in time of a disk that nobody else uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owing {
    /// All of it, what is done included. A first guess will do: how long it really takes is measured.
    pub service: Duration,
    /// What is done of it.
    pub done: Duration,
    /// Space that the rest ties until it is done.
    pub tied_bytes: u64,
}

impl Debt {
    /// So much work under a name.
    pub fn new(name: impl Into<String>, service: Duration) -> Self {
        Self { name: name.into(), owing: Owing { service, ..Owing::default() }, ..Self::default() }
    }

    /// What is left of it ties so many bytes.
    #[must_use]
    pub fn ties(self, tied_bytes: u64) -> Self {
        Self { owing: Owing { tied_bytes, ..self.owing }, ..self }
    }

    /// It should be done within so long.
    #[must_use]
    pub fn done_within(self, span: Duration) -> Self {
        Self { done_within: Some(span), ..self }
    }

    /// On which disk, as `MAJ:MIN` of the host.
    #[must_use]
    pub fn device(self, device: impl Into<String>) -> Self {
        Self { device: Some(device.into()), ..self }
    }

    /// What it will work on, or something beside it: it tells which disk is meant.
    #[must_use]
    pub fn path(self, path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..self }
    }
}

/// Work that is registered until this is dropped. When the server was away, it is registered again, as far as it is then.
#[derive(Debug)]
#[must_use = "dropping it ends the debt"]
pub struct HeldDebt {
    /// Absent without a server.
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    keeper: Keeper<Word>,
    owing: watch::Sender<Owing>,
    reporter: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.reporter.abort();
    }
}

impl HeldDebt {
    /// Without a server work is done when the program likes.
    pub(crate) const fn of_nothing() -> Self {
        Self { held: None }
    }

    /// Returns when it is known.
    pub(crate) async fn take(link: Link, debt: Debt) -> Result<Self, Error> {
        let (owing, told) = watch::channel(debt.owing);
        let name = debt.name.clone();
        // A span that no clock reaches is none here; the server says what it makes of it.
        let due = debt.done_within.and_then(|within| Instant::now().checked_add(within));
        let request = Request { debt, due, owing: told.clone(), is_asked: Arc::default() };
        let keeper = Keeper::start(link.clone(), request).await?;
        let reporter = tokio::spawn(report(link, name, told, keeper.told()));
        Ok(Self { held: Some(Held { keeper, owing, reporter }) })
    }

    /// Whether work may be done now. Where nobody is there to say so, it may.
    pub fn may_work(&self) -> bool {
        self.held.as_ref().is_none_or(|held| may_work(held.keeper.last()))
    }

    /// Returns when work may be done.
    pub async fn wait(&mut self) {
        let Some(held) = &mut self.held else { return };
        held.keeper.until(may_work).await;
    }

    /// Why the server has it registered no more, such as that a later debt of the same name took its place (`key-reused`). Then nobody says
    /// any more when work may be done, and whose place was taken leaves it to the other. Absent while it is registered, or will be again.
    pub fn ended(&self) -> Option<&Error> {
        self.held.as_ref()?.keeper.ended()
    }

    /// Says how far it is, and how much there is by now; told at most once a second, and in the background.
    pub fn report(&self, owing: Owing) {
        if let Some(held) = &self.held {
            held.owing.send_replace(owing);
        }
    }
}

/// What the server told last of a debt.
#[derive(Clone, Copy, Debug)]
struct Word {
    may_work: bool,
    registration: u64,
}

/// Where nobody says so it may.
fn may_work(word: Option<Word>) -> bool {
    word.is_none_or(|word| word.may_work)
}

/// Tells the server whenever there is something new, until it is aborted or has it registered no more. Each try tells what is true when it is
/// made: the server may have registered it meanwhile, as far as it was then, and would go back by what is older.
async fn report(link: Link, name: String, mut told: watch::Receiver<Owing>, words: watch::Receiver<Option<Word>>) {
    while told.changed().await.is_ok() && words.has_changed().is_ok() {
        // Whoever does not hear of it hears of the next, or of all when the debt is registered again.
        let _ = link
            .call(|mut server| {
                let Owing { service, done, tied_bytes } = *told.borrow();
                let request = v1::ReportDebtRequest {
                    name: name.clone(),
                    service_ns: nanoseconds(service),
                    done_ns: nanoseconds(done),
                    tied_bytes,
                    // A server of before there were registrations tells none.
                    registration: words.borrow().map_or(0, |word| word.registration),
                };
                async move { server.report_debt(request).await }
            })
            .await;
        sleep(REPORT_PERIOD).await;
    }
}

/// The call that registers it, with what is true when it is made.
#[derive(Clone)]
struct Request {
    debt: Debt,
    due: Option<Instant>,
    owing: watch::Receiver<Owing>,
    /// It was registered before, or at least asked for.
    is_asked: Arc<AtomicBool>,
}

impl Holding for Request {
    type Answer = v1::HoldDebtResponse;
    type Told = Word;

    async fn open(self, mut server: Participation) -> Result<Response<Streaming<Self::Answer>>, Status> {
        let Owing { service, done, tied_bytes } = *self.owing.borrow();
        let path = self.debt.path.as_deref().unwrap_or(Path::new("."));
        // It is only a hint, so a path that cannot be looked at is none.
        let working_device = || working_device::of_path(path).ok().flatten().unwrap_or_default();
        // What is late already is due at once, but for a span of 0, which is refused: it would be a mistake in the first call.
        let left = |due: Instant| due.saturating_duration_since(Instant::now());
        let done_within_ns = if self.is_asked.swap(true, Ordering::Relaxed) {
            self.due.map(|due| nanoseconds(left(due)).max(1))
        } else {
            self.debt.done_within.map(nanoseconds)
        };
        let working_device = if self.debt.device.is_some() { String::new() } else { working_device() };
        let looks = DiskLooks::of(&working_device).unwrap_or_default();
        let request = v1::HoldDebtRequest {
            name: self.debt.name,
            service_ns: nanoseconds(service),
            done_ns: nanoseconds(done),
            tied_bytes,
            done_within_ns,
            working_device,
            working_disk_size_bytes: looks.size_bytes,
            working_disk_serial: looks.serial,
            device: self.debt.device.unwrap_or_default(),
        };
        server.hold_debt(request).await
    }

    fn told(answer: Self::Answer) -> Word {
        let v1::HoldDebtResponse { may_work, registration } = answer;
        Word { may_work, registration }
    }
}
