//! Whom a command asks: `--socket` is refused where nobody listens to it, for what it names is then not what is changed.

use crate::arguments::{Command, ForecastCommand};

const NOBODY: &str = "`--socket` names the daemon's socket, and this command does not ask the daemon: leave it out";
const TENANTS: &str = "`--socket` names the daemon's socket for operators, and this command asks the server for tenants: \
                       MINERVA_ADDRESS=unix:PATH names that";
const BOTH: &str = "`--socket` names the daemon's socket for operators, and --priority, --when and --job ask the server for tenants: \
                    MINERVA_ADDRESS=unix:PATH names that, and --config FILE the file that says where both are";
const CACHE: &str =
    "`--socket` names the daemon's socket, which `cache` does not ask: `--server` names that of minerva-fs";
const DISK: &str = "`--socket` names the daemon's, which `disk` does not ask: `--server` names the server, and `disk add \
                    --disk-socket` says where QEMU connects";

/// Why the daemon's socket cannot be named for this command; nothing where it can.
pub(crate) fn why_no_socket(command: &Command) -> Option<&'static str> {
    match command {
        Command::Doctor { .. }
        | Command::Restore { .. }
        | Command::Replay { .. }
        | Command::Config { .. }
        | Command::Forecast { command: Some(ForecastCommand::Evaluate(_)), .. }
        | Command::ProbeReader { .. }
        | Command::Generate { .. } => Some(NOBODY),
        Command::Priority { .. }
        | Command::Credits { command: None, .. }
        | Command::Boost { .. }
        | Command::When { .. }
        | Command::Rm { pace: Some(_), .. }
        | Command::Whoami => Some(TENANTS),
        Command::Cache { .. } => Some(CACHE),
        Command::Disk { .. } => Some(DISK),
        Command::Run { priority, when, job, .. } if priority.is_some() || when.is_some() || job.is_some() => Some(BOTH),
        // The tag is the kernel's.
        Command::Run { tag: Some(_), name: None, weight: None, .. } => Some(NOBODY),
        Command::Run { .. }
        | Command::Attach { .. }
        | Command::Rm { pace: None, .. }
        | Command::Status
        | Command::Top { .. }
        | Command::Explain { .. }
        | Command::Forecast { command: None, .. }
        | Command::Record { .. }
        | Command::Reload
        | Command::Jobs { .. }
        | Command::Background { .. }
        | Command::Credits { command: Some(_), .. }
        | Command::Audit { .. } => None,
    }
}
