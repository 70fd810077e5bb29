//! Doors on real sockets, two tenants, and a loop that answers by rote.

use crate::command::{Command, Commands};
use crate::participation::ask::{Refusal, What};
use crate::participation::directory::Directory;
use crate::participation::door::{DoorThread, TenantDoors};
use crate::participation::door_lobby::Lobby;
use crate::participation::door_place::LimitsHandle;
use crate::participation::door_tls::Tls;
use crate::participation::identity_table::IdentitiesHandle;
use crate::participation::refusals::Refusals;
use hyper_util::rt::TokioIo;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use minerva_config::{DoorLimits, Identity, KnownBy, ParticipationSettings};
use minerva_linux_observe::Roots;
use minerva_model::{CgroupRef, Level, Nanos, RefusalKind, Role, Tenant, TenantId, TenantKind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;
use tonic::transport::{Channel, Endpoint, Uri};

/// Far above anything that is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) type Client = ParticipationClient<Channel>;

/// The levels that are held, and by whom.
type Held = Arc<Mutex<Vec<(TenantId, Sender<Result<Level, Refusal>>)>>>;

/// Everything; dropping it closes the doors.
pub(super) struct Stage {
    pub(super) files: tempfile::TempDir,
    pub(super) directory: Directory,
    pub(super) refusals: Refusals,
    pub(super) held: Held,
    pub(super) identities: IdentitiesHandle,
    pub(super) tls: Option<Tls>,
    door: Option<DoorThread>,
}

/// The tenant `name`, at the cgroup of its name.
pub(super) fn tenant(number: u64, name: &str, role: Role) -> Tenant {
    Tenant {
        id: TenantId(number),
        name: name.to_owned(),
        kind: TenantKind::VirtualMachine,
        cgroup: CgroupRef { path: name.to_owned(), inode: number },
        group: None,
        weight_percent: 100,
        excluded: false,
        terms: minerva_model::Terms { role, ..minerva_model::Terms::default() },
    }
}

impl Stage {
    /// Tenants `a` and `b` behind a socket each, with these limits.
    pub(super) fn new(limits: DoorLimits) -> Self {
        Self::with(|settings| settings.limits = limits)
    }

    /// The same, with further settings.
    pub(super) fn with(further: impl FnOnce(&mut ParticipationSettings)) -> Self {
        let files = tempfile::Builder::new().prefix("minerva-test-door-").tempdir().expect("a directory");
        let machine = |name: &str| Identity {
            tenant: name.to_owned(),
            known_by: Some(KnownBy::VsockSocket(files.path().join(name))),
        };
        let mut settings = ParticipationSettings {
            socket: Some(files.path().join("tenant.sock")),
            keepalive: Nanos::SECOND,
            identities: vec![machine("a"), machine("b"), machine("nobody")],
            ..ParticipationSettings::default()
        };
        further(&mut settings);
        let (directory, refusals) = (Directory::default(), Refusals::default());
        directory.enter(&tenant(1, "a", Role::Participant));
        directory.enter(&tenant(2, "b", Role::Participant));
        let (sender, commands) = sync_channel(1024);
        let identities = IdentitiesHandle::new(&settings.identities);
        let lobby = Lobby::new(
            Commands::new(sender),
            directory.clone(),
            refusals.clone(),
            Roots::detect().expect("a host"),
            identities.clone(),
            LimitsHandle::new(settings.limits),
            Nanos::from_millis(100),
        );
        let held = Held::default();
        let holders = Arc::clone(&held);
        std::thread::spawn(move || answer_by_rote(&commands, &holders));
        let doors = TenantDoors::open(&settings).expect("doors");
        let tls = doors.tls();
        let door = DoorThread::start(doors, lobby).expect("a thread");
        Self { files, directory, refusals, held, identities, tls, door: Some(door) }
    }

    pub(super) fn socket(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// A client at the socket of `name`.
    pub(super) async fn client(&self, name: &str) -> Client {
        let path = self.socket(name);
        let connector = tower::service_fn(move |_: Uri| {
            let path = path.clone();
            async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://minervad.invalid");
        ParticipationClient::new(endpoint.connect_with_connector(connector).await.expect("a door"))
    }

    /// Somebody else is still answered.
    pub(super) async fn assert_b_is_served(&self) {
        let answer = self.client("b").await.describe(v1::DescribeRequest {}).await.expect("b is served");
        assert_eq!((answer.get_ref().tenant.as_str(), answer.get_ref().identified_by.as_str()), ("t2", "vsock"));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(door) = self.door.take() {
            door.stop();
        }
    }
}

/// Runs a test's clients.
pub(super) fn play<T>(scene: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(scene)
}

/// Polls until it holds.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The stable word of a refusal.
pub(super) fn word(status: &tonic::Status) -> &str {
    status.metadata().get("minerva-refusal").and_then(|word| word.to_str().ok()).unwrap_or_default()
}

fn answer_by_rote(commands: &Receiver<Command>, held: &Held) {
    let refused = |kind, message: &str| Refusal::new(kind, message.to_owned());
    while let Ok(command) = commands.recv() {
        let Command::Ask(ask) = command else { continue };
        match ask.what {
            What::Describe(answer) => {
                let tenant = ask.tenant.to_string();
                drop(answer.send(Ok(v1::DescribeResponse { tenant, ..v1::DescribeResponse::default() })));
            }
            What::SetLevel { level, answer, .. } => drop(answer.send(Ok(level))),
            What::HoldLevel { level, changes } => {
                drop(changes.try_send(Ok(level)));
                held.lock().expect("a list").push((ask.tenant, changes));
            }
            What::SetSchedule { answer, .. } => drop(answer.send(Ok(Level::Normal))),
            What::Credits { entries_max, answer } => {
                let entries = vec![v1::CreditEntry::default(); entries_max as usize];
                drop(answer.send(Ok(v1::CreditsResponse { entries, ..v1::CreditsResponse::default() })));
            }
            What::Boost { answer, .. } => {
                drop(answer.send(Err(refused(RefusalKind::NotEnoughCredits, "The account holds nothing."))));
            }
            What::Coordinate { answers, .. } => {
                let answer = Some(v1::coordinate_response::Answer::BeginNow(v1::BeginNow {}));
                drop(answers.try_send(Ok(v1::CoordinateResponse { answer })));
            }
            What::Begin(_, answer) | What::Finish(_, answer) => {
                drop(answer.send(Err(refused(RefusalKind::UnknownOperation, "No such operation."))));
            }
            // As a loop that hangs: the answer never comes, and nobody hears that it does not.
            What::Cancel(_, answer) => std::mem::forget(answer),
            What::Report(_) => {}
        }
    }
}
