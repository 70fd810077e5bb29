//! Signals become commands of the slice loop.

use crate::command::{Command, Commands};
use anyhow::Context;
use minerva_operator_server::call::NotTaken;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Starts listening, on a thread of its own that ends with the process.
pub(crate) fn listen(commands: Commands) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).context("failed to listen for signals")?;
    let forward = move || {
        for signal in signals.forever() {
            let command = match signal {
                SIGHUP => Command::Reload,
                SIGINT => Command::Stop("SIGINT"),
                _ => Command::Stop("SIGTERM"),
            };
            // A full queue empties within a slice, and a stop must not be lost.
            let mut waiting = commands.send(command);
            while waiting.is_err_and(|error| error == NotTaken::Full) && signal != SIGHUP {
                std::thread::sleep(std::time::Duration::from_millis(10));
                waiting = commands.send(Command::Stop("SIGTERM"));
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(forward).context("failed to start a thread")?;
    Ok(())
}
