//! Starting other programs, from the root of the repository.

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo puts what it builds: `CARGO_TARGET_DIR` and cargo's own settings may name another folder than `target`.
pub(crate) fn target() -> Result<PathBuf> {
    // It does not change while this runs, and is asked for with each program of tests.
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = TARGET.get() {
        return Ok(folder.clone());
    }
    let folder = asked_for_target(&mut MetadataCommand::new())?;
    Ok(TARGET.get_or_init(|| folder).clone())
}

fn asked_for_target(cargo: &mut MetadataCommand) -> Result<PathBuf> {
    let metadata = cargo.current_dir(root()).no_deps().exec().context("run cargo metadata")?;
    Ok(metadata.target_directory.into_std_path_buf())
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

/// With a number of seconds and a command after it, ends what hangs, so that the rest is still done and told. In the foreground it and
/// the command are ended from the terminal.
pub(crate) const LIMIT: [&str; 4] = ["timeout", "--foreground", "--verbose", "--kill-after=10"];

/// The same command with a limit, and without an input: what it asks nobody answers.
pub(crate) fn limited(command: &Command, seconds: u64) -> Command {
    let [timeout, options @ ..] = LIMIT;
    let mut limited = Command::new(timeout);
    limited.args(options).arg(seconds.to_string()).arg(command.get_program()).args(command.get_args());
    // Git asks a terminal, whatever its input is.
    limited.stdin(Stdio::null()).env("GIT_TERMINAL_PROMPT", "0").env("PIP_NO_INPUT", "1");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    limited
}

/// Whether a command that has a limit was ended by it: `timeout` says so by these numbers, the second where it had to kill. What
/// another kills ends by a signal, not with a number.
pub(crate) fn was_ended_by_limit(status: ExitStatus) -> bool {
    matches!(status.code(), Some(124 | 137))
}

/// Runs to the end with the terminal attached; whether it succeeded.
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

#[cfg(test)]
mod tests {
    use super::{asked_for_target, limited, root, was_ended_by_limit};
    use cargo_metadata::MetadataCommand;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn programs_are_looked_for_where_cargo_was_told_to_build_them() {
        let target = |folder: &str| {
            let mut cargo = MetadataCommand::new();
            asked_for_target(cargo.env("CARGO_TARGET_DIR", folder)).expect("a folder")
        };
        assert_eq!(target("/elsewhere"), Path::new("/elsewhere"));
        // As cargo itself takes it, which is started at the root.
        assert_eq!(target("elsewhere"), root().join("elsewhere"));
    }

    #[test]
    fn a_limited_command_is_the_same_without_an_input() {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "read line; echo \"$line $A ${HOME-none} $GIT_TERMINAL_PROMPT $PIP_NO_INPUT $(pwd) $1\"",
            "sh",
            "b c",
        ]);
        shell.env("A", "a").env_remove("HOME").current_dir("/");
        let run = |command: &Command, limit_s| {
            // `Command::output` would take the input away by itself.
            let started = limited(command, limit_s).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            started.and_then(Child::wait_with_output).expect("it starts")
        };
        let output = run(&shell, 60);
        assert_eq!(String::from_utf8_lossy(&output.stdout), " a none 0 1 / b c\n");
        let end = |script: &str| run(Command::new("sh").args(["-c", script]), 1).status;
        let failed = end("exit 3");
        assert_eq!(failed.code(), Some(3));
        assert!(!was_ended_by_limit(failed));
        assert!(was_ended_by_limit(end("exec sleep 60")));
        // The system kills too, where memory ends.
        assert!(!was_ended_by_limit(end("kill -KILL $$")));
    }
}
