//! What a tenant may ask.

use crate::address::Address;
use crate::coordinated::Coordinated;
use crate::error::Error;
use crate::hold::Held;
use crate::level::Level;
use crate::link::{Link, Participation};
use crate::operation::{Operation, nanoseconds};
use crate::options::Options;
use crate::reporter::Reporter;
use crate::transport::{nobody_listens, open_or_start};
use minerva_api::v1;
use minerva_api::v1::boost_request::Amount;
use minerva_api::v1::set_level_request::Lifetime as WireLifetime;
use std::error::Error as StdError;
use std::io;
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::net::UnixStream;

/// How long a level lasts that was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// Until another is set, or the tenant is gone.
    #[default]
    UntilReleased,
    /// For so long.
    For(Duration),
    /// Until this process ends; 0 is this one. Over a Unix socket only.
    Process(u32),
}

/// How much high priority is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoostAmount {
    /// So many slices.
    Slices(u32),
    /// For so long, rounded up to whole slices.
    For(Duration),
}

/// A tenant's connection. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    server: Server,
}

#[derive(Clone, Debug)]
enum Server {
    Present(Box<Link>),
    Absent(Arc<str>),
}

impl Client {
    /// Connects as [`Options::from_environment`] says. Without a server it is a client that does nothing; an error is what
    /// somebody has to mend, such as an address that cannot be read.
    pub async fn connect() -> Result<Self, Error> {
        Options::from_environment()?.connect().await
    }

    /// A client that does nothing, for the reason given.
    pub fn absent(reason: &str) -> Self {
        Self { server: Server::Absent(reason.into()) }
    }

    pub(crate) async fn with_options(options: Options) -> Result<Self, Error> {
        let quiet = options.quiet;
        let client = match options.address.clone() {
            Some(address) => Self::to(&address, options).await?,
            None => Self::find(options).await?,
        };
        if let (Server::Absent(reason), false) = (&client.server, quiet) {
            // A warning a process, however often it connects.
            static WARNED: Once = Once::new();
            WARNED.call_once(|| eprintln!("minerva: {reason}; going on without"));
        }
        Ok(client)
    }

    async fn to(address: &Address, options: Options) -> Result<Self, Error> {
        match open_or_start(address, &options.credentials, None).await {
            Ok(transport) => Ok(Self::over(Link::new(transport, &address.to_string(), options.patience))),
            Err(Error::Connect { address, source }) => match absence(&source) {
                Some(why) => Ok(Self::absent(&format!("no server at {address} ({why})"))),
                None => Err(Error::Connect { address, source }),
            },
            Err(error) => Err(error),
        }
    }

    async fn find(options: Options) -> Result<Self, Error> {
        for socket in options.sockets_trusted() {
            // Tried by hand first: a file that is left of a server that ended is no server.
            if UnixStream::connect(socket).await.is_ok() {
                let is_agents = options.agent.as_ref().is_some_and(|agent| agent.socket == *socket);
                let agent = options.agent.clone().filter(|_| is_agents).map(Arc::new);
                let address = Address::Unix(socket.clone());
                let transport = open_or_start(&address, &options.credentials, agent).await?;
                return Ok(Self::over(Link::new(transport, &address.to_string(), options.patience)));
            }
        }
        let Some(agent) = options.agent else {
            let sockets: Vec<String> = options.sockets.iter().map(|socket| socket.display().to_string()).collect();
            return Ok(Self::absent(&format!("no server listens at {}", sockets.join(", "))));
        };
        let (address, program) = (Address::Unix(agent.socket.clone()), agent.program.clone());
        match open_or_start(&address, &options.credentials, Some(Arc::new(agent))).await {
            Ok(transport) => Ok(Self::over(Link::new(transport, &address.to_string(), options.patience))),
            Err(error) => {
                let why = innermost(&error);
                Ok(Self::absent(&format!("no server listens, and {} could not be started ({why})", program.display())))
            }
        }
    }

    fn over(link: Link) -> Self {
        Self { server: Server::Present(Box::new(link)) }
    }

    fn link(&self) -> Option<&Link> {
        match &self.server {
            Server::Present(link) => Some(link),
            Server::Absent(_) => None,
        }
    }

    /// Why there is no server, when there is none.
    pub fn absence(&self) -> Option<&str> {
        match &self.server {
            Server::Present(_) => None,
            Server::Absent(reason) => Some(reason),
        }
    }

    /// The server's address, when there is one.
    pub fn address(&self) -> Option<&str> {
        self.link().map(|link| &*link.address)
    }

    /// The generated client, for what this one does not wrap; without a server there is none.
    pub fn participation(&self) -> Option<Participation> {
        self.link().map(Link::participation)
    }

    /// Who the server takes the caller for, and what is in force for it. Without a server: nobody, who may do nothing.
    pub async fn describe(&self) -> Result<v1::DescribeResponse, Error> {
        let Some(link) = self.link() else {
            let level = Level::Normal.to_wire();
            return Ok(v1::DescribeResponse { role: "silent".to_owned(), level, ..v1::DescribeResponse::default() });
        };
        link.call(|mut server| async move { server.describe(v1::DescribeRequest {}).await }).await
    }

    /// Steps back, or comes back with [`Level::Normal`]; the level in force after it. It stays when this client is gone, unless
    /// the lifetime says otherwise: see [`Client::hold_level`].
    pub async fn set_level(&self, level: Level, lifetime: Lifetime) -> Result<Level, Error> {
        let Some(link) = self.link() else { return Ok(Level::Normal) };
        let request = v1::SetLevelRequest {
            level: level.to_wire(),
            lifetime: match lifetime {
                Lifetime::UntilReleased => None,
                Lifetime::For(span) => Some(WireLifetime::ForNs(nanoseconds(span))),
                Lifetime::Process(pid) => Some(WireLifetime::Process(pid)),
            },
        };
        let answer = link.call(|mut server| async move { server.set_level(request).await }).await?;
        Ok(Level::from_wire(answer.level))
    }

    /// Steps back until what is returned is dropped, or the program ends in whatever way.
    pub async fn hold_level(&self, level: Level) -> Result<Held, Error> {
        match self.link() {
            Some(link) => Held::take(link.clone(), level).await,
            None => Ok(Held::of_nothing()),
        }
    }

    /// Sets when to step back, by the clock on the wall, in place of the schedule before; the level in force after it. The
    /// time zone is an IANA name such as `Europe/Berlin`; empty, it is the server's.
    pub async fn set_schedule(&self, entries: &[v1::ScheduleEntry], time_zone: &str) -> Result<Level, Error> {
        let Some(link) = self.link() else { return Ok(Level::Normal) };
        let request = v1::SetScheduleRequest { entries: entries.to_vec(), time_zone: time_zone.to_owned() };
        let answer = link
            .call(|mut server| {
                let request = request.clone();
                async move { server.set_schedule(request).await }
            })
            .await?;
        Ok(Level::from_wire(answer.level))
    }

    /// What the account holds, and at most so many of its last entries. Without a server: nothing.
    pub async fn credits(&self, entries_max: u32) -> Result<v1::CreditsResponse, Error> {
        let Some(link) = self.link() else { return Ok(v1::CreditsResponse::default()) };
        link.call(|mut server| async move { server.credits(v1::CreditsRequest { entries_max }).await }).await
    }

    /// Buys slices of high priority, on one disk (`MAJ:MIN` of the host) or on all. Without a server none are bought.
    pub async fn boost(&self, amount: BoostAmount, device: Option<&str>) -> Result<v1::BoostResponse, Error> {
        self.boost_as(&new_key(), amount, device).await
    }

    /// As [`Client::boost`], under the caller's own key: asked for twice it is bought once, so that a program that does not
    /// know whether it was bought, because it was interrupted, asks again.
    pub async fn boost_as(
        &self,
        key: &str,
        amount: BoostAmount,
        device: Option<&str>,
    ) -> Result<v1::BoostResponse, Error> {
        let Some(link) = self.link() else { return Ok(v1::BoostResponse::default()) };
        let request = v1::BoostRequest {
            request_id: key.to_owned(),
            amount: Some(match amount {
                BoostAmount::Slices(slices) => Amount::Slices(slices),
                BoostAmount::For(span) => Amount::ForNs(nanoseconds(span)),
            }),
            device: device.unwrap_or_default().to_owned(),
        };
        link.call(|mut server| {
            let request = request.clone();
            async move { server.boost(request).await }
        })
        .await
    }

    /// Asks when an operation may begin. Returns with the first answer; then [`Coordinated::wait`], work, and
    /// [`Coordinated::finish`].
    pub async fn coordinate(&self, operation: Operation) -> Result<Coordinated, Error> {
        self.coordinate_as(&new_key(), operation).await
    }

    /// As [`Client::coordinate`], under the caller's own key.
    pub async fn coordinate_as(&self, key: &str, operation: Operation) -> Result<Coordinated, Error> {
        match self.link() {
            Some(link) => Coordinated::ask(link.clone(), key, &operation).await,
            None => Ok(Coordinated::without_server(key)),
        }
    }

    /// For agents: sends reports of what the host cannot see.
    pub fn reporter(&self) -> Reporter {
        Reporter::start(self.link().cloned())
    }
}

/// A key that nobody else chooses.
fn new_key() -> String {
    uuid::Uuid::new_v4().to_string()
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
