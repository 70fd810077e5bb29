//! Talking to the daemon: where it listens, how long it is waited for without a word, and what is said of a failure.

use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use anyhow::Context;
use minerva_api::client::{self, Operator};
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A daemon answers a call at once; one that needs so long may hang, and whoever waits is told. What it tells by itself comes
/// with its slices, which may be a minute apart, and is not waited for so.
const PATIENCE: Duration = Duration::from_secs(2);

/// A daemon that does not know a call says no more than that.
const ANOTHER_VERSION: &str =
    "the daemon is of another version than this tool and does not know this; restart it (systemctl restart minervad)";

/// What is done with the daemon.
pub(crate) type Work = std::pin::Pin<Box<dyn Future<Output = anyhow::Result<CommandStatus>>>>;

/// Where the daemon listens.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) path: PathBuf,
    /// The command line said so.
    is_named: bool,
}

impl Socket {
    /// As the command line says, else as the operator's file says, else the default place. A broken file that nobody named is not
    /// this command's business, unless it is what hides the daemon.
    pub(crate) fn find(named: Option<PathBuf>, file: &OperatorFile) -> anyhow::Result<Self> {
        if let Some(path) = named {
            return Ok(Self { path, is_named: true });
        }
        let default = Path::new(client::SOCKET_DEFAULT);
        let path = match (file.load(), file) {
            (Ok(config), OperatorFile::Named(_)) => config.daemon.socket,
            (Ok(config), OperatorFile::Default) => one_that_listens(config.daemon.socket, default),
            (Err(error), OperatorFile::Named(_)) => {
                return Err(
                    error.context("failed to learn where the daemon listens; --socket says it without the file")
                );
            }
            (Err(_), OperatorFile::Default) => {
                let (file, default) = (file.path().display(), default.display());
                output::say(&format!(
                    "{file} is broken (minerva-ctl config check): trying {default}, use --socket for another place"
                ));
                client::SOCKET_DEFAULT.into()
            }
        };
        Ok(Self { path, is_named: false })
    }

    /// Connects; where nobody listens and the file says another place than the default, it is said why that may be.
    async fn connect(&self) -> anyhow::Result<Operator> {
        let connected = client::connect(&self.path).await;
        let may_be_elsewhere = !self.is_named && self.path != Path::new(client::SOCKET_DEFAULT);
        match connected {
            Err(error @ client::ConnectError::Absent { .. }) if may_be_elsewhere => Err(anyhow::anyhow!(
                "{:#}; a daemon that was started before `socket` in [daemon] changed listens at the former place, {} by default: name that \
                 with --socket, or restart it",
                anyhow::Error::new(error),
                client::SOCKET_DEFAULT
            )),
            connected => Ok(connected?),
        }
    }
}

/// The place that the file says, or, where nobody listens there but somebody does at the default place, that: it is the daemon of this
/// host, from before the file was changed.
fn one_that_listens(said: PathBuf, default: &Path) -> PathBuf {
    let is_absent = |error: std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
    let is_moved =
        said != default && UnixStream::connect(&said).is_err_and(is_absent) && UnixStream::connect(default).is_ok();
    if !is_moved {
        return said;
    }
    output::note(&format!(
        "nobody listens at {}: asking the daemon at {}, which was started before `socket` in [daemon] was set",
        output::path(&said),
        default.display()
    ));
    default.to_owned()
}

/// Connects, works, ends.
pub(crate) fn with(socket: &Socket, work: Box<dyn FnOnce(Operator) -> Work>) -> anyhow::Result<CommandStatus> {
    block_on(async { work(socket.connect().await?).await })
}

/// Does what needs a runtime.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime to talk to the daemon")?;
    runtime.block_on(work)
}

/// Waits for an answer for as long as it takes, and says so after a while.
pub(crate) async fn answered<T>(answer: impl Future<Output = T>) -> T {
    tokio::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => return answer,
        () = tokio::time::sleep(PATIENCE) => {}
    }
    output::note("the daemon does not answer yet; its loop may hang (journalctl -u minervad)");
    answer.await
}

/// An answer that is not waited for longer; nothing if there was none.
pub(crate) async fn soon<T>(answer: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(PATIENCE, answer).await.ok()
}

/// What went wrong, for people. A refusal of the daemon is its own sentence, without the transport's words around it.
pub(crate) fn message(error: &anyhow::Error) -> String {
    match error.downcast_ref::<tonic::Status>() {
        Some(status) if !status.message().is_empty() => status.message().to_owned(),
        Some(status) if status.code() == tonic::Code::Unimplemented => ANOTHER_VERSION.to_owned(),
        _ => format!("{error:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ANOTHER_VERSION, message};
    use tonic::Status;

    #[test]
    fn what_a_daemon_refuses_is_its_own_sentence_and_what_it_does_not_know_is_told_with_what_to_do() {
        assert_eq!(message(&Status::not_found("no tenant").into()), "no tenant");
        assert_eq!(message(&Status::unimplemented("not on this host").into()), "not on this host");
        assert_eq!(message(&Status::unimplemented("").into()), ANOTHER_VERSION);
        assert_eq!(message(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }
}
