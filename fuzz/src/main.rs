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

/// Each has a folder of the same name in `corpus/`.
const TARGETS: &[(&str, Target)] = &[
    ("blk_ring", minerva_blk::fuzzing::ring),
    ("blkio", kernel_text::blkio),
    ("cgroup", kernel_text::cgroup),
    ("config", files::config),
    ("disk_facts", kernel_text::disk_facts),
    ("disk_profile", disks::profile),
    ("disk_trace", disks::trace),
    ("disksim", disks::disksim),
    ("diskstats", kernel_text::diskstats),
    ("tenant_calls", tenant_server::calls),
    ("tenant_frames", tenant_server::frames),
    ("io_stat", kernel_text::io_stat),
    ("job_file", workloads::job_file),
    ("journal", files::journal),
    ("messages", minerva_tenant_server::decode_check::messages),
    ("mountinfo", kernel_text::mountinfo),
    ("network", kernel_text::network),
    ("pressure", kernel_text::pressure),
    ("process", kernel_text::process),
    ("recording", files::recording),
    ("recording_text", files::recording_text),
    ("ssd_fit", disks::ssd_fit),
    ("trace_binary", workloads::trace_binary),
    ("trace_detect", workloads::trace_detect),
    ("trace_native", workloads::trace_native),
    ("trace_text", workloads::trace_text),
];

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    let Some((_, target)) = found else {
        let known: Vec<_> = TARGETS.iter().map(|(target, _)| *target).collect();
        panic!("{VARIABLE} is `{name}`; there are: {}", known.join(", "));
    };
    *target
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| CHOSEN(input));
