//! The directory of one guest: its disks, its console, what it printed.

use super::GuestError;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Lines of the console that an error shows.
const CONSOLE_LINES: usize = 40;

/// What guests' directories are named, after which comes the process that owns them.
const PREFIX: &str = "minerva-guest-";

/// A directory for a guest, or for what is made for guests. It goes with the guard; what a killed owner leaves goes with the next.
///
/// # Errors
///
/// When it cannot be made.
pub fn guest_directory() -> Result<TempDir, GuestError> {
    sweep();
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let directory = tempfile::Builder::new().prefix(&prefix).tempdir();
    directory.map_err(GuestError::at("make a directory in", std::env::temp_dir()))
}

/// The directory of one guest.
pub(super) struct GuestFolder<'a>(pub(super) &'a Path);

impl GuestFolder<'_> {
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// For QEMU's options, in which a comma is doubled.
    pub(super) fn show(&self, name: &str) -> String {
        self.at(name).to_string_lossy().replace(',', ",,")
    }

    /// What is in a file; nothing when it is not there.
    pub(super) fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.at(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Removes directories whose owner was killed. QEMU was killed with it.
fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).map(|(owner, _)| owner);
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            // Another process may sweep at the same time.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The last lines.
pub(super) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, guest_directory};

    #[test]
    fn the_directory_of_a_killed_owner_goes_with_the_next_and_that_of_a_living_one_stays() {
        // No process has this number (proc_sys_kernel(5), pid_max).
        let left = std::env::temp_dir().join(format!("{PREFIX}4194305-test"));
        std::fs::create_dir_all(left.join("programs")).expect("a directory");
        let ours = [guest_directory().expect("one"), guest_directory().expect("another")];
        assert!(!left.exists() && ours.iter().all(|ours| ours.path().exists()));
    }
}
