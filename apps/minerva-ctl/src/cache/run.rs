//! `minerva-ctl cache run`: a command to which a directory of the pool is another directory. However the command and this program end, what
//! it left goes to its place: at its end, or, where this program was killed, before the next run.

use super::units::{judge, settle_as_owner, settling};
use super::{NAME_BYTES_MAX, Service, paths};
use crate::daemon::block_on;
use crate::output::{self, CommandStatus};
use crate::signals::Signals;
use anyhow::Context;
use minerva_api::cache::Pool;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Binds $1 over $2, which only this command and its children see.
const BIND: &str = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
/// What directories of commands in the pool are called; then come the process and the directory that they stand for.
const PREFIX: &str = "run-";
const LATE_SIGNAL_MAX: Duration = Duration::from_millis(500);

impl Service<'_> {
    /// Runs a command to which a directory of the pool is that directory; what it left there goes to its place when it has ended.
    pub(super) fn run(
        &self,
        directory: &Path,
        place: (Pool, Option<String>),
        command: &[OsString],
    ) -> anyhow::Result<CommandStatus> {
        let directory = paths::of_directory(directory)?;
        let from = self.prepare(&directory, name_of(std::process::id(), &directory), place)?;
        let lock = File::open(&from).with_context(|| format!("failed to open {}", from.display()))?;
        flock(&lock, FlockOperation::LockShared).with_context(|| format!("failed to lock {}", from.display()))?;
        settle_what_others_left(self.0, &from);
        // From here on there is something to be put to its place.
        let mut signals = Signals::catch()?;
        let mut bound = Command::new("unshare");
        bound.args(["--mount", "--propagation", "slave", "--", "sh", "-c", BIND, "sh"]).arg(&from).arg(&directory);
        bound.args(command);
        // The command has the lock too: should this program be killed, nobody takes its files from under it.
        fcntl_setfd(&lock, FdFlags::empty()).context("failed to pass a lock on")?;
        let (status, settled) = block_on(async {
            let status = until_end_of(bound, &mut signals).await.context("failed to run the command by unshare(1)");
            if status.as_ref().is_ok_and(ended_by_a_signal) {
                // Sent to all of the group, it comes here too, if perhaps only now.
                let _ = timeout(LATE_SIGNAL_MAX, signals.next()).await;
            }
            // A signal that comes now ends this; what it leaves is told.
            let settled = match settling(self.0, &from, &directory)? {
                Some(settling) => until_end_of(settling.into(), &mut signals).await.map_err(anyhow::Error::new),
                None => Ok(ExitStatus::default()),
            };
            Ok((status, settled.and_then(|status| judge(status, &from, &directory))))
        })?;
        // Empty by now, unless something could not go.
        let _ = fs::remove_dir(&from);
        let (status, ()) = (status?, settled?);
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => CommandStatus::Exited(code),
            (None, signal) => CommandStatus::Signalled(signal.unwrap_or_default()),
        })
    }
}

/// Whether a signal ended a command, or a shell says that it ended the shell's.
fn ended_by_a_signal(status: &ExitStatus) -> bool {
    status.signal().is_some() || status.code().is_some_and(|code| code > 128)
}

async fn until_end_of(mut command: Command, signals: &mut Signals) -> std::io::Result<ExitStatus> {
    signals.until_end_of(&mut command.spawn()?).await
}

/// Puts to their place what runs left whose programs were killed. What does not go is told, and holds up nobody.
fn settle_what_others_left(socket: &Path, own: &Path) {
    for entry in own.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten() {
        let from = entry.path();
        let Some((process, directory)) = of_name(&entry.file_name()).filter(|_| from != own) else { continue };
        let is_there = Path::new("/proc").join(process.to_string()).exists();
        let Ok(lock) = File::open(&from) else { continue };
        // Held by a command that outlived its program, and by one in another namespace of processes.
        let is_held = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err();
        if is_there || is_held || fs::remove_dir(&from).is_ok() {
            continue;
        }
        let settled = match directory {
            Some(directory) => settle_as_owner(socket, &from, &directory),
            None => {
                Err(anyhow::anyhow!("`minerva-ctl cache settle {} DIRECTORY` puts it to its place", from.display()))
            }
        };
        if let Err(error) = settled {
            output::note(&format!("a run that was killed left something: {error:#}"));
        }
        let _ = fs::remove_dir(&from);
    }
}

/// What the directory of a run is called, so that a later one knows to which place its files go.
fn name_of(process: u32, directory: &Path) -> String {
    let mut name = format!("{PREFIX}{process}-");
    for byte in directory.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => name.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(name, "%{byte:02x}")),
        }
    }
    if name.len() > NAME_BYTES_MAX { format!("{PREFIX}{process}") } else { name }
}

/// The process of a run, and the directory, where the name has room for it.
fn of_name(name: &OsStr) -> Option<(u32, Option<PathBuf>)> {
    let rest = name.to_str()?.strip_prefix(PREFIX)?;
    let Some((process, mut directory)) = rest.split_once('-') else { return Some((rest.parse().ok()?, None)) };
    let mut path = Vec::new();
    while let Some(byte) = directory.bytes().next() {
        let length = if byte == b'%' { 3 } else { 1 };
        path.push(if byte == b'%' { u8::from_str_radix(directory.get(1..length)?, 16).ok()? } else { byte });
        directory = directory.get(length..)?;
    }
    Some((process.parse().ok()?, Some(OsString::from_vec(path).into())))
}

#[cfg(test)]
mod tests {
    use super::{name_of, of_name};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    #[test]
    fn the_name_of_a_runs_directory_says_to_which_place_its_files_go() {
        for path in [&b"/srv/dump"[..], b"/a/-b", b"/a-/b", "/\u{e4} %2f".as_bytes(), b"/\xff\n"] {
            let path = Path::new(OsStr::from_bytes(path));
            let name = name_of(7, path);
            assert!(!name.contains('/') && name.is_ascii(), "{name}");
            assert_eq!(of_name(name.as_ref()), Some((7, Some(path.to_owned()))));
        }
        // One whose name has no room for it, and those of earlier versions.
        let long = name_of(7, Path::new(&format!("/{}", "d/".repeat(100))));
        assert_eq!((long.as_str(), of_name(long.as_ref())), ("run-7", Some((7, None))));
        for other in ["dump.service-srv", "run-x", "run-7-%", "run-7-%\u{e4}"] {
            assert_eq!(of_name(other.as_ref()), None, "{other}");
        }
    }
}
