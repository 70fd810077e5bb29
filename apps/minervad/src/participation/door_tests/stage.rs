//! Doors on real sockets, two tenants, and a loop that answers by rote.

use crate::command::{Command, Commands};
use crate::participation::directory::Directory;
use crate::participation::door::{DoorThread, TenantDoors};
use crate::participation::door_lobby::Lobby;
use crate::participation::door_place::LimitsHandle;
use crate::participation::door_tls::Tls;
use crate::participation::door_trial::{Rote, tenant};
use crate::participation::identity_table::IdentitiesHandle;
use crate::participation::refusals::Refusals;
use hyper_util::rt::TokioIo;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use minerva_config::{DoorLimits, Identity, KnownBy, ParticipationSettings};
use minerva_linux_observe::Roots;
use minerva_model::{Nanos, Role};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint, Uri};

/// Far above anything that is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) type Client = ParticipationClient<Channel>;

/// Everything; dropping it closes the doors.
pub(super) struct Stage {
    pub(super) files: tempfile::TempDir,
    pub(super) directory: Directory,
    pub(super) refusals: Refusals,
    pub(super) rote: Arc<Mutex<Rote>>,
    pub(super) identities: IdentitiesHandle,
    pub(super) tls: Option<Tls>,
    door: Option<DoorThread>,
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
        let rote = Arc::new(Mutex::new(Rote::default()));
        let answering = Arc::clone(&rote);
        std::thread::spawn(move || answer_by_rote(&commands, &answering));
        let doors = TenantDoors::open(&settings).expect("doors");
        let tls = doors.tls();
        let door = DoorThread::start(doors, lobby).expect("a thread");
        Self { files, directory, refusals, rote, identities, tls, door: Some(door) }
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

fn answer_by_rote(commands: &Receiver<Command>, rote: &Mutex<Rote>) {
    while let Ok(command) = commands.recv() {
        let Command::Ask(ask) = command else { continue };
        rote.lock().expect("a loop").answer(ask);
    }
}
