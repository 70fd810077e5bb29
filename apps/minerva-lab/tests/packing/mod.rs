//! Debian packages of the programs as they are now, for tests that install and upgrade them.

use std::path::Path;
use std::process::Command;

/// Where `cargo xtask test`, which has built all programs, says that its own program is.
const XTASK: &str = "MINERVA_XTASK";

/// Makes the packages in revisions 1 and 2.
pub(super) fn pack(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for revision in ["1", "2"] {
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
        task.current_dir(&root).args(["--profile", "dev", "--revision", revision, "--output"]).arg(folder);
        assert!(task.status().is_ok_and(|status| status.success()), "no packages: {task:?}");
    }
}
