//! `minerva-ctl run --priority`, `--when` and `--job`: a command that takes part without knowing of it. Whatever becomes of Minerva, the
//! command runs.

use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use crate::signals::{Came, Signals};
use crate::{tenant, when};
use anyhow::bail;
use minerva_client::{Coordinated, Held, HeldJob, Level, Operation};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use tokio::process::Command;

/// What the command takes part in.
#[derive(Debug)]
pub(crate) struct Part {
    /// Held while it runs.
    pub(crate) level: Option<Level>,
    /// What it is; it begins when it may.
    pub(crate) operation: Option<Operation>,
    /// The batch job that it is, and what that moves in all.
    pub(crate) job: Option<(String, Option<u64>)>,
}

impl Part {
    /// It takes part in nothing.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.level.is_none() && self.operation.is_none() && self.job.is_none()
    }
}

/// Runs the command; its exit status is ours.
pub(crate) async fn run(file: &OperatorFile, part: Part, command: &[OsString]) -> anyhow::Result<CommandStatus> {
    let [program, arguments @ ..] = command else { bail!("no command given") };
    let mut signals = Signals::catch()?;
    let begun = match begin(file, part, &mut signals).await {
        Ok(begun) => begun,
        Err(came) => return Ok(CommandStatus::Signalled(came.number)),
    };
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            begun.abandon().await;
            output::note(&format!("failed to start {}: {error}", output::path(program.as_ref())));
            return Ok(CommandStatus::not_started(&error));
        }
    };
    let status = signals.until_end_of(&mut child).await?;
    begun.end().await;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => CommandStatus::Exited(code),
        (None, signal) => CommandStatus::Signalled(signal.unwrap_or_default()),
    })
}

/// What lasts while the command runs.
struct Begun {
    held: Option<Held>,
    coordinated: Option<Coordinated>,
    job: Option<HeldJob>,
}

/// Steps back, and waits until the command may begin, unless a signal ends it. A server that refuses stops nothing.
async fn begin(file: &OperatorFile, part: Part, signals: &mut Signals) -> Result<Begun, Came> {
    let ask = async {
        let client = match tenant::connect(file).await {
            Ok(client) => client,
            Err(error) => {
                warn(&format!("{error:#}"));
                return (None, Begun { held: None, coordinated: None, job: None });
            }
        };
        let held = match part.level {
            Some(level) => client.hold_level(level).await.map_err(|error| warn(&error.to_string())).ok(),
            None => None,
        };
        let coordinated = match part.operation {
            Some(operation) => client.coordinate(operation).await.map_err(|error| warn(&error.to_string())).ok(),
            None => None,
        };
        let job = match part.job {
            Some((name, bytes)) => client.job(&name, bytes).await.map_err(|error| warn(&error.to_string())).ok(),
            None => None,
        };
        when::warn_of_absence(&client);
        (Some(client), Begun { held, coordinated, job })
    };
    let (client, mut begun) = tokio::select! {
        asked = ask => asked,
        came = signals.next() => return Err(came),
    };
    if let (Some(client), Some(coordinated)) = (client, begun.coordinated.take()) {
        begun.coordinated = Some(when::until_begin(&client, coordinated, signals).await?.0);
    }
    Ok(begun)
}

fn warn(reason: &str) {
    output::note(&format!("{}; the command runs without", reason.trim_end_matches('.')));
}

impl Begun {
    async fn end(self) {
        drop((self.held, self.job));
        if let Some(coordinated) = self.coordinated {
            // The command is done, whether the server hears of it or not.
            let _ = tokio::time::timeout(when::TELL_MAX, coordinated.finish()).await;
        }
    }

    async fn abandon(self) {
        drop((self.held, self.job));
        if let Some(coordinated) = self.coordinated {
            when::give_up(coordinated).await;
        }
    }
}
