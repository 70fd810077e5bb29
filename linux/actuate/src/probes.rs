//! Where `minerva-ctl doctor --probe` and `--compare` work: with groups and a runtime directory of its own beside the daemon's, so that a running
//! daemon is not disturbed. Both carry the probe's process id, so that what a killed one left is known and removed.

use crate::named::NamedGroups;
use crate::restore::{RestoreWhen, restore};
use crate::settings::WriterSettings;
use std::path::{Path, PathBuf};

/// Groups and directories of a probe are called so, and then its process id.
const PREFIX: &str = "minerva-probe-";

/// What this process's probe writes with, on the host of `settings`: a runtime directory and groups of its own.
pub fn probe_settings(settings: &WriterSettings) -> (WriterSettings, NamedGroups) {
    let name = format!("{PREFIX}{}", std::process::id());
    let runtime_dir = above(settings).join(&name);
    let own = WriterSettings { runtime_dir, ..settings.clone() };
    let groups = NamedGroups::new(&own, name);
    (own, groups)
}

/// Puts back and removes what killed probes left: elevators, groups and with them weights, and the directories of their journals; the answer
/// names each. What belongs to a process that lives stays, also when it has only come by the number of a dead one.
pub fn sweep_probes(settings: &WriterSettings) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for directory in [settings.cgroup_root.as_path(), above(settings)] {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let pid = name.strip_prefix(PREFIX).and_then(|pid| pid.parse::<u32>().ok());
            if pid.is_none_or(|pid| Path::new("/proc").join(pid.to_string()).exists()) {
                continue;
            }
            let is_gone = if directory == settings.cgroup_root {
                NamedGroups::new(settings, name).dissolve()
            } else {
                restored(settings, entry.path()) && std::fs::remove_dir_all(entry.path()).is_ok()
            };
            if is_gone {
                removed.push(entry.path());
            }
        }
    }
    removed
}

/// Puts back what the journal of a killed probe holds: the elevator of a disk that was compared, and what went with it. What could
/// not be put back stays journalled for the next try.
fn restored(settings: &WriterSettings, runtime_dir: PathBuf) -> bool {
    let of_probe = WriterSettings { runtime_dir, ..settings.clone() };
    restore(&of_probe, RestoreWhen::Always).is_ok_and(|report| report.is_complete())
}

fn above(settings: &WriterSettings) -> &Path {
    settings.runtime_dir.parent().unwrap_or(Path::new("/run"))
}
