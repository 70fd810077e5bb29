//! Mounting and unmounting.

use super::adapter::Adapter;
use crate::file_system::FileSystem;
use fuser::{BackgroundSession, Config, INodeNo, MountOption, Notifier, Session, SessionACL};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a file system is mounted.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// What `mount` shows in front.
    pub name: String,
    /// Requests that are served at once.
    pub threads: usize,
    /// The kernel is asked to read files by itself.
    pub wants_passthrough: bool,
}

/// A mounted file system; dropped, it is unmounted.
#[derive(Debug)]
pub struct Mounted {
    session: Option<BackgroundSession>,
    has_passthrough: Arc<AtomicBool>,
}

/// Mounts. Everybody may enter whom the attributes let; programs do not run with the rights of a file's owner, and device nodes open
/// no devices.
pub fn mount<F: FileSystem>(file_system: Arc<F>, at: &Path, options: &MountOptions) -> io::Result<Mounted> {
    let has_passthrough = Arc::new(AtomicBool::new(options.wants_passthrough));
    let adapter = Adapter::new(file_system, Arc::clone(&has_passthrough));
    let mut config = Config::default();
    config.acl = SessionACL::All;
    config.n_threads = Some(options.threads);
    config.clone_fd = options.threads > 1;
    config.mount_options = vec![
        MountOption::FSName(options.name.clone()),
        MountOption::Subtype("minerva".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
    ];
    let session = Session::new(adapter, at, &config)?.spawn()?;
    Ok(Mounted { session: Some(session), has_passthrough })
}

/// Asks the kernel to forget names of a mounted file system.
#[derive(Clone, Debug)]
pub struct Forgetting(Notifier);

impl Forgetting {
    /// The kernel looks this name up anew when it is asked for next, and lets go of the file unless somebody uses it. Not to be called
    /// while a request is served: the kernel may wait for that one's end.
    pub fn forget(&self, directory: u64, name: &OsStr) -> io::Result<()> {
        self.0.inval_entry(INodeNo(directory), name)
    }
}

impl Mounted {
    /// Asks the kernel to forget names.
    pub fn forgetting(&self) -> Option<Forgetting> {
        self.session.as_ref().map(|session| Forgetting(session.notifier()))
    }

    /// Whether the kernel reads files by itself.
    pub fn has_passthrough(&self) -> bool {
        self.has_passthrough.load(Ordering::Relaxed)
    }

    /// Whether it is still served: nobody has unmounted it from outside.
    pub fn is_served(&self) -> bool {
        self.session.as_ref().is_some_and(|session| !session.guard.is_finished())
    }

    /// Waits for the last answer, once it is unmounted.
    pub fn join(mut self) -> io::Result<()> {
        self.session.take().map_or(Ok(()), BackgroundSession::join)
    }
}
