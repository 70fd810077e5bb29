//! Starting other programs, from the root of the repository.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The cargo that runs this task, so that a toolchain override holds for everything it starts.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Any other program, started in the root of the repository.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Runs to the end with the terminal attached, however long that takes; whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let line = display(command);
    eprintln!("> {line}");
    Ok(command.status().with_context(|| format!("start `{line}`"))?.success())
}

/// Runs to the end with the terminal attached; an error if it failed.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    if !succeeds(command)? {
        bail!("`{}` failed", display(command));
    }
    Ok(())
}

/// The command as a person would type it.
pub(crate) fn display(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    if let Some(name) = Path::new(&words[0]).file_name() {
        words[0] = name.to_string_lossy().into_owned();
    }
    words.join(" ")
}

/// What a program prints, without the last line's end; an error, with what it said, if it failed.
pub(crate) fn captured(command: &mut Command) -> Result<String> {
    let line = display(command);
    let output = command.output().with_context(|| format!("start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Whether a program of this name is on the path.
pub(crate) fn is_installed(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}
