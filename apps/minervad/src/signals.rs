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
            let why = match signal {
                SIGHUP => {
                    commands.send_surely(Command::Reload);
                    continue;
                }
                SIGINT => "SIGINT",
                _ => "SIGTERM",
            };
            // A full queue empties within a slice, and a stop must not be lost.
            while commands.send(Command::Stop(why)) == Err(NotTaken::Full) {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(forward).context("failed to start a thread")?;
    Ok(())
}
