//! What is still running when a program of tests has ended: servers of a test that failed, readers in loops. It would take disk and
//! processor from all tests that follow, so it is found by a variable that the program handed on, and ended.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Names the run of a program to all that it starts.
const VARIABLE: &str = "MINERVA_TEST_RUN";
/// So long a process may need to end by itself, such as a guard that puts back what a killed daemon left.
const PATIENCE: Duration = Duration::from_secs(2);
/// So often it is looked whether one still runs.
const STEP: Duration = Duration::from_millis(20);
/// First so that a server can unmount what it serves; twice by force, as one may have started another before it was killed.
const SIGNALS: [&str; 3] = ["TERM", "KILL", "KILL"];

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
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        command.env(VARIABLE, &name);
        Self(name)
    }

    /// Ends what still runs; what is to be said of it, which is nothing where all have ended by themselves.
    pub(crate) fn end(self) -> String {
        let mut left = self.left();
        if left.is_empty() {
            return String::new();
        }
        let names: Vec<_> = left.iter().map(|process| process.name.as_str()).collect();
        let said = format!("left {} processes behind: {}\n", names.len(), names.join(", "));
        for signal in SIGNALS {
            send(signal, &left);
            left = self.left();
            if left.is_empty() {
                return said;
            }
        }
        format!("{said}{} of them cannot be ended\n", left.len())
    }

    /// What still runs after a time in which it may end.
    fn left(&self) -> Vec<Process> {
        let begun = Instant::now();
        loop {
            let running = self.running();
            if running.is_empty() || begun.elapsed() > PATIENCE {
                return running;
            }
            std::thread::sleep(STEP);
        }
    }

    /// All its processes. One that has ended shows no variables any more, also where nobody has waited for it.
    fn running(&self) -> Vec<Process> {
        let variable = format!("{VARIABLE}={}", self.0);
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let others = ids.filter(|id: &u32| ![1, std::process::id()].contains(id));
        let ours = others.filter(|id| {
            let variables = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
        });
        let named = ours.map(|id| {
            let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            Process { id, name: name.trim_end().to_owned() }
        });
        named.collect()
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
    use super::{Run, VARIABLE};
    use std::path::Path;
    use std::process::Command;

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
        // One that does not end when asked, and starts others for ever.
        let stubborn = "sh -c 'trap \"\" TERM; echo $$ >> ids; while :; do sleep 0.01; done' > /dev/null 2>&1 &";
        let (running, said) =
            after(&format!("touch ids; {daemon} {stubborn} while test $(wc -l < ids) -lt 2; do sleep 0.01; done"));
        assert_eq!(running, [""; 0], "{said}");
        assert!(said.starts_with("left ") && said.contains("sleep") && said.ends_with('\n'), "{said}");
        assert!(!said.contains("cannot be ended"), "{said}");
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
