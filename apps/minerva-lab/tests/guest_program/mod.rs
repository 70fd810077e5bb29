//! Programs for a guest.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program beside the one under test, stripped so that it fits a guest's memory.
pub(crate) fn program(name: &str, folder: &Path) -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_BIN_EXE_minerva-lab")).with_file_name(name);
    let copy = folder.join(name);
    let stripped = Command::new("strip").arg("-o").arg(&copy).arg(&built).status();
    stripped.is_ok_and(|status| status.success()).then_some(copy)
}
