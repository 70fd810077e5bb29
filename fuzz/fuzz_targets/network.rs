//! `/proc/<pid>/net/dev`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    minerva_linux_observe::parse::parse_network_bytes(text);
});
