//! Directories where something is to be mounted, or was when an earlier process was killed.

use anyhow::{Context, bail};
use rustix::fs::statvfs;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// An ordinary directory, or nothing yet.
    Free,
    /// A mount that nobody serves any more.
    Stale,
    /// A mount that is served.
    Mounted,
}

/// Looks. What `stat` shows of a mount may be what the kernel remembers from when somebody served it; room is asked for each time.
pub(crate) fn state(at: &Path) -> anyhow::Result<State> {
    let failed = || format!("failed to look at {}", at.display());
    match statvfs(at) {
        Ok(_) => (),
        Err(Errno::NOENT) => return Ok(State::Free),
        Err(Errno::NOTCONN | Errno::CONNABORTED) => return Ok(State::Stale),
        Err(error) => return Err(error).with_context(failed),
    }
    let metadata = std::fs::metadata(at).with_context(failed)?;
    if !metadata.is_dir() {
        bail!("{} is no directory; move it away or name another `mount`", at.display());
    }
    let parent = at.parent().unwrap_or(at);
    let parent = std::fs::metadata(parent).with_context(|| format!("failed to look at {}", parent.display()))?;
    Ok(if metadata.dev() == parent.dev() { State::Free } else { State::Mounted })
}

/// Makes the place ready for a mount: what an earlier process left is taken away, and programs that still have files open there keep
/// what the kernel lets them. Whether there was anything.
pub(crate) fn prepare(at: &Path) -> anyhow::Result<bool> {
    let mut found = false;
    loop {
        match state(at)? {
            State::Free => break,
            State::Stale => {
                unmount(at, UnmountFlags::DETACH)
                    .with_context(|| format!("failed to remove the stale mount at {}", at.display()))?;
                found = true;
            }
            State::Mounted => bail!("{0} is mounted already, by somebody else; unmount it: umount {0}", at.display()),
        }
    }
    std::fs::create_dir_all(at).with_context(|| format!("failed to make {}", at.display()))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{State, prepare, state};

    #[test]
    fn a_directory_is_free_and_one_that_is_missing_is_made() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(state(place.path()).unwrap(), State::Free);
        let below = place.path().join("a/b");
        assert_eq!(state(&below).unwrap(), State::Free);
        assert!(!prepare(&below).unwrap());
        assert!(below.is_dir());
        std::fs::write(place.path().join("file"), "").unwrap();
        let said = prepare(&place.path().join("file")).unwrap_err().to_string();
        assert!(said.contains("is no directory; move it away"), "{said}");
    }
}
