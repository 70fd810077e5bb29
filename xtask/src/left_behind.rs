//! What is still running when a program of tests has ended: servers of a test that failed, readers in loops. It would take disk and
//! processor from all tests that follow, so it is found by a variable that the program handed on, and ended.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names the run of a program to all that it starts. A run within a run has the name of the outer one before its own.
const VARIABLE: &str = "MINERVA_TEST_RUN";
/// So long a process may need to end by itself, such as a guard that puts back what a killed daemon left.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long it may need when it is told to end, such as a daemon that first puts back what it wrote.
const PATIENCE_TOLD: Duration = Duration::from_secs(10);
/// So often it is looked whether one still runs.
const STEP: Duration = Duration::from_millis(20);
/// Twice by force, as one may have started another before it was killed.
const KILLS: usize = 2;

/// One run of a program, in which all processes that it starts can be found.
pub(crate) struct Run(String);

/// A process.
struct Process {
    id: u32,
    name: String,
}

impl Run {
    /// `command` is to be started once.
    pub(crate) fn of(command: &mut Command) -> Self {
        let outer = std::env::var(VARIABLE).map(|name| format!("{name}/")).unwrap_or_default();
        let name = format!("{outer}{:016x}", RandomState::new().build_hasher().finish());
        command.env(VARIABLE, &name);
        Self(name)
    }

    /// Ends what still runs; what is to be said of it, which is nothing where all have ended by themselves.
    pub(crate) fn end(self) -> String {
        let left = until_none(|| self.running(), PATIENCE);
        if left.is_empty() {
            return String::new();
        }
        let names: Vec<_> = left.iter().map(|process| process.name.as_str()).collect();
        let said = format!("left {} processes behind: {}\n", names.len(), names.join(", "));
        match self.stop() {
            0 => said,
            count => format!("{said}{count} of them cannot be ended\n"),
        }
    }

    /// Ends what runs, at once; how many cannot be ended.
    pub(crate) fn stop(&self) -> usize {
        self.stop_within(PATIENCE_TOLD)
    }

    fn stop_within(&self, patience: Duration) -> usize {
        // First so that a server can unmount what it serves.
        let signals = std::iter::once(("TERM", patience)).chain(std::iter::repeat_n(("KILL", PATIENCE), KILLS));
        let mut left = self.running();
        for (signal, patience) in signals {
            send(signal, &left);
            left = until_none(|| self.running(), patience);
            if left.is_empty() {
                break;
            }
        }
        left.len()
    }

    /// All its processes. One that has ended shows no variables any more, also where nobody has waited for it.
    fn running(&self) -> Vec<Process> {
        let (own, within) = (format!("{VARIABLE}={}", self.0), format!("{VARIABLE}={}/", self.0));
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let others = ids.filter(|id: &u32| ![1, std::process::id()].contains(id));
        let ours = others.filter(|id| {
            let variables = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            let mut variables = variables.split(|byte| *byte == 0);
            variables.any(|one| one == own.as_bytes() || one.starts_with(within.as_bytes()))
        });
        let named = ours.map(|id| {
            let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            Process { id, name: name.trim_end().to_owned() }
        });
        named.collect()
    }
}

/// What still runs after a time in which it may end.
fn until_none(running: impl Fn() -> Vec<Process>, patience: Duration) -> Vec<Process> {
    let begun = Instant::now();
    loop {
        let mut left = running();
        if left.is_empty() {
            // One that is becoming another program shows no variables for a moment.
            std::thread::sleep(STEP / 10);
            left = running();
        }
        if left.is_empty() || begun.elapsed() > patience {
            return left;
        }
        std::thread::sleep(STEP);
    }
}

/// By the shell, which has it everywhere. What is gone by now needs none, and nobody has to hear of it.
fn send(signal: &str, processes: &[Process]) {
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s \"$@\"", "sh", signal]).args(processes.iter().map(|process| process.id.to_string()));
    let _ = kill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::{PATIENCE, Process, Run, STEP, VARIABLE, until_none};
    use std::cell::RefCell;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    /// Starts a script that writes the numbers of processes, to the end; of whom the kernel still shows variables, and what was said.
    fn after(script: &str) -> (Vec<String>, String) {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut command = shell(script);
        let run = Run::of(&mut command);
        assert!(command.current_dir(scratch.path()).status().expect("it starts").success());
        let said = run.end();
        let ids = std::fs::read_to_string(scratch.path().join("ids")).expect("numbers");
        let is_running =
            |id: &&str| std::fs::read(Path::new("/proc").join(id).join("environ")).is_ok_and(|all| !all.is_empty());
        (ids.lines().filter(is_running).map(str::to_owned).collect(), said)
    }

    #[test]
    fn what_a_program_leaves_behind_is_ended_and_named_wherever_it_went() {
        let daemon = "setsid sh -c 'echo $$ >> ids; exec sleep 1000' > /dev/null 2>&1 &";
        let (running, said) = after(&format!("touch ids; {daemon} until test -s ids; do sleep 0.01; done"));
        assert_eq!(running, [""; 0], "{said}");
        assert_eq!(said, "left 1 processes behind: sleep\n");
    }

    #[test]
    fn what_does_not_end_when_told_is_killed_with_what_it_goes_on_to_start() {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut stubborn = shell("trap '' TERM; touch begun; while :; do sleep 0.01; done");
        let run = Run::of(&mut stubborn);
        let mut stubborn = stubborn.current_dir(scratch.path()).spawn().expect("it starts");
        while !scratch.path().join("begun").exists() {
            std::thread::sleep(STEP);
        }
        assert_eq!(run.stop_within(Duration::from_millis(200)), 0);
        assert_eq!(stubborn.wait().expect("it ended").signal(), Some(9));
    }

    #[test]
    fn one_look_that_finds_nothing_is_not_enough() {
        let looks = RefCell::new(vec![false, false, true, false]);
        let look = || {
            let is_seen = looks.borrow_mut().pop().expect("not looked again after two that found nothing");
            is_seen.then(|| Process { id: 0, name: String::new() }).into_iter().collect()
        };
        assert!(until_none(look, PATIENCE).is_empty());
        assert!(looks.into_inner().is_empty());
    }

    #[test]
    fn a_run_within_a_run_is_ended_with_it() {
        let mut inner = shell("exec sleep 1000");
        let run = Run::of(&mut inner);
        // As a task that a test runs names what it runs itself.
        let mut inner = inner.env(VARIABLE, format!("{}/0", run.0)).spawn().expect("it starts");
        assert_eq!(run.stop(), 0);
        assert!(!inner.wait().expect("it ended").success());
    }

    #[test]
    fn what_ends_by_itself_is_left_to_and_nothing_is_said() {
        let (running, said) =
            after("sh -c 'echo $$ > ids; sleep 0.3; echo done >> ids' & until test -s ids; do sleep 0.01; done");
        assert_eq!((running.len(), said.as_str()), (0, ""));
    }

    #[test]
    fn processes_of_other_runs_stay() {
        let mut other = shell("exec sleep 1000");
        let run = Run::of(&mut other);
        let mut other = other.spawn().expect("it starts");
        let mut longer = shell("exec sleep 1000");
        // A name that begins alike.
        let mut longer = longer.env(VARIABLE, format!("{}0", run.0)).spawn().expect("it starts");
        let (running, said) = after("sh -c 'echo $$ > ids; exec sleep 1000' & until test -s ids; do sleep 0.01; done");
        assert_eq!((running.len(), said.as_str()), (0, "left 1 processes behind: sleep\n"));
        assert!(other.try_wait().expect("known").is_none() && longer.try_wait().expect("known").is_none());
        assert_eq!(run.end(), "left 1 processes behind: sleep\n");
        assert!(longer.try_wait().expect("known").is_none());
        longer.kill().expect("it ends");
        for mut child in [other, longer] {
            child.wait().expect("it ended");
        }
    }
}
