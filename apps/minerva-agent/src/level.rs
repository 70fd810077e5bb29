//! Levels until a process ends. Only this machine can see its processes, so the agent asks the server for a level that is held,
//! and holds it for as long as the process lives; an agent that follows a killed one holds on ([`Record`]).

use crate::kept::{Record, Watched};
use crate::listening::{Attendance, Peer};
use crate::message::carried_status;
use crate::resume::{self, Answers, Kind};
use crate::upstream::{Carried, Upstream};
use http::uri::PathAndQuery;
use minerva_api::v1;
use minerva_api::v1::set_level_request::Lifetime;
use prost::Message;
use rustix::process::Pid;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;
use tonic::metadata::MetadataMap;
use tonic::{Code, Response, Status};

/// The level that holds until a process ends. There is one at most, as with every level that is set: the later replaces it.
#[derive(Clone, Debug)]
pub(crate) struct ProcessLevel {
    record: Record,
    latest: Arc<Mutex<Latest>>,
}

#[derive(Debug, Default)]
struct Latest {
    /// Counts those that there were.
    number: u64,
    keeper: Option<Keeper>,
}

/// Ends what it keeps when dropped.
#[derive(Debug)]
struct Keeper(JoinHandle<()>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The paths of the calls that a level for a process is made of.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) hold: PathAndQuery,
    pub(crate) set: PathAndQuery,
}

/// The process that a request wants its level bound to; 0 for the caller. None for other requests.
pub(crate) fn process_of(request: &Carried) -> Option<(v1::SetLevelRequest, u32)> {
    let asked = v1::SetLevelRequest::decode(request.message.clone()).ok()?;
    match asked.lifetime {
        Some(Lifetime::Process(number)) if asked.level != v1::Level::Normal as i32 => Some((asked, number)),
        _ => None,
    }
}

impl ProcessLevel {
    /// None yet.
    pub(crate) fn new(record: Record) -> Self {
        Self { record, latest: Arc::default() }
    }

    /// Another level was set.
    pub(crate) fn replace(&self) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.number += 1;
        latest.keeper = None;
        self.record.remove();
    }

    /// Holds the level that was asked for until the process ends; answered when it is in force and written down.
    pub(crate) async fn hold(
        &self,
        upstream: &Upstream,
        calls: &Calls,
        asked: v1::SetLevelRequest,
        process: Watched,
        attendance: Attendance,
    ) -> Result<Response<bytes::Bytes>, Status> {
        let mut changes = resume::open(upstream.clone(), hold_call(&calls.hold, asked.level), Kind::Hold);
        match changes.recv().await {
            Some(Ok(_)) => {}
            Some(Err(refusal)) => return Err(refusal),
            None => return Err(Status::unavailable("The agent is ending.")),
        }
        // What was set before, for ever or for a time, is replaced; the answer is the level in force, with what is held.
        let normal = v1::SetLevelRequest { level: v1::Level::Normal as i32, lifetime: None }.encode_to_vec();
        let answer = upstream.unary(&call(&calls.set, normal)).await?;
        let kept = self.record.write(asked.level, &process).and_then(|()| self.keep(process, changes, attendance));
        kept.map_err(|error| Status::internal(format!("The agent cannot keep the level: {error}.")))?;
        Ok(answer)
    }

    /// Takes up what the agent before this one held.
    pub(crate) fn recall(
        &self,
        upstream: &Upstream,
        hold: &PathAndQuery,
        attendance: Attendance,
    ) -> anyhow::Result<()> {
        let Some((level, process)) = self.record.read()? else {
            self.record.remove();
            return Ok(());
        };
        tracing::info!(process = process.number, "holding on to the level of a process, as the agent before this one");
        let changes = resume::open_again(upstream.clone(), hold_call(hold, level), Kind::Hold);
        Ok(self.keep(process, changes, attendance)?)
    }

    fn keep(&self, process: Watched, changes: Answers, attendance: Attendance) -> io::Result<()> {
        // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives, and `AsyncFd` owns it until it has
        // been taken out of the poll set.
        let ended = unsafe { AsyncFd::register_with_interest(process.descriptor, Interest::READABLE) }?;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.number += 1;
        let (all, number) = (self.clone(), latest.number);
        latest.keeper = Some(Keeper(tokio::spawn(async move {
            until_it_ends(ended, changes).await;
            drop(attendance);
            let latest = all.latest.lock().unwrap_or_else(PoisonError::into_inner);
            // Unless a later one is written down there by now.
            if latest.number == number {
                all.record.remove();
            }
        })));
        Ok(())
    }
}

fn call(path: &PathAndQuery, message: Vec<u8>) -> Carried {
    Carried { path: path.clone(), metadata: MetadataMap::new(), message: message.into() }
}

fn hold_call(path: &PathAndQuery, level: i32) -> Carried {
    call(path, v1::HoldLevelRequest { level }.encode_to_vec())
}

/// Until the process ends, or the server takes the level away.
async fn until_it_ends(ended: AsyncFd<OwnedFd>, mut changes: Answers) {
    tokio::select! {
        ended = ended.readable() => drop(ended),
        () = async { while let Some(Ok(_)) = changes.recv().await {} } => {}
    }
}

/// Opens the process that a level shall be bound to, if the caller may bind it there: it is the caller's own, or another of the
/// same user.
pub(crate) fn open_process(peer: &Peer, number: u32) -> Result<Watched, Status> {
    let number = if number == 0 { peer.process } else { i32::try_from(number).ok() };
    let pid = number.and_then(Pid::from_raw).ok_or_else(|| {
        refusal(
            Code::InvalidArgument,
            "bad-process",
            "There is no such process, or the kernel does not say which asks.".to_owned(),
        )
    })?;
    let number = pid.as_raw_nonzero();
    let gone = || {
        let message =
            format!("There is no process {number} on the agent's machine. Give a number as the agent sees it.");
        refusal(Code::NotFound, "no-such-process", message)
    };
    let process = Watched::open(pid).ok_or_else(gone)?;
    let owner = std::fs::metadata(format!("/proc/{number}")).map_err(|_| gone())?.uid();
    // Whose process the number is was read after the descriptor was opened: if that lives still, both are of one process.
    if process.has_ended() {
        return Err(gone());
    }
    if peer.user != 0 && peer.user != owner {
        let message = format!("Process {number} is another user's. A level can be bound to a process of one's own.");
        return Err(refusal(Code::PermissionDenied, "not-allowed", message));
    }
    Ok(process)
}

fn refusal(code: Code, word: &'static str, message: String) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert("minerva-refusal", tonic::metadata::MetadataValue::from_static(word));
    carried_status(&Status::with_metadata(code, message, metadata))
}

#[cfg(test)]
mod tests {
    use super::{open_process, process_of};
    use crate::listening::Peer;
    use crate::upstream::Carried;
    use minerva_api::v1;
    use minerva_api::v1::set_level_request::Lifetime;
    use prost::Message;
    use std::process::Command;
    use tonic::Code;
    use tonic::metadata::MetadataMap;

    fn refused(user: u32, process: Option<i32>, number: u32) -> Option<Code> {
        open_process(&Peer { process, user }, number).err().map(|status| status.code())
    }

    #[test]
    fn a_level_is_bound_to_a_process_of_ones_own_and_to_no_other() {
        let own = i32::try_from(std::process::id()).expect("a number");
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(refused(user, Some(own), 0), None);
        assert_eq!(refused(user, Some(own), std::process::id()), None);
        assert_eq!(refused(user + 1, Some(own), std::process::id()), Some(Code::PermissionDenied));
        assert_eq!(refused(0, Some(own), std::process::id()), None);
        assert_eq!(refused(user, None, 0), Some(Code::InvalidArgument));
        assert_eq!(refused(user, Some(own), u32::MAX), Some(Code::InvalidArgument));
        let mut child = Command::new("true").spawn().expect("a process");
        child.wait().expect("its end");
        assert_eq!(refused(user, Some(own), child.id()), Some(Code::NotFound));
    }

    #[test]
    fn only_a_level_for_a_process_is_the_agents() {
        let asked = |level: v1::Level, lifetime| {
            let message = v1::SetLevelRequest { level: level as i32, lifetime }.encode_to_vec().into();
            let path = http::uri::PathAndQuery::from_static("/a/b");
            process_of(&Carried { path, metadata: MetadataMap::new(), message }).map(|(_, number)| number)
        };
        assert_eq!(asked(v1::Level::Low, Some(Lifetime::Process(7))), Some(7));
        assert_eq!(asked(v1::Level::Low, Some(Lifetime::ForNs(7))), None);
        assert_eq!(asked(v1::Level::Low, None), None);
        // Nothing has to be held to be as everyone.
        assert_eq!(asked(v1::Level::Normal, Some(Lifetime::Process(7))), None);
    }
}
