//! `queue/scheduler` and `io.cost.qos`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let elevators = minerva_linux_observe::parse::parse_elevators(text);
    assert!(elevators.available.len() <= text.len());
    minerva_linux_observe::parse::parse_io_cost_qos(text);
});
