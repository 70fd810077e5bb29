//! An agent as a child process, a server for it, and a directory for both.

use crate::server::{Script, Server};
use minerva_api::v1::participation_client::ParticipationClient;
use minerva_client::{Address, Client, Credentials, Options, Transport};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Far above anything that is waited for; only a broken agent takes as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Polls until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The same for a test that runs on a runtime.
pub(crate) async fn until_async(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) struct Bed {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) script: Script,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("minerva-test-agent-").tempdir().expect("a directory");
        Self { directory, script: Script::new() }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("agent/agent.sock")
    }

    pub(crate) fn upstream(&self) -> PathBuf {
        self.directory.path().join("server.sock")
    }

    pub(crate) fn serve(&self) -> Server {
        Server::start(&self.upstream(), &self.script)
    }

    /// The agent's command line.
    pub(crate) fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.arg("--socket").arg(self.socket());
        command.arg("--upstream").arg(format!("unix:{}", self.upstream().display()));
        command.args(arguments).stderr(Stdio::inherit());
        command
    }

    /// An agent that listens.
    pub(crate) fn agent(&self, arguments: &[&str]) -> Agent {
        self.listening(self.command(Path::new(env!("CARGO_BIN_EXE_minerva-agent")), arguments))
    }

    pub(crate) fn listening(&self, mut command: Command) -> Agent {
        let mut agent = Agent(command.process_group(0).spawn().expect("the agent starts"));
        until("the agent listens", || {
            assert!(agent.0.try_wait().expect("a child").is_none(), "the agent ended");
            std::os::unix::net::UnixStream::connect(self.socket()).is_ok()
        });
        agent
    }

    /// The contract's own client, connected to the agent.
    pub(crate) async fn raw(&self) -> ParticipationClient<Transport> {
        let transport = minerva_client::open(&Address::Unix(self.socket()), &Credentials::default()).await;
        ParticipationClient::new(transport.expect("connected"))
    }

    /// The library that programs use, connected to the agent.
    pub(crate) async fn client(&self) -> Client {
        let mut options = Options::from_environment().expect("options");
        options.address = Some(Address::Unix(self.socket()));
        options.patience = PATIENCE;
        options.connect().await.expect("connected")
    }
}

/// The child; dropping it kills it.
pub(crate) struct Agent(pub(crate) Child);

impl Agent {
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
