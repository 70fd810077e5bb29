//! What a tenant may ask.

use crate::coordinated::Coordinated;
use crate::debt::{Debt, HeldDebt};
use crate::error::Error;
use crate::hold::{Held, HeldJob};
use crate::level::Level;
use crate::link::Participation;
use crate::operation::{Operation, nanoseconds};
use crate::options::Options;
use crate::reporter::Reporter;
use crate::server::Server;
use minerva_api::v1;
use minerva_api::v1::boost_request::Amount;
use minerva_api::v1::set_level_request::Lifetime as WireLifetime;
use std::sync::Arc;
use std::time::Duration;
use tonic::{Response, Status};

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
    server: Arc<Server>,
}

impl Options {
    /// Connects. Without a server the client does nothing ([`Client::absence`]); an error is what somebody has to mend.
    pub async fn connect(self) -> Result<Client, Error> {
        Ok(Client { server: Arc::new(Server::of_options(self).await?) })
    }
}

impl Client {
    /// Connects as [`Options::from_environment`] says. Without a server it is a client that does nothing; an error is what
    /// somebody has to mend, such as an address that cannot be read.
    pub async fn connect() -> Result<Self, Error> {
        Options::from_environment()?.connect().await
    }

    /// A client that does nothing, for the reason given.
    pub fn absent(reason: &str) -> Self {
        Self { server: Arc::new(Server::absent(reason)) }
    }

    /// Why there is no server, when there is none.
    pub fn absence(&self) -> Option<String> {
        self.server.absence()
    }

    /// The server's address, when there is one.
    pub fn address(&self) -> Option<String> {
        self.server.present().map(|link| link.address.to_string())
    }

    /// The generated client, for what this one does not wrap; without a server there is none.
    pub fn participation(&self) -> Option<Participation> {
        self.server.present().map(|link| link.participation())
    }

    /// Who the server takes the caller for, and what is in force for it. Without a server: nobody, who may do nothing.
    pub async fn describe(&self) -> Result<v1::DescribeResponse, Error> {
        let answer = self.ask(|mut server| async move { server.describe(v1::DescribeRequest {}).await }).await?;
        let level = Level::Normal.to_wire();
        let nobody = || v1::DescribeResponse { role: "silent".to_owned(), level, ..v1::DescribeResponse::default() };
        Ok(answer.unwrap_or_else(nobody))
    }

    /// Steps back, or comes back with [`Level::Normal`]; the level in force after it. It stays when this client is gone, unless
    /// the lifetime says otherwise: see [`Client::hold_level`].
    pub async fn set_level(&self, level: Level, lifetime: Lifetime) -> Result<Level, Error> {
        let request = v1::SetLevelRequest {
            level: level.to_wire(),
            lifetime: match lifetime {
                Lifetime::UntilReleased => None,
                Lifetime::For(span) => Some(WireLifetime::ForNs(nanoseconds(span))),
                Lifetime::Process(pid) => Some(WireLifetime::Process(pid)),
            },
        };
        let answer = self.ask(|mut server| async move { server.set_level(request).await }).await?;
        Ok(answer.map_or(Level::Normal, |answer| Level::from_wire(answer.level)))
    }

    /// Steps back until what is returned is dropped, or the program ends in whatever way. A server that refuses for longer than
    /// [`Options::patience`] because too many levels are held, or it is busy, is an error as any other refusal.
    pub async fn hold_level(&self, level: Level) -> Result<Held, Error> {
        let Some(link) = self.server.link().await else { return Ok(Held::of_nothing()) };
        let held = self.server.unless_absent(Held::take(link, level).await)?;
        Ok(held.unwrap_or_else(Held::of_nothing))
    }

    /// Is a batch job of this name until what is returned is dropped, or the program ends in whatever way: of jobs on one disk the
    /// shortest goes first. `size_bytes` is what it will read and write in all; a wrong one is soon found out and counts no longer.
    pub async fn job(&self, name: &str, size_bytes: Option<u64>) -> Result<HeldJob, Error> {
        let Some(link) = self.server.link().await else { return Ok(HeldJob::of_nothing()) };
        let request = v1::HoldJobRequest { name: name.to_owned(), size_bytes };
        let held = self.server.unless_absent(HeldJob::take(link, request).await)?;
        Ok(held.unwrap_or_else(HeldJob::of_nothing))
    }

    /// Registers work that can wait until what is returned is dropped, or the program ends in whatever way: it says when the work may be
    /// done, in the gaps that others leave on the disk and in time for its deadline.
    pub async fn debt(&self, debt: Debt) -> Result<HeldDebt, Error> {
        let Some(link) = self.server.link().await else { return Ok(HeldDebt::of_nothing()) };
        let held = self.server.unless_absent(HeldDebt::take(link, debt).await)?;
        Ok(held.unwrap_or_else(HeldDebt::of_nothing))
    }

    /// Sets when to step back, by the clock on the wall, in place of the schedule before; the level in force after it. The
    /// time zone is an IANA name such as `Europe/Berlin`; empty, it is the server's.
    pub async fn set_schedule(&self, entries: &[v1::ScheduleEntry], time_zone: &str) -> Result<Level, Error> {
        let request = v1::SetScheduleRequest { entries: entries.to_vec(), time_zone: time_zone.to_owned() };
        let answer = self
            .ask(|mut server| {
                let request = request.clone();
                async move { server.set_schedule(request).await }
            })
            .await?;
        Ok(answer.map_or(Level::Normal, |answer| Level::from_wire(answer.level)))
    }

    /// What the account holds, and at most so many of its last entries. Without a server: nothing.
    pub async fn credits(&self, entries_max: u32) -> Result<v1::CreditsResponse, Error> {
        let request = v1::CreditsRequest { entries_max };
        let answer = self.ask(|mut server| async move { server.credits(request).await }).await?;
        Ok(answer.unwrap_or_default())
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
        let Some(link) = self.server.link().await else { return Ok(v1::BoostResponse::default()) };
        let request = v1::BoostRequest {
            request_id: key.to_owned(),
            amount: Some(match amount {
                BoostAmount::Slices(slices) => Amount::Slices(slices),
                BoostAmount::For(span) => Amount::ForNs(nanoseconds(span)),
            }),
            device: device.unwrap_or_default().to_owned(),
        };
        let boosted = link
            .call_under(Some(key), |mut server| {
                let request = request.clone();
                async move { server.boost(request).await }
            })
            .await;
        Ok(self.server.unless_absent(boosted)?.unwrap_or_default())
    }

    /// Asks when an operation may begin. Returns with the first answer; then [`Coordinated::wait`], work, and
    /// [`Coordinated::finish`]. A server that refuses until the deadline, or for longer than [`Options::patience`], because too many
    /// operations wait or are under way, or it is busy, is an error as any other refusal.
    pub async fn coordinate(&self, operation: Operation) -> Result<Coordinated, Error> {
        self.coordinate_as(&new_key(), operation).await
    }

    /// As [`Client::coordinate`], under the caller's own key.
    pub async fn coordinate_as(&self, key: &str, operation: Operation) -> Result<Coordinated, Error> {
        let Some(link) = self.server.link().await else { return Ok(Coordinated::without_server(key, &operation)) };
        let coordinated = self.server.unless_absent(Coordinated::ask(link, key, &operation).await)?;
        Ok(coordinated.unwrap_or_else(|| Coordinated::without_server(key, &operation)))
    }

    /// For agents: sends reports of what the host cannot see.
    pub fn reporter(&self) -> Reporter {
        Reporter::start(self.server.present())
    }

    /// The answer to a request that changes nothing, or sets something that may be set twice; nothing without a server.
    async fn ask<T, F>(&self, attempt: impl Fn(Participation) -> F) -> Result<Option<T>, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let Some(link) = self.server.link().await else { return Ok(None) };
        self.server.unless_absent(link.call(attempt).await)
    }
}

/// A key that nobody else chooses.
fn new_key() -> String {
    uuid::Uuid::new_v4().to_string()
}
