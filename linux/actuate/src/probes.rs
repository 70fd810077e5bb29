//! Where `minerva-ctl doctor --probe` and `--compare` work: with groups and a runtime directory of its own below the daemon's, so that a running
//! daemon is not disturbed and one that is confined to its own directories can put back what a killed probe left. Both carry the probe's process
//! id, so that what a killed one left is known.

use crate::error::ActuateError;
use crate::named::NamedGroups;
use crate::restore::{RestoreWhen, restore};
use crate::settings::WriterSettings;
use serde::Serialize;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Groups and directories of a probe are called so, and then its process id.
const PREFIX: &str = "minerva-probe-";

/// What became of what killed probes left.
#[derive(Debug, Default)]
pub struct Swept {
    /// Groups and directories that were removed, with all put back that their journals hold.
    pub removed: Vec<PathBuf>,
    /// Directories whose journals are kept, for the next try.
    pub left: Vec<ProbeLeft>,
}

/// A killed probe's directory, of which not all could be put back.
#[derive(Debug, Serialize)]
pub struct ProbeLeft {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub error: String,
}

/// What this process's probe writes with, on the host of `settings`: a runtime directory and groups of its own. The daemon's directory is made
/// where no daemon has; others have sockets in it, as under the daemon's unit.
pub fn probe_settings(settings: &WriterSettings) -> Result<(WriterSettings, NamedGroups), ActuateError> {
    let above = &settings.runtime_dir;
    let made = DirBuilder::new().recursive(true).mode(0o755).create(above);
    made.map_err(ActuateError::io("make the directory", above))?;
    let name = format!("{PREFIX}{}", std::process::id());
    let own = WriterSettings { runtime_dir: above.join(&name), ..settings.clone() };
    let groups = NamedGroups::new(&own, name);
    Ok((own, groups))
}

/// Puts back and removes what killed probes left: elevators, groups and with them weights, and the directories of their journals. What
/// belongs to a process that lives stays, also when it has only come by the number of a dead one.
pub fn sweep_probes(settings: &WriterSettings) -> Swept {
    let mut swept = Swept::default();
    for (name, path) in of_dead(&settings.cgroup_root) {
        // One in which something still ends is removed the next time.
        if NamedGroups::new(settings, name).dissolve() {
            swept.removed.push(path);
        }
    }
    for path in of_dead(&settings.runtime_dir).map(|(_, path)| path).chain(beside(&settings.runtime_dir)) {
        match put_back(settings, &path) {
            Ok(()) => swept.removed.push(path),
            Err(error) => swept.left.push(ProbeLeft { path, error }),
        }
    }
    swept
}

/// Directories of dead probes of earlier versions, which stood beside the daemon's. Others may have made what is called so in a directory like
/// `/tmp`: that is none.
fn beside(runtime_dir: &Path) -> impl Iterator<Item = PathBuf> {
    let owner = rustix::process::geteuid().as_raw();
    let is_ours =
        move |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == owner);
    of_dead(runtime_dir.parent().unwrap_or(runtime_dir)).map(|(_, path)| path).filter(is_ours)
}

/// Names and paths in a directory that are called after a probe that is gone.
fn of_dead(directory: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let pid: u32 = name.strip_prefix(PREFIX)?.parse().ok()?;
        (!Path::new("/proc").join(pid.to_string()).exists()).then(|| (name, entry.path()))
    })
}

/// Puts back what the journal of a killed probe holds: the elevator of a disk that was compared, and what went with it. What could
/// not be put back stays journalled. Errors: a sentence.
fn put_back(settings: &WriterSettings, runtime_dir: &Path) -> Result<(), String> {
    let of_probe = WriterSettings { runtime_dir: runtime_dir.to_owned(), ..settings.clone() };
    let report = restore(&of_probe, RestoreWhen::Always).map_err(|error| why_not(&error))?;
    if !report.is_complete() {
        return Err(report.to_string());
    }
    std::fs::remove_dir_all(runtime_dir).map_err(|error| error.to_string())
}

/// Under its unit the daemon may write nowhere but in its own directories.
fn why_not(error: &ActuateError) -> String {
    let is_read_only =
        matches!(error, ActuateError::Io { source, .. } if source.kind() == ErrorKind::ReadOnlyFilesystem);
    let remedy = if is_read_only { "; run `minerva-ctl restore` as root, which may" } else { "" };
    format!("{}{remedy}", error.in_full())
}
