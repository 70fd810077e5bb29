//! cgroup v1 `blkio` counters.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let parsed = minerva_linux_observe::parse::parse_blkio(text);
    assert!(parsed.rows.len() <= text.len());
});
