//! The server on real sockets, two tenants, and a loop that answers as scripted.

use crate::authenticate::table::SharedIdentities;
use crate::directory::Directory;
use crate::listen::TenantListeners;
use crate::live_settings::LiveSettings;
use crate::refusals::Refusals;
use crate::request::TenantCall;
use crate::server::TenantServer;
use crate::shared::Shared;
use crate::test_server::{ScriptedLoop, tenant};
use crate::tls::Tls;
use hyper_util::rt::TokioIo;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use minerva_config::{Identity, KnownBy, ParticipationSettings, TenantLimits};
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

/// Everything; dropping it ends the server.
pub(super) struct TestBed {
    pub(super) files: tempfile::TempDir,
    pub(super) directory: Directory,
    pub(super) refusals: Refusals,
    pub(super) scripted: Arc<Mutex<ScriptedLoop>>,
    pub(super) identities: SharedIdentities,
    pub(super) tls: Option<Tls>,
    server: Option<TenantServer>,
}

impl TestBed {
    /// Tenants `a` and `b` behind a socket each, with these limits.
    pub(super) fn new(limits: TenantLimits) -> Self {
        Self::with(|settings| settings.limits = limits)
    }

    /// The same, with further settings.
    pub(super) fn with(further: impl FnOnce(&mut ParticipationSettings)) -> Self {
        Self::on(Roots::detect().expect("a host"), further)
    }

    /// The same, on this host.
    pub(super) fn on(roots: Roots, further: impl FnOnce(&mut ParticipationSettings)) -> Self {
        let files = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
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
        directory.complete();
        let (sender, requests) = sync_channel(1024);
        let listeners = TenantListeners::open(&settings).expect("listeners");
        let tls = listeners.tls();
        let live_settings = LiveSettings::new(&settings, Nanos::from_millis(100), tls.clone());
        let shared = Shared::new(Arc::new(sender), directory.clone(), refusals.clone(), roots, &live_settings);
        let identities = live_settings.identities;
        let scripted = Arc::new(Mutex::new(ScriptedLoop::default()));
        let answering = Arc::clone(&scripted);
        std::thread::spawn(move || answer_as_scripted(&requests, &answering));
        let server = TenantServer::start(listeners, shared).expect("a thread");
        Self { files, directory, refusals, scripted, identities, tls, server: Some(server) }
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
        ParticipationClient::new(endpoint.connect_with_connector(connector).await.expect("a server"))
    }

    /// Somebody else is still answered.
    pub(super) async fn assert_b_is_served(&self) {
        let answer = self.client("b").await.describe(v1::DescribeRequest {}).await.expect("b is served");
        assert_eq!((answer.get_ref().tenant.as_str(), answer.get_ref().identified_by.as_str()), ("t2", "vsock"));
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
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

fn answer_as_scripted(requests: &Receiver<TenantCall>, scripted: &Mutex<ScriptedLoop>) {
    while let Ok(request) = requests.recv() {
        scripted.lock().expect("a loop").answer(request);
    }
}
