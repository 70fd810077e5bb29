//! `/proc/<pid>/stat`, `/proc/<pid>/io` and a QEMU command line.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    minerva_linux_observe::parse::parse_process_stat(text);
    minerva_linux_observe::parse::parse_process_io(text);
    minerva_linux_observe::parse::parse_qemu_name(text);
});
