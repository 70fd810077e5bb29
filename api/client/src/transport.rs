//! Connections: one channel that connects again by itself, whatever it runs over.

use crate::address::Address;
use crate::agent::Agent;
use crate::credentials::Credentials;
use crate::error::{Error, nobody_listens};
use hyper_util::rt::TokioIo;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio_vsock::{VsockAddr, VsockStream};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Uri};
use tonic::{Request, Status};
use tower::service_fn;

/// A server that does not take the connection in this time is taken for absent.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How often a connection with calls under way is asked whether it lives, and how long it has to answer: a peer that was
/// switched off is noticed within half a minute.
const KEEP_ALIVE_PERIOD: Duration = Duration::from_secs(20);
const KEEP_ALIVE_MAX: Duration = Duration::from_secs(10);

/// A future of any type.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the generated clients run over.
pub type Transport = InterceptedService<Channel, Authorization>;

/// Puts the bearer token, if there is one, on each request.
#[derive(Clone, Debug, Default)]
pub struct Authorization(Option<MetadataValue<Ascii>>);

impl Interceptor for Authorization {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// Connects, and fails when that does not succeed at once. A connection that is lost later is made again when it is needed.
pub fn open<'a>(address: &'a Address, credentials: &'a Credentials) -> BoxFuture<'a, Result<Transport, Error>> {
    open_or_start(address, credentials, None)
}

/// As [`open`], but the first connection too is made when it is needed.
pub fn open_lazily(address: &Address, credentials: &Credentials) -> Result<Transport, Error> {
    let (endpoint, authorization) = prepare(address, credentials)?;
    let channel = match LocalAddress::of(address) {
        Some(local) => endpoint.connect_with_connector_lazy(connector(local, None)),
        None => endpoint.connect_lazy(),
    };
    Ok(InterceptedService::new(channel, authorization))
}

/// As [`open`]. Whenever nobody listens at a Unix socket, the agent is started to do so.
///
/// The future is boxed: what an `async fn` does is compiled in each crate that awaits it, and this one holds all of HTTP/2.
pub(crate) fn open_or_start<'a>(
    address: &'a Address,
    credentials: &'a Credentials,
    agent: Option<Arc<Agent>>,
) -> BoxFuture<'a, Result<Transport, Error>> {
    Box::pin(async move {
        let (endpoint, authorization) = prepare(address, credentials)?;
        let channel = match LocalAddress::of(address) {
            Some(local) => endpoint.connect_with_connector(connector(local, agent)).await,
            None => endpoint.connect().await,
        };
        let channel = channel.map_err(|source| Error::Connect { address: address.to_string(), source })?;
        Ok(InterceptedService::new(channel, authorization))
    })
}

/// What is the same for a connection made now and one made later.
fn prepare(address: &Address, credentials: &Credentials) -> Result<(Endpoint, Authorization), Error> {
    let mut endpoint = match address {
        // Never looked up: the connector ignores it, but HTTP/2 wants a name.
        Address::Unix(_) | Address::Vsock { .. } => Endpoint::from_static("http://minervad.invalid"),
        Address::Tcp(uri) => Endpoint::from(uri.clone()),
    };
    endpoint = endpoint
        .connect_timeout(CONNECT_MAX)
        .http2_keep_alive_interval(KEEP_ALIVE_PERIOD)
        .keep_alive_timeout(KEEP_ALIVE_MAX);
    if address.is_tls() {
        let Some(authority) = &credentials.authority else {
            return Err(Error::Unfit(format!(
                "{address} needs the certificate of the authority that signed the server's: set MINERVA_CA to its file"
            )));
        };
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
        if let Some((certificate, key)) = &credentials.identity {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        endpoint =
            endpoint.tls_config(tls).map_err(|source| Error::Connect { address: address.to_string(), source })?;
    }
    let over_tcp = matches!(address, Address::Tcp(_));
    let token = credentials.token.as_ref().filter(|_| over_tcp);
    let token = token.map(|token| format!("Bearer {token}").parse::<MetadataValue<Ascii>>()).transpose();
    let mut token = token.map_err(|_| Error::Unfit("the token has characters that no token has".to_owned()))?;
    if let Some(token) = &mut token {
        token.set_sensitive(true);
    }
    Ok((endpoint, Authorization(token)))
}

/// An address on this machine.
#[derive(Clone)]
enum LocalAddress {
    Unix(PathBuf),
    Vsock(VsockAddr),
}

impl LocalAddress {
    /// None for one of a network.
    fn of(address: &Address) -> Option<Self> {
        match address {
            Address::Unix(path) => Some(Self::Unix(path.clone())),
            Address::Vsock { cid, port } => Some(Self::Vsock(VsockAddr::new(*cid, *port))),
            Address::Tcp(_) => None,
        }
    }
}

/// What bytes go over.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// One type for both families, so that HTTP/2 is compiled once for them.
type LocalStream = TokioIo<Box<dyn Stream>>;

fn connector(
    address: LocalAddress,
    agent: Option<Arc<Agent>>,
) -> impl tower::Service<Uri, Response = LocalStream, Error = io::Error, Future: Send> + Send + Clone + 'static {
    service_fn(move |_: Uri| {
        let (address, agent) = (address.clone(), agent.clone());
        async move {
            let stream: Box<dyn Stream> = match address {
                LocalAddress::Vsock(address) => Box::new(VsockStream::connect(address).await?),
                LocalAddress::Unix(path) => match (UnixStream::connect(&path).await, agent) {
                    (Err(error), Some(agent)) if nobody_listens(&error) => Box::new(agent.start().await?),
                    (result, _) => Box::new(result?),
                },
            };
            Ok(TokioIo::new(stream))
        }
    })
}
