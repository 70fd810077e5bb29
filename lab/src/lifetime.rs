//! Processes that end with whoever started them.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the command starts is killed when the calling thread ends, however it ends, and never begins where it has ended before that.
pub(crate) fn die_with_this_thread(command: &mut Command) {
    die_with(command, getpid());
}

fn die_with(command: &mut Command, parent: Pid) {
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that ended before that sends no signal. Whoever has the process then is another.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls and neither allocates nor takes a lock.
    unsafe { command.pre_exec(ask) };
}

#[cfg(test)]
mod tests {
    use super::{die_with, die_with_this_thread};
    use rustix::process::Pid;
    use std::process::Command;

    #[test]
    fn a_process_whose_parent_has_ended_before_it_asked_for_a_signal_never_begins() {
        let mut command = Command::new("true");
        die_with(&mut command, Pid::INIT);
        let error = command.spawn().expect_err("its parent is not the one it should die with");
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::SRCH.raw_os_error()));
    }

    #[test]
    fn a_process_of_this_thread_begins_and_asks_to_die_with_it() {
        let mut command = Command::new("true");
        die_with_this_thread(&mut command);
        assert!(command.status().expect("started").success());
    }
}
