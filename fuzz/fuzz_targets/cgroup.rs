//! `/proc/<pid>/cgroup` and `cgroup.procs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    minerva_linux_observe::parse::parse_cgroup_membership(text);
    minerva_linux_observe::parse::parse_pids(text);
});
