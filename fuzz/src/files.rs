//! What people write and what Minerva itself left behind.

use std::path::Path;

/// The operator's file. An error must be printable: it quotes the line.
pub fn config(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Err(errors) = minerva_config::parse(text, Path::new("minervad.toml")) {
        assert!(!errors.to_string().is_empty());
    }
}

/// The undo journal after any crash.
pub fn journal(bytes: &[u8]) {
    let content = minerva_linux_actuate::parse_journal(bytes);
    assert!(content.problems.len() <= content.problem_count);
    minerva_linux_actuate::parse_lease(bytes);
}

/// A recording as it lies on the disk.
pub fn recording(bytes: &[u8]) {
    read(bytes);
}

/// The lines inside a recording: mutated compressed bytes would never get as far.
pub fn recording_text(text: &[u8]) {
    read(&zstd::encode_all(text, 1).expect("memory takes every write"));
}

/// Reads to the end; nothing may follow an error.
fn read(bytes: &[u8]) {
    let mut failed = false;
    for entry in minerva_store::read_entries(bytes) {
        assert!(!failed, "an entry behind an error");
        if let Err(error) = entry {
            assert!(!error.to_string().is_empty());
            failed = true;
        }
    }
}
