//! Signals that end a wait, or are passed on to a command that runs. Those that whoever started this program has it ignore stay ignored, here
//! and by the command: nohup(1) does so with SIGHUP, and shells without job control with SIGINT and SIGQUIT of what ends in `&`.

use anyhow::Context;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use std::fs;
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
        // What cannot be read is taken for nothing that is ignored.
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let caught = PASSED_ON.into_iter().filter(|number| !is_in(&status, "SigIgn", *number));
        let mut signals = SignalsInfo::<WithOrigin>::new(caught).context("failed to catch signals")?;
        let (tell, heard) = mpsc::unbounded_channel();
        let listen = move || {
            for origin in signals.forever() {
                let from_terminal = is_for_all(&origin.cause, origin.signal);
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

/// Whether the terminal has sent it to everything in its foreground. When it hangs up it tells the leader of its session only, and the others
/// hear of it once that has ended.
fn is_for_all(cause: &Cause, number: i32) -> bool {
    *cause == Cause::Kernel && matches!(number, SIGINT | SIGQUIT)
}

/// Whether a signal is in one of the sets of `/proc/PID/status`, which are hexadecimal, the first signal last.
fn is_in(status: &str, set: &str, number: i32) -> bool {
    let text = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(':'));
    let set = text.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    set >> (number - 1) & 1 == 1
}

fn pass_on(process: Option<&OwnedFd>, came: Came) {
    if let (Some(process), Some(signal), false) = (process, Signal::from_named_raw(came.number), came.from_terminal) {
        // One that has just ended needs no signal.
        let _ = pidfd_send_signal(process, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::{PASSED_ON, Signals, is_for_all, is_in};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
    use signal_hook::low_level::siginfo::{Cause, Sent};
    use std::fs;
    use std::process::Command;

    const CATCHES: &str = "MINERVA_TEST_CATCHES_SIGNALS";

    /// A process of its own, as what it ignores it has from whoever started it.
    #[test]
    fn child_that_catches() {
        if std::env::var_os(CATCHES).is_some() {
            let _signals = Signals::catch().unwrap();
            println!("{}", fs::read_to_string("/proc/self/status").unwrap());
        }
    }

    #[test]
    fn what_a_terminal_sends_to_all_is_not_passed_on_and_its_end_is() {
        let of_kernel = [SIGINT, SIGQUIT, SIGHUP].map(|number| is_for_all(&Cause::Kernel, number));
        assert_eq!(of_kernel, [true, true, false]);
        assert!(!is_for_all(&Cause::Sent(Sent::User), SIGINT), "kill(1) sends to one");
    }

    #[test]
    fn what_is_ignored_at_the_start_stays_ignored_and_the_rest_is_caught() {
        let own = fs::read_to_string("/proc/self/status").unwrap();
        // By number: hanging up, interrupting, quitting.
        for ignored in [&[1][..], &[2, 3], &[]] {
            let numbers: Vec<String> = ignored.iter().map(i32::to_string).collect();
            let trap = if ignored.is_empty() { "true".to_owned() } else { format!("trap '' {}", numbers.join(" ")) };
            let mut child = Command::new("sh");
            child.args(["-c", &format!("{trap}; exec \"$0\" \"$@\"")]).arg(std::env::current_exe().unwrap());
            child.args(["--exact", "signals::tests::child_that_catches", "--nocapture"]).env(CATCHES, "yes");
            let status = String::from_utf8(child.output().unwrap().stdout).unwrap();
            for number in PASSED_ON {
                // A shell leaves ignored what it has ignored from this process.
                let is_ignored = ignored.contains(&number) || is_in(&own, "SigIgn", number);
                let found = ["SigIgn", "SigCgt"].map(|set| is_in(&status, set, number));
                assert_eq!(found, [is_ignored, !is_ignored], "signal {number} of {ignored:?}: {status}");
            }
        }
    }
}
