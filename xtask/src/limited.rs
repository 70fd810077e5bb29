//! Programs that end: one that takes too long is ended, also when this task is to end, and so is what any leaves running. All that the
//! tests run is started here.

use crate::interrupts;
use crate::left_behind::Run;
use crate::shell::display;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// So often it is looked whether a program has ended.
const STEP: Duration = Duration::from_millis(10);

/// How a program ended.
pub(crate) struct Ended {
    /// Nothing where it was ended because it took too long.
    pub(crate) status: Option<ExitStatus>,
    /// Lines that tell of that, and of what it left running.
    pub(crate) told: String,
}

impl Ended {
    pub(crate) fn has_succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// Runs a program to its end, or to its limit, and ends what it leaves behind. It has no input: what it asks nobody answers.
///
/// Errors: it cannot be started, or this task is to end.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Ended> {
    let line = display(command);
    if interrupts::came() {
        bail!("`{line}` was not begun: interrupted");
    }
    // Git asks a terminal, whatever its input is.
    command.stdin(Stdio::null()).env("GIT_TERMINAL_PROMPT", "0").env("PIP_NO_INPUT", "1");
    let run = Run::of(command);
    let mut child = command.spawn().with_context(|| format!("start `{line}`"))?;
    let status = wait(&mut child, &run, limit).with_context(|| format!("wait for `{line}`"))?;
    let mut told = if status.is_none() { format!("ended after {} s\n", limit.as_secs_f64()) } else { String::new() };
    told.push_str(&run.end());
    if interrupts::came() {
        bail!("`{line}` was interrupted");
    }
    Ok(Ended { status, told })
}

/// Nothing where it had to be ended.
fn wait(child: &mut Child, run: &Run, limit: Duration) -> Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > limit || interrupts::came() {
            run.stop();
            // One that shows nobody its variables is not found by them.
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(STEP);
    }
}

/// Runs a program whose output people see; whether it succeeded.
pub(crate) fn succeeds(command: &mut Command, limit: Duration) -> Result<bool> {
    let line = display(command);
    eprintln!("> {line}");
    let ended = run(command, limit)?;
    for told in ended.told.lines() {
        eprintln!("> {line}: {told}");
    }
    Ok(ended.has_succeeded())
}

/// The same; an error if it failed.
pub(crate) fn must(command: &mut Command, limit: Duration) -> Result<()> {
    if !succeeds(command, limit)? {
        bail!("`{}` failed", display(command));
    }
    Ok(())
}

/// Runs a program; with what it printed. It goes to a file: a pipe has no end while anything that the program left behind has it open.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Result<(Ended, Vec<u8>)> {
    let printed = tempfile::tempfile()?;
    let ended = run(command.stdout(printed.try_clone()?), limit)?;
    Ok((ended, contents(&printed)?))
}

/// What is in a file now. Who still writes to it goes on where he was: where this reads is not where he writes.
pub(crate) fn contents(file: &File) -> Result<Vec<u8>> {
    let length = file.metadata().context("examine what was printed")?.len();
    let mut bytes = vec![0; usize::try_from(length).context("measure what was printed")?];
    file.read_exact_at(&mut bytes, 0).context("read what was printed")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{output, run};
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    const MINUTE: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn a_limited_command_is_the_same_without_an_input() {
        let mut command =
            shell("read line; echo \"$line $A ${HOME-none} $GIT_TERMINAL_PROMPT $PIP_NO_INPUT $(pwd) $1\"");
        command.args(["sh", "b c"]).env("A", "a").env_remove("HOME").current_dir("/");
        let (ended, printed) = output(&mut command, MINUTE).expect("it starts");
        assert!(ended.has_succeeded());
        assert_eq!(String::from_utf8_lossy(&printed), " a none 0 1 / b c\n");
        let ended = |script| run(&mut shell(script), MINUTE).expect("it starts");
        // The second as the system kills where memory ends.
        for (script, code) in [("exit 3", Some(3)), ("kill -KILL $$", None), ("exit 124", Some(124))] {
            let ended = ended(script);
            assert_eq!(ended.status.expect("it ended by itself").code(), code);
            assert!(!ended.has_succeeded() && ended.told.is_empty(), "{}", ended.told);
        }
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_that_it_started_and_what_it_printed_is_kept() {
        let scratch = tempfile::tempdir().expect("a directory");
        let ids = scratch.path().join("ids");
        let script = format!(
            "echo said; setsid sh -c 'echo $$ >> {0}; exec sleep 1000' & echo $$ >> {0}; exec sleep 1000",
            ids.display()
        );
        let (ended, printed) = output(&mut shell(&script), Duration::from_secs(3)).expect("it starts");
        assert!(ended.status.is_none() && !ended.has_succeeded());
        assert_eq!((ended.told.as_str(), printed.as_slice()), ("ended after 3 s\n", b"said\n".as_slice()));
        let ids = std::fs::read_to_string(ids).expect("numbers");
        let running =
            |id: &&str| std::fs::read(Path::new("/proc").join(id).join("environ")).is_ok_and(|all| !all.is_empty());
        assert_eq!(ids.lines().filter(running).count(), 0, "{ids}");
    }

    #[test]
    fn what_hides_its_variables_is_ended_too() {
        let ended = run(&mut shell("exec env --ignore-environment sleep 1000"), Duration::from_millis(200));
        assert!(ended.expect("it starts").status.is_none());
    }

    #[test]
    fn what_goes_on_printing_overwrites_nothing_while_the_output_is_read() {
        let scratch = tempfile::tempdir().expect("a directory");
        // Without variables it is not found and ended.
        let scratch = scratch.path().display();
        let printing = format!("echo more; echo >{scratch}/begun; while test -d {scratch}; do echo more; done");
        let script = format!(
            "env --ignore-environment $(command -v sh) -c '{printing}' & until test -e {scratch}/begun; do sleep 0.01; done; exec seq 200000"
        );
        let (ended, printed) = output(&mut shell(&script), MINUTE).expect("it starts");
        assert!(ended.has_succeeded());
        let printed = String::from_utf8(printed).expect("text");
        assert!(printed.contains("more\n"), "it was to print beside");
        let numbers: Vec<u32> =
            printed.replace("more\n", "").lines().map(|line| line.parse().expect("a number")).collect();
        assert!(numbers.into_iter().eq(1..=200_000));
    }
}
