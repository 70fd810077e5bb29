//! What a server without root cannot open: the image of a new disk, and its socket.

use anyhow::{Context, bail};
use minerva_model::DiskSettings;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Both, open. The socket is removed again unless the server took it.
pub(crate) struct Opened {
    pub(crate) image: File,
    pub(crate) listener: UnixListener,
    socket: Option<PathBuf>,
}

impl Opened {
    /// Opens the image as its settings say, and listens where QEMU is to connect: the socket is the server's user's, and members of
    /// `group` may connect.
    pub(crate) fn open(disk: &DiskSettings, user: u32, group: Option<u32>) -> anyhow::Result<Self> {
        let image = image(disk)?;
        let path = PathBuf::from(&disk.socket);
        let listener = listen(&path)?;
        let opened = Self { image, listener, socket: Some(path.clone()) };
        let own = rustix::process::geteuid().as_raw();
        let owner = Some(user).filter(|user| *user != own);
        let context = || format!("failed to give {} to the server and its group; be root", path.display());
        chown(&path, owner, group).with_context(context)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o660)).with_context(context)?;
        Ok(opened)
    }

    /// The server listens there now.
    pub(crate) fn leave_to_server(mut self) {
        self.socket = None;
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

fn image(disk: &DiskSettings) -> anyhow::Result<File> {
    let path = Path::new(&disk.image);
    let context = || format!("failed to open the image {}", path.display());
    let kind = std::fs::metadata(path).with_context(context)?.file_type();
    let mut flags = OFlags::NONBLOCK;
    if disk.direct {
        flags |= OFlags::DIRECT;
    }
    if kind.is_block_device() && !disk.read_only {
        // Neither mounted nor opened by others who say so too.
        flags |= OFlags::EXCL;
    }
    let mut open = OpenOptions::new();
    open.read(true).write(!disk.read_only).custom_flags(flags.bits().cast_signed());
    open.open(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput if disk.direct => {
            anyhow::anyhow!("{}: its file system has no direct I/O; say --no-direct, or move the image", path.display())
        }
        ErrorKind::ResourceBusy => anyhow::anyhow!("{}: in use, perhaps mounted; unmount it", path.display()),
        _ => anyhow::Error::new(error).context(context()),
    })
}

/// A socket of our own; one that nobody listens at any more is replaced.
fn listen(path: &Path) -> anyhow::Result<UnixListener> {
    let context = || format!("failed to listen at {}; name another --socket", path.display());
    match UnixStream::connect(path) {
        Ok(_) => bail!("{} is in use: somebody listens there; name another --socket", path.display()),
        // So says the kernel of a socket that nobody listens at any more, and of any other file too.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            if !std::fs::symlink_metadata(path).with_context(context)?.file_type().is_socket() {
                bail!("{} is a file and no socket; it was left alone: name another --socket", path.display());
            }
            std::fs::remove_file(path).with_context(context)?
        }
        // Nothing there, or something that `bind` will refuse.
        Err(_) => {}
    }
    UnixListener::bind(path).with_context(context)
}
