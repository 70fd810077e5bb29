//! One connection: who is at its other end.

use crate::authenticate::peer::Peer;
use crate::authenticate::process::LiveProcess;
use crate::directory::ListedTenant;
use crate::shared::{Caller, Shared};
use crate::slots::{ConnectionSlot, RequestSlot};
use crate::source::Source;
use crate::status::Denial;
use minerva_clock::unix_ns;
use minerva_model::TenantId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// A connection; counted while this is there.
#[derive(Debug)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
    source: Source,
    peer: Peer,
    state: Mutex<ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    slot: ConnectionSlot,
    /// The tenant as which it was known last, and the cgroup under which that is listed.
    known: Option<(TenantId, String)>,
}

impl Connection {
    /// One of a tenant that is listed already is counted among its account's at once; of too many of those it is refused.
    pub(crate) fn new(
        shared: Arc<Shared>,
        source: Source,
        peer: Peer,
        mut slot: ConnectionSlot,
    ) -> Result<Self, Denial> {
        let mut known = None;
        let listed = match &peer {
            Peer::Process { cgroup, .. } => {
                let listed = shared.directory.of_cgroup(cgroup);
                known = listed.as_ref().map(|listed| (listed.id, cgroup.clone()));
                listed
            }
            other => named_tenant(&shared, other).and_then(|name| shared.directory.of_name(&name)),
        };
        if let Some(listed) = listed
            && let Err(denial) = slot.assign(&listed.account)
            && slot.is_unauthenticated()
        {
            shared.refused(&listed, "", "connect", &denial);
            return Err(denial);
        }
        Ok(Self { shared, source, peer, state: Mutex::new(ConnectionState { slot, known }) })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The process at the other end, where it is one of this host.
    pub(crate) fn process(&self) -> Option<&LiveProcess> {
        match &self.peer {
            Peer::Process { process, machine: None, .. } => Some(process),
            _ => None,
        }
    }

    /// While nobody knows who it is, ending this task hangs up on it.
    pub(crate) fn is_served_by(&self, task: AbortHandle) {
        self.lock().slot.eviction().is(task);
    }

    /// Says what was refused before anybody knew to whom.
    pub(crate) fn refused(&self, method: &str, denial: &Denial) {
        self.shared.refused_unauthenticated(self.source, &self.describe(), method, denial);
    }

    /// For the log.
    pub(crate) fn describe(&self) -> String {
        let source = self.source;
        match &self.peer {
            Peer::Process { process, cgroup, .. } => format!("process {} in {cgroup}", process.pid),
            Peer::Certificate { names, .. } => format!("{} by certificate, {source}", names.join(", ")),
            Peer::Socket { path } => format!("whoever is at {}", path.display()),
            Peer::Machine { .. } => source.to_string(),
            Peer::Token | Peer::Nobody(_) => format!("somebody, {source}"),
        }
    }

    /// Who asks now. Until that is known, and when it is not, the request counts for the source of the connection, so that
    /// guessing is slow and is nobody else's loss.
    pub(crate) async fn caller(&self, token: Option<&[u8]>) -> Result<Caller, Denial> {
        let limits = self.shared.limits();
        let asking = self.lock().slot.asking();
        let begin_authentication =
            asking.as_ref().map(|_| RequestSlot::begin_authentication(limits, self.source)).transpose()?;
        let found = self.find(token).await;
        if found.is_err() && begin_authentication.is_none() {
            RequestSlot::begin_authentication(limits, self.source)?;
        }
        found
    }

    async fn find(&self, token: Option<&[u8]>) -> Result<Caller, Denial> {
        let (tenant, identified_by) = match &self.peer {
            Peer::Process { process, machine, .. } => {
                let identities = self.shared.identities.get();
                let tenant = match machine.and_then(|cid| identities.of_cid(cid)) {
                    Some(name) => self.of_name(name, token).await?,
                    None => self.of_process(process).await?,
                };
                (tenant, if machine.is_some() { "vsock" } else { "cgroup" })
            }
            Peer::Certificate { names, not_after_unix_s } => {
                if unix_ns() / 1_000_000_000 > *not_after_unix_s {
                    let text = "The certificate of this client has expired; renew it, and connect anew.";
                    return Err(Denial::unauthenticated(text.to_owned()));
                }
                let identities = self.shared.identities.get();
                let tenant = identities.of_certificate(names.iter().map(String::as_str)).ok_or_else(|| {
                    Denial::unauthenticated(format!(
                        "The certificate of this client is good, and no [[identities]] of the operator's file names it: {}.",
                        names.join(", ")
                    ))
                })?;
                (self.of_name(tenant, token).await?, "certificate")
            }
            Peer::Machine { cid } => {
                let identities = self.shared.identities.get();
                let tenant = identities.of_cid(*cid).ok_or_else(|| {
                    let text = format!("No [[identities]] of the operator's file names the machine {cid} any more.");
                    Denial::unauthenticated(text)
                })?;
                (self.of_name(tenant, token).await?, "vsock")
            }
            Peer::Socket { path } => {
                let identities = self.shared.identities.get();
                let tenant = identities.of_socket(path).ok_or_else(|| {
                    let text = "No [[identities]] of the operator's file names the socket of this machine any more.";
                    Denial::unauthenticated(text.to_owned())
                })?;
                (self.of_name(tenant, token).await?, "vsock")
            }
            Peer::Token => {
                let token = token.ok_or_else(|| {
                    Denial::unauthenticated("No token: send it as `authorization: Bearer TOKEN`.".to_owned())
                })?;
                let identities = self.shared.identities.get();
                let tenant = identities.of_token(token).ok_or_else(|| {
                    Denial::unauthenticated("The token is nobody's; ask the operator for one.".to_owned())
                })?;
                (self.of_name(tenant, None).await?, "token")
            }
            Peer::Nobody(why) => return Err(Denial::unauthenticated(why.clone())),
        };
        Ok(Caller { tenant, identified_by })
    }

    /// Counts the connection among those of its account. The account's limit holds here, where the one refused can be told.
    pub(crate) fn assign(&self, tenant: &ListedTenant) -> Result<(), Denial> {
        self.lock().slot.assign(&tenant.account)
    }

    /// The tenant as which it connected; when that is gone, the one to which the process belongs now.
    async fn of_process(&self, process: &LiveProcess) -> Result<ListedTenant, Denial> {
        if let Some((id, path)) = &self.lock().known
            && let Some(listed) = self.shared.directory.of_cgroup(path).filter(|listed| listed.id == *id)
        {
            return Ok(listed);
        }
        let cgroup = process.cgroup(&self.shared.roots)?;
        let listed = self.shared.await_listed(&cgroup).await?;
        self.lock().known = Some((listed.id, cgroup));
        Ok(listed)
    }

    /// The tenant that the operator's file names. Whoever shows a token besides must not be two.
    async fn of_name(&self, name: &str, token: Option<&[u8]>) -> Result<ListedTenant, Denial> {
        if let Some(token) = token
            && self.shared.identities.get().of_token(token) != Some(name)
        {
            let text = format!("The token is not that of {name}, as which this connection is known.");
            return Err(Denial::not_allowed(text));
        }
        self.shared.await_named(name).await
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tenant that the operator's file gives one whom it names.
fn named_tenant(shared: &Shared, peer: &Peer) -> Option<String> {
    let identities = shared.identities.get();
    let name = match peer {
        Peer::Certificate { names, .. } => identities.of_certificate(names.iter().map(String::as_str)),
        Peer::Machine { cid } => identities.of_cid(*cid),
        Peer::Socket { path } => identities.of_socket(path),
        Peer::Process { .. } | Peer::Token | Peer::Nobody(_) => None,
    };
    name.map(str::to_owned)
}
