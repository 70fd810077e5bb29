//! What the command line and the environment may say.

use anyhow::Context;
use minerva_client::{Address, PORT_DEFAULT};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the server's socket is on a host, and in a container that has it, or its directory, mounted.
const TENANT_SOCKETS: [&str; 2] = ["/run/minerva/tenant.sock", "/run/minerva/tenant/tenant.sock"];
/// Where everyone of this machine finds the agent.
const SYSTEM_DIRECTORY: &str = "/run/minerva";
/// In a guest whose hypervisor gives it a vsock.
const VSOCK: &str = "/dev/vsock";
/// Shorter periods cost the guest more than the host gains by them.
const PERIOD_MIN: Duration = Duration::from_millis(100);

/// Forward requests from programs in this guest or container to minervad on the host, and report what the host cannot see.
///
/// Programs find it at its socket and use it like minervad. Over TCP it identifies this machine to the server by MINERVA_CA with
/// MINERVA_CERTIFICATE and MINERVA_KEY, or with MINERVA_TOKEN or MINERVA_TOKEN_FILE.
#[derive(Debug, clap::Parser)]
#[command(name = "minerva-agent", version)]
pub(crate) struct Arguments {
    /// The server: unix:/PATH, vsock:CID:PORT or https://HOST:PORT [default: $MINERVA_UPSTREAM, else the host's socket if it
    /// is mounted here, else the host by vsock]
    #[arg(long, value_name = "ADDRESS")]
    upstream: Option<Address>,
    /// Where to listen [default: /run/minerva/agent.sock for root, else minerva/agent.sock in $XDG_RUNTIME_DIR, else in
    /// /tmp/minerva-UID]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Let every user of this machine connect; always the case below /run/minerva
    #[arg(long)]
    shared: bool,
    /// How often to report; 0 for never
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    pub(crate) report_period: Duration,
    /// Exit when nobody has been connected for this long
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) idle_exit: Option<Duration>,
    /// Watch for a second, print the report, and exit
    #[arg(long)]
    pub(crate) print_report: bool,
    /// Print that report as JSON
    #[arg(long, requires = "print_report")]
    pub(crate) json: bool,
    /// For packagers
    #[command(subcommand)]
    pub(crate) hidden: Option<Hidden>,
}

/// What is no use to people.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Hidden {
    /// Writes the manual page and the completions
    #[command(hide = true)]
    Generate {
        /// Into this directory
        directory: PathBuf,
    },
}

/// Where the agent listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListeningAddress {
    pub(crate) socket: PathBuf,
    /// Every user may connect, not only the agent's own.
    pub(crate) is_shared: bool,
}

impl Arguments {
    /// Where to listen.
    pub(crate) fn place(&self) -> ListeningAddress {
        let user = rustix::process::geteuid();
        let socket = self.socket.clone().unwrap_or_else(|| match std::env::var_os("XDG_RUNTIME_DIR") {
            _ if user.is_root() => Path::new(SYSTEM_DIRECTORY).join("agent.sock"),
            Some(directory) if !directory.is_empty() => Path::new(&directory).join("minerva/agent.sock"),
            _ => PathBuf::from(format!("/tmp/minerva-{}/agent.sock", user.as_raw())),
        });
        ListeningAddress { is_shared: self.shared || socket.starts_with(SYSTEM_DIRECTORY), socket }
    }

    /// The server.
    pub(crate) fn upstream(&self) -> anyhow::Result<Address> {
        if let Some(address) = &self.upstream {
            return Ok(address.clone());
        }
        if let Some(text) = std::env::var_os("MINERVA_UPSTREAM").filter(|text| !text.is_empty()) {
            return text.to_string_lossy().parse().context("MINERVA_UPSTREAM does not say where the server is");
        }
        if let Some(socket) = TENANT_SOCKETS.map(Path::new).into_iter().find(|socket| socket.exists()) {
            return Ok(Address::Unix(socket.to_owned()));
        }
        anyhow::ensure!(
            Path::new(VSOCK).exists(),
            "no server is known: there is neither {} nor {VSOCK}; give --upstream or set MINERVA_UPSTREAM",
            TENANT_SOCKETS.join(" nor ")
        );
        Ok(Address::Vsock { cid: vsock::VMADDR_CID_HOST, port: PORT_DEFAULT.into() })
    }

    /// How often to report; absent: never.
    pub(crate) fn period(&self) -> Option<Duration> {
        (!self.report_period.is_zero()).then(|| self.report_period.max(PERIOD_MIN))
    }
}

/// A duration as people write it: `5s`, `100ms`, `1h 30m`, or bare seconds.
fn duration(text: &str) -> Result<Duration, String> {
    minerva_quantity::parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::{CommandFactory, Parser};
    use std::time::Duration;

    fn read(words: &[&str]) -> Arguments {
        Arguments::try_parse_from(["minerva-agent"].iter().chain(words)).expect("a command line")
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn below_the_systems_directory_everyone_may_connect() {
        assert!(read(&["--socket", "/run/minerva/agent.sock"]).place().is_shared);
        assert!(!read(&["--socket", "/run/user/7/minerva/agent.sock"]).place().is_shared);
        assert!(read(&["--socket", "/srv/agent.sock", "--shared"]).place().is_shared);
    }

    #[test]
    fn a_period_of_nothing_is_never_and_a_tiny_one_is_not_taken() {
        assert_eq!(read(&[]).period(), Some(Duration::from_secs(5)));
        assert_eq!(read(&["--report-period", "0"]).period(), None);
        assert_eq!(read(&["--report-period", "1ms"]).period(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn the_server_is_named_as_in_every_client() {
        let address = read(&["--upstream", "vsock:2:7420"]).upstream().expect("an address");
        assert_eq!(address.to_string(), "vsock:2:7420");
        assert!(Arguments::try_parse_from(["minerva-agent", "--upstream", "http://192.0.2.1:1"]).is_err());
    }
}
