//! What background work works on, and how it is asked for.

use super::GapsWork;
use crate::disk::{Disk, FileSystem, FileSystemKind};
use crate::error::{At, Result};
use minerva_sim_device::Media;
use std::fs;
use std::path::Path;

/// What the backup reads again and again, and of what files that are scrubbed are made.
const FILE_MIB: u32 = 512;
/// More than work gets through in the pauses of a window, on a hard disk and on an SSD.
const FILES: [u32; 2] = [6, 24];
/// What is deleted: as much as has room on the file system, by its inodes.
const DELETED_DIRECTORIES: u32 = 512;
const FILES_A_DIRECTORY: u32 = 500;
const DELETED_SIZE_BYTES: u64 = 4 << 30;

/// Makes a file system with what a kind of work works on.
pub(super) fn make(work: GapsWork, disk: &Disk) -> Result<FileSystem> {
    let file_bytes = u64::from(FILE_MIB) << 20;
    // With as much room beside the files as they take at most in metadata.
    let size_bytes = |files: u32| (u64::from(files) + 2) * file_bytes;
    match work {
        GapsWork::Backup => FileSystem::create_filled(disk, FileSystemKind::Ext4, size_bytes(1), |path| {
            write_file(&path.join("backup"))
        }),
        GapsWork::Delete => FileSystem::create_filled(disk, FileSystemKind::Ext4, DELETED_SIZE_BYTES, |path| {
            make_tree(&path.join("tree"))
        }),
        GapsWork::Scrub => {
            let files = how_many(disk);
            FileSystem::create_filled(disk, FileSystemKind::Btrfs, size_bytes(files), |path| {
                (0..files).try_for_each(|number| write_file(&path.join(number.to_string())))
            })
        }
    }
}

/// The file system is of no use any more once the work has been there.
pub(super) const fn is_used_up(work: GapsWork) -> bool {
    matches!(work, GapsWork::Delete)
}

/// How the work is added: arguments after its name.
pub(super) fn arguments(work: GapsWork, disk: &Disk, files: &Path) -> Vec<String> {
    let add = |kind: &str, path: &Path| ["--kind", kind, "--path", &path.to_string_lossy()].map(str::to_owned).to_vec();
    match work {
        GapsWork::Backup => {
            let backup = files.join("backup");
            let read = format!("dd if={} of=/dev/null bs=256k iflag=direct status=none", backup.display());
            let all = vec![read; how_many(disk) as usize].join(" && ");
            let command = ["--", "sh", "-c", &all].map(str::to_owned).to_vec();
            [add("command", files), command].concat()
        }
        GapsWork::Delete => add("delete", &files.join("tree")),
        GapsWork::Scrub => add("btrfs-scrub", files),
    }
}

fn how_many(disk: &Disk) -> u32 {
    let profile = minerva_sim_device::profile(&disk.info().profile);
    let is_rotating = profile.is_none_or(|profile| matches!(profile.media, Media::Hdd(_)));
    FILES[usize::from(!is_rotating)]
}

fn write_file(path: &Path) -> Result<()> {
    let file = fs::File::create(path).at("create", path)?;
    let block = vec![0x5a; 1 << 20];
    (0..FILE_MIB).try_for_each(|_| std::io::Write::write_all(&mut &file, &block)).at("write", path)
}

fn make_tree(path: &Path) -> Result<()> {
    for directory in 0..DELETED_DIRECTORIES {
        let directory = path.join(directory.to_string());
        fs::create_dir_all(&directory).at("create", &directory)?;
        for file in 0..FILES_A_DIRECTORY {
            let file = directory.join(file.to_string());
            fs::write(&file, [0x5a; 4096]).at("write", &file)?;
        }
    }
    Ok(())
}
