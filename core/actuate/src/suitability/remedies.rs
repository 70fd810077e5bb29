//! What to do where nothing acts on a disk, or not as well as it could.

use minerva_model::{BackEnd, CgroupVersion, DeviceFacts};

/// What to do so that BFQ is the elevator.
pub(super) fn use_bfq(facts: &DeviceFacts) -> String {
    let is_listed = facts.elevators_available.iter().any(|name| name == "bfq");
    let load = if is_listed { "" } else { "the kernel does not list bfq, so first: modprobe bfq; then " };
    format!(
        "{load}echo bfq > /sys/block/<disk>/queue/scheduler, or set elevator = \"bfq\" for <disk> in minerva.toml and \
         Minerva does it"
    )
}

/// What to do on a disk that is to have no elevator: weights through iocost, or caps. Nothing where the kernel has neither.
pub(super) fn without_elevator(facts: &DeviceFacts) -> Option<String> {
    let iocost = "set enable_iocost = true for <disk> in minerva.toml and Minerva enables iocost, which reads weights";
    let ways = [facts.iocost_available.then(|| iocost.to_owned()), caps(facts)];
    ways.into_iter().flatten().reduce(|one, other| format!("{one}, or {other}"))
}

/// What to do to have caps, where the kernel has them.
pub(super) fn caps(facts: &DeviceFacts) -> Option<String> {
    let back_end = if facts.cgroup == CgroupVersion::V1 { BackEnd::ThrottleV1 } else { BackEnd::Max };
    facts.throttle_available.then(|| format!("set back_end = \"{back_end}\" for <disk> in minerva.toml to cap tenants"))
}

/// What to do where iocost shares out by a model that nobody measured (`Documentation/admin-guide/cgroup-v2.rst`, `io.cost.model`).
pub(super) fn calibrate(facts: &DeviceFacts) -> Option<&'static str> {
    (facts.iocost_enabled && facts.iocost_model_guessed).then_some(
        "measure <disk> while nobody else uses it: in a directory on it with 16 GB free run tools/cgroup/iocost_coef_gen.py of the \
         kernel's source (it needs fio), and write what it prints, or your own figures in bytes and requests a second, once a \
         boot: echo \"$(cat /sys/block/<disk>/dev) ctrl=user model=linear rbps=... rseqiops=... rrandiops=... wbps=... wseqiops=... \
         wrandiops=...\" > /sys/fs/cgroup/io.cost.model",
    )
}
