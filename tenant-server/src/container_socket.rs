//! The socket for processes once more, in a directory of its own that containers mount. A file that is mounted stays the one that it
//! was, and every start makes a new socket; in a directory that is mounted the new one is found. The directory in which the
//! operators' socket is must not be mounted for that.

use minerva_linux_observe::socket_path::remove_left_behind;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory's name. It is beside the socket.
const DIRECTORY: &str = "tenant";

/// Puts the socket into the directory too, under the same name; where that is.
///
/// Errors: something else is in the way, such as what a container put there that may write to the directory.
pub(crate) fn link(socket: &Path) -> io::Result<PathBuf> {
    let directory = socket.with_file_name(DIRECTORY);
    match fs::create_dir(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = File::from(rustix::fs::open(&directory, flags, Mode::empty())?);
    let name = socket.file_name().unwrap_or_default();
    // What another program has there is not for everyone.
    let is_owned = opened.metadata()?.uid() == rustix::process::geteuid().as_raw();
    let others =
        fs::read_dir(&directory)?.flatten().filter(|entry| entry.file_name() != name).map(|entry| entry.path());
    let (dead, others): (Vec<PathBuf>, Vec<PathBuf>) = others.partition(|path| is_dead(path));
    if !is_owned || !others.is_empty() {
        let why = format!("{} is another program's; it was left alone", directory.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    // A killed daemon left it, before the operator gave the socket another name.
    for left in dead {
        fs::remove_file(left)?;
    }
    // Whatever the daemon's umask is, everyone may enter, as everyone may connect.
    opened.set_permissions(Permissions::from_mode(0o755))?;
    let linked = directory.join(name);
    remove_left_behind(&linked)?;
    // No symbolic link, which would lead out of what is mounted.
    fs::hard_link(socket, &linked)?;
    Ok(linked)
}

/// Whether it is a socket of this user's at which nobody listens any more.
fn is_dead(path: &Path) -> bool {
    let own = |found: fs::Metadata| found.file_type().is_socket() && found.uid() == rustix::process::geteuid().as_raw();
    // Not waiting where somebody listens and never accepts.
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let connected = || {
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        connect(socket.as_raw_fd(), &UnixAddr::new(path)?)
    };
    fs::symlink_metadata(path).is_ok_and(own) && connected() == Err(Errno::ECONNREFUSED)
}

#[cfg(test)]
mod tests {
    use super::{DIRECTORY, link};
    use crate::listen::TenantListeners;
    use minerva_config::ParticipationSettings;
    use std::fs::{self, File, Permissions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn who_has_the_directory_finds_the_socket_of_every_start() {
        let files = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
        let directory = files.path().join(DIRECTORY);
        // As a daemon with a narrow umask makes it.
        fs::create_dir(&directory).expect("a directory");
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).expect("its mode");
        // The directory itself, wherever it is named, as one that is mounted elsewhere.
        let mounted = File::open(&directory).expect("a directory");
        let inside = format!("/proc/self/fd/{}/tenant.sock", mounted.as_raw_fd());
        let settings = ParticipationSettings {
            socket: Some(files.path().join("tenant.sock")),
            ..ParticipationSettings::default()
        };
        for _ in 0..2 {
            let listeners = TenantListeners::open(&settings).expect("listeners");
            let found = fs::metadata(&inside);
            UnixStream::connect(&inside).expect("the server of this start");
            assert_eq!(listeners.sockets, [files.path().join("tenant.sock"), directory.join("tenant.sock")]);
            assert_eq!(found.expect("a socket").permissions().mode() & 0o777, 0o666);
            // Dropped as by `kill -9`: both are left behind.
        }
        assert_eq!(directory.metadata().expect("there").permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn what_is_in_the_way_is_left_alone_and_keeps_nobody_else_out() {
        let files = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
        let socket = files.path().join("tenant.sock");
        let linked = files.path().join(DIRECTORY).join("tenant.sock");
        fs::create_dir_all(&linked).expect("a directory in its place");
        let settings = ParticipationSettings { socket: Some(socket.clone()), ..ParticipationSettings::default() };
        let listeners = TenantListeners::open(&settings).expect("listeners");
        assert_eq!(listeners.sockets, std::slice::from_ref(&socket));
        UnixStream::connect(&socket).expect("a server");
        fs::remove_dir_all(files.path().join(DIRECTORY)).expect("removed");
        fs::write(files.path().join(DIRECTORY), "").expect("a file in its place");
        assert_eq!(link(&socket).expect_err("a file").kind(), std::io::ErrorKind::NotADirectory);
        fs::remove_file(files.path().join(DIRECTORY)).expect("removed");
        let private = files.path().join(DIRECTORY);
        fs::create_dir(&private).expect("a directory");
        fs::set_permissions(&private, Permissions::from_mode(0o700)).expect("its mode");
        fs::write(private.join("key"), "").expect("a file in it");
        assert!(link(&socket).expect_err("another's").to_string().contains("another program's"));
        assert_eq!(private.metadata().expect("there").permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_socket_of_another_name_that_was_left_behind_is_not_in_the_way_and_one_that_serves_is() {
        let files = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
        let settings = |name: &str| ParticipationSettings {
            socket: Some(files.path().join(name)),
            ..ParticipationSettings::default()
        };
        let before = TenantListeners::open(&settings("tenant.sock")).expect("listeners");
        let [socket, linked] = ["tenant.sock", "tenant/tenant.sock"].map(|name| files.path().join(name));
        assert_eq!(before.sockets, [socket, linked.clone()]);
        let renamed = files.path().join("renamed.sock");
        let other = TenantListeners::open(&settings("renamed.sock")).expect("listeners");
        assert_eq!((other.sockets.clone(), linked.exists()), (vec![renamed.clone()], true), "it is served");
        // As by `kill -9`.
        drop((before, other));
        let after = TenantListeners::open(&settings("renamed.sock")).expect("listeners");
        let inside = files.path().join("tenant/renamed.sock");
        assert_eq!((after.sockets.clone(), linked.exists()), (vec![renamed, inside.clone()], false));
        UnixStream::connect(inside).expect("the server of this start");
    }
}
