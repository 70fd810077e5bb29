//! Who goes first on a busy machine.

/// The best that `nice` knows.
const PRIORITY: i32 = -20;

/// Puts the calling thread, and those it starts, before ordinary ones. A disk does not wait for a processor, and must not
/// become slower when its tenants compute. Nor may a tenant seem to think because the machine is busy with something else:
/// an elevator that idles for a synchronous reader gives up on one that comes back late, and then weights stop biting. Where
/// it is not allowed the statistics show the lateness.
pub(crate) fn hurry() {
    let _ = rustix::process::setpriority_process(None, PRIORITY);
}
