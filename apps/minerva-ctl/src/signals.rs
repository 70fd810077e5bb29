//! Signals that end a wait, or are passed on to a command that runs.

use anyhow::Context;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use tokio::process::Child;
use tokio::sync::mpsc;

/// What a service manager, a shell or a person sends to a command.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) number: i32,
    /// The terminal sends to everything in its foreground, commands that this one started included.
    from_terminal: bool,
}

/// Signals from now on; they do not end this program any more.
pub(crate) struct Signals(mpsc::UnboundedReceiver<Came>);

impl Signals {
    pub(crate) fn catch() -> anyhow::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new(PASSED_ON).context("failed to catch signals")?;
        let (tell, heard) = mpsc::unbounded_channel();
        let listen = move || {
            for origin in signals.forever() {
                let from_terminal = origin.cause == Cause::Kernel;
                if tell.send(Came { number: origin.signal, from_terminal }).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).context("failed to start a thread")?;
        Ok(Self(heard))
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Came {
        match self.0.recv().await {
            Some(came) => came,
            // The thread has ended, which it does with the program.
            None => std::future::pending().await,
        }
    }

    /// One that has come by now.
    pub(crate) fn came(&mut self) -> Option<Came> {
        self.0.try_recv().ok()
    }

    /// Waits for the command's end, and passes on what comes meanwhile.
    pub(crate) async fn until_end_of(&mut self, child: &mut Child) -> std::io::Result<std::process::ExitStatus> {
        let own = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        // Not by number: it may be another's as soon as the child was waited for.
        let process = own.map(|pid| pidfd_open(pid, PidfdFlags::empty())).transpose()?;
        loop {
            tokio::select! {
                status = child.wait() => return status,
                came = self.next() => pass_on(process.as_ref(), came),
            }
        }
    }
}

fn pass_on(process: Option<&OwnedFd>, came: Came) {
    if let (Some(process), Some(signal), false) = (process, Signal::from_named_raw(came.number), came.from_terminal) {
        // One that has just ended needs no signal.
        let _ = pidfd_send_signal(process, signal);
    }
}
