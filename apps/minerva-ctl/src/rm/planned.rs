//! Deleting by the daemon: as a queue of background work, which follows the plan and the gaps as every other does, and is forgotten at
//! the end. What has begun outlives this program only if it is killed.

use super::Outcome;
use crate::daemon::{answered, soon};
use crate::output;
use crate::seen;
use crate::signals::{Came, Signals};
use anyhow::Context;
use minerva_api::client::{self, Operator};
use minerva_api::v1;
use minerva_linux_background::Seen;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often it is asked how far it is, and how often that is said.
const ASK_PERIOD: Duration = Duration::from_millis(500);
const TELL_PERIOD: Duration = Duration::from_secs(2);

/// A daemon that deletes.
pub(super) struct Planned {
    client: Operator,
    sla: Duration,
    count: u32,
}

impl Planned {
    /// Connects to the daemon.
    pub(super) async fn connect(socket: &Path, sla: Duration) -> anyhow::Result<Self> {
        Ok(Self { client: client::connect(socket).await?, sla, count: 0 })
    }

    /// Deletes what was found at a path and waits for the end; says now and then how far it is.
    /// `Err` holds why the daemon does not take it.
    pub(super) async fn delete(
        &mut self,
        path: &Path,
        found: Seen,
        signals: &mut Signals,
        json: bool,
    ) -> anyhow::Result<Result<Outcome, String>> {
        let absolute = std::path::absolute(path).context("failed to make the path absolute")?;
        let Some(at) = absolute.to_str() else {
            return Ok(Err(format!("{} is no UTF-8", absolute.display())));
        };
        self.count += 1;
        let name = format!("rm-{}-{}", std::process::id(), self.count);
        let request = v1::AddBackgroundRequest {
            name: name.clone(),
            kind: "delete".to_owned(),
            path: at.to_owned(),
            sla_ns: Some(u64::try_from(self.sla.as_nanos()).unwrap_or(u64::MAX)),
            seen: Some(seen::message(found)),
            ..v1::AddBackgroundRequest::default()
        };
        match self.add(request, signals).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Ok(Err(why)),
            Err(came) => {
                // It may take it when it goes on.
                self.forget(name).await;
                return Ok(Ok(Outcome::Interrupted(came.number)));
            }
        }
        let ended = tokio::select! {
            ended = until_end(&mut self.client, &name, path) => Ok(ended),
            came = signals.next() => Err(came),
        };
        let last = queue(&mut self.client, &name).await.ok().flatten();
        self.forget(name).await;
        Ok(Ok(match ended {
            Ok(ended) => {
                tell(path, &ended, json)?;
                if ended.state == "done" { Outcome::Deleted } else { Outcome::Left }
            }
            Err(came) => {
                let done = last.map_or(0.0, |last| last.done_items);
                output::note(&format!("{done:.0} entries of {} are deleted, the rest is left", output::path(path)));
                Outcome::Interrupted(came.number)
            }
        }))
    }

    /// Has the daemon take it, or say why it does not; `Err` is a signal that came before it had answered.
    async fn add(
        &mut self,
        request: v1::AddBackgroundRequest,
        signals: &mut Signals,
    ) -> Result<Result<(), String>, Came> {
        tokio::select! {
            added = answered(self.client.add_background(request)) => Ok(match added {
                Ok(_) => Ok(()),
                Err(status) => Err(status.message().to_owned()),
            }),
            came = signals.next() => Err(came),
        }
    }

    async fn forget(&mut self, name: String) {
        let request = v1::ChangeBackgroundRequest { name: name.clone(), change: v1::BackgroundChange::Remove.into() };
        let why = match soon(self.client.change_background(request)).await {
            Some(Ok(_)) => return,
            Some(Err(status)) => status.message().to_owned(),
            None => "the daemon does not answer".to_owned(),
        };
        output::note(&format!("{name} may stay in the list ({why}); minerva-ctl background remove {name} ends it"));
    }
}

/// How far a queue is; nothing if there is none of that name. A daemon that does not answer is as one that is away.
async fn queue(client: &mut Operator, name: &str) -> Result<Option<v1::BackgroundQueue>, tonic::Status> {
    let unanswered = || Err(tonic::Status::deadline_exceeded("the daemon does not answer"));
    let answer =
        soon(client.background(v1::BackgroundRequest::default())).await.unwrap_or_else(unanswered)?.into_inner();
    Ok(answer.queues.into_iter().find(|queue| queue.name == name))
}

/// Waits until a queue has ended, or is gone. A daemon that is away takes it up again when it is back.
async fn until_end(client: &mut Operator, name: &str, path: &Path) -> v1::BackgroundQueue {
    let (mut told, mut last) = (Instant::now(), v1::BackgroundQueue::default());
    loop {
        tokio::time::sleep(ASK_PERIOD).await;
        let how = match queue(client, name).await {
            Ok(Some(queue)) if matches!(queue.state.as_str(), "done" | "failed") => return queue,
            Ok(Some(queue)) => {
                last = queue;
                how(&last)
            }
            Ok(None) => {
                let message = "somebody removed it from the list".to_owned();
                return v1::BackgroundQueue { state: "failed".to_owned(), message, ..last };
            }
            Err(_) => "the daemon is away or does not answer; it goes on when that is back".to_owned(),
        };
        if told.elapsed() >= TELL_PERIOD {
            told = Instant::now();
            output::note(&format!("{}: {how}", output::path(path)));
        }
    }
}

/// How far one is, for people.
fn how(queue: &v1::BackgroundQueue) -> String {
    let part = match queue.total_items {
        Some(total) if total > 0.0 => format!("{:.0} %", (100.0 * queue.done_items / total).min(100.0)),
        _ => "counting".to_owned(),
    };
    match queue.state.as_str() {
        "running" => format!("{part}, runs"),
        "paused" => format!("{part}, the operator paused it"),
        _ => format!("{part}, waits while others use {}: {}", queue.device, queue.reason),
    }
}

fn tell(path: &Path, ended: &v1::BackgroundQueue, json: bool) -> anyhow::Result<()> {
    let is_done = ended.state == "done";
    if json {
        output::json(&serde_json::json!({
            "path": path, "entries": ended.done_items, "is_done": is_done, "message": ended.message,
            "ran_seconds": ended.ran_seconds, "disk": ended.device,
        }))?;
    } else if is_done {
        output::text(&format!("{}: {}\n", output::path(path), output::one_line(&ended.message)))?;
    }
    if !is_done {
        output::note(&format!("{}: {}", output::path(path), output::one_line(&ended.message)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::how;
    use minerva_api::v1;

    #[test]
    fn how_far_it_is_says_why_it_waits() {
        let queue = v1::BackgroundQueue {
            state: "waiting".to_owned(),
            reason: "runs while nobody else uses the disk".to_owned(),
            device: "sda".to_owned(),
            ..v1::BackgroundQueue::default()
        };
        assert_eq!(how(&queue), "counting, waits while others use sda: runs while nobody else uses the disk");
        let running =
            v1::BackgroundQueue { state: "running".to_owned(), done_items: 1.0, total_items: Some(4.0), ..queue };
        assert_eq!(how(&running), "25 %, runs");
    }
}
