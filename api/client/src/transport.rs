//! Connections: one channel that connects again by itself, whatever it runs over.

use crate::address::Address;
use crate::agent::Agent;
use crate::credentials::Credentials;
use crate::error::{Error, nobody_listens};
use hyper_util::rt::TokioIo;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
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
pub async fn open(address: &Address, credentials: &Credentials) -> Result<Transport, Error> {
    open_or_start(address, credentials, None).await
}

/// As [`open`], but the first connection too is made when it is needed.
pub fn open_lazily(address: &Address, credentials: &Credentials) -> Result<Transport, Error> {
    let (endpoint, authorization) = prepare(address, credentials)?;
    let channel = match address {
        Address::Unix(path) => endpoint.connect_with_connector_lazy(unix_connector(path.clone(), None)),
        Address::Vsock { cid, port } => endpoint.connect_with_connector_lazy(vsock_connector(*cid, *port)),
        Address::Tcp(_) => endpoint.connect_lazy(),
    };
    Ok(InterceptedService::new(channel, authorization))
}

/// As [`open`]. Whenever nobody listens at a Unix socket, the agent is started to do so.
pub(crate) async fn open_or_start(
    address: &Address,
    credentials: &Credentials,
    agent: Option<Arc<Agent>>,
) -> Result<Transport, Error> {
    let (endpoint, authorization) = prepare(address, credentials)?;
    let channel = match address {
        Address::Unix(path) => endpoint.connect_with_connector(unix_connector(path.clone(), agent)).await,
        Address::Vsock { cid, port } => endpoint.connect_with_connector(vsock_connector(*cid, *port)).await,
        Address::Tcp(_) => endpoint.connect().await,
    };
    let channel = channel.map_err(|source| Error::Connect { address: address.to_string(), source })?;
    Ok(InterceptedService::new(channel, authorization))
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

fn unix_connector(
    path: PathBuf,
    agent: Option<Arc<Agent>>,
) -> impl tower::Service<Uri, Response = TokioIo<UnixStream>, Error = io::Error, Future: Send> + Send + Clone + 'static
{
    service_fn(move |_: Uri| {
        let (path, agent) = (path.clone(), agent.clone());
        async move {
            match (UnixStream::connect(&path).await, agent) {
                (Err(error), Some(agent)) if nobody_listens(&error) => agent.start().await.map(TokioIo::new),
                (result, _) => result.map(TokioIo::new),
            }
        }
    })
}

fn vsock_connector(
    cid: u32,
    port: u32,
) -> impl tower::Service<Uri, Response = TokioIo<VsockStream>, Error = io::Error, Future: Send> + Send + Clone + 'static
{
    service_fn(move |_: Uri| async move { VsockStream::connect(VsockAddr::new(cid, port)).await.map(TokioIo::new) })
}
