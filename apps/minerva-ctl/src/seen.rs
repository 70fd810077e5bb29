//! What this program finds at a path, for the daemon: that may have other mounts than whoever calls, and is not to work on another.

use minerva_api::v1;
use minerva_linux_background::{Kind, Seen};
use std::path::Path;

/// For work of a kind; nothing where this program may not look.
pub(crate) fn of_path(kind: &str, path: &str) -> Option<v1::PathSeen> {
    let found = Kind::from_word(kind)?.identity(Path::new(path), Path::new("/sys")).ok()?;
    Some(message(found.seen()))
}

pub(crate) fn message(seen: Seen) -> v1::PathSeen {
    v1::PathSeen { device: seen.device, inode: seen.inode, born_ns: seen.born_ns }
}
