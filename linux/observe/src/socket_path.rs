//! The path of a Unix socket that is about to be made.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Removes the socket that a killed process left at `path`; nothing there is as good.
///
/// A file of any other kind is left alone: whoever named it in the settings meant another place, or would lose it.
///
/// Errors: something there is no socket ([`io::ErrorKind::AlreadyExists`]), or the kernel's refusal.
pub fn remove_left_behind(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file that is no socket, and it was left alone: choose another path, or move the file",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::remove_left_behind;
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_a_socket_is_removed() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("at");
        remove_left_behind(&path).expect("nothing is there");
        drop(UnixListener::bind(&path).expect("a socket"));
        remove_left_behind(&path).expect("a socket that was left behind");
        assert!(!path.exists());
        fs::write(&path, "mine").expect("a file");
        assert_eq!(remove_left_behind(&path).expect_err("a file").kind(), ErrorKind::AlreadyExists);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        remove_left_behind(&link).expect_err("a link");
        assert_eq!(fs::read_to_string(&link).expect("still there"), "mine");
    }
}
