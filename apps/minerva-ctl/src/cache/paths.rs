//! Files and directories as the service names them.

use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory, without links and `..`.
pub(super) fn of_directory(directory: &Path) -> anyhow::Result<PathBuf> {
    fs::canonicalize(directory).with_context(|| format!("failed to look at {}", directory.display()))
}

/// A file under its own name, also where that is a link, in its directory without links and `..`.
pub(super) fn of_file(file: &Path) -> anyhow::Result<PathBuf> {
    let written = std::path::absolute(file)?;
    let (Some(parent), Some(name)) = (written.parent(), written.file_name()) else { return of_directory(&written) };
    Ok(match fs::canonicalize(parent) {
        Ok(parent) => parent.join(name),
        // What the service knows of it, it knows by this path.
        Err(_) => written,
    })
}

/// A directory to which files are to go, or the place of one. The link of a file that waits is its place, though it leads into the pool.
pub(super) fn of_place(place: &Path) -> anyhow::Result<PathBuf> {
    let is_link = fs::symlink_metadata(place).is_ok_and(|shown| shown.is_symlink());
    if is_link && !place.is_dir() { of_file(place) } else { of_directory(place) }
}

#[cfg(test)]
mod tests {
    use super::{of_file, of_place};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_last_name_of_a_file_is_its_own_and_all_before_it_is_followed() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = fs::canonicalize(folder.path()).expect("a path");
        fs::create_dir(at.join("directory")).expect("a directory");
        symlink("directory", at.join("other")).expect("a link");
        symlink("/nowhere/file", at.join("directory/file")).expect("a link");
        let file = at.join("directory/file");
        for path in ["directory/file", "other/file", "other/../other/file", "directory/./file"] {
            assert_eq!(of_file(&at.join(path)).expect("a path"), file, "{path}");
            assert_eq!(of_place(&at.join(path)).expect("a path"), file, "{path}");
        }
        assert_eq!(of_place(&at.join("other")).expect("a path"), at.join("directory"));
        assert_eq!(of_file(&at.join("other/..")).expect("a path"), at);
        assert_eq!(of_file(&at.join("gone/file")).expect("a path"), at.join("gone/file"));
        of_place(&at.join("gone")).expect_err("nothing is there");
    }
}
