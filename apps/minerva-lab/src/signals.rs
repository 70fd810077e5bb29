//! Ctrl-C and SIGTERM end the work in order, so that every guard is dropped.

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first signal sets. The second one ends the program at once, in case something hangs; the next run
/// sweeps what that leaves behind.
pub(crate) fn interrupt_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the second signal finds the flag set.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("failed to listen for signals")?;
    }
    Ok(flag)
}

/// Sleeps until SIGINT, SIGTERM or SIGHUP.
pub(crate) fn wait_for_end(mut signals: signal_hook::iterator::Signals) {
    // The iterator never ends by itself.
    let _ = signals.forever().next();
}

/// Signals are caught from here on, so that one which arrives while a disk is being made is not lost.
pub(crate) fn listen() -> anyhow::Result<signal_hook::iterator::Signals> {
    signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).context("failed to listen for signals")
}
