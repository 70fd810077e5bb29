//! One connection: who is at its other end.

use crate::clock::unix_ns;
use crate::participation::directory::Listed;
use crate::participation::door_lobby::{Asker, Lobby};
use crate::participation::door_place::{Place, UnderWay};
use crate::participation::door_status::Denial;
use crate::participation::identity::{NotIdentified, Process};
use crate::participation::strangers::Source;
use minerva_model::TenantId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// How the one at the other end is known.
#[derive(Debug)]
pub(crate) enum Peer {
    /// A process of this host.
    Process { process: Process, cgroup: String, identified_by: &'static str },
    /// By a certificate that was good when it was shown, for as long as it is. The operator's file names its tenant.
    Certificate { names: Vec<String>, not_after_unix_s: i64 },
    /// A machine on vsock whose number the operator's file names.
    Machine { cid: u32 },
    /// Whoever may connect to a tenant's own socket.
    Socket { tenant: String },
    /// By a token with each request.
    Token,
    /// Not at all, and why: everything is refused with this.
    Nobody(String),
}

/// A connection; counted while this is there.
#[derive(Debug)]
pub(crate) struct Connection {
    lobby: Arc<Lobby>,
    source: Source,
    peer: Peer,
    standing: Mutex<Standing>,
}

#[derive(Debug)]
struct Standing {
    place: Place,
    /// The tenant as which it was known last, and the cgroup under which that is listed.
    known: Option<(TenantId, String)>,
}

impl Connection {
    /// One of a tenant that is listed already is counted among its account's at once; of too many of those it is refused.
    pub(crate) fn new(lobby: Arc<Lobby>, source: Source, peer: Peer, mut place: Place) -> Result<Self, Denial> {
        let mut known = None;
        let listed = match &peer {
            Peer::Process { cgroup, .. } => {
                let listed = lobby.directory.of_cgroup(cgroup);
                known = listed.as_ref().map(|listed| (listed.id, cgroup.clone()));
                listed
            }
            other => named_tenant(&lobby, other).and_then(|name| lobby.directory.of_name(&name)),
        };
        if let Some(listed) = listed
            && let Err(denial) = place.sit(&listed.account)
            && place.is_strangers()
        {
            lobby.refused(&listed, "", "connect", &denial);
            return Err(denial);
        }
        Ok(Self { lobby, source, peer, standing: Mutex::new(Standing { place, known }) })
    }

    pub(crate) fn lobby(&self) -> &Arc<Lobby> {
        &self.lobby
    }

    /// The process at the other end, where it is one of this host.
    pub(crate) fn process(&self) -> Option<&Process> {
        match &self.peer {
            Peer::Process { process, identified_by: "cgroup", .. } => Some(process),
            _ => None,
        }
    }

    /// While nobody knows who it is, ending this task hangs up on it.
    pub(crate) fn is_served_by(&self, task: AbortHandle) {
        self.lock().place.ending().is(task);
    }

    /// Says what was refused before anybody knew to whom.
    pub(crate) fn refused(&self, method: &str, denial: &Denial) {
        self.lobby.refused_stranger(self.source, &self.describe(), method, denial);
    }

    /// For the log.
    pub(crate) fn describe(&self) -> String {
        let source = self.source;
        match &self.peer {
            Peer::Process { process, cgroup, .. } => format!("process {} in {cgroup}", process.pid),
            Peer::Certificate { names, .. } => format!("{} by certificate, {source}", names.join(", ")),
            Peer::Socket { tenant } => format!("{tenant} by its socket"),
            Peer::Machine { .. } => source.to_string(),
            Peer::Token | Peer::Nobody(_) => format!("somebody, {source}"),
        }
    }

    /// Who asks now. Until that is known, and when it is not, the request counts for the place where it comes from, so that
    /// guessing is slow and is nobody else's loss.
    pub(crate) async fn asker(&self, token: Option<&[u8]>) -> Result<Asker, Denial> {
        let limits = self.lobby.limits();
        let asking = self.lock().place.asking();
        let knock = asking.as_ref().map(|_| UnderWay::knock(limits, self.source)).transpose()?;
        let found = self.find(token).await;
        if found.is_err() && knock.is_none() {
            UnderWay::knock(limits, self.source)?;
        }
        found
    }

    async fn find(&self, token: Option<&[u8]>) -> Result<Asker, Denial> {
        let (tenant, identified_by) = match &self.peer {
            Peer::Process { process, identified_by, .. } => (self.of_process(process).await?, *identified_by),
            Peer::Certificate { names, not_after_unix_s } => {
                if unix_ns() / 1_000_000_000 > *not_after_unix_s {
                    let text = "The certificate of this client has expired; renew it, and connect anew.";
                    return Err(Denial::unauthenticated(text.to_owned()));
                }
                let identities = self.lobby.identities.get();
                let tenant = identities.of_certificate(names.iter().map(String::as_str)).ok_or_else(|| {
                    Denial::unauthenticated(format!(
                        "The certificate of this client is good, and no [[identities]] of the operator's file names it: {}.",
                        names.join(", ")
                    ))
                })?;
                (self.of_name(tenant, token)?, "certificate")
            }
            Peer::Machine { cid } => {
                let identities = self.lobby.identities.get();
                let tenant = identities.of_cid(*cid).ok_or_else(|| {
                    let text = format!("No [[identities]] of the operator's file names the machine {cid} any more.");
                    Denial::unauthenticated(text)
                })?;
                (self.of_name(tenant, token)?, "vsock")
            }
            Peer::Socket { tenant } => (self.of_name(tenant, token)?, "vsock"),
            Peer::Token => {
                let token = token.ok_or_else(|| {
                    Denial::unauthenticated("No token: send it as `authorization: Bearer TOKEN`.".to_owned())
                })?;
                let identities = self.lobby.identities.get();
                let tenant = identities.of_token(token).ok_or_else(|| {
                    Denial::unauthenticated("The token is nobody's; ask the operator for one.".to_owned())
                })?;
                (self.of_name(tenant, None)?, "token")
            }
            Peer::Nobody(why) => return Err(Denial::unauthenticated(why.clone())),
        };
        Ok(Asker { tenant, identified_by })
    }

    /// Counts the connection among those of its account. The account's limit holds here, where the one refused can be told.
    pub(crate) fn sit(&self, tenant: &Listed) -> Result<(), Denial> {
        self.lock().place.sit(&tenant.account)
    }

    /// The tenant as which it connected; when that is gone, the one to which the process belongs now.
    async fn of_process(&self, process: &Process) -> Result<Listed, Denial> {
        if let Some((id, path)) = &self.lock().known
            && let Some(listed) = self.lobby.directory.of_cgroup(path).filter(|listed| listed.id == *id)
        {
            return Ok(listed);
        }
        let (_, cgroup) = process.again(&self.lobby.roots)?;
        let listed = self.lobby.await_listed(&cgroup).await?;
        self.lock().known = Some((listed.id, cgroup));
        Ok(listed)
    }

    /// The tenant that the operator's file names. Whoever shows a token besides must not be two.
    fn of_name(&self, name: &str, token: Option<&[u8]>) -> Result<Listed, Denial> {
        if let Some(token) = token
            && self.lobby.identities.get().of_token(token) != Some(name)
        {
            let text = format!("The token is not that of {name}, as which this connection is known.");
            return Err(Denial::not_allowed(text));
        }
        self.lobby.directory.of_name(name).ok_or_else(|| {
            Denial::unknown_tenant(format!(
                "The operator's file says that this is the tenant {name}, and there is none, or more than one, of this name now."
            ))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tenant that the operator's file gives one whom it names.
fn named_tenant(lobby: &Lobby, peer: &Peer) -> Option<String> {
    let identities = lobby.identities.get();
    let name = match peer {
        Peer::Certificate { names, .. } => identities.of_certificate(names.iter().map(String::as_str)),
        Peer::Machine { cid } => identities.of_cid(*cid),
        Peer::Socket { tenant } => Some(tenant.as_str()),
        Peer::Process { .. } | Peer::Token | Peer::Nobody(_) => None,
    };
    name.map(str::to_owned)
}

impl From<Result<(Process, String), NotIdentified>> for Peer {
    fn from(found: Result<(Process, String), NotIdentified>) -> Self {
        match found {
            Ok((process, cgroup)) => Self::Process { process, cgroup, identified_by: "cgroup" },
            Err(error) => Self::Nobody(error.to_string()),
        }
    }
}
