//! Over TCP: certificates and tokens.

use crate::server::{Script, Service};
use crate::{options, place};
use minerva_client::v1::participation_server::ParticipationServer;
use minerva_client::{Address, Credentials, Error, Options};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

/// A server on a free port of the loopback; its port.
async fn listening(script: Arc<Script>, tls: Option<ServerTlsConfig>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let mut builder = Server::builder();
    if let Some(tls) = tls {
        builder = builder.tls_config(tls).expect("certificates");
    }
    let service = builder.add_service(ParticipationServer::new(Service(script)));
    tokio::spawn(service.serve_with_incoming(TcpListenerStream::new(listener)));
    port
}

/// Signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(parameters, key).expect("a certificate"))
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        (parameters.signed_by(&key, &self.0).expect("a certificate").pem(), key.serialize_pem())
    }
}

#[tokio::test]
async fn a_certificate_shows_who_one_is() {
    let (place, script) = (place(), Arc::<Script>::default());
    let authority = Authority::new();
    let (certificate, key) = authority.issue("localhost");
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(certificate, key))
        .client_ca_root(Certificate::from_pem(authority.pem()));
    let port = listening(script.clone(), Some(tls)).await;
    let address: Address = format!("https://localhost:{port}").parse().expect("an address");
    let with = |credentials| Options { address: Some(address.clone()), credentials, ..options(place.path()) }.connect();
    let known = Credentials { authority: Some(authority.pem()), ..Credentials::default() };
    let identity = Some(authority.issue("tenant.example"));
    let client = with(Credentials { identity, ..known.clone() }).await.expect("a client");
    assert_eq!(client.describe().await.expect("an answer").tenant, "scripted");
    // A server that somebody else signed for is not spoken to, and is not taken for absent.
    let stranger = Authority::new();
    let error = with(Credentials { authority: Some(stranger.pem()), ..known }).await.expect_err("a stranger");
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    let error = with(Credentials::default()).await.expect_err("no authority");
    assert!(error.to_string().contains("set MINERVA_CA"), "{error}");
    assert_eq!(script.calls_of("describe").len(), 1);
}

#[tokio::test]
async fn a_token_goes_with_each_request() {
    let (place, script) = (place(), Arc::<Script>::default());
    let port = listening(script.clone(), None).await;
    let address = Some(format!("http://127.0.0.1:{port}").parse().expect("an address"));
    let credentials = Credentials { token: Some("secret".to_owned()), ..Credentials::default() };
    let client = Options { address, credentials, ..options(place.path()) }.connect().await.expect("a client");
    client.describe().await.expect("an answer");
    client.credits(0).await.expect("an answer");
    assert_eq!(*script.tokens.lock().expect("no panic"), ["Bearer secret"; 2]);
}
