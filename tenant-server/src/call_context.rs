//! Who makes a call, and how its refusal is told.

use crate::authenticate::process::LiveProcess;
use crate::request::WantedDisk;
use crate::shared::{Caller, Shared};
use crate::status::Denial;
use minerva_linux_observe::GuestDisk;
use std::sync::Arc;
use tonic::Status;

/// Who asks, as the dispatcher hands it to the service.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) caller: Caller,
    /// The process at the other end, over a Unix socket.
    pub(crate) process: Option<LiveProcess>,
}

/// A request of which something may be refused.
#[derive(Clone, Debug)]
pub(crate) struct CallContext {
    pub(crate) shared: Arc<Shared>,
    pub(crate) method: &'static str,
    /// The request's key; empty when it has none.
    pub(crate) key: String,
    pub(crate) session: Arc<Session>,
}

impl CallContext {
    /// The refusal as the client hears it, once the log and the audit have it.
    pub(crate) fn refuse(&self, denial: Denial) -> Status {
        self.shared.refused(&self.session.caller.tenant, &self.key, self.method, &denial);
        denial.into()
    }

    /// Another kernel's numbers say nothing here.
    pub(crate) fn seen_from_here(&self, disk: WantedDisk, guest_disk: GuestDisk) -> WantedDisk {
        match disk {
            WantedDisk::Below(_) if self.session.caller.identified_by != "cgroup" => WantedDisk::Usual(guest_disk),
            disk => disk,
        }
    }
}
