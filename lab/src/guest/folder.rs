//! The directory of one guest: its disks, its console, what it printed.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of the console that an error shows.
const CONSOLE_LINES: usize = 40;

/// Where the guest's directories are, named by the process that owns them.
pub(super) const PREFIX: &str = "minerva-guest-";

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
pub(super) fn sweep() {
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
