//! Whether the directory to which a file is to go is gone, though its file system is there.

use super::site::Site;
use minerva_store::Deferral;
use rustix::fs::{AtFlags, CWD, stat, statat};
use rustix::io::Errno;
use std::path::Path;

/// Whether nothing, or another directory of the same file system, is at the path.
pub(super) fn is_gone(row: &Deferral, link: &Path) -> bool {
    let (file_system, inode) = row.directory_identity;
    match statat(CWD, row.directory.as_path(), AtFlags::SYMLINK_NOFOLLOW) {
        // Some file systems give one directory several numbers in turn; then the link is in it.
        Ok(found) => found.st_dev == file_system && found.st_ino != inode && !has_link_at_path(row, link),
        Err(Errno::NOENT | Errno::NOTDIR) => is_file_system_at(&row.directory, file_system),
        Err(_) => false,
    }
}

fn has_link_at_path(row: &Deferral, link: &Path) -> bool {
    Site::open_any(&row.directory).is_ok_and(|(site, _)| site.leads(&row.name, link))
}

/// Whether what is left of a path lies in a file system: then that is mounted where it was.
fn is_file_system_at(path: &Path, file_system: u64) -> bool {
    for above in path.ancestors().skip(1) {
        match stat(above) {
            Ok(found) => return found.st_dev == file_system,
            Err(Errno::NOENT | Errno::NOTDIR) => (),
            Err(_) => return false,
        }
    }
    false
}
