//! Plans of background work for people, made one after the other: each takes long, and a copy of all work with it.

use crate::call::{NotTaken, Shown};
use minerva_api::v1;
use std::future::Future;
use tokio::sync::Semaphore;
use tonic::Status;

/// How many are made at once.
static PLANS: Semaphore = Semaphore::const_new(1);

/// Asks the loop and makes the plans that it has to show.
pub(crate) async fn made(ask: impl Future<Output = Result<Shown, Status>>) -> Result<v1::BackgroundResponse, Status> {
    made_in_turn(&PLANS, ask).await
}

/// A client that asks again and again waits for its own plans, even if it does not wait for the answers: plans once begun are made to the end.
async fn made_in_turn(
    plans: &'static Semaphore,
    ask: impl Future<Output = Result<Shown, Status>>,
) -> Result<v1::BackgroundResponse, Status> {
    let turn = plans.acquire().await.map_err(|_| Status::unavailable(NotTaken::Ended.to_string()))?;
    // Only now: the answer holds a copy of all work.
    let shown = ask.await?;
    let make = move || {
        let made = shown.finish();
        drop(turn);
        made
    };
    tokio::task::spawn_blocking(make).await.map_err(|error| Status::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::made_in_turn;
    use crate::call::Shown;
    use minerva_api::v1;
    use std::sync::mpsc::channel;
    use std::time::Duration;
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    static PLANS: Semaphore = Semaphore::const_new(1);

    #[test]
    fn plans_of_a_client_that_has_gone_are_made_to_the_end_before_the_next() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (go_on, may_go_on) = channel::<()>();
            let (begin, begun) = channel();
            let slow = Shown::by(move || {
                begin.send(()).expect("who waits");
                may_go_on.recv().expect("a word");
                v1::BackgroundResponse::default()
            });
            let first = tokio::spawn(made_in_turn(&PLANS, async { Ok(slow) }));
            while begun.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            first.abort();
            assert!(first.await.expect_err("its client has gone").is_cancelled());
            let (ask, asked) = channel();
            let mut second = tokio::spawn(made_in_turn(&PLANS, async move {
                ask.send(()).expect("who waits");
                Ok(Shown::by(v1::BackgroundResponse::default))
            }));
            assert!(timeout(Duration::from_millis(50), &mut second).await.is_err());
            assert!(asked.try_recv().is_err(), "the work is not even copied for it yet");
            go_on.send(()).expect("who waits");
            second.await.expect("no panic").expect("an answer");
            assert!(asked.try_recv().is_ok());
        });
    }
}
