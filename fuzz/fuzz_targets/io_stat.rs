//! cgroup v2 `io.stat`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let parsed = minerva_linux_observe::parse::parse_io_stat(text);
    assert!(parsed.rows.len() + parsed.malformed.count as usize <= text.len());
});
