//! What background work works on.

use crate::error::{At, Result};
use std::fs;
use std::path::Path;

/// What the backup reads: more than it gets through in the pauses of a window.
pub(super) const BACKUP_MIB: u32 = 512;
/// What is scrubbed, likewise.
pub(super) const SCRUBBED_MIB: u32 = 1536;
/// What is deleted: as much as has room on the file system, by its inodes.
const DELETED_DIRECTORIES: u32 = 512;
const FILES_A_DIRECTORY: u32 = 500;

/// Writes a file and has it on the disk.
pub(super) fn write_file(path: &Path, mebibytes: u32) -> Result<()> {
    let file = fs::File::create(path).at("create", path)?;
    let block = vec![0x5a; 1 << 20];
    for _ in 0..mebibytes {
        std::io::Write::write_all(&mut &file, &block).at("write", path)?;
    }
    file.sync_all().at("write", path)
}

/// Makes a tree and has it on the disk.
pub(super) fn make_tree(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).at("remove", path)?;
    }
    for directory in 0..DELETED_DIRECTORIES {
        let directory = path.join(directory.to_string());
        fs::create_dir_all(&directory).at("create", &directory)?;
        for file in 0..FILES_A_DIRECTORY {
            let file = directory.join(file.to_string());
            fs::write(&file, [0x5a; 4096]).at("write", &file)?;
        }
    }
    let directory = fs::File::open(path).at("open", path)?;
    rustix::fs::syncfs(&directory).map_err(std::io::Error::from).at("write", path)
}
