//! Scenes of real guests that read from one disk: who they are, what they are promised, and what came of it. Figures, the
//! demonstration and `reproduce` play the same ones, in guests and in the simulator.

pub(crate) mod contracts;
pub(crate) mod mix;
pub(crate) mod plot;
pub(crate) mod programs;
pub(crate) mod simulated;
pub(crate) mod tags;

pub(crate) use programs::Programs;

use minerva_lab::figure::{VmArm, VmProgress};
use minerva_model::Nanos;

pub(crate) const GIB: u64 = 1 << 30;

/// Who orders, by the name on a command line: a scheduler of `minerva-blk` unless it is one of what else does that.
pub(crate) fn arm(name: &str) -> VmArm {
    match name {
        "kernel-bfq" => VmArm::KernelBfq,
        "qemu-throttle" => VmArm::QemuThrottle,
        scheduler => VmArm::Served(scheduler.to_owned()),
    }
}

/// The size of an emulated disk.
pub(crate) fn capacity_bytes(profile: &str) -> u64 {
    let known = minerva_lab::disk::profiles().into_iter().find(|known| known.name == profile);
    known.map_or(80 * GIB, |known| known.capacity_bytes)
}

/// What a reader had in each whole second, by its own reports.
pub(crate) fn reported_bytes(guest: &VmProgress, reader: usize) -> Vec<u64> {
    let progress = &guest.readers[reader];
    let at = |instant: Nanos| {
        let after = progress.partition_point(|report| report.at <= instant);
        after.checked_sub(1).map_or(0, |last| progress[last].bytes)
    };
    let seconds = guest.end.since(guest.begin).0 / Nanos::SECOND.0;
    let of = |second: u64| {
        let from = guest.begin + Nanos(second * Nanos::SECOND.0);
        at(from + Nanos::SECOND).saturating_sub(at(from))
    };
    (0..seconds).map(of).collect()
}
