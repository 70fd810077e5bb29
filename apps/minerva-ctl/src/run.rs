//! `minerva-ctl run --priority` and `--when`: a command that takes part without knowing of it. Whatever becomes of Minerva, the
//! command runs.

use crate::output::Verdict;
use crate::signals::Signals;
use crate::{tenant, when};
use anyhow::bail;
use minerva_client::{Client, Coordinated, Held, Level, Operation};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

/// How long the end of the command waits for the server to hear of it.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// What the command takes part in.
#[derive(Debug)]
pub(crate) struct Part {
    /// Held while it runs.
    pub(crate) level: Option<Level>,
    /// What it is; it begins when it may.
    pub(crate) operation: Option<Operation>,
}

/// Runs the command; its exit status is ours.
pub(crate) async fn run(config: &Path, part: Part, command: &[OsString]) -> anyhow::Result<Verdict> {
    let [program, arguments @ ..] = command else { bail!("no command given") };
    let mut signals = Signals::catch()?;
    let begun = tokio::select! {
        begun = begin(config, part) => begun,
        // The wait is given up, and with it the operation.
        came = signals.next() => return Ok(Verdict::Signalled(came.number)),
    };
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            begun.abandon().await;
            eprintln!("minerva-ctl: failed to start {}: {error}", program.display());
            return Ok(Verdict::not_started(&error));
        }
    };
    let status = signals.until_end_of(&mut child).await?;
    begun.end().await;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Verdict::Exited(code),
        (None, signal) => Verdict::Signalled(signal.unwrap_or_default()),
    })
}

/// What lasts while the command runs.
struct Begun {
    held: Option<Held>,
    coordinated: Option<Coordinated>,
}

/// Steps back, and waits until the command may begin. A server that refuses stops nothing.
async fn begin(config: &Path, part: Part) -> Begun {
    let mut begun = Begun { held: None, coordinated: None };
    let client = match tenant::connect(config).await {
        Ok(client) => client,
        Err(error) => {
            warn(&format!("{error:#}"));
            Client::absent("")
        }
    };
    if client.absence().is_some_and(|reason| !reason.is_empty()) {
        when::warn_of_absence(&client);
    }
    if let Some(level) = part.level {
        match client.hold_level(level).await {
            Ok(held) => begun.held = Some(held),
            Err(error) => warn(&error.to_string()),
        }
    }
    if let Some(operation) = part.operation {
        match client.coordinate(operation).await {
            Ok(mut coordinated) => {
                coordinated.wait().await;
                begun.coordinated = Some(coordinated);
            }
            Err(error) => warn(&error.to_string()),
        }
    }
    begun
}

fn warn(reason: &str) {
    eprintln!("minerva-ctl: {reason}; the command runs without");
}

impl Begun {
    async fn end(self) {
        drop(self.held);
        if let Some(coordinated) = self.coordinated {
            // The command is done, whether the server hears of it or not.
            let _ = tokio::time::timeout(FINISH_MAX, coordinated.finish()).await;
        }
    }

    async fn abandon(self) {
        drop(self.held);
        if let Some(coordinated) = self.coordinated {
            let _ = tokio::time::timeout(FINISH_MAX, coordinated.cancel()).await;
        }
    }
}
