//! QEMU's process.

use std::process::Child;

/// The process, killed when dropped.
pub(super) struct Machine(pub(super) Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
