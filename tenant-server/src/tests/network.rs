//! TCP: certificates that are good and that are not, tokens, and both; and sockets of single machines.

use super::stage::{Client, TestBed, play, word};
use crate::authenticate::peer::Peer;
use crate::authenticate::process::LiveProcess;
use crate::connection::Connection;
use crate::directory::Directory;
use crate::live_settings::LiveSettings;
use crate::refusals::Refusals;
use crate::shared::Shared;
use crate::source::Source;
use crate::test_server::tenant;
use crate::tls::Tls;
use hyper_util::rt::TokioIo;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use minerva_config::{Identity, KnownBy, ParticipationSettings, TenantLimits};
use minerva_linux_observe::Roots;
use minerva_model::{Nanos, Role};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Endpoint, Uri};
use tonic::{Code, Request, Status};

type Authority = Issuer<'static, KeyPair>;

/// Who signs, and its own certificate.
fn authority(name: &str) -> (Authority, CertificateDer<'static>, String) {
    let mut params = CertificateParams::new(Vec::new()).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (Issuer::new(params, key), certificate.der().clone(), certificate.pem())
}

/// A certificate of this common name and DNS name, good until the year.
fn certificate(signer: &Authority, common: &str, dns: &str, year: i32) -> (rcgen::Certificate, KeyPair) {
    let seconds = (i64::from(year) - 1970) * 31_556_952;
    certificate_until(signer, common, dns, seconds)
}

/// The same, until a moment in seconds since 1970.
fn certificate_until(signer: &Authority, common: &str, dns: &str, unix_s: i64) -> (rcgen::Certificate, KeyPair) {
    let mut params = CertificateParams::new(vec![dns.to_owned()]).expect("names");
    params.distinguished_name.push(DnType::CommonName, common);
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(unix_s).expect("later"));
    let key = KeyPair::generate().expect("a key");
    (params.signed_by(&key, signer).expect("a certificate"), key)
}

struct Network {
    stage: TestBed,
    address: SocketAddr,
    root: CertificateDer<'static>,
    signer: Authority,
}

/// The wall clock, in seconds since 1970.
fn unix_s() -> i64 {
    minerva_clock::unix_ns() / 1_000_000_000
}

/// An address that was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

fn identities(directory: &Path) -> Vec<Identity> {
    let one = |tenant: &str, known_by| Identity { tenant: tenant.to_owned(), known_by: Some(known_by) };
    vec![
        one("a", KnownBy::Certificate("vm-a".to_owned())),
        one("a", KnownBy::TokenSha256(Sha256::digest("token of a").into())),
        one("b", KnownBy::Certificate("vm-b.example".to_owned())),
        one("b", KnownBy::TokenSha256(Sha256::digest("token of b").into())),
        one("b", KnownBy::VsockSocket(directory.join("b"))),
    ]
}

impl Network {
    fn new() -> Self {
        Self::with(TenantLimits::default())
    }

    fn with(limits: TenantLimits) -> Self {
        let address = free_address();
        let (signer, root, root_pem) = authority("minerva-test");
        let (server, key) = certificate(&signer, "host", "minervad.invalid", 2200);
        let files = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
        let file = |name: &str, text: String| {
            let path = files.path().join(name);
            std::fs::write(&path, text).expect("a file");
            Some(path)
        };
        let stage = TestBed::with(|settings| {
            let directory = settings.socket.as_ref().and_then(|socket| socket.parent()).expect("a directory");
            settings.identities = identities(directory);
            settings.limits = limits;
            settings.listen = Some(address);
            settings.certificate = file("server.pem", server.pem());
            settings.key = file("server.key", key.serialize_pem());
            settings.client_ca = file("ca.pem", root_pem);
        });
        Self { stage, address, root, signer }
    }

    /// Asks with this certificate and this token.
    async fn ask(
        &self,
        shown: Option<(rcgen::Certificate, KeyPair)>,
        token: Option<&str>,
    ) -> Result<v1::DescribeResponse, Status> {
        let mut client = self.client(shown).await;
        let mut request = Request::new(v1::DescribeRequest {});
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().expect("plain text");
            request.metadata_mut().insert("authorization", value);
        }
        Ok(client.describe(request).await?.into_inner())
    }

    /// Connects, and shows this certificate.
    async fn client(&self, shown: Option<(rcgen::Certificate, KeyPair)>) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).expect("a root");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match shown {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
                config.with_client_auth_cert(vec![certificate.der().clone()], key).expect("a pair")
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (connector, address) = (TlsConnector::from(Arc::new(config)), self.address);
        let connect = tower::service_fn(move |_: Uri| {
            let connector = connector.clone();
            async move {
                let name = ServerName::try_from("minervad.invalid").expect("a name");
                let stream = TcpStream::connect(address).await?;
                connector.connect(name, stream).await.map(TokioIo::new)
            }
        });
        let channel = Endpoint::from_static("http://minervad.invalid").connect_with_connector(connect).await;
        ParticipationClient::new(channel.expect("a handshake"))
    }
}

#[test]
fn certificates_and_tokens_prove_who_asks_and_forged_ones_do_not() {
    let network = Network::new();
    let (stranger, ..) = authority("stranger");
    let own = |common, dns| Some(certificate(&network.signer, common, dns, 2200));
    let good = [
        (own("vm-a", "x.example"), None, ("t1", "certificate")),
        (own("x", "vm-b.example"), None, ("t2", "certificate")),
        (own("vm-a", "x.example"), Some("token of a"), ("t1", "certificate")),
        (None, Some("token of a"), ("t1", "token")),
        (None, Some("token of b"), ("t2", "token")),
    ];
    let forged = Some(certificate(&stranger, "vm-a", "x.example", 2200));
    let expired = Some(certificate(&network.signer, "vm-a", "x.example", 2001));
    let bad = [
        (expired, None, Code::Unauthenticated, "has expired; renew it"),
        (forged, None, Code::Unauthenticated, "is not signed by one whom this server knows"),
        (own("vm-c", "c.example"), None, Code::Unauthenticated, "names it: vm-c, c.example"),
        (own("vm-a", "x.example"), Some("token of b"), Code::PermissionDenied, "The token is not that of a"),
        (None, Some("guess"), Code::Unauthenticated, "The token is nobody's"),
        (None, None, Code::Unauthenticated, "No token"),
    ];
    play(async {
        for (shown, token, (tenant, identified_by)) in good {
            let answer = network.ask(shown, token).await.expect("known");
            assert_eq!((answer.tenant.as_str(), answer.identified_by.as_str()), (tenant, identified_by));
        }
        for (shown, token, code, sentence) in bad {
            let status = network.ask(shown, token).await.expect_err("unknown");
            assert_eq!(status.code(), code, "{status:?}");
            assert!(!word(&status).is_empty() && status.message().contains(sentence), "{status:?}");
        }
        network.stage.assert_b_is_served().await;
    });
    let audited = network.stage.refusals.take();
    assert_eq!(audited.len(), 6, "{audited:?}");
}

#[test]
fn a_crowd_that_never_shakes_hands_keeps_nobody_out() {
    let network = Network::new();
    play(async {
        let mut crowd = Vec::new();
        for _ in 0..600 {
            crowd.push(TcpStream::connect(network.address).await.expect("a server"));
        }
        let own = certificate(&network.signer, "vm-a", "x.example", 2200);
        assert_eq!(network.ask(Some(own), None).await.expect("known").tenant, "t1");
        network.stage.assert_b_is_served().await;
    });
}

#[test]
fn handshakes_of_one_address_are_limited_in_rate_and_silence_costs_it_none() {
    let network = Network::with(TenantLimits { requests_per_second: 1, burst: 10, ..TenantLimits::default() });
    play(async {
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(TcpStream::connect(network.address).await.expect("a server"));
        }
        for _ in 0..50 {
            // As whoever looks whether the port is open: it goes without a word.
            let mut stream = TcpStream::connect(network.address).await.expect("a server");
            stream.shutdown().await.expect("said to be the end");
            let answer = stream.read(&mut [0; 64]).await;
            assert!(matches!(answer, Ok(0)), "hung up on: {answer:?}");
        }
        let own = certificate(&network.signer, "vm-a", "x.example", 2200);
        assert_eq!(network.ask(Some(own), None).await.expect("known").tenant, "t1");
        for _ in 0..50 {
            let mut stream = TcpStream::connect(network.address).await.expect("a server");
            stream.write_all(b"no handshake").await.expect("sent");
            // Hung up on, sooner or later.
            let _ = stream.read(&mut [0; 64]).await;
        }
        network.stage.assert_b_is_served().await;
    });
    let audited = network.stage.refusals.take();
    let is_refused = |text: &str| text.contains("address 127.0.0.1") && text.contains("handshake");
    assert!(audited.iter().any(|row| is_refused(&row.text)), "{audited:?}");
}

#[test]
fn a_certificate_that_expires_or_is_named_no_more_ends_what_its_connection_may() {
    let network = Network::new();
    play(async {
        let soon = certificate_until(&network.signer, "vm-a", "x.example", unix_s() + 8);
        let mut client = network.client(Some(soon)).await;
        assert_eq!(client.describe(v1::DescribeRequest {}).await.expect("it is good").get_ref().tenant, "t1");
        let mut other = network.client(Some(certificate(&network.signer, "x", "vm-b.example", 2200))).await;
        assert_eq!(other.describe(v1::DescribeRequest {}).await.expect("it is good").get_ref().tenant, "t2");
        network.stage.identities.set(&[]);
        let status = other.describe(v1::DescribeRequest {}).await.expect_err("nobody names it any more");
        assert_eq!((status.code(), word(&status)), (Code::Unauthenticated, "not-identified"));
        assert!(status.message().contains("no [[identities]]"), "{status:?}");
        network.stage.identities.set(&identities(network.stage.files.path()));
        assert!(other.describe(v1::DescribeRequest {}).await.is_ok());
        let mut answer = client.describe(v1::DescribeRequest {}).await;
        while answer.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            answer = client.describe(v1::DescribeRequest {}).await;
        }
        let status = answer.expect_err("it has expired");
        assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
        assert!(status.message().contains("has expired; renew it, and connect anew"), "{status:?}");
    });
}

#[test]
fn a_machine_s_socket_is_of_whom_the_table_in_force_names() {
    let stage = TestBed::with(|_| ());
    let at = |socket: &str, tenant: &str| Identity {
        tenant: tenant.to_owned(),
        known_by: Some(KnownBy::VsockSocket(stage.socket(socket))),
    };
    play(async {
        let mut connected = stage.client("a").await;
        assert_eq!(connected.describe(v1::DescribeRequest {}).await.expect("known").get_ref().tenant, "t1");
        stage.identities.set(&[at("a", "b"), at("b", "b")]);
        assert_eq!(connected.describe(v1::DescribeRequest {}).await.expect("known").get_ref().tenant, "t2");
        stage.identities.set(&[at("b", "b")]);
        for mut client in [connected, stage.client("a").await] {
            let status = client.describe(v1::DescribeRequest {}).await.expect_err("nobody names it any more");
            assert_eq!((status.code(), word(&status)), (Code::Unauthenticated, "not-identified"));
            assert!(status.message().contains("names the socket of this machine any more"), "{status:?}");
        }
        stage.assert_b_is_served().await;
    });
}

#[test]
fn a_machine_that_was_found_by_its_process_is_of_whom_the_table_names_from_then_on() {
    let (sender, _requests) = sync_channel(1);
    let directory = Directory::default();
    directory.enter(&tenant(1, "a", Role::Participant));
    directory.enter(&tenant(2, "b", Role::Participant));
    directory.complete();
    let live = LiveSettings::new(&ParticipationSettings::default(), Nanos::SECOND, None);
    let roots = Roots::detect().expect("a host");
    let shared = Arc::new(Shared::new(Arc::new(sender), directory, Refusals::default(), roots, &live));
    let (slot, _) = shared.limits().admit(Source::Machine(7)).expect("room");
    // Its group is the tenant `a`.
    let descriptor = Arc::new(std::fs::File::open("/dev/null").expect("a file").into());
    let process = LiveProcess { pid: std::process::id(), descriptor };
    let peer = Peer::Process { process, cgroup: "a".to_owned(), machine: Some(7) };
    let connection = Connection::new(shared, Source::Machine(7), peer, slot).expect("a connection");
    let named = [Identity { tenant: "b".to_owned(), known_by: Some(KnownBy::VsockCid(7)) }];
    play(async {
        for (identities, expected) in [(&[][..], "a"), (&named, "b"), (&[], "a")] {
            live.identities.set(identities);
            let caller = connection.caller(None).await.expect("known");
            assert_eq!((caller.tenant.name.as_str(), caller.identified_by), (expected, "vsock"));
        }
    });
}

#[test]
fn certificates_are_read_anew_and_bad_ones_leave_those_before() {
    let network = Network::new();
    let (signer, root, root_pem) = authority("minerva-test-renewed");
    let (server, key) = certificate(&signer, "host", "minervad.invalid", 2200);
    let files = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
    let path = |name: &str| files.path().join(name);
    std::fs::write(path("server.pem"), server.pem()).expect("a file");
    std::fs::write(path("server.key"), key.serialize_pem()).expect("a file");
    std::fs::write(path("ca.pem"), root_pem).expect("a file");
    let mut settings = ParticipationSettings {
        certificate: Some(path("server.pem")),
        key: Some(path("server.key")),
        client_ca: Some(path("nothing.pem")),
        ..ParticipationSettings::default()
    };
    let tls = network.stage.tls.clone().expect("certificates");
    let error = tls.reload(&settings).expect_err("there is no such file");
    assert!(format!("{error:#}").contains("nothing.pem"), "{error:#}");
    play(async {
        let old = || Some(certificate(&network.signer, "vm-a", "x.example", 2200));
        assert!(network.ask(old(), None).await.is_ok(), "those before are in force");
        let mut connected = network.client(old()).await;
        settings.client_ca = Some(path("ca.pem"));
        tls.reload(&settings).expect("they are good");
        let renewed = Network { root, signer, ..network };
        let new = certificate(&renewed.signer, "vm-a", "x.example", 2200);
        assert_eq!(renewed.ask(Some(new), None).await.expect("it is good").tenant, "t1");
        assert!(connected.describe(v1::DescribeRequest {}).await.is_ok(), "who is connected stays");
    });
}

#[test]
fn on_loopback_a_token_does_without_tls() {
    let address = free_address();
    let stage = TestBed::with(|settings| {
        let directory = settings.socket.as_ref().and_then(|socket| socket.parent()).expect("a directory");
        settings.identities = identities(directory);
        settings.listen = Some(address);
    });
    play(async {
        let channel = Endpoint::from_shared(format!("http://{address}")).expect("an address").connect().await;
        let mut client = ParticipationClient::new(channel.expect("a server"));
        let mut request = Request::new(v1::DescribeRequest {});
        request.metadata_mut().insert("authorization", "Bearer token of a".parse().expect("plain text"));
        assert_eq!(client.describe(request).await.expect("known").get_ref().identified_by, "token");
        let status = client.describe(v1::DescribeRequest {}).await.expect_err("nobody");
        assert_eq!((status.code(), word(&status)), (Code::Unauthenticated, "not-identified"));
        stage.assert_b_is_served().await;
    });
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let directory = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
    let path = directory.path().join("server.pem");
    std::fs::write(&path, "nonsense").expect("a file");
    let load = |certificate: &Path| {
        let (certificate, key) = (Some(certificate.to_owned()), Some(path.clone()));
        Tls::load(&ParticipationSettings { certificate, key, ..ParticipationSettings::default() })
    };
    let error = load(&path).expect_err("no certificate");
    assert_eq!(error.to_string(), format!("{} has no certificate", path.display()));
    let error = load(Path::new("/nowhere")).expect_err("no file");
    assert_eq!(error.to_string(), "failed to read certificates from /nowhere");
    assert!(std::error::Error::source(&error).is_some(), "and why");
}
