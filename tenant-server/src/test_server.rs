//! The server for tenants without sockets and without a daemon, for tests and for fuzzing: connections are pipes in memory, and
//! who is at the other end is told, not found out. From the first byte of HTTP/2 on everything is what the daemon serves.

use crate::authenticate::peer::Peer;
use crate::directory::Directory;
use crate::live_settings::LiveSettings;
use crate::refusals::Refusals;
use crate::request::{Call, Refusal, TenantCall};
use crate::server::Acceptor;
use crate::shared::Shared;
use crate::slots::SharedQuotas;
use crate::source::Source;
use minerva_api::v1;
use minerva_config::{Identity, KnownBy, ParticipationSettings};
use minerva_linux_observe::Roots;
use minerva_model::{CgroupRef, CgroupVersion, Level, Nanos, RefusalKind, Role, Tenant, TenantId, TenantKind, Terms};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::sync::mpsc::Sender;

/// The header by which the tenant `a` is known where it is known by that.
pub const BEARER: &str = "Bearer token of a";
/// Requests that may wait to be answered.
const QUEUE_LENGTH: usize = 1024;
/// What a pipe holds before its writer waits; about that of a socket.
const PIPE_BYTES: usize = 64 << 10;
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// The tenant `a`, by a socket of its own.
    A,
    /// The tenant `b`, likewise.
    B,
    /// Whoever shows a token with each request.
    ByToken,
    /// One of whom nobody can tell who it is.
    Nobody,
}

/// The server, two tenants, and a slice loop that answers when it is told to.
#[derive(Debug)]
pub struct TestServer {
    acceptor: Arc<Acceptor>,
    quotas: SharedQuotas,
    requests: Receiver<TenantCall>,
    scripted: ScriptedLoop,
}

impl TestServer {
    /// Two tenants, and nobody connected.
    #[expect(clippy::new_without_default, reason = "it is a scene, and no value that stands for none")]
    pub fn new() -> Self {
        let directory = Directory::default();
        directory.enter(&tenant(1, "a", Role::Participant));
        directory.enter(&tenant(2, "b", Role::Participant));
        directory.complete();
        let digest = Sha256::digest(BEARER.trim_start_matches("Bearer ")).into();
        let of_token = Identity { tenant: "a".to_owned(), known_by: Some(KnownBy::TokenSha256(digest)) };
        let (sender, requests) = sync_channel(QUEUE_LENGTH);
        // Nobody here is known by a process, so that nothing of this host is read.
        let (cgroup, proc, sys) = (PathBuf::new(), PathBuf::new(), PathBuf::new());
        let by_socket =
            |name: &str| Identity { tenant: name.to_owned(), known_by: Some(KnownBy::VsockSocket(name.into())) };
        let identities = vec![of_token, by_socket("a"), by_socket("b")];
        let settings = ParticipationSettings { identities, ..ParticipationSettings::default() };
        let settings = LiveSettings::new(&settings, Nanos::from_millis(100), None);
        let shared = Shared::new(
            Arc::new(sender),
            directory,
            Refusals::default(),
            Roots { cgroup, version: CgroupVersion::V2, proc, sys },
            &settings,
        );
        Self {
            acceptor: Acceptor::new(shared, KEEPALIVE),
            quotas: settings.limits,
            requests,
            scripted: ScriptedLoop::default(),
        }
    }

    /// The client's end of a new connection. It needs tokio's clock.
    pub fn connect(&self, who: Who) -> DuplexStream {
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        let socket = |path: &str| Peer::Socket { path: path.into() };
        let (source, peer) = match who {
            Who::A => (Source::Socket(0), socket("a")),
            Who::B => (Source::Socket(1), socket("b")),
            Who::ByToken => (Source::User(1), Peer::Token),
            Who::Nobody => (Source::User(2), Peer::Nobody("Nobody knows this process.".to_owned())),
        };
        if let Some(slot) = self.acceptor.admit(source) {
            self.acceptor.serve(server, source, peer, slot);
        }
        client
    }

    /// What the slice loop was asked is answered as scripted, refused, dropped or left, as `manner` modulo 4 says; how many
    /// that were.
    pub fn answer(&mut self, manner: u8) -> usize {
        let mut count = 0;
        while let Ok(request) = self.requests.try_recv() {
            count += 1;
            match manner % 4 {
                0 => self.scripted.answer(request),
                1 => request
                    .call
                    .refuse(&Refusal::new(RefusalKind::TooLate, "It is too late for this by far.".to_owned())),
                2 => drop(request),
                _ => self.scripted.unanswered.push(request.call),
            }
        }
        count
    }

    /// Whoever holds a level is told another.
    pub fn say_to_streams(&self) {
        self.scripted.held.iter().for_each(|(_, changes)| drop(changes.try_send(Ok(Level::Low))));
    }

    /// The slice loop ends all that it has not answered to the end.
    pub fn hang_up_streams(&mut self) {
        self.scripted = ScriptedLoop::default();
    }

    /// Whether no connection and no request is counted.
    pub fn is_empty(&self) -> bool {
        self.quotas.is_unused()
    }
}

/// A slice loop that gives the same answers to everyone.
#[derive(Debug, Default)]
pub(crate) struct ScriptedLoop {
    /// The levels that are held, and by whom.
    pub(crate) held: Vec<(TenantId, Sender<Result<Level, Refusal>>)>,
    /// Of these nobody hears that there is no answer.
    unanswered: Vec<Call>,
}

impl ScriptedLoop {
    pub(crate) fn answer(&mut self, request: TenantCall) {
        let refused = |kind, message: &str| Refusal::new(kind, message.to_owned());
        match request.call {
            Call::Describe(answer) => {
                let tenant = request.tenant.to_string();
                drop(answer.send(Ok(v1::DescribeResponse { tenant, ..v1::DescribeResponse::default() })));
            }
            Call::SetLevel { level, answer, .. } => drop(answer.send(Ok(level))),
            Call::HoldLevel { level, changes } => {
                drop(changes.try_send(Ok(level)));
                self.held.push((request.tenant, changes));
            }
            Call::HoldJob { places, .. } => drop(places.try_send(Ok(v1::HoldJobResponse::default()))),
            Call::HoldDebt { words, .. } => drop(words.try_send(Ok(v1::HoldDebtResponse::default()))),
            Call::ReportDebt(_, _, answer) => drop(answer.send(Ok(()))),
            Call::SetSchedule { answer, .. } => drop(answer.send(Ok(Level::Normal))),
            Call::Credits { entries_max, answer } => {
                let entries = vec![v1::CreditEntry::default(); entries_max as usize];
                drop(answer.send(Ok(v1::CreditsResponse { entries, ..v1::CreditsResponse::default() })));
            }
            Call::Boost { answer, .. } => {
                drop(answer.send(Err(refused(RefusalKind::NotEnoughCredits, "The account holds nothing."))));
            }
            Call::Coordinate { answers, .. } => {
                let answer = Some(v1::coordinate_response::Answer::BeginNow(v1::BeginNow {}));
                drop(answers.try_send(Ok(v1::CoordinateResponse { answer })));
            }
            Call::Begin(_, answer) | Call::Finish(_, answer) => {
                drop(answer.send(Err(refused(RefusalKind::UnknownOperation, "No such operation."))));
            }
            // As a loop that hangs.
            cancel @ Call::Cancel(..) => self.unanswered.push(cancel),
            Call::Report { .. } => {}
        }
    }
}

/// The tenant `name`, at the cgroup of its name.
pub(crate) fn tenant(number: u64, name: &str, role: Role) -> Tenant {
    Tenant {
        id: TenantId(number),
        name: name.to_owned(),
        kind: TenantKind::VirtualMachine,
        cgroup: CgroupRef { path: name.to_owned(), inode: number },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms { role, ..Terms::default() },
        origin: minerva_model::Origin::default(),
    }
}
