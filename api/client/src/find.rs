//! Finds the server: where it is named, else where one listens, else through an agent that is started.

use crate::address::Address;
use crate::error::{Error, nobody_listens};
use crate::link::Link;
use crate::options::Options;
use crate::transport::{Transport, open_or_start};
use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use tokio::net::UnixStream;

/// The server, or why there is none.
pub(crate) enum Found {
    Server(Box<Link>),
    Nobody(String),
}

/// Looks as the options say. An error is what somebody has to mend, such as a certificate that does not fit.
pub(crate) async fn find(options: &Options) -> Result<Found, Error> {
    match &options.address {
        Some(address) => named(address, options).await,
        None => search(options).await,
    }
}

async fn named(address: &Address, options: &Options) -> Result<Found, Error> {
    match open_or_start(address, &options.credentials, None).await {
        Ok(transport) => Ok(found(transport, address, options)),
        Err(Error::Connect { address, source }) => match absence(&source) {
            Some(why) => Ok(Found::Nobody(format!("no server at {address} ({why})"))),
            None => Err(Error::Connect { address, source }),
        },
        Err(error) => Err(error),
    }
}

async fn search(options: &Options) -> Result<Found, Error> {
    for socket in options.sockets_trusted() {
        // Tried by hand first: a file that is left of a server that ended is no server.
        if UnixStream::connect(socket).await.is_ok() {
            let is_agents = options.agent.as_ref().is_some_and(|agent| agent.socket == *socket);
            let agent = options.agent.clone().filter(|_| is_agents).map(Arc::new);
            let address = Address::Unix(socket.clone());
            let transport = open_or_start(&address, &options.credentials, agent).await?;
            return Ok(found(transport, &address, options));
        }
    }
    let Some(agent) = options.agent.clone() else {
        let sockets: Vec<String> = options.sockets.iter().map(|socket| socket.display().to_string()).collect();
        return Ok(Found::Nobody(format!("no server listens at {}", sockets.join(", "))));
    };
    let (address, program) = (Address::Unix(agent.socket.clone()), agent.program.clone());
    Ok(match open_or_start(&address, &options.credentials, Some(Arc::new(agent))).await {
        Ok(transport) => found(transport, &address, options),
        Err(error) => {
            let why = innermost(&error);
            Found::Nobody(format!("no server listens, and {} could not be started ({why})", program.display()))
        }
    })
}

fn found(transport: Transport, address: &Address, options: &Options) -> Found {
    Found::Server(Box::new(Link::new(transport, &address.to_string(), options.patience)))
}

/// Why there is nobody at the other end, if that is what failed. Everything else is a matter of certificates or of another
/// program at the address, which a person has to mend.
fn absence(error: &tonic::transport::Error) -> Option<String> {
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let is_away = nobody_listens(error)
                || matches!(
                    error.kind(),
                    io::ErrorKind::TimedOut
                        | io::ErrorKind::HostUnreachable
                        | io::ErrorKind::NetworkUnreachable
                        | io::ErrorKind::ConnectionReset
                        | io::ErrorKind::AddrNotAvailable
                );
            // ENODEV: a vsock address where there is no vsock.
            return (is_away || error.raw_os_error() == Some(NO_SUCH_DEVICE)).then(|| error.to_string());
        }
        source = error.source();
    }
    None
}

const NO_SUCH_DEVICE: i32 = 19;

/// What it all comes down to, for people.
fn innermost(error: &dyn StdError) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
