//! `--take-over --detach`: the server runs in the background, and the command ends once it serves. That is how `systemctl reload` hands
//! over: what reloads a service has to end.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// What the one in the background prints once it serves. It prints nothing else.
const READY: &str = "ready";

/// Starts this program again without `--detach`, and waits until it serves.
pub(crate) fn run() -> anyhow::Result<()> {
    let own = std::env::current_exe().context("failed to find this program")?;
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--detach");
    // In a group of its own: what a terminal sends is for who waits there.
    let mut command = Command::new(own);
    command.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("failed to start the next server")?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut said).context("failed to hear from the next server")?;
    }
    if said.trim() == READY {
        return Ok(());
    }
    // It has said why.
    let status = child.wait().context("failed to wait for the next server")?;
    bail!("the next server does not serve ({status}); the one before goes on")
}

/// Tells who waits for it.
pub(crate) fn tell_ready() {
    // Who does not wait need not hear it.
    let _ = writeln!(std::io::stdout(), "{READY}");
}
