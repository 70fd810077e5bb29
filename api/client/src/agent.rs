//! Starts `minerva-agent` where no server listens but one can be reached, as in a guest.

use crate::error::nobody_listens;
use crate::signals;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::net::UnixStream;

/// An agent that nobody uses ends by itself after this time.
const IDLE_EXIT: &str = "60s";
/// An agent that does not listen by then is given up.
const START_MAX: Duration = Duration::from_secs(5);
/// How often its socket is tried until then.
const TRY_PERIOD: Duration = Duration::from_millis(20);

/// The agent to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The program.
    pub program: PathBuf,
    /// The server that it speaks to.
    pub upstream: String,
    /// Where it shall listen.
    pub socket: PathBuf,
}

impl Agent {
    /// Starts it and connects. Of several that are started at a time, one stays, and all connect to that one.
    pub(crate) async fn start(&self) -> io::Result<UnixStream> {
        if let Some(directory) = self.socket.parent() {
            own_directory(directory)?;
        }
        self.spawn()?;
        let listening = async {
            loop {
                match UnixStream::connect(&self.socket).await {
                    Err(error) if nobody_listens(&error) => tokio::time::sleep(TRY_PERIOD).await,
                    result => return result,
                }
            }
        };
        tokio::time::timeout(START_MAX, listening).await.unwrap_or_else(|_| {
            let program = self.program.display();
            let text = format!("{program} was started and does not listen at {}", self.socket.display());
            Err(io::Error::new(io::ErrorKind::NotFound, text))
        })
    }
}

impl Agent {
    fn spawn(&self) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command
            .arg("--socket")
            .arg(&self.socket)
            .args(["--idle-exit", IDLE_EXIT])
            .env("MINERVA_UPSTREAM", &self.upstream)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // It serves other programs too: an interrupt at this one's terminal is not meant for it.
            .process_group(0);
        // SAFETY: each makes one system call and allocates nothing. Whatever signals the thread that starts it holds off, it takes them.
        unsafe { command.pre_exec(signals::take_all).pre_exec(close_descriptors_at_exec) };
        let mut child = command.spawn()?;
        let _held_off = signals::HeldOff::begin();
        // Somebody must wait for it, so that it is no zombie if it ends before this program.
        std::thread::Builder::new().name("minerva-agent".to_owned()).spawn(move || child.wait())?;
        Ok(())
    }
}

/// The agent outlives the program, and would keep what that has open: its lock on a file, the port it listens at. Safe between `fork` and
/// `exec`. Kernels before 5.11 have no such call.
fn close_descriptors_at_exec() -> io::Result<()> {
    const FIRST: u32 = 3;
    // SAFETY: the call takes three numbers, and only marks descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Ok(())
}

/// Makes the directory of the socket, and accepts none in which others could put a socket of theirs.
fn own_directory(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).recursive(true).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    if is_own(&directory.symlink_metadata()?) {
        return Ok(());
    }
    let text = format!("{} belongs to somebody else or lets others write", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// A directory of this user that nobody else can write to.
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.permissions().mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use super::own_directory;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let parent = tempfile::tempdir().expect("a directory");
        let directory = parent.path().join("minerva");
        own_directory(&directory).expect("made");
        own_directory(&directory).expect("there already");
        std::fs::set_permissions(&directory, Permissions::from_mode(0o777)).expect("opened");
        let error = own_directory(&directory).expect_err("others can write").to_string();
        assert!(error.contains("lets others write"), "{error}");
    }
}
