//! Lets a test kill the process between any two steps of a move: the n-th call of [`reach`] ends it with `SIGKILL` if the environment
//! asks for it. In builds for development only.

#[cfg(debug_assertions)]
pub(super) fn reach() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static STEPS: AtomicU64 = AtomicU64::new(0);
    let Some(die_at) = std::env::var("MINERVA_TEST_DIE_AT_STEP").ok().and_then(|text| text.parse::<u64>().ok()) else {
        return;
    };
    if STEPS.fetch_add(1, Ordering::Relaxed) + 1 == die_at {
        // It does not return.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

#[cfg(not(debug_assertions))]
pub(super) fn reach() {}
