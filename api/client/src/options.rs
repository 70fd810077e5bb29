//! Where the server is, and what to do about it.

use crate::address::Address;
use crate::agent::{Agent, is_own};
use crate::credentials::Credentials;
use crate::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The port of `minervad` on vsock and TCP.
pub const PORT_DEFAULT: u16 = 7420;

/// Requests are sent again for so long: a daemon that is restarted is back by then.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(10);

/// Often enough for a daemon that is installed while programs run, and seldom enough for machines that never have one.
const LOOK_PERIOD_DEFAULT: Duration = Duration::from_secs(30);

/// Where the server is, and what to do about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server; absent: the first of the sockets at which somebody listens, else an agent that is started.
    pub address: Option<Address>,
    /// How this side shows who it is over TCP.
    pub credentials: Credentials,
    /// Unix sockets at which a server may listen, the best first.
    pub sockets: Vec<PathBuf>,
    /// What can be started where nobody listens.
    pub agent: Option<Agent>,
    /// For how long a request is sent again, and a server may be away before an operation begins without it.
    pub patience: Duration,
    /// Without a server, how long after it was looked for a call looks again.
    pub look_period: Duration,
    /// Do not say on standard error that there is no server.
    pub quiet: bool,
}

impl Options {
    /// As the environment says. `MINERVA_ADDRESS` names the server. Without it the sockets are `/run/minerva/tenant.sock`
    /// (a host's), `/run/minerva/tenant/tenant.sock` (the same in its containers), `/run/minerva/agent.sock` and
    /// `$XDG_RUNTIME_DIR/minerva/agent.sock`. Where nobody listens, `minerva-agent` is started if it is in `PATH` or named by `MINERVA_AGENT`, and its server is known:
    /// from `MINERVA_UPSTREAM`, or because this is a guest with a vsock to its host. An empty `MINERVA_AGENT` starts none.
    /// [`Credentials::from_environment`] says how to show who one is.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_lookup(&|name| std::env::var_os(name), is_guest_with_vsock)
    }

    fn from_lookup(lookup: &dyn Fn(&str) -> Option<OsString>, is_guest: fn() -> bool) -> Result<Self, Error> {
        let text = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let address = text("MINERVA_ADDRESS").map(|text| text.to_string_lossy().parse()).transpose()?;
        let own_socket = match text("XDG_RUNTIME_DIR") {
            Some(directory) => Path::new(&directory).join("minerva/agent.sock"),
            None => format!("/tmp/minerva-{}/agent.sock", rustix::process::geteuid().as_raw()).into(),
        };
        let program = match lookup("MINERVA_AGENT") {
            Some(program) => Some(PathBuf::from(program)).filter(|program| !program.as_os_str().is_empty()),
            None => text("PATH").and_then(|path| find_program(&path, "minerva-agent")),
        };
        let upstream = || match text("MINERVA_UPSTREAM") {
            Some(upstream) => Some(upstream.to_string_lossy().into_owned()),
            None => is_guest().then(|| format!("vsock:2:{PORT_DEFAULT}")),
        };
        let agent = program.and_then(|program| upstream().map(|upstream| (program, upstream)));
        let agent = agent.map(|(program, upstream)| Agent { program, upstream, socket: own_socket.clone() });
        let sockets = ["/run/minerva/tenant.sock", "/run/minerva/tenant/tenant.sock", "/run/minerva/agent.sock"];
        let sockets = sockets.map(PathBuf::from);
        Ok(Self {
            address,
            credentials: Credentials::from_lookup(lookup)?,
            sockets: sockets.into_iter().chain([own_socket]).collect(),
            agent,
            patience: PATIENCE_DEFAULT,
            look_period: LOOK_PERIOD_DEFAULT,
            quiet: false,
        })
    }

    /// The sockets that may be trusted: in a directory that belongs to the system or to this user.
    pub(crate) fn sockets_trusted(&self) -> impl Iterator<Item = &PathBuf> {
        self.sockets.iter().filter(|socket| {
            let in_public = socket.starts_with("/tmp");
            !in_public || socket.parent().and_then(|at| at.symlink_metadata().ok()).is_some_and(|found| is_own(&found))
        })
    }
}

fn find_program(path: &OsString, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// A guest's number is above those of the hypervisor (0), of the machine itself (1) and of the host (2); a host without
/// guests has none.
fn is_guest_with_vsock() -> bool {
    vsock::get_local_cid().is_ok_and(|cid| cid > vsock::VMADDR_CID_HOST && cid != vsock::VMADDR_CID_ANY)
}

#[cfg(test)]
mod tests {
    use super::Options;
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    fn read(pairs: &[(&str, &str)], guest: bool) -> Options {
        let lookup = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        Options::from_lookup(&lookup, if guest { || true } else { || false }).expect("options")
    }

    #[test]
    fn the_sockets_are_tried_from_the_hosts_to_the_users_own() {
        let options = read(&[("XDG_RUNTIME_DIR", "/run/user/7")], false);
        let sockets = [
            "/run/minerva/tenant.sock",
            "/run/minerva/tenant/tenant.sock",
            "/run/minerva/agent.sock",
            "/run/user/7/minerva/agent.sock",
        ];
        assert_eq!(options.sockets, sockets.map(PathBuf::from));
        assert_eq!((options.address, options.agent), (None, None));
        assert!(read(&[], false).sockets[3].starts_with("/tmp"));
    }

    #[test]
    fn an_agent_is_started_only_when_its_server_is_known() {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("minerva-agent");
        std::fs::write(&program, "").expect("a program");
        let path = ("PATH", directory.path().to_str().expect("a path"));
        assert_eq!(read(&[path], false).agent, None);
        let agent = read(&[path], true).agent.expect("a guest's agent");
        assert_eq!((agent.program, agent.upstream.as_str()), (program, "vsock:2:7420"));
        let agent = read(&[path, ("MINERVA_UPSTREAM", "unix:/a"), ("MINERVA_AGENT", "/opt/agent")], true).agent;
        assert_eq!(
            agent.map(|agent| (agent.program, agent.upstream)),
            Some(("/opt/agent".into(), "unix:/a".to_owned()))
        );
        assert_eq!(read(&[path, ("MINERVA_AGENT", "")], true).agent, None);
    }

    #[test]
    fn a_socket_in_a_directory_of_others_is_not_trusted() {
        let directory = tempfile::Builder::new().prefix("minerva-test-").tempdir_in("/tmp").expect("a directory");
        let mut options = read(&[], false);
        options.sockets = vec![directory.path().join("agent.sock")];
        assert_eq!(options.sockets_trusted().count(), 1);
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(directory.path(), open).expect("opened");
        assert_eq!(options.sockets_trusted().count(), 0);
        options.sockets = vec![Path::new("/run/minerva/tenant.sock").to_owned()];
        assert_eq!(options.sockets_trusted().count(), 1);
    }
}
