//! Signals are the program's: its handlers run in its own threads and interrupt its own calls, so no thread of this library takes one.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::marker::PhantomData;

/// What the kernel raises in the very thread that made a mistake; held off, it would end the program without its handler.
const MISTAKES: [Signal; 6] =
    [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP, Signal::SIGSYS];

/// While this is there, this thread takes no signals; threads that it starts meanwhile never do.
pub(crate) struct HeldOff {
    before: Option<SigSet>,
    /// It is about one thread.
    _not_send: PhantomData<*const ()>,
}

impl HeldOff {
    pub(crate) fn begin() -> Self {
        // It fails for no set that there is.
        Self { before: all().thread_swap_mask(SigmaskHow::SIG_BLOCK).ok(), _not_send: PhantomData }
    }
}

impl Drop for HeldOff {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // As above.
            let _ = before.thread_set_mask();
        }
    }
}

/// This thread takes no signals any more.
pub(crate) fn hold_off() {
    // As above.
    let _ = all().thread_block();
}

fn all() -> SigSet {
    let mut all = SigSet::all();
    MISTAKES.into_iter().for_each(|mistake| all.remove(mistake));
    all
}

/// Nothing is held off in this thread: for a program that was started in one of ours. Safe between `fork` and `exec`.
pub(crate) fn take_all() -> std::io::Result<()> {
    Ok(SigSet::empty().thread_set_mask()?)
}
