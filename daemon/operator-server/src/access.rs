//! Who may call what at the operators' socket: root and the daemon's own user everything; the socket's group all but what makes background
//! work run; the viewers' group may look. It is decided once, when a client connects. The file's permissions say nearly the same; this holds
//! when somebody loosens them.
//!
//! Background work runs as root, commands among it: whoever may add some has all that root has (docs/adr/0079).

use minerva_api::v1::BackgroundChange;
use minerva_linux_observe::PeerCredentials;
use tonic::Status;

/// What the clients of one connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything.
    Root,
    /// Everything but adding background work and resuming it.
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
        if peer.uid == 0 || peer.uid == own {
            Access::Root
        } else if peer.is_member(self.operators) {
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
            (Self::Operator, "AddBackground") => Err(only_root()),
            (Self::Root | Self::Operator, _)
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

    /// Permits a change of background work, or says why not. Those who may do all but make it run may stop it.
    pub(crate) fn permit_change(self, change: BackgroundChange) -> Result<(), Status> {
        match (self, change) {
            (Self::Root, _) | (Self::Operator, BackgroundChange::Pause | BackgroundChange::Remove) => Ok(()),
            (Self::Operator | Self::Viewer | Self::Denied, _) => Err(only_root()),
        }
    }
}

fn only_root() -> Status {
    Status::permission_denied(
        "background work runs as root, so that only root may add or resume it: do that as root, for instance with sudo. Members of \
         daemon.socket_group may look at it, pause it and remove it",
    )
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
    fn root_may_everything_the_operators_group_nearly_and_viewers_may_look() {
        let groups = Groups { operators: 10, viewers: Some(20) };
        let access = |uid, gid, more: &[u32]| groups.access(&peer(uid, gid, more));
        // Of whoever runs the test, the daemon's own user is this one.
        let own = rustix::process::geteuid().as_raw();
        let other = own + 1000;
        assert_eq!(access(0, 99, &[]), Access::Root);
        assert_eq!(access(0, 10, &[]), Access::Root);
        assert_eq!(access(own, 10, &[]), Access::Root);
        assert_eq!(access(other, 10, &[]), Access::Operator);
        assert_eq!(access(other, 99, &[5, 10, 20]), Access::Operator);
        assert_eq!(access(other, 20, &[]), Access::Viewer);
        assert_eq!(access(other, 99, &[20]), Access::Viewer);
        assert_eq!(access(other, 99, &[21]), Access::Denied);
        assert_eq!(Groups { viewers: None, ..groups }.access(&peer(other, 20, &[20])), Access::Denied);
    }

    #[test]
    fn of_all_calls_operators_have_all_but_adding_background_work_and_viewers_those_that_change_nothing() {
        let all = methods("Operator");
        assert!(all.len() >= 8, "{all:?}");
        let permitted = |access: Access| -> Vec<String> {
            all.iter().filter(|method| access.permit(method).is_ok()).cloned().collect()
        };
        assert_eq!(permitted(Access::Root), all);
        let of_operators: Vec<String> = all.iter().filter(|method| *method != "AddBackground").cloned().collect();
        assert_eq!((permitted(Access::Operator), of_operators.len()), (of_operators.clone(), all.len() - 1));
        assert_eq!(
            permitted(Access::Viewer),
            ["Status", "Watch", "Explain", "Forecast", "Audit", "Background", "Jobs", "JobProfile"]
        );
        assert_eq!(permitted(Access::Denied), Vec::<String>::new());
        assert!(Access::Viewer.permit("AddedLater").is_err());
    }

    #[test]
    fn only_root_makes_background_work_run_and_operators_may_stop_it() {
        use minerva_api::v1::BackgroundChange::{Pause, Remove, Resume, Unspecified};
        let permitted =
            |access: Access| [Resume, Unspecified, Pause, Remove].map(|change| access.permit_change(change).is_ok());
        assert_eq!(permitted(Access::Root), [true; 4]);
        assert_eq!(permitted(Access::Operator), [false, false, true, true]);
        assert_eq!(permitted(Access::Viewer), [false; 4]);
        assert_eq!(permitted(Access::Denied), [false; 4]);
        let refused = Access::Operator.permit("AddBackground").expect_err("no root");
        assert!(refused.message().contains("do that as root, for instance with sudo"), "{refused:?}");
    }
}
