//! Calls that only look, made one after the other: the slice loop has one of them at most, however many clients ask, and how things stand
//! it says once for all who wait for that.

use crate::access::Access;
use crate::call::{CallSink, NotTaken, OperatorCall};
use minerva_api::v1;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::time::Instant;
use tonic::Status;

/// How old what viewers are shown may be: they change nothing, and no slice is shorter.
const VIEWERS_AGE: Duration = Duration::from_millis(100);

/// The way of such calls to the loop. Clones are the same way.
#[derive(Clone, Debug)]
pub(crate) struct Looks {
    calls: Arc<dyn CallSink>,
    /// Whoever has it asks. The others wait in the order in which they came.
    turn: Arc<Mutex<Option<Latest>>>,
    /// Of viewers one waits for its turn or has it, until the loop has answered. The others wait here, so that operators wait for one of them
    /// at most.
    viewers: Arc<Mutex<()>>,
}

/// How things stood last.
#[derive(Debug)]
struct Latest {
    asked: Instant,
    status: Arc<v1::StatusResponse>,
}

impl Looks {
    pub(crate) fn new(calls: Arc<dyn CallSink>) -> Self {
        Self { calls, turn: Arc::default(), viewers: Arc::default() }
    }

    /// How things stand, with all that the loop did before this was called; viewers may not see what it did just now.
    pub(crate) async fn status(&self, access: Access) -> Result<Arc<v1::StatusResponse>, Status> {
        let age = if access == Access::Viewer { VIEWERS_AGE } else { Duration::ZERO };
        let called = Instant::now();
        let first = self.first_of_viewers(access).await;
        let mut turn = Arc::clone(&self.turn).lock_owned().await;
        // Asked for after this was called: by another, while this waited.
        if let Some(latest) = turn.as_ref().filter(|latest| latest.asked + age > called) {
            return Ok(Arc::clone(&latest.status));
        }
        let calls = Arc::clone(&self.calls);
        in_full(async move {
            let asked = Instant::now();
            let answer = ask(&*calls, OperatorCall::Status).await.map(Arc::new);
            if let Ok(status) = &answer {
                *turn = Some(Latest { asked, status: Arc::clone(status) });
            }
            drop((first, turn));
            answer
        })
        .await
    }

    /// Sends another call that only looks when it is its turn, and waits for the answer.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        access: Access,
        call: impl FnOnce(oneshot::Sender<T>) -> OperatorCall + Send + 'static,
    ) -> Result<T, Status> {
        let first = self.first_of_viewers(access).await;
        let turn: OwnedMutexGuard<_> = Arc::clone(&self.turn).lock_owned().await;
        let calls = Arc::clone(&self.calls);
        in_full(async move {
            let answer = ask(&*calls, call).await;
            drop((first, turn));
            answer
        })
        .await
    }

    /// Waits until no other viewer is before this one; nobody else waits.
    async fn first_of_viewers(&self, access: Access) -> Option<OwnedMutexGuard<()>> {
        match access {
            Access::Viewer => Some(Arc::clone(&self.viewers).lock_owned().await),
            _ => None,
        }
    }
}

/// Has a call answered also when its client has gone meanwhile: it would else be nobody's turn while the loop still has the call.
async fn in_full<T: Send + 'static>(
    call: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    tokio::spawn(call).await.map_err(|error| Status::internal(error.to_string()))?
}

/// Sends a call that is answered, and waits for the answer.
pub(crate) async fn ask<T>(
    calls: &dyn CallSink,
    call: impl FnOnce(oneshot::Sender<T>) -> OperatorCall,
) -> Result<T, Status> {
    let (sender, receiver) = oneshot::channel();
    calls.send(call(sender)).map_err(refusal)?;
    receiver.await.map_err(|_| Status::unavailable(NotTaken::Ended.to_string()))
}

/// A full queue is the caller's to retry; an ended loop is not.
fn refusal(error: NotTaken) -> Status {
    match error {
        NotTaken::Full => Status::resource_exhausted(error.to_string()),
        NotTaken::Ended => Status::unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Looks, VIEWERS_AGE};
    use crate::access::Access;
    use crate::call::{CallSink, NotTaken, OperatorCall};
    use minerva_api::v1;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::task::{JoinHandle, JoinSet};
    use tonic::Status;

    /// A loop that has as many calls as it was sent, and answers when it is told to.
    #[derive(Debug, Default)]
    struct Waiting(Mutex<Vec<OperatorCall>>);

    impl CallSink for Waiting {
        fn send(&self, call: OperatorCall) -> Result<(), NotTaken> {
            self.0.lock().expect("nobody panics").push(call);
            Ok(())
        }
    }

    impl Waiting {
        /// Answers what waits with this as the number of slices, and says how many that were.
        fn answer(&self, slices: u64) -> usize {
            let calls = std::mem::take(&mut *self.0.lock().expect("nobody panics"));
            let count = calls.len();
            for call in calls {
                let totals = v1::Totals { slices, ..<_>::default() };
                match call {
                    OperatorCall::Status(answer) => {
                        drop(answer.send(v1::StatusResponse { totals: Some(totals), ..<_>::default() }));
                    }
                    OperatorCall::Jobs(answer) => drop(answer.send(v1::JobsResponse::default())),
                    other => panic!("{other:?}"),
                }
            }
            count
        }
    }

    /// Lets all tasks go on until each waits for something.
    async fn settle() {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    }

    fn slices(status: &v1::StatusResponse) -> u64 {
        status.totals.as_ref().map_or(0, |totals| totals.slices)
    }

    /// Runs a test with a loop and the way to it; the clock stands still unless the test says otherwise.
    fn run<F: Future<Output = ()>>(test: impl FnOnce(Arc<Waiting>, Looks) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let calls = Arc::new(Waiting::default());
        runtime.expect("a runtime").block_on(test(Arc::clone(&calls), Looks::new(calls)));
    }

    #[test]
    fn however_many_look_at_once_the_loop_has_one_call_at_a_time_and_few_in_all() {
        run(async |calls, looks| {
            let mut asking = JoinSet::new();
            for number in 0..128 {
                let (status, jobs) = (looks.clone(), looks.clone());
                let access = if number < 64 { Access::Viewer } else { Access::Operator };
                asking.spawn(async move { status.status(access).await.map(drop) });
                if number % 32 == 0 {
                    asking.spawn(async move { jobs.ask(access, OperatorCall::Jobs).await.map(drop) });
                }
                settle().await;
                tokio::time::advance(Duration::from_nanos(1)).await;
            }
            let mut answered = 0;
            while !asking.is_empty() {
                let count = calls.answer(1);
                assert!(count <= 1, "{count} at once");
                answered += count;
                settle().await;
                while let Some(outcome) = asking.try_join_next() {
                    outcome.expect("no panic").expect("an answer");
                }
            }
            assert_eq!(answered, 2 + 4, "how things stand, for viewers and for operators; and jobs");
        });
    }

    #[test]
    fn whoever_changed_something_sees_it_and_a_viewer_within_a_tenth_of_a_second() {
        run(async |calls, looks| {
            let ask = async |access, says| {
                let looks = looks.clone();
                let asking = tokio::spawn(async move { looks.status(access).await });
                settle().await;
                let count = calls.answer(says);
                (count, slices(&asking.await.expect("no panic").expect("an answer")))
            };
            assert_eq!(ask(Access::Operator, 1).await, (1, 1));
            assert_eq!(ask(Access::Operator, 2).await, (1, 2));
            assert_eq!(ask(Access::Viewer, 3).await, (0, 2));
            tokio::time::advance(VIEWERS_AGE).await;
            assert_eq!(ask(Access::Viewer, 4).await, (1, 4));
        });
    }

    #[test]
    fn an_operator_waits_for_one_viewer_at_most() {
        run(async |calls, looks| {
            let ask = |access| {
                let looks = looks.clone();
                tokio::spawn(async move { looks.ask(access, OperatorCall::Jobs).await })
            };
            let viewers: Vec<_> = (0..64).map(|_| ask(Access::Viewer)).collect();
            settle().await;
            let operator = ask(Access::Operator);
            settle().await;
            // The viewer that came first, then the operator.
            for _ in 0..2 {
                assert_eq!(calls.answer(1), 1);
                settle().await;
            }
            assert!(operator.is_finished());
            assert_eq!(viewers.iter().filter(|viewer| viewer.is_finished()).count(), 1);
        });
    }

    #[test]
    fn an_operator_waits_for_no_viewer_behind_one_that_has_gone() {
        run(async |calls, looks| {
            let jobs = |access| {
                let looks = looks.clone();
                tokio::spawn(async move { looks.ask(access, OperatorCall::Jobs).await.map(drop) })
            };
            let status = |access| {
                let looks = looks.clone();
                tokio::spawn(async move { looks.status(access).await.map(drop) })
            };
            let asked: [&dyn Fn(Access) -> JoinHandle<Result<(), Status>>; 2] = [&jobs, &status];
            for ask in asked {
                let gone = ask(Access::Viewer);
                settle().await;
                gone.abort();
                settle().await;
                let viewer = jobs(Access::Viewer);
                settle().await;
                let operator = jobs(Access::Operator);
                settle().await;
                // That of the viewer that has gone, then the operator's, then the other viewer's.
                for (operators, viewers) in [(false, false), (true, false), (true, true)] {
                    assert_eq!(calls.answer(1), 1);
                    settle().await;
                    assert_eq!((operator.is_finished(), viewer.is_finished()), (operators, viewers));
                }
            }
        });
    }

    #[test]
    fn a_client_that_has_gone_has_its_turn_until_the_loop_has_answered() {
        run(async |calls, looks| {
            let ask = || {
                let looks = looks.clone();
                tokio::spawn(async move { looks.ask(Access::Operator, OperatorCall::Jobs).await })
            };
            let gone = ask();
            settle().await;
            gone.abort();
            let next = ask();
            settle().await;
            assert_eq!(calls.answer(1), 1, "that of whoever has gone");
            settle().await;
            assert_eq!(calls.answer(1), 1);
            next.await.expect("no panic").expect("an answer");
        });
    }
}
