//! A tree where it is mounted, and how it goes: it may be used, here or only in another mount namespace, when it is asked to.

use crate::mount_point;
use anyhow::{Context, bail};
use minerva_cachefs::{Forgetting, MountOptions, Mounted, Tree, mount};
use minerva_config::FsConfig;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// So long the threads of a tree that was just unmounted may take to end. Whoever changes tenants waits for it, and with them everybody.
const TO_END: Duration = Duration::from_millis(100);
const TO_END_LOOK: Duration = Duration::from_millis(1);

/// A mounted tree.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) tree: Arc<Tree>,
    pub(crate) at: PathBuf,
    mounted: Option<Mounted>,
    /// Nobody sees it here any more, though it may still be served: another mount namespace can have it, whose users keep it alive.
    is_unmounted: bool,
}

impl Mount {
    /// Mounts it, in place of what an earlier process left there.
    pub(crate) fn new(tree: Tree, at: &Path, config: &FsConfig) -> anyhow::Result<Self> {
        if mount_point::prepare(at)? {
            eprintln!("minerva-fs: {} was left mounted by a killed process; it is mounted again", at.display());
        }
        Self::serve(Arc::new(tree), at, config)
    }

    fn serve(tree: Arc<Tree>, at: &Path, config: &FsConfig) -> anyhow::Result<Self> {
        let options = MountOptions {
            name: "minerva".to_owned(),
            threads: config.server.threads as usize,
            wants_passthrough: true,
        };
        let mounted = mount(Arc::clone(&tree), at, &options).with_context(|| {
            format!("failed to mount {}; does /dev/fuse exist, and do you run as root?", at.display())
        })?;
        Ok(Self { tree, at: at.to_owned(), mounted: Some(mounted), is_unmounted: false })
    }

    /// A tree of the host, in its guest.
    pub(crate) fn served_elsewhere(tree: Tree, at: &Path) -> Self {
        Self { tree: Arc::new(tree), at: at.to_owned(), mounted: None, is_unmounted: false }
    }

    /// Whether the kernel reads files by itself.
    pub(crate) fn has_passthrough(&self) -> bool {
        self.mounted.as_ref().is_some_and(Mounted::has_passthrough)
    }

    /// Asks the kernel to forget names of it.
    pub(crate) fn forgetting(&self) -> Option<Forgetting> {
        self.mounted.as_ref().and_then(Mounted::forgetting)
    }

    /// Whether it is mounted and served.
    pub(crate) fn is_served(&self) -> bool {
        if self.tree.is_served_elsewhere() {
            return self.tree.is_at(&self.at);
        }
        !self.is_unmounted && self.mounted.as_ref().is_some_and(Mounted::is_served)
    }

    /// Serves it again after it was unmounted.
    pub(crate) fn mount_again(&mut self, config: &FsConfig) -> anyhow::Result<()> {
        if self.is_unmounted && !self.end_if_over()? {
            // What two mounts of one tree remember of a file would differ.
            bail!("{}; end its processes, then reload again", self.why_in_use());
        }
        if self.mounted.is_none() {
            self.tree.forget_all();
            self.tree.make_deferring().context("failed to make a directory for deferred files")?;
            *self = Self::serve(Arc::clone(&self.tree), &self.at, config)?;
        }
        Ok(())
    }

    /// Whether a program of this mount namespace uses it, without unmounting it.
    pub(crate) fn is_used(&mut self) -> bool {
        if self.mounted.is_none() || self.is_unmounted {
            return false;
        }
        // The first to ask for a mount that is not used is told so by an error and leaves a mark, the next would unmount it. Who walks there
        // takes the mark away.
        drop(openat(CWD, &self.at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
        match unmount(&self.at, UnmountFlags::EXPIRE) {
            // Somebody else asked in between.
            Ok(()) => self.is_unmounted = true,
            Err(error) => return error == Errno::BUSY,
        }
        false
    }

    /// Unmounts if nobody uses it; whether it is unmounted, and nobody has it anywhere.
    pub(crate) fn unmount(&mut self) -> anyhow::Result<bool> {
        if self.mounted.is_none() {
            return Ok(true);
        }
        if !self.is_unmounted {
            match unmount(&self.at, UnmountFlags::empty()) {
                Ok(()) => self.wait_for_end(),
                // Somebody else unmounted it.
                Err(Errno::INVAL) => (),
                Err(Errno::BUSY) => return Ok(false),
                Err(error) => return Err(error).with_context(|| format!("failed to unmount {}", self.at.display())),
            }
            // Never again: from now on what is mounted there is somebody else's.
            self.is_unmounted = true;
        }
        self.end_if_over()
    }

    /// Who uses it though it is asked to go.
    pub(crate) fn why_in_use(&self) -> String {
        let at = self.at.display();
        if self.is_unmounted {
            format!(
                "{at} is unmounted, but another mount namespace, such as a container's, still has it: \
                 `grep -l fuse.minerva /proc/[0-9]*/mountinfo` shows whose"
            )
        } else {
            format!("{at} is used: `fuser -vm {at}` says by whom")
        }
    }

    /// A mount that was the last ends at once.
    fn wait_for_end(&self) {
        let begun = Instant::now();
        while self.mounted.as_ref().is_some_and(Mounted::is_served) && begun.elapsed() < TO_END {
            thread::sleep(TO_END_LOOK);
        }
    }

    /// Sees the last requests off, if there will be no more; whether that is so. To wait for it could take for ever.
    fn end_if_over(&mut self) -> anyhow::Result<bool> {
        match self.mounted.take_if(|mounted| !mounted.is_served()) {
            Some(mounted) => mounted.join().context("the last requests failed")?,
            None => return Ok(self.mounted.is_none()),
        }
        Ok(true)
    }

    /// Takes the mount out of everybody's sight though it is used; who uses it meets `ENOTCONN` once this process has ended.
    pub(crate) fn detach(&mut self) -> anyhow::Result<()> {
        if !self.is_unmounted {
            unmount(&self.at, UnmountFlags::DETACH)
                .with_context(|| format!("failed to detach {}", self.at.display()))?;
        }
        // Its threads end with the process: to wait for them would be to wait for those programs.
        std::mem::forget(self.mounted.take());
        Ok(())
    }
}
