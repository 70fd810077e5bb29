//! QEMU's process.

use rustix::process::{Signal, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// What the command starts is killed when the calling thread ends, however it ends.
pub(super) fn die_with_this_thread(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes a single system call and neither allocates nor takes a lock.
    unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?)) };
}

/// The process, killed when dropped.
pub(super) struct Machine(pub(super) Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
