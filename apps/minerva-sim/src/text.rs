//! Text files that people wrote, read within bounds: nothing that is no such file fills the memory.

use anyhow::{Context as _, bail};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// All of the file at `path`, which has at most `bytes_max` bytes.
pub(crate) fn read_text(path: &Path, bytes_max: usize) -> anyhow::Result<String> {
    let failed = || format!("failed to read {}", path.display());
    let file = File::open(path).with_context(failed)?;
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).with_context(failed)?;
    if bytes.len() > bytes_max {
        bail!("{} is longer than {bytes_max} bytes, which is too long for such a file", path.display());
    }
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let line = bytes[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        anyhow::anyhow!("{}:{line}: not UTF-8; save the file as UTF-8", path.display())
    })
}
