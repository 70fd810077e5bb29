//! Lets a test kill a child process between any two steps: the library calls [`reach`] there, and the n-th call ends the
//! process with `SIGKILL` if the environment asks for it. Compiled into tests only.

use rustix::process::{Signal, getpid, kill_process};
use std::cell::Cell;

/// The step, counted from 1, at which to die.
pub(crate) const DIE_AT_STEP: &str = "MINERVA_TEST_DIE_AT_STEP";

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// One more step is done.
pub(crate) fn reach() {
    let Some(die_at) = std::env::var(DIE_AT_STEP).ok().and_then(|text| text.parse::<u64>().ok()) else { return };
    STEPS.set(STEPS.get() + 1);
    if STEPS.get() == die_at {
        kill_process(getpid(), Signal::KILL).unwrap();
    }
}
