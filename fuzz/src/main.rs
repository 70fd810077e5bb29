//! Every fuzz target, in one program: linking one for each would take most of the build. libFuzzer owns the command line,
//! so the environment says which target this run is.
#![no_main]

mod disks;
mod files;
mod kernel_text;
mod memory;
mod tenant_server;
mod workloads;

use std::sync::LazyLock;

/// Names the target, as in `MINERVA_FUZZ_TARGET=io_stat`.
const VARIABLE: &str = "MINERVA_FUZZ_TARGET";

type Target = fn(&[u8]);

/// So many MiB a target may hold at most at any time besides its input.
type HeldMib = isize;

/// Each has a folder of the same name in `corpus/`.
const TARGETS: &[(&str, Target, HeldMib)] = &[
    ("blk_ring", minerva_blk::fuzzing::ring, 16),
    ("blkio", kernel_text::blkio, 16),
    ("cgroup", kernel_text::cgroup, 16),
    ("config", files::config, 16),
    ("disk_facts", kernel_text::disk_facts, 16),
    ("disk_profile", disks::profile, 16),
    ("disk_trace", disks::trace, 16),
    ("disksim", disks::disksim, 16),
    ("diskstats", kernel_text::diskstats, 16),
    ("tenant_calls", tenant_server::calls, 16),
    ("tenant_frames", tenant_server::frames, 16),
    ("io_stat", kernel_text::io_stat, 16),
    ("job_file", workloads::job_file, 16),
    ("journal", files::journal, 16),
    ("messages", minerva_tenant_server::decode_check::messages, 16),
    ("mountinfo", kernel_text::mountinfo, 16),
    ("network", kernel_text::network, 16),
    ("pressure", kernel_text::pressure, 16),
    ("process", kernel_text::process, 16),
    ("recording", files::recording, 16),
    ("recording_text", files::recording_text, 16),
    ("ssd_fit", disks::ssd_fit, 16),
    ("trace_binary", workloads::trace_binary, 16),
    ("trace_detect", workloads::trace_detect, 16),
    ("trace_native", workloads::trace_native, 16),
    ("trace_text", workloads::trace_text, 16),
];

static CHOSEN: LazyLock<(Target, HeldMib)> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let found = TARGETS.iter().find(|(target, ..)| *target == name);
    let Some((_, target, held_mib)) = found else {
        let known: Vec<_> = TARGETS.iter().map(|(target, ..)| *target).collect();
        panic!("{VARIABLE} is `{name}`; there are: {}", known.join(", "));
    };
    (*target, *held_mib)
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (target, held_mib) = *CHOSEN;
    let most = memory::most_held_in(|| target(input));
    assert!(most <= held_mib << 20, "{most} bytes were held, of {held_mib} MiB");
});
