//! The same for programs without a runtime of their own. Each [`Client`] has a thread that keeps its connection, holds its levels and
//! hears of operations that may begin; a program that forks must connect after the fork. Not to be called from within a runtime.

use crate::client::{BoostAmount, Lifetime};
use crate::coordinated::Begun;
use crate::debt::{Debt, Owing};
use crate::error::Error;
use crate::level::Level;
use crate::operation::{Answer, Operation};
use crate::options::Options;
use crate::signals;
use minerva_api::v1;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long the drop of an operation waits for the server to hear of it.
const CANCEL_MAX: Duration = Duration::from_secs(1);

/// As [`crate::Client`]. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    // Before the runtime, so that it goes first.
    inner: crate::Client,
    runtime: Arc<Runtime>,
}

impl Client {
    /// As [`crate::Client::connect`].
    pub fn connect() -> Result<Self, Error> {
        Self::with_options(Options::from_environment()?)
    }

    /// As [`Options::connect`].
    pub fn with_options(options: Options) -> Result<Self, Error> {
        let runtime = start_runtime()
            .map_err(|source| Error::Unfit(format!("no thread for Minerva could be started: {source}")))?;
        let inner = runtime.block_on(options.connect())?;
        Ok(Self { inner, runtime: Arc::new(runtime) })
    }

    /// As [`crate::Client::absence`].
    pub fn absence(&self) -> Option<String> {
        self.inner.absence()
    }

    /// As [`crate::Client::address`].
    pub fn address(&self) -> Option<String> {
        self.inner.address()
    }

    /// As [`crate::Client::describe`].
    pub fn describe(&self) -> Result<v1::DescribeResponse, Error> {
        self.runtime.block_on(self.inner.describe())
    }

    /// As [`crate::Client::set_level`].
    pub fn set_level(&self, level: Level, lifetime: Lifetime) -> Result<Level, Error> {
        self.runtime.block_on(self.inner.set_level(level, lifetime))
    }

    /// As [`crate::Client::hold_level`].
    pub fn hold_level(&self, level: Level) -> Result<Held, Error> {
        let inner = self.runtime.block_on(self.inner.hold_level(level))?;
        Ok(Held { inner, _runtime: self.runtime.clone() })
    }

    /// As [`crate::Client::job`].
    pub fn job(&self, name: &str, size_bytes: Option<u64>) -> Result<HeldJob, Error> {
        let inner = self.runtime.block_on(self.inner.job(name, size_bytes))?;
        Ok(HeldJob { inner, _runtime: self.runtime.clone() })
    }

    /// As [`crate::Client::debt`].
    pub fn debt(&self, debt: Debt) -> Result<HeldDebt, Error> {
        let inner = self.runtime.block_on(self.inner.debt(debt))?;
        Ok(HeldDebt { inner, runtime: self.runtime.clone() })
    }

    /// As [`crate::Client::set_schedule`].
    pub fn set_schedule(&self, entries: &[v1::ScheduleEntry], time_zone: &str) -> Result<Level, Error> {
        self.runtime.block_on(self.inner.set_schedule(entries, time_zone))
    }

    /// As [`crate::Client::credits`].
    pub fn credits(&self, entries_max: u32) -> Result<v1::CreditsResponse, Error> {
        self.runtime.block_on(self.inner.credits(entries_max))
    }

    /// As [`crate::Client::boost`].
    pub fn boost(&self, amount: BoostAmount, device: Option<&str>) -> Result<v1::BoostResponse, Error> {
        self.runtime.block_on(self.inner.boost(amount, device))
    }

    /// As [`crate::Client::boost_as`].
    pub fn boost_as(&self, key: &str, amount: BoostAmount, device: Option<&str>) -> Result<v1::BoostResponse, Error> {
        self.runtime.block_on(self.inner.boost_as(key, amount, device))
    }

    /// As [`crate::Client::coordinate`].
    pub fn coordinate(&self, operation: Operation) -> Result<Coordinated, Error> {
        let inner = self.runtime.block_on(self.inner.coordinate(operation))?;
        Ok(Coordinated { inner: Some(inner), runtime: self.runtime.clone() })
    }
}

/// With a thread of its own, and more where something may block.
fn start_runtime() -> io::Result<Runtime> {
    let _held_off = signals::HeldOff::begin();
    let mut builder = Builder::new_multi_thread();
    // Those that are started later may be started by a thread of the program.
    builder.worker_threads(1).thread_name("minerva-client").on_thread_start(signals::hold_off).enable_all().build()
}

/// As [`crate::Held`].
#[derive(Debug)]
#[must_use = "dropping it comes back at once"]
pub struct Held {
    inner: crate::Held,
    _runtime: Arc<Runtime>,
}

impl Held {
    /// As [`crate::Held::level`].
    pub fn level(&self) -> Option<Level> {
        self.inner.level()
    }
}

/// As [`crate::HeldJob`].
#[derive(Debug)]
#[must_use = "dropping it ends the job"]
pub struct HeldJob {
    inner: crate::HeldJob,
    _runtime: Arc<Runtime>,
}

impl HeldJob {
    /// As [`crate::HeldJob::place`].
    pub fn place(&self) -> Option<(u32, u32)> {
        self.inner.place()
    }
}

/// As [`crate::HeldDebt`].
#[derive(Debug)]
#[must_use = "dropping it ends the debt"]
pub struct HeldDebt {
    inner: crate::HeldDebt,
    runtime: Arc<Runtime>,
}

impl HeldDebt {
    /// As [`crate::HeldDebt::may_work`].
    pub fn may_work(&self) -> bool {
        self.inner.may_work()
    }

    /// As [`crate::HeldDebt::wait`], for so long at most; whether work may be done now.
    pub fn wait(&mut self, at_most: Duration) -> bool {
        let inner = &mut self.inner;
        self.runtime.block_on(async { tokio::time::timeout(at_most, inner.wait()).await }).is_ok()
    }

    /// As [`crate::HeldDebt::ended`].
    pub fn ended(&self) -> Option<&Error> {
        self.inner.ended()
    }

    /// As [`crate::HeldDebt::report`].
    pub fn report(&self, owing: Owing) {
        self.inner.report(owing);
    }
}

/// As [`crate::Coordinated`]. Dropping it without [`Coordinated::finish`] waits up to a second for the server to hear of it.
#[derive(Debug)]
#[must_use = "dropping it cancels the operation"]
pub struct Coordinated {
    /// Absent once it has ended.
    inner: Option<crate::Coordinated>,
    runtime: Arc<Runtime>,
}

impl Coordinated {
    /// As [`crate::Coordinated::answer`].
    pub fn answer(&self) -> Answer {
        self.inner.as_ref().map_or(Answer::Now, crate::Coordinated::answer)
    }

    /// As [`crate::Coordinated::key`].
    pub fn key(&self) -> &str {
        self.inner.as_ref().map_or("", crate::Coordinated::key)
    }

    /// As [`crate::Coordinated::create`].
    pub fn create(&self, path: impl Into<PathBuf>) -> io::Result<File> {
        match &self.inner {
            Some(inner) => inner.create(path),
            None => File::create(path.into()),
        }
    }

    /// As [`crate::Coordinated::wait`].
    pub fn wait(&mut self) -> Begun {
        match &mut self.inner {
            Some(inner) => self.runtime.block_on(inner.wait()),
            None => Begun::Unserved,
        }
    }

    /// As [`crate::Coordinated::finish`].
    pub fn finish(mut self) -> Result<(), Error> {
        match self.inner.take() {
            Some(inner) => self.runtime.block_on(inner.finish()),
            None => Ok(()),
        }
    }

    /// As [`crate::Coordinated::leave`].
    pub fn leave(mut self) {
        if let Some(inner) = self.inner.take() {
            inner.leave();
        }
    }
}

impl Drop for Coordinated {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            let _ = self.runtime.block_on(async { tokio::time::timeout(CANCEL_MAX, inner.cancel()).await });
        }
    }
}
