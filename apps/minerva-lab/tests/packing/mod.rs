//! Debian packages of the programs as they are now, in guests with Debian's systemd that install and upgrade them.
#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

use minerva_lab::guest::{Guest, GuestBuilder, GuestOutput};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Where `cargo xtask test`, which has built all programs, says that its own program is.
const XTASK: &str = "MINERVA_XTASK";

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(1_500);

/// A guest with Debian and, in `/packages`, packages of these names and revisions: what has no part in a test costs an emulated
/// processor seconds to unpack.
pub(super) fn guest(packages: &[(&str, &[u32])]) -> GuestBuilder<'static> {
    let mut guest = Guest::builder().debian().cpus(2);
    for revision in [1, 2] {
        let wanted: Vec<&str> =
            packages.iter().filter(|(_, revisions)| revisions.contains(&revision)).map(|(name, _)| *name).collect();
        // Without names all packages would be made.
        if wanted.is_empty() {
            continue;
        }
        // Each has a folder of its own: an earlier one is removed when another is made beside it.
        let folder = tempfile::tempdir().expect("a directory");
        pack(folder.path(), revision, &wanted);
        for entry in folder.path().read_dir().expect("packages") {
            let path = entry.expect("a package").path();
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            guest = guest.with_file(format!("/packages/{file}"), std::fs::read(&path).expect("readable"));
        }
    }
    guest
}

/// Runs a script after what all of them share; nothing, having said why, where there are no guests.
pub(super) fn run(guest: GuestBuilder<'_>, script: &str) -> Option<Answers> {
    match guest.run(&format!("{}{script}", include_str!("unit.sh")), TIMEOUT) {
        Ok(output) => {
            println!("{}\n{}", output.stdout, output.stderr);
            Some(Answers(output))
        }
        Err(error) if error.is_missing() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// What a script printed.
pub(super) struct Answers(GuestOutput);

impl Answers {
    /// What stands in the line of this name.
    pub(super) fn line(&self, name: &str) -> &str {
        let found = self.0.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no line `{name}`")).trim_end().trim_end_matches(';').trim_end()
    }
}

/// Makes these packages in one revision.
fn pack(folder: &Path, revision: u32, names: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut task = match std::env::var_os(XTASK) {
        Some(xtask) => {
            let mut task = Command::new(xtask);
            task.args(["package", "--built"]);
            task
        }
        None => {
            let mut task = Command::new(env!("CARGO"));
            task.args(["run", "--quiet", "--package", "xtask", "--", "package"]);
            task
        }
    };
    task.current_dir(&root).args(["--profile", "dev", "--revision", &revision.to_string(), "--output"]).arg(folder);
    task.args(names.iter().flat_map(|name| ["--only", *name]));
    assert!(task.status().is_ok_and(|status| status.success()), "no packages: {task:?}");
}
