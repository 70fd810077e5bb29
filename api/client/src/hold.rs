//! What lasts as long as a value is kept: a level, or that the program is a batch job.

use crate::backoff::Backoff;
use crate::error::{Error, is_refusal, is_worth_another_try, retry_after};
use crate::level::Level;
use crate::link::{Link, Participation, SILENCE};
use minerva_api::v1;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tonic::{Response, Status, Streaming};

/// Steps back until it is dropped. When the server was away, the level is taken again.
#[derive(Debug)]
#[must_use = "dropping it comes back at once"]
pub struct Held {
    /// Absent without a server.
    keeper: Option<Keeper<Level>>,
}

impl Held {
    /// Without a server there is nothing to hold.
    pub(crate) const fn of_nothing() -> Self {
        Self { keeper: None }
    }

    /// Returns when the level is in force.
    pub(crate) async fn take(link: Link, level: Level) -> Result<Self, Error> {
        let request = v1::HoldLevelRequest { level: level.to_wire() };
        Ok(Self { keeper: Some(Keeper::start(link, request).await?) })
    }

    /// The level in force for the tenant, which others of it may have set further back; absent while the server is away, or
    /// when it does not let this one step back any more.
    pub fn level(&self) -> Option<Level> {
        self.keeper.as_ref().and_then(Keeper::last)
    }
}

/// Is a batch job until it is dropped. When the server was away, that is said again.
#[derive(Debug)]
#[must_use = "dropping it ends the job"]
pub struct HeldJob {
    /// Absent without a server.
    keeper: Option<Keeper<(u32, u32)>>,
}

impl HeldJob {
    /// Without a server nobody goes before another.
    pub(crate) const fn of_nothing() -> Self {
        Self { keeper: None }
    }

    /// Returns when it is known.
    pub(crate) async fn take(link: Link, request: v1::HoldJobRequest) -> Result<Self, Error> {
        Ok(Self { keeper: Some(Keeper::start(link, request).await?) })
    }

    /// The job's number in the order, from 1, and how many jobs there are on its disk; absent while none goes before another, or the
    /// server is away.
    pub fn place(&self) -> Option<(u32, u32)> {
        self.keeper.as_ref().and_then(Keeper::last).filter(|(place, _)| *place > 0)
    }
}

/// A call that lasts, and what its answers say.
pub(crate) trait Holding: Clone + Send + Sync + 'static {
    type Answer: Send + 'static;
    type Told: Copy + Send + Sync + 'static;

    fn open(
        self,
        server: Participation,
    ) -> impl Future<Output = Result<Response<Streaming<Self::Answer>>, Status>> + Send;

    fn told(answer: Self::Answer) -> Self::Told;
}

impl Holding for v1::HoldLevelRequest {
    type Answer = v1::HoldLevelResponse;
    type Told = Level;

    async fn open(self, mut server: Participation) -> Result<Response<Streaming<Self::Answer>>, Status> {
        server.hold_level(self).await
    }

    fn told(answer: Self::Answer) -> Level {
        Level::from_wire(answer.level)
    }
}

impl Holding for v1::HoldJobRequest {
    type Answer = v1::HoldJobResponse;
    type Told = (u32, u32);

    async fn open(self, mut server: Participation) -> Result<Response<Streaming<Self::Answer>>, Status> {
        server.hold_job(self).await
    }

    fn told(answer: Self::Answer) -> (u32, u32) {
        (answer.place, answer.jobs)
    }
}

/// Keeps a call open.
#[derive(Debug)]
pub(crate) struct Keeper<T> {
    last: watch::Receiver<Option<T>>,
    ended: Arc<OnceLock<Error>>,
    task: JoinHandle<()>,
}

impl<T: Copy + Send + Sync + 'static> Keeper<T> {
    /// Returns with the first answer. A server that goes away meanwhile does not fail it: it is asked when it is back. One that refuses
    /// for as long as the patience lasts does.
    pub(crate) async fn start(link: Link, request: impl Holding<Told = T>) -> Result<Self, Error> {
        let (tell, last) = watch::channel(None);
        let (refuse, refused) = watch::channel(None);
        let (first, answered) = oneshot::channel();
        let patience = link.patience;
        let ended = Arc::default();
        let listener = Listener { tell, first: Some(first), refuse, ended: Arc::clone(&ended) };
        let task = tokio::spawn(keep(link, request, listener));
        let keeper = Self { last, ended, task };
        match timeout(patience, answered).await {
            Ok(Ok(Err(refusal))) => Err(refusal),
            Ok(_) => Ok(keeper),
            Err(_) => match refused.borrow().as_ref() {
                Some(status) => Err(Error::refused(status)),
                None => Ok(keeper),
            },
        }
    }

    pub(crate) fn last(&self) -> Option<T> {
        *self.last.borrow()
    }

    /// What is told last, for as long as anything is told.
    pub(crate) fn told(&self) -> watch::Receiver<Option<T>> {
        self.last.clone()
    }

    /// Why the server refused to go on, for good.
    pub(crate) fn ended(&self) -> Option<&Error> {
        self.ended.get()
    }

    /// Returns when this is so of what was told last, or nothing more will be told.
    pub(crate) async fn until(&mut self, mut is_so: impl FnMut(Option<T>) -> bool) {
        // Its sender ends with a refusal for good.
        let _ = self.last.wait_for(|last| is_so(*last)).await;
    }
}

impl<T> Drop for Keeper<T> {
    fn drop(&mut self) {
        // The call ends with the task, and what is held with the call.
        self.task.abort();
    }
}

/// Who is to hear what is told.
struct Listener<T> {
    tell: watch::Sender<Option<T>>,
    /// Used once: with the first answer.
    first: Option<oneshot::Sender<Result<(), Error>>>,
    /// What the server said to the last try, if it said no; nothing once it has taken the next, or hangs over it.
    refuse: watch::Sender<Option<Status>>,
    ended: Arc<OnceLock<Error>>,
}

impl<T> Listener<T> {
    /// The stream ended. Whether that is for good.
    fn is_over(&mut self, is_absent: bool, status: &Status) -> bool {
        let is_over = is_absent || !is_worth_another_try(status);
        if is_over {
            // Nobody set it before. First, so that whoever hears that it is held no more finds out why; and whoever waits for the first
            // answer may wait no longer just now, and looks here.
            let _ = self.ended.set(Error::refused(status));
        }
        self.tell.send_replace(None);
        if is_over && let Some(first) = self.first.take() {
            let _ = first.send(Err(Error::refused(status)));
        }
        is_over
    }
}

/// Holds until it is aborted, or the server refuses for good.
async fn keep<H: Holding>(link: Link, request: H, mut listener: Listener<H::Told>) {
    let mut backoff = Backoff::new();
    loop {
        let ended = hold_once(&link, request.clone(), &mut listener, &mut backoff).await;
        let is_absent = listener.first.is_some() && link.is_absence(&ended);
        if listener.is_over(is_absent, &ended) {
            return;
        }
        let wait = backoff.after(retry_after(&ended), fastrand::f64());
        listener.refuse.send_replace(Some(ended).filter(is_refusal));
        sleep(wait).await;
    }
}

/// One stream, from its begin to its end.
async fn hold_once<H: Holding>(
    link: &Link,
    request: H,
    listener: &mut Listener<H::Told>,
    backoff: &mut Backoff,
) -> Status {
    let mut opening = pin!(request.open(link.participation()));
    let opened = match timeout(SILENCE, &mut opening).await {
        Ok(opened) => opened,
        Err(_) => {
            listener.refuse.send_replace(None);
            opening.await
        }
    };
    let mut answers = match opened {
        Ok(answers) => answers.into_inner(),
        Err(status) => return status,
    };
    listener.refuse.send_replace(None);
    loop {
        match answers.message().await {
            Ok(Some(answer)) => {
                backoff.reset();
                link.was_served();
                listener.tell.send_replace(Some(H::told(answer)));
                if let Some(first) = listener.first.take() {
                    let _ = first.send(Ok(()));
                }
            }
            Ok(None) => return Status::unavailable("the server ended the hold"),
            Err(status) => return status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Listener;
    use crate::error::Error;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, OnceLock};
    use std::task::{Context, Wake, Waker};
    use tokio::sync::watch;
    use tonic::Status;

    /// Looks, at the moment at which it is woken, whether it can find out why.
    #[derive(Default)]
    struct Looking {
        ended: Arc<OnceLock<Error>>,
        found_why: AtomicBool,
    }

    impl Wake for Looking {
        fn wake(self: Arc<Self>) {
            self.found_why.store(self.ended.get().is_some(), Ordering::Relaxed);
        }
    }

    #[test]
    fn whoever_is_woken_because_it_ended_for_good_finds_out_why() {
        let looking = Arc::new(Looking::default());
        let (tell, mut last) = watch::channel(Some(()));
        let ended = Arc::clone(&looking.ended);
        let mut listener = Listener { tell, first: None, refuse: watch::channel(None).0, ended };
        let mut waiting = pin!(last.wait_for(Option::is_none));
        let waker = Waker::from(Arc::clone(&looking));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(listener.is_over(false, &Status::permission_denied("You are excluded.")));
        assert!(looking.found_why.load(Ordering::Relaxed));
    }
}
