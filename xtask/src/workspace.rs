//! What cargo knows of the workspace.

use crate::limited;
use crate::shell::root;
use anyhow::{Context, Result, ensure};
use cargo_metadata::{Metadata, MetadataCommand};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// It reads manifests, which takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(120);

/// The packages of the workspace in `folder`, without what they depend on.
pub(crate) fn metadata(folder: &Path) -> Result<Metadata> {
    asked(MetadataCommand::new().current_dir(folder))
}

fn asked(cargo: &mut MetadataCommand) -> Result<Metadata> {
    let mut command = cargo.no_deps().cargo_command();
    let (ended, printed) = limited::output(&mut command, LIMIT).context("run cargo metadata")?;
    ensure!(ended.has_succeeded(), "cargo metadata failed\n{}", ended.told);
    let printed = String::from_utf8(printed).context("read what cargo metadata says")?;
    MetadataCommand::parse(printed).context("read what cargo metadata says")
}

/// Where cargo puts what it builds: `CARGO_TARGET_DIR` and cargo's own settings may name another folder than `target`.
pub(crate) fn target() -> Result<PathBuf> {
    // It does not change while this runs, and is asked for with each program of tests.
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = TARGET.get() {
        return Ok(folder.clone());
    }
    let folder = metadata(&root())?.target_directory.into_std_path_buf();
    Ok(TARGET.get_or_init(|| folder).clone())
}

#[cfg(test)]
mod tests {
    use super::asked;
    use crate::shell::root;
    use cargo_metadata::MetadataCommand;
    use std::path::{Path, PathBuf};

    #[test]
    fn programs_are_looked_for_where_cargo_was_told_to_build_them() {
        let target = |folder: &str| {
            let mut cargo = MetadataCommand::new();
            let metadata = asked(cargo.current_dir(root()).env("CARGO_TARGET_DIR", folder)).expect("metadata");
            PathBuf::from(metadata.target_directory)
        };
        assert_eq!(target("/elsewhere"), Path::new("/elsewhere"));
        // As cargo itself takes it, which is started at the root.
        assert_eq!(target("elsewhere"), root().join("elsewhere"));
    }
}
