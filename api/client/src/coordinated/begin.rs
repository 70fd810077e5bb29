//! When an operation begins, and why.

use crate::cache::{self, Pool};
use crate::operation::Operation;
use crate::signals;
use minerva_api::v1;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Why an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The server said so.
    Told,
    /// Its deadline has come, or as many slices have passed as it was told to wait.
    InTime,
    /// There is no server to say so.
    Unserved,
    /// The server said: in the pool that the operation may go to, in place of its disk. Nothing is under way on the server.
    InPool,
}

/// Something that came, or not.
pub(super) enum Either<T> {
    Came(T),
    /// It is time to begin.
    Begin(Begun),
}

/// Until when an operation waits.
pub(super) struct Limit {
    /// When the program asked.
    asked: Instant,
    /// By its deadline, or by what the server promised.
    at: Option<Instant>,
    /// Since when the server is away; absent while it is there.
    pub(super) away_since: Option<Instant>,
    patience: Duration,
}

impl Limit {
    pub(super) fn new(operation: &Operation, patience: Duration) -> Self {
        let now = Instant::now();
        // A span too long for the clock is as good as none.
        let at = operation.deadline.and_then(|deadline| now.checked_add(deadline.span()));
        Self { asked: now, at, away_since: Some(now), patience }
    }

    /// How much nearer the deadline is than when the program asked.
    pub(super) fn passed(&self) -> Duration {
        self.asked.elapsed()
    }

    /// A deadline for being done is no time to begin at: what the server promises is earlier.
    pub(super) fn promised(&mut self, span: Duration) {
        let promised = Instant::now().checked_add(span);
        self.at = [self.at, promised].into_iter().flatten().min();
    }

    /// Whatever comes, unless the time to begin comes first.
    pub(super) async fn or_in_time<T>(&self, coming: impl Future<Output = T>) -> Either<T> {
        let Some((at, why)) = self.next() else { return Either::Came(coming.await) };
        tokio::select! {
            came = coming => Either::Came(came),
            () = sleep_until(at) => Either::Begin(why),
        }
    }

    /// When it begins by itself, and why.
    pub(super) fn next(&self) -> Option<(Instant, Begun)> {
        // A patience too long for the clock has no end.
        let alone = self.away_since.and_then(|since| since.checked_add(self.patience));
        let limits = [self.at.map(|at| (at, Begun::InTime)), alone.map(|at| (at, Begun::Unserved))];
        limits.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// What the pool's service says over its own socket, waited for until the operation begins at the latest.
    pub(super) async fn offer(&self, pool: Pool, socket: PathBuf) -> Option<v1::PoolOffer> {
        let begin = self.next().map(|(at, _)| at);
        let left = begin.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        let (tell, told) = oneshot::channel();
        // Whoever asked may have gone.
        in_thread(move || drop(tell.send(cache::offer(pool, &socket, left))))?;
        let answer = match begin {
            // A service may answer piece by piece for longer.
            Some(at) => timeout_at(at, told).await.ok()?,
            None => told.await,
        };
        answer.ok().flatten()
    }
}

/// Does it in a thread of its own; nothing where none may be started. Those that a runtime lends are waited for when that ends, and the
/// pool's service may hold one up for as long as it likes.
fn in_thread(work: impl FnOnce() + Send + 'static) -> Option<()> {
    let _held_off = signals::HeldOff::begin();
    std::thread::Builder::new().name("minerva-cache".to_owned()).spawn(work).ok().map(drop)
}
