//! Who may call what at the operators' socket: root, the daemon's own user and the socket's group everything; the viewers' group
//! may look. It is decided once, when a client connects. The file's permissions say nearly the same; this holds when somebody
//! loosens them.

use minerva_linux_observe::PeerCredentials;
use tonic::Status;

/// What the clients of one connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything.
    Operator,
    /// Calls that change nothing.
    Viewer,
    /// Nothing.
    Denied,
}

/// The groups, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    pub(crate) operators: u32,
    pub(crate) viewers: Option<u32>,
}

impl Groups {
    /// What a client may do that connected with these credentials.
    pub(crate) fn access(self, peer: &PeerCredentials) -> Access {
        let own = rustix::process::geteuid().as_raw();
        if peer.uid == 0 || peer.uid == own || peer.is_member(self.operators) {
            Access::Operator
        } else if self.viewers.is_some_and(|group| peer.is_member(group)) {
            Access::Viewer
        } else {
            Access::Denied
        }
    }
}

impl Access {
    /// Permits a call of `minerva.v1.Operator`, or says why not. A call that does not stand here is permitted to nobody but
    /// operators, until somebody decides.
    pub(crate) fn permit(self, method: &str) -> Result<(), Status> {
        match (self, method) {
            (Self::Operator, _)
            | (
                Self::Viewer,
                "Status" | "Watch" | "Explain" | "Forecast" | "Audit" | "Background" | "Jobs" | "JobProfile",
            ) => Ok(()),
            (Self::Viewer, _) => {
                let message = format!("members of daemon.viewer_group may look and no more; {method} is for operators");
                Err(Status::permission_denied(message))
            }
            (Self::Denied, _) => {
                Err(Status::permission_denied("only root and the group of the daemon's socket may ask"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Groups};
    use minerva_contract::methods;
    use minerva_linux_observe::PeerCredentials;

    fn peer(uid: u32, gid: u32, groups: &[u32]) -> PeerCredentials {
        PeerCredentials { uid, gid, groups: groups.to_vec() }
    }

    #[test]
    fn root_and_the_operators_group_may_everything_and_viewers_may_look() {
        let groups = Groups { operators: 10, viewers: Some(20) };
        let access = |uid, gid, more: &[u32]| groups.access(&peer(uid, gid, more));
        assert_eq!(access(0, 99, &[]), Access::Operator);
        assert_eq!(access(1000, 10, &[]), Access::Operator);
        assert_eq!(access(1000, 99, &[5, 10, 20]), Access::Operator);
        assert_eq!(access(1000, 20, &[]), Access::Viewer);
        assert_eq!(access(1000, 99, &[20]), Access::Viewer);
        assert_eq!(access(1000, 99, &[21]), Access::Denied);
        assert_eq!(Groups { viewers: None, ..groups }.access(&peer(1000, 20, &[20])), Access::Denied);
    }

    #[test]
    fn of_all_calls_in_the_contract_viewers_have_those_that_change_nothing() {
        let all = methods("Operator");
        assert!(all.len() >= 8, "{all:?}");
        let permitted = |access: Access| -> Vec<String> {
            all.iter().filter(|method| access.permit(method).is_ok()).cloned().collect()
        };
        assert_eq!(permitted(Access::Operator), all);
        assert_eq!(
            permitted(Access::Viewer),
            ["Status", "Watch", "Explain", "Forecast", "Audit", "Background", "Jobs", "JobProfile"]
        );
        assert_eq!(permitted(Access::Denied), Vec::<String>::new());
        assert!(Access::Viewer.permit("AddedLater").is_err());
    }
}
