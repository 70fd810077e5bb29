//! TLS over TCP. The handshake proves that the client has the key of the certificate that it shows; whether that
//! certificate is good is judged after it, so that a client whose certificate is not gets a sentence instead of a broken
//! connection. Until then it is nobody.

use crate::authenticate::peer::Peer;
use minerva_config::ParticipationSettings;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
};
use tokio_rustls::server::TlsStream;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Why TLS cannot be offered with the files of the settings.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The key was not read.
    #[error("failed to read a private key from {}, see participation.key", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// Certificates were not read.
    #[error("failed to read certificates from {}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// A file without one.
    #[error("{} has no certificate", .0.display())]
    NoCertificate(PathBuf),
    /// What stands in `participation.client_ca` is no authority's.
    #[error("{} has a certificate that signs none", path.display())]
    NoAuthority {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Error,
    },
    /// Clients cannot be verified with it.
    #[error("{} cannot judge clients", path.display())]
    NoVerifier {
        /// The file.
        path: PathBuf,
        /// Why.
        source: VerifierBuilderError,
    },
    /// The library offers no TLS.
    #[error("failed to set up TLS")]
    SetUp(#[source] Error),
    /// The key is another certificate's.
    #[error("{} and its key do not fit", path.display())]
    Mismatch {
        /// The certificate's file.
        path: PathBuf,
        /// Why.
        source: Error,
    },
}

/// The server's certificate, and who signs those of clients. They can be read anew, and hold from the next handshake on.
#[derive(Clone, Debug)]
pub struct Tls(Arc<RwLock<Loaded>>);

#[derive(Clone)]
struct Loaded {
    acceptor: TlsAcceptor,
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("clients", &self.clients).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files; nothing where the settings name none.
    pub(crate) fn load(settings: &ParticipationSettings) -> Result<Option<Self>, TlsError> {
        Ok(Loaded::read(settings)?.map(|loaded| Self(Arc::new(RwLock::new(loaded)))))
    }

    /// Reads the files anew. What is wrong with them leaves those before in force.
    pub(crate) fn reload(&self, settings: &ParticipationSettings) -> Result<(), TlsError> {
        if let Some(loaded) = Loaded::read(settings)? {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        }
        Ok(())
    }

    /// Shakes hands once the other end says something and `may_begin`, and finds who that is: by its certificate; by its tokens if it
    /// shows none. Whoever says nothing, or goes without a word, costs nothing.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        may_begin: impl FnOnce() -> bool,
    ) -> std::io::Result<Option<(TlsStream<TcpStream>, Peer)>> {
        let has_gone = stream.peek(&mut [0]).await? == 0;
        if has_gone || !may_begin() {
            return Ok(None);
        }
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let stream = loaded.acceptor.accept(stream).await?;
        let peer = loaded.peer(&stream);
        Ok(Some((stream, peer)))
    }
}

impl Loaded {
    fn read(settings: &ParticipationSettings) -> Result<Option<Self>, TlsError> {
        let (Some(certificate), Some(key)) = (&settings.certificate, &settings.key) else { return Ok(None) };
        let client_ca = settings.client_ca.as_deref();
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Key { path: key.clone(), source })?;
        let clients = client_ca
            .map(|path| -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
                let mut roots = RootCertStore::empty();
                for one in certificates(path)? {
                    roots.add(one).map_err(|source| TlsError::NoAuthority { path: path.to_owned(), source })?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
                verifier.map_err(|source| TlsError::NoVerifier { path: path.to_owned(), source })
            })
            .transpose()?;
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::SetUp)?;
        let builder = match &clients {
            Some(judge) => builder.with_client_cert_verifier(Arc::new(JudgedLater(Arc::clone(judge)))),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|source| TlsError::Mismatch { path: certificate.clone(), source })?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Some(Self { acceptor: TlsAcceptor::from(Arc::new(config)), clients }))
    }

    fn peer(&self, stream: &TlsStream<TcpStream>) -> Peer {
        let (_, session) = stream.get_ref();
        let (Some(shown @ [own, chain @ ..]), Some(judge)) = (session.peer_certificates(), &self.clients) else {
            return Peer::Token;
        };
        if let Err(error) = judge.verify_client_cert(own, chain, UnixTime::now()) {
            return Peer::Nobody(format!("The certificate of this client {}.", flaw(&error)));
        }
        // With the first of them to expire the chain is not good any more.
        let not_after_unix_s = shown.iter().map(not_after_unix_s).min().unwrap_or(i64::MIN);
        Peer::Certificate { names: names(own), not_after_unix_s }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::Certificates { path: path.to_owned(), source };
    let all = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    if all.is_empty() {
        return Err(TlsError::NoCertificate(path.to_owned()));
    }
    Ok(all)
}

/// What is wrong with a certificate, as the end of a sentence.
fn flaw(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "has expired; renew it".to_owned()
        }
        Error::InvalidCertificate(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => {
            "is not valid yet; see whether the clocks agree".to_owned()
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "is not signed by one whom this server knows (participation.client_ca)".to_owned()
        }
        other => format!("is not good: {other}"),
    }
}

/// When it expires; at once if it cannot be read.
fn not_after_unix_s(certificate: &CertificateDer<'_>) -> i64 {
    X509Certificate::from_der(certificate).map_or(i64::MIN, |(_, read)| read.validity().not_after.timestamp())
}

/// Its common names and alternative DNS names; none of one that cannot be read.
fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok().map(str::to_owned));
    let mut names: Vec<String> = common.collect();
    if let Ok(Some(alternative)) = certificate.subject_alternative_name() {
        names.extend(alternative.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }
    names
}

/// Checks that the client has the certificate's key, and leaves the rest for after the handshake.
#[derive(Debug)]
struct JudgedLater(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for JudgedLater {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        // It may have a token.
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
