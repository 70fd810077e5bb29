//! `--take-over --detach`: the server runs in the background, and the command ends once it serves. That is how `systemctl reload` hands
//! over: what reloads a service has to end.
//!
//! The server in the background is no child of the command's, but of whoever takes children without a parent: the service manager. A
//! main process that is somebody else's child when systemd hears of it stays *alien* to it, although it becomes its own later: at a stop
//! systemd does not wait for it, and kills it at once (`unit_kill_context`).

use anyhow::{Context, bail};
use std::io::{self, BufRead, BufReader, Write};
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
    // SAFETY: what runs there makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(leave_parent) };
    let mut child = command.spawn().context("failed to start the next server")?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut said).context("failed to hear from the next server")?;
    }
    // It ended before the server began.
    child.wait().context("failed to wait for the process that starts the next server")?;
    if said.trim() == READY {
        return Ok(());
    }
    // It has said why.
    bail!("the next server does not serve; the one before goes on")
}

/// Goes on in a child of the process that calls it, once that has ended.
fn leave_parent() -> io::Result<()> {
    // SAFETY: these calls take no memory of this process's. After the fork each of the two goes on alone, with system calls only.
    unsafe {
        let parent = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                while libc::getppid() == parent {
                    libc::sched_yield();
                }
                Ok(())
            }
            _ => libc::_exit(0),
        }
    }
}

/// Tells who waits for it.
pub(crate) fn tell_ready() {
    // Who does not wait need not hear it.
    let _ = writeln!(io::stdout(), "{READY}");
}
