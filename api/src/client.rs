//! Connects to the daemon's Unix socket.

use crate::v1::operator_client::OperatorClient;
use crate::v1::participation_client::ParticipationClient;
use hyper_util::rt::TokioIo;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use tonic::transport::{Channel, Endpoint, Uri};

/// A connected client of the operator's service.
pub type Operator = OperatorClient<Channel>;

/// A connected client of the tenants' service.
pub type Tenant = ParticipationClient<Channel>;

/// Where the daemon listens unless the operator's file says otherwise.
pub const SOCKET_DEFAULT: &str = "/run/minerva/minervad.sock";

/// The socket could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens.
    #[error("no daemon at {socket}: is minervad running? (systemctl start minervad)", socket = socket.display())]
    Absent {
        /// The socket asked for.
        socket: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The socket does not let this user in.
    #[error("not allowed to use {socket}: be root, or a member of the group that owns it", socket = socket.display())]
    Forbidden {
        /// The socket asked for.
        socket: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something listens that does not speak this contract.
    #[error("what listens at {socket} does not answer as minervad does", socket = socket.display())]
    Strange {
        /// The socket asked for.
        socket: PathBuf,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
}

/// Connects to the daemon that listens at `socket`.
///
/// The future is boxed: what an `async fn` does is compiled in each crate that awaits it, and this one holds all of HTTP/2.
pub fn connect(socket: &Path) -> Pin<Box<dyn Future<Output = Result<Operator, ConnectError>> + Send + '_>> {
    Box::pin(async move { Ok(OperatorClient::new(channel(socket).await?).max_decoding_message_size(64 << 20)) })
}

/// Connects as a tenant to the server or the agent that listens at `socket`, once: for a service that tells "nobody answers" from "yes".
pub fn connect_as_tenant(socket: &Path) -> Pin<Box<dyn Future<Output = Result<Tenant, ConnectError>> + Send + '_>> {
    Box::pin(async move { Ok(ParticipationClient::new(channel(socket).await?)) })
}

fn channel(socket: &Path) -> Pin<Box<dyn Future<Output = Result<Channel, ConnectError>> + Send + '_>> {
    Box::pin(async move {
        // Tried by hand first: the transport wraps the error number so deep that "absent" and "forbidden" look alike.
        if let Err(source) = tokio::net::UnixStream::connect(socket).await {
            let socket = socket.to_owned();
            return Err(match source.kind() {
                io::ErrorKind::PermissionDenied => ConnectError::Forbidden { socket, source },
                _ => ConnectError::Absent { socket, source },
            });
        }
        let path = socket.to_owned();
        let connector = tower::service_fn(move |_: Uri| {
            let path = path.clone();
            async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
        });
        // The name is never looked up: the connector above ignores it, but HTTP/2 wants one.
        Endpoint::from_static("http://minervad.invalid")
            .connect_with_connector(connector)
            .await
            .map_err(|source| ConnectError::Strange { socket: socket.to_owned(), source })
    })
}

#[cfg(test)]
mod tests {
    use super::{ConnectError, connect};
    use std::path::Path;

    #[tokio::test]
    async fn a_socket_without_a_daemon_is_told_apart() {
        let error = connect(Path::new("/run/minerva-test-nobody/operator.sock")).await.expect_err("nobody listens");
        assert!(matches!(error, ConnectError::Absent { .. }));
        assert_eq!(
            error.to_string(),
            "no daemon at /run/minerva-test-nobody/operator.sock: is minervad running? (systemctl start minervad)"
        );
    }
}
