//! What network namespaces carry.

use crate::parse::parse_network_bytes;
use crate::read::Reader;
use crate::skips::Skips;
use std::path::Path;

/// What the process's network namespace carried.
pub(crate) fn network_bytes(folder: &Path, reader: &mut Reader, skips: &mut Skips) -> Option<u64> {
    let (bytes, malformed) = parse_network_bytes(reader.path(&folder.join("net/dev")).ok()?);
    skips.malformed("/proc/<pid>/net/dev", "a process", &malformed);
    Some(bytes)
}
