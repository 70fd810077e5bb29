//! Environments with other people's Python packages, made once and kept from run to run.

use crate::limited::succeeds;
use crate::packages::FETCH;
use crate::shell::{is_installed, program, root};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python of the environment in `folder`, made anew where it does not have what `requirements` (a file of pip's, from the
/// repository's root) asks for. `None` without Python 3.10 or later with venv, or where PyPI cannot be reached.
///
/// Errors: a file cannot be read or written.
pub(crate) fn environment(folder: &Path, requirements: &str) -> Result<Option<PathBuf>> {
    let wanted = fs::read_to_string(root().join(requirements))
        .with_context(|| format!("read the requirements {requirements}"))?;
    let (stamp, python) = (folder.join("requirements"), folder.join("bin/python"));
    if fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
        let mut install = module(&python, "pip");
        install.args(["install", "--quiet", "--requirement", requirements]);
        let is_made = is_installed("python3")
            && succeeds(program("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]), FETCH)?
            && succeeds(program("python3").args(["-m", "venv", "--clear"]).arg(folder), FETCH)?
            && succeeds(&mut install, FETCH)?;
        if !is_made {
            return Ok(None);
        }
        fs::write(&stamp, &wanted).with_context(|| format!("write {}", stamp.display()))?;
    }
    Ok(Some(python))
}

/// A module of an environment, run as a program from the repository's root.
pub(crate) fn module(python: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command.current_dir(root()).args(["-m", name]).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
