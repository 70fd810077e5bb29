//! One connection: who is at its other end.

use crate::participation::directory::Listed;
use crate::participation::door_lobby::{Asker, Lobby};
use crate::participation::door_status::Denial;
use crate::participation::identity::{NotIdentified, Process};
use crate::participation::limits::{Excess, NOBODY};
use minerva_model::TenantId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the one at the other end is known.
#[derive(Debug)]
pub(crate) enum Peer {
    /// A process of this host.
    Process { process: Process, cgroup: String, identified_by: &'static str },
    /// The operator's file names the tenant of this certificate, machine or socket.
    Named { tenant: String, identified_by: &'static str },
    /// By a token with each request.
    Token,
    /// Not at all, and why: everything is refused with this.
    Nobody(String),
}

/// A connection; counted while this is there.
#[derive(Debug)]
pub(crate) struct Connection {
    lobby: Arc<Lobby>,
    peer: Peer,
    standing: Mutex<Standing>,
}

#[derive(Debug)]
struct Standing {
    /// The account among whose connections this one is counted.
    account: String,
    /// The tenant as which it was known last, and the cgroup under which that is listed.
    known: Option<(TenantId, String)>,
    /// It came when its account had all that it may, and is refused until there is room.
    is_beyond: bool,
}

impl Connection {
    /// Takes a place for it; of a tenant that is listed already, among its account's.
    pub(crate) fn new(lobby: Arc<Lobby>, peer: Peer) -> Result<Self, Denial> {
        let (listed, cgroup) = match &peer {
            Peer::Process { cgroup, .. } => (lobby.directory.of_cgroup(cgroup), cgroup.clone()),
            Peer::Named { tenant, .. } => (lobby.directory.of_name(tenant), String::new()),
            Peer::Token | Peer::Nobody(_) => (None, String::new()),
        };
        let known = listed.as_ref().map(|listed| (listed.id, cgroup));
        let account = listed.map_or_else(|| NOBODY.to_owned(), |listed| listed.account);
        let is_beyond = lobby.limits().with(|limits, now| {
            limits.connect(now, &account)?;
            Ok(limits.check_connections(&account).is_err())
        })?;
        Ok(Self { lobby, peer, standing: Mutex::new(Standing { account, known, is_beyond }) })
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

    /// Says what was refused before anybody knew to whom, or in excess of what its account may.
    pub(crate) fn log(&self, method: &str, denial: &Denial) {
        self.lobby.log.refused_stranger(&self.describe(), method, denial);
    }

    /// For the log.
    pub(crate) fn describe(&self) -> String {
        match &self.peer {
            Peer::Process { process, cgroup, .. } => format!("process {} in {cgroup}", process.pid),
            Peer::Named { tenant, identified_by } => format!("{tenant} by {identified_by}"),
            Peer::Token => "somebody over TCP".to_owned(),
            Peer::Nobody(_) => "somebody".to_owned(),
        }
    }

    /// Who asks now. The account's limit of connections holds here, where the one refused can be told.
    pub(crate) async fn asker(&self, token: Option<&[u8]>) -> Result<Asker, Denial> {
        let (tenant, identified_by) = match &self.peer {
            Peer::Process { process, identified_by, .. } => (self.of_process(process).await?, *identified_by),
            Peer::Named { tenant, identified_by } => {
                self.check_token(token, tenant)?;
                (self.of_name(tenant)?, *identified_by)
            }
            Peer::Token => {
                let token = token.ok_or_else(|| {
                    Denial::unauthenticated("No token: send it as `authorization: Bearer TOKEN`.".to_owned())
                })?;
                let tenant = self.lobby.identities.of_token(token).ok_or_else(|| {
                    Denial::unauthenticated("The token is nobody's; ask the operator for one.".to_owned())
                })?;
                (self.of_name(tenant)?, "token")
            }
            Peer::Nobody(why) => return Err(Denial::unauthenticated(why.clone())),
        };
        self.sit(&tenant)?;
        Ok(Asker { tenant, identified_by })
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

    fn of_name(&self, name: &str) -> Result<Listed, Denial> {
        self.lobby.directory.of_name(name).ok_or_else(|| {
            Denial::unknown_tenant(format!(
                "The operator's file says that this is the tenant {name}, and there is none, or more than one, of this name now."
            ))
        })
    }

    /// Whoever shows two proofs must not be two.
    fn check_token(&self, token: Option<&[u8]>, tenant: &str) -> Result<(), Denial> {
        match token.map(|token| self.lobby.identities.of_token(token)) {
            None => Ok(()),
            Some(Some(owner)) if owner == tenant => Ok(()),
            Some(_) => Err(Denial::not_allowed(format!(
                "The token is not that of {tenant}, as which this connection is known."
            ))),
        }
    }

    /// Counts the connection among those of its account.
    fn sit(&self, tenant: &Listed) -> Result<(), Denial> {
        let mut standing = self.lock();
        self.lobby.limits().with(|limits, now| {
            if standing.account != tenant.account {
                limits.move_connection(now, &standing.account, &tenant.account);
                standing.account.clone_from(&tenant.account);
                standing.is_beyond = true;
            }
            if standing.is_beyond {
                limits.check_connections(&tenant.account)?;
                standing.is_beyond = false;
            }
            Ok(())
        })
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let account = std::mem::take(&mut self.lock().account);
        // It takes from counts, which cannot fail.
        let _ = self.lobby.limits().with(|limits, _| -> Result<(), Excess> {
            limits.disconnect(&account);
            Ok(())
        });
    }
}

impl From<Result<(Process, String), NotIdentified>> for Peer {
    fn from(found: Result<(Process, String), NotIdentified>) -> Self {
        match found {
            Ok((process, cgroup)) => Self::Process { process, cgroup, identified_by: "cgroup" },
            Err(error) => Self::Nobody(error.to_string()),
        }
    }
}
