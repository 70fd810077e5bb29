//! The agent's socket: one agent a socket, and who is connected to it.

use crate::arguments::ListeningAddress;
use crate::users::{Slot, Slots};
use anyhow::{Context, anyhow};
use futures_util::Stream;
use listenfd::ListenFd;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tonic::transport::server::Connected;

/// An agent that is ending has let go of its socket by then.
const ENDING_MAX: Duration = Duration::from_secs(3);
const ENDING_STEP: Duration = Duration::from_millis(20);
/// When no descriptor is left, accepting again at once would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket, and the lock that says whose it is.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) listener: UnixListener,
    pub(crate) path: PathBuf,
    /// Held until the process ends, however it ends; absent where the socket is the service manager's.
    lock: Option<File>,
}

impl Listening {
    /// The socket that a service manager has opened and handed over (`sd_listen_fds(3)`), if one did. It stays when the agent
    /// ends. To be called in a runtime.
    pub(crate) fn handed_over() -> anyhow::Result<Option<Self>> {
        let context = "what the service manager handed over is no listening Unix socket";
        let Some(listener) = ListenFd::from_env().take_unix_listener(0).context(context)? else { return Ok(None) };
        let path = listener.local_addr().context(context)?.as_pathname().map(Path::to_owned).unwrap_or_default();
        listener.set_nonblocking(true).context(context)?;
        Ok(Some(Self { listener: UnixListener::from_std(listener).context(context)?, path, lock: None }))
    }

    /// Binds the socket. One that a killed agent left behind is replaced; one at which another listens is an error.
    pub(crate) fn bind(place: &ListeningAddress) -> anyhow::Result<Self> {
        let path = &place.socket;
        let context = || format!("failed to listen at {}", path.display());
        if let Some(parent) = path.parent() {
            // Others must be able to pass through a shared one; nobody else may put a socket in its place.
            let mode = if place.is_shared { 0o755 } else { 0o700 };
            DirBuilder::new().recursive(true).mode(mode).create(parent).with_context(context)?;
            check_directory(parent).with_context(context)?;
        }
        let lock = lock(path)?;
        // As the daemon's `socket_path`; the agent, which is for guests, is linked with nothing that observes a host.
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path).with_context(context)?,
            Ok(_) => {
                let why = anyhow!("there is a file that is no socket, and it was left alone: choose another path");
                return Err(why).with_context(context);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(context),
        }
        // Bound under another name and renamed, so that nobody finds it before its permissions are right.
        let new = path.with_extension("new");
        let _ = fs::remove_file(&new);
        let listener = UnixListener::bind(&new).with_context(context)?;
        let mode = if place.is_shared { 0o666 } else { 0o600 };
        fs::set_permissions(&new, Permissions::from_mode(mode)).with_context(context)?;
        fs::rename(&new, path).with_context(context)?;
        Ok(Self { listener, path: path.clone(), lock: Some(lock) })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // Gone already when somebody tidied up.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Accepts no directory that others could have made a link to theirs, as they could in `/tmp`, or put a socket of theirs into.
fn check_directory(directory: &Path) -> io::Result<()> {
    let found = directory.symlink_metadata()?;
    let (owner, own, mode) = (found.uid(), rustix::process::geteuid().as_raw(), found.permissions().mode());
    // In a sticky one others can put something beside the socket and not in its place.
    let is_others = (owner != own && owner != 0) || (mode & 0o022 != 0 && mode & 0o1000 == 0);
    let text = match () {
        () if !found.is_dir() => "is a link or no directory",
        () if is_others => "belongs to somebody else or lets others write",
        () => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {text}", directory.display())))
}

/// Takes the lock beside the socket, which the kernel releases when its holder ends.
fn lock(socket: &Path) -> anyhow::Result<File> {
    let path = socket.with_extension("lock");
    let context = || format!("failed to lock {}", path.display());
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let options = File::options().create(true).append(true).custom_flags(no_link).clone();
    let file = options.open(&path).with_context(context)?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error).with_context(context),
            Err(TryLockError::WouldBlock) => {}
        }
        // An agent that holds the lock and does not listen is starting or ending.
        let is_served = std::os::unix::net::UnixStream::connect(socket).is_ok();
        if is_served || begin.elapsed() > ENDING_MAX {
            anyhow::bail!("another agent runs at {}: use that one, or give another --socket", socket.display());
        }
        std::thread::sleep(ENDING_STEP);
    }
}

/// Counts who needs the agent: whoever holds an [`Attendance`].
#[derive(Clone, Debug)]
pub(crate) struct Attendances(watch::Sender<u64>);

/// Somebody needs the agent.
pub(crate) type Attendance = watch::Receiver<u64>;

impl Attendances {
    pub(crate) fn new() -> Self {
        Self(watch::channel(0).0)
    }

    /// One more.
    pub(crate) fn enter(&self) -> Attendance {
        self.0.send_modify(|count| *count += 1);
        self.0.subscribe()
    }

    /// Returns when nobody has needed the agent for `span`.
    pub(crate) async fn idle_for(&self, span: Duration) {
        loop {
            self.0.closed().await;
            let count = *self.0.borrow();
            tokio::time::sleep(span).await;
            if self.0.receiver_count() == 0 && *self.0.borrow() == count {
                return;
            }
        }
    }
}

/// Whoever the kernel says nothing of: nobody has this number (chown(2)).
pub(crate) const UNKNOWN_USER: u32 = u32::MAX;
/// More connections than a machine's programs have.
const CONNECTIONS_MAX: usize = 2048;
/// Descriptors that are kept from connections: for the way to the server, processes that are looked at, files.
const DESCRIPTORS_KEPT: usize = 128;

/// Who is at the other end, as the kernel says.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Its number here; absent when it is in a pid namespace that this one does not see into.
    pub(crate) process: Option<i32>,
    pub(crate) user: u32,
}

/// A connection, and that somebody is there.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    _slot: Slot,
    _attendance: Attendance,
}

impl Connected for Connection {
    type ConnectInfo = Option<Peer>;

    fn connect_info(&self) -> Option<Peer> {
        let credentials = self.stream.peer_cred().ok()?;
        Some(Peer { process: credentials.pid(), user: credentials.uid() })
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Slots for as many connections as leave the agent descriptors of its own.
fn slots() -> Slots {
    let descriptors_max = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors_max = descriptors_max.and_then(|most| usize::try_from(most).ok()).unwrap_or(CONNECTIONS_MAX);
    Slots::new(descriptors_max.saturating_sub(DESCRIPTORS_KEPT).min(CONNECTIONS_MAX))
}

/// Every connection, without an end. One beyond what its user may have is closed, so that its program goes on without a server, as it would
/// if there were no agent.
pub(crate) fn connections(
    listening: &Listening,
    attendances: Attendances,
) -> impl Stream<Item = io::Result<Connection>> + '_ {
    let start = (listening, attendances, slots());
    futures_util::stream::unfold(start, |(listening, attendances, slots)| async move {
        loop {
            let stream = match listening.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted, ignoring");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let user = stream.peer_cred().map_or(UNKNOWN_USER, |credentials| credentials.uid());
            if let Some(slot) = slots.take(user) {
                let connection = Connection { stream, _slot: slot, _attendance: attendances.enter() };
                return Some((Ok(connection), (listening, attendances, slots)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Listening, ListeningAddress};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    fn bind(socket: PathBuf) -> Result<PathBuf, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _entered = runtime.enter();
        let bound = Listening::bind(&ListeningAddress { socket: socket.clone(), is_shared: false });
        bound.map(|_| socket).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn no_link_that_others_may_have_made_is_followed() {
        let public = tempfile::tempdir().expect("a directory");
        let theirs = public.path().join("theirs");
        fs::create_dir(&theirs).expect("a directory");
        symlink(&theirs, public.path().join("minerva-1000")).expect("a link");
        let error = bind(public.path().join("minerva-1000/agent.sock")).expect_err("a link");
        assert!(error.contains("is a link"), "{error}");
        assert_eq!(fs::read_dir(&theirs).expect("a directory").count(), 0, "nothing was made behind the link");
        // Nor at the lock.
        let own = public.path().join("own");
        fs::create_dir(&own).expect("a directory");
        symlink(theirs.join("file"), own.join("agent.lock")).expect("a link");
        bind(own.join("agent.sock")).expect_err("a link");
        assert!(!theirs.join("file").exists());
        fs::remove_file(own.join("agent.lock")).expect("a link");
        bind(own.join("agent.sock")).expect("a directory of this user's own");
    }

    #[test]
    fn no_directory_is_taken_that_others_can_write_to() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("opened");
        let error = bind(directory.path().join("agent.sock")).expect_err("others can write");
        assert!(error.contains("lets others write"), "{error}");
        bind(directory.path().join("new/agent.sock")).expect("made for this user alone");
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_where_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).expect("closed");
        let path = directory.path().join("agent.sock");
        fs::write(&path, "mine").expect("a file");
        let error = bind(path.clone()).expect_err("a file");
        assert!(error.contains("is no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("still there"), "mine");
    }
}
