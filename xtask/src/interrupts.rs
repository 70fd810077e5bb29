//! Ctrl-C, SIGTERM and the end of a terminal: what runs is then ended in order, nothing else is begun, and the exit status names the
//! signal.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The signal that came last, or 0.
static CAME: AtomicUsize = AtomicUsize::new(0);
/// What a shell adds to the number of a signal that ended a program.
const STATUS: usize = 128;

/// From now on these signals are noted, and end this program no more.
pub(crate) fn catch() -> Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // nohup(1), and shells that start something in the background, have some ignored.
    for signal in [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(&status, *signal)) {
        let number = usize::try_from(signal).context("a signal has a number")?;
        register_usize(signal, &CAME, number).with_context(|| format!("catch signal {signal}"))?;
    }
    Ok(())
}

/// Whether one came.
pub(crate) fn came() -> bool {
    CAME.load(Ordering::Relaxed) != 0
}

/// The exit status that tells of the signal, if one came. It is forgotten, so that something can be put away.
pub(crate) fn take() -> Option<u8> {
    let signal = CAME.swap(0, Ordering::Relaxed);
    (signal != 0).then(|| u8::try_from(STATUS + signal).unwrap_or(u8::MAX))
}

/// Whether a process of which the kernel says this ignores the signal.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::is_ignored;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    #[test]
    fn what_is_ignored_is_told_by_its_bit() {
        let status = "SigBlk:\tffffffffffffffff\nSigIgn:\t0000000000000001\nSigCgt:\tffffffffffffffff\n";
        assert_eq!([SIGHUP, SIGINT, SIGTERM].map(|signal| is_ignored(status, signal)), [true, false, false]);
        assert!(!is_ignored("", SIGHUP));
    }
}
