//! What of the tests runs beside what, so that neither a processor nor a disk waits for the other.
//!
//! One thread runs the programs that share the machine's disks, cgroups and mounts, one after the other: they mostly wait. A second
//! one runs those that need only a processor, and gives way to the first, which helps it at the end. A third one has what only
//! compiles, such as clippy; it gets the processors when nothing else wants them.

use crate::shell::{is_installed, target, was_ended_by_limit};
use crate::skips::Skips;
use crate::test_programs::TestProgram;
use anyhow::{Result, anyhow};
use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// So many programs that failed are run again; of more the cause is not chance.
const RETRIED_MAX: usize = 3;
/// After so many programs that hung a lane ends: whatever let them hang would do so with others too, each for as long.
const HUNG_MAX: usize = 2;
/// Where tests that pack programs find this one, built together with all others, which they then need not build again.
const BUILT: &str = "MINERVA_XTASK";

/// Shows a piece of text; of several threads at once.
pub(crate) type Show<'a> = &'a (dyn Fn(&str) + Sync);

/// A step that is no program of tests; whether it passed.
pub(crate) type Step<'a> = (&'static str, Box<dyn FnOnce(&mut Skips) -> Result<bool> + Send + 'a>);

/// What is run.
pub(crate) struct Plan<'a> {
    /// Every program of tests.
    pub(crate) programs: &'a [TestProgram],
    /// Steps that share the machine too, after the programs that do.
    pub(crate) sharing: Vec<Step<'a>>,
    /// Steps that wait for nothing but a processor.
    pub(crate) compiling: Vec<Step<'a>>,
    /// The `PATH` for the programs.
    pub(crate) path: &'a OsStr,
    /// What gets the output.
    pub(crate) show: Show<'a>,
}

/// Runs all of it, even when something fails; titles of the steps that failed, with one for all programs.
///
/// Of a few programs that fail while something else runs the tests that failed are run once more, alone: on a loaded machine a test
/// of the kernel can miss what it waits for. What fails then has failed; what passes then is named at the end, so that it is not forgotten.
/// A program that hung has failed at once: to wait for it again would take the time of all others.
///
/// Errors: something cannot be started.
pub(crate) fn run(plan: Plan<'_>, skips: &mut Skips) -> Result<Vec<&'static str>> {
    let Plan { programs, sharing: sharing_steps, compiling, path, show } = plan;
    let (sharing, mut alone): (Vec<_>, Vec<_>) = programs.iter().partition(|program| program.is_sharing());
    // What takes longest begins first, so that no thread is left with it at the end.
    alone.sort_by_key(|program| program.place_among_long().unwrap_or(usize::MAX));
    let waiting = Mutex::new(alone.into_iter());
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut lane = Lane::new(path, show);
            lane.run_waiting(&waiting)?;
            Ok(lane)
        });
        let compiler = scope.spawn(|| {
            yield_to_all();
            let mut lane = Lane::new(path, show);
            lane.take_steps(compiling)?;
            Ok(lane)
        });
        let mut lane = Lane::new(path, show);
        lane.run_all(&sharing)?;
        lane.take_steps(sharing_steps)?;
        lane.run_waiting(&waiting)?;
        let mut lanes = [lane, joined(beside)?, joined(compiler)?];
        // Both threads have stopped where any are left.
        let left = waiting.lock().unwrap_or_else(PoisonError::into_inner).by_ref().collect::<Vec<_>>();
        lanes[0].failed.extend(left.into_iter().map(|program| (program, Failure::NotRun)));
        let programs: Vec<_> = lanes.iter().flat_map(|lane| lane.failed.iter()).collect();
        let mut again = Lane::new(path, show);
        let passed = again.passed_alone(&programs)?;
        let mut failed: Vec<_> = lanes.iter().flat_map(|lane| lane.failed_steps.iter().copied()).collect();
        failed.extend((!passed).then_some("programs of tests"));
        for lane in lanes.into_iter().chain([again]) {
            skips.join(lane.skips);
        }
        Ok(failed)
    })
}

fn joined<'a>(thread: ScopedJoinHandle<'_, Result<Lane<'a>>>) -> Result<Lane<'a>> {
    thread.join().map_err(|_| anyhow!("a thread that runs tests panicked"))?
}

/// From now on this thread, and all that it starts, runs only when a processor would otherwise be idle. Where that cannot be it
/// runs like the others, which costs time and nothing else.
fn yield_to_all() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let Some(number) = thread.file_name().filter(|_| is_installed("chrt")) else { return };
    let mut policy = Command::new("chrt");
    let _ = policy.args(["--idle", "--pid", "0"]).arg(number).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Why a program counts as failed.
enum Failure {
    /// Tests failed: these, or where the program does not say which, none.
    Tests(Vec<String>),
    /// It was ended after so many seconds.
    Hung(u64),
    /// Too many hung before it.
    NotRun,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tests(_) => write!(formatter, "FAILED"),
            Self::Hung(limit_s) => write!(formatter, "FAILED: ended after {limit_s} s"),
            Self::NotRun => write!(formatter, "FAILED: not run, as others hung before it"),
        }
    }
}

/// What one thread ran.
struct Lane<'a> {
    path: &'a OsStr,
    show: Show<'a>,
    skips: Skips,
    /// Programs that failed.
    failed: Vec<(&'a TestProgram, Failure)>,
    /// Steps that failed.
    failed_steps: Vec<&'static str>,
    /// How many programs hung.
    hung: usize,
}

impl<'a> Lane<'a> {
    fn new(path: &'a OsStr, show: Show<'a>) -> Self {
        Self { path, show, skips: Skips::default(), failed: Vec::new(), failed_steps: Vec::new(), hung: 0 }
    }

    fn has_ended(&self) -> bool {
        self.hung >= HUNG_MAX
    }

    fn run_all(&mut self, programs: &[&'a TestProgram]) -> Result<()> {
        for program in programs {
            let failure = if self.has_ended() { Some(Failure::NotRun) } else { self.run(program, false, &[])? };
            self.failed.extend(failure.map(|failure| (*program, failure)));
        }
        Ok(())
    }

    /// Runs what no other thread has begun.
    fn run_waiting(&mut self, waiting: &Mutex<std::vec::IntoIter<&'a TestProgram>>) -> Result<()> {
        // Nothing panics while it holds the lock, and if it did, the list would still be whole.
        while !self.has_ended()
            && let Some(program) = { waiting.lock().unwrap_or_else(PoisonError::into_inner).next() }
        {
            let failure = self.run(program, true, &[])?;
            self.failed.extend(failure.map(|failure| (program, failure)));
        }
        Ok(())
    }

    /// Runs what failed beside others once more, if it is of few programs, and says what became of each; whether all passed.
    fn passed_alone(&mut self, failed: &[&(&'a TestProgram, Failure)]) -> Result<bool> {
        let are_few = failed.iter().filter(|(_, failure)| matches!(failure, Failure::Tests(_))).count() <= RETRIED_MAX;
        let mut outcomes = Vec::new();
        for (program, failure) in failed {
            let outcome = match failure {
                Failure::Tests(tests) if are_few && !self.has_ended() => {
                    self.run(program, false, tests)?.map(|failure| failure.to_string())
                }
                failure => Some(failure.to_string()),
            };
            outcomes.push((program.title(), outcome));
        }
        for (title, outcome) in &outcomes {
            let outcome = outcome.as_deref().unwrap_or("failed beside others, passed alone");
            (self.show)(&format!("> {title}: {outcome}\n"));
        }
        Ok(outcomes.iter().all(|(_, outcome)| outcome.is_none()))
    }

    /// Runs one, or of it the tests of these names; how it failed, if it did. What it prints is shown when it is over, so that lines of
    /// two never mix.
    fn run(&mut self, program: &TestProgram, gives_way: bool, tests: &[String]) -> Result<Option<Failure>> {
        let begun = Instant::now();
        let mut command = if gives_way { program.nice_command() } else { program.command() };
        command.args(tests).args((!tests.is_empty()).then_some("--exact"));
        command.env("PATH", self.path).env(BUILT, target()?.join("debug/xtask"));
        let ended = self.skips.test(&mut command)?;
        // A name that no test has would pass.
        let is_known = tests.is_empty() || ended.said.contains(&format!("running {} test", tests.len()));
        let passed = ended.status.success() && is_known;
        self.tell(&program.title(), passed, begun, &ended.shown(passed));
        if passed {
            return Ok(None);
        }
        if !was_ended_by_limit(ended.status) {
            return Ok(Some(Failure::Tests(failed_tests(&ended.said))));
        }
        self.hung += 1;
        Ok(Some(Failure::Hung(program.limit_s())))
    }

    fn take_steps(&mut self, steps: Vec<Step<'_>>) -> Result<()> {
        for (title, take) in steps {
            if self.has_ended() {
                (self.show)(&format!("> {title}: {}\n", Failure::NotRun));
                self.failed_steps.push(title);
                continue;
            }
            let begun = Instant::now();
            let passed = take(&mut self.skips)?;
            self.tell(title, passed, begun, "");
            self.failed_steps.extend((!passed).then_some(title));
        }
        Ok(())
    }

    fn tell(&self, title: &str, passed: bool, begun: Instant, said: &str) {
        let outcome = if passed { "passed" } else { "FAILED" };
        (self.show)(&format!("> {title}: {outcome}, {:.1} s\n{said}", begun.elapsed().as_secs_f64()));
    }
}

/// The names that a program of tests lists at its end.
fn failed_tests(said: &str) -> Vec<String> {
    let Some((_, list)) = said.rsplit_once("\nfailures:\n") else { return Vec::new() };
    list.lines().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{Plan, Show, Step, run};
    use crate::skips::Skips;
    use crate::test_programs::TestProgram;
    use crate::test_programs::tests::program;
    use std::sync::Mutex;

    fn run_all(programs: &[TestProgram], steps: Vec<Step<'_>>, skips: &mut Skips, show: Show<'_>) -> Vec<&'static str> {
        let path = std::env::var_os("PATH").expect("a path");
        let plan = Plan { programs, sharing: Vec::new(), compiling: steps, path: &path, show };
        run(plan, skips).expect("they start")
    }

    #[test]
    fn those_that_share_the_machine_never_run_at_once_and_each_failure_and_skip_counts() {
        let scratch = tempfile::tempdir().expect("a directory");
        let alone = format!("mkdir {0}/held && sleep 0.05 && rmdir {0}/held", scratch.path().display());
        let sharing = |name| program(scratch.path(), "lab", name, &alone);
        let (one, two, other) = (sharing("one"), sharing("two"), program(scratch.path(), "store", "other", "exit 0"));
        let mut skips = Skips::default();
        assert!(run_all(&[one, two, other], Vec::new(), &mut skips, &|_| ()).is_empty());
        let skipping = program(scratch.path(), "apps/minervad", "skipping", "echo 'skipped: needs X'");
        let steps: Vec<Step<'_>> = vec![("failing", Box::new(|_| Ok(false))), ("passing", Box::new(|_| Ok(true)))];
        assert_eq!(run_all(&[skipping], steps, &mut skips, &|_| ()), ["failing"]);
        assert_eq!(skips.refused(), 1);
    }

    #[test]
    fn who_has_done_what_shares_the_machine_helps_with_the_rest() {
        let scratch = tempfile::tempdir().expect("a directory");
        // Each waits a minute for the other to begin, so that one thread alone would wait in vain.
        let meet = |own: &str, other: &str| {
            let folder = scratch.path().display();
            let wait =
                format!("for i in $(seq 6000); do test -e {folder}/{other}.begun && exit 0; sleep 0.01; done; exit 1");
            program(scratch.path(), "store", own, &format!("touch {folder}/{own}.begun; {wait}"))
        };
        let programs = [meet("one", "two"), meet("two", "one"), program(scratch.path(), "lab", "sharing", "exit 0")];
        let said = Mutex::new(String::new());
        let show = |text: &str| said.lock().expect("no panic").push_str(text);
        assert!(run_all(&programs, Vec::new(), &mut Skips::default(), &show).is_empty());
        let said = said.lock().expect("no panic");
        assert!(!said.contains("FAILED"), "{said}");
    }

    #[test]
    fn one_that_fails_beside_others_is_run_again_alone_and_named() {
        let scratch = tempfile::tempdir().expect("a directory");
        let said = Mutex::new(String::new());
        let show = |text: &str| said.lock().expect("no panic").push_str(text);
        let run_all = |programs: &[TestProgram]| run_all(programs, Vec::new(), &mut Skips::default(), &show);
        let once = |name| format!("mkdir {}/{name}.begun && exit 1; exit 0", scratch.path().display());
        assert!(run_all(&[program(scratch.path(), "lab", "once", &once("once"))]).is_empty());
        assert!(said.lock().expect("no panic").ends_with("> lab: once: failed beside others, passed alone\n"));
        assert_eq!(run_all(&[program(scratch.path(), "lab", "always", "exit 1")]), ["programs of tests"]);
        assert!(said.lock().expect("no panic").ends_with("> lab: always: FAILED\n"));
        // Of one that names its tests, those that failed are all that is run again.
        let path = scratch.path().display();
        let script =
            format!("echo $* >> {path}/named.said; mkdir {path}/named.begun || {{ cat {path}/named.again; exit 0; }}");
        let script = format!(
            "{script}; printf '\\nfailures:\\n\\n---- a::b stdout ----\\n\\nfailures:\\n    a::b\\n    c\\n\\nend\\n'; exit 1"
        );
        std::fs::write(scratch.path().join("named.again"), "running 2 tests\n").expect("what it says then");
        assert!(run_all(&[program(scratch.path(), "lab", "named", &script)]).is_empty());
        let said_twice = std::fs::read_to_string(scratch.path().join("named.said")).expect("what it was told");
        assert_eq!(said_twice, "--quiet --show-output\n--quiet --show-output a::b c --exact\n");
        // Names that it does not know prove nothing.
        std::fs::write(scratch.path().join("named.again"), "running 0 tests\n").expect("what it says then");
        std::fs::remove_dir(scratch.path().join("named.begun")).expect("begun");
        assert_eq!(run_all(&[program(scratch.path(), "lab", "named", &script)]), ["programs of tests"]);
        let many = ["a", "b", "c", "d"].map(|name| program(scratch.path(), "lab", name, &once(name)));
        assert_eq!(run_all(&many), ["programs of tests"], "more than a few: not by chance");
    }

    /// It ends as `timeout` says it: with 124, or with 137 where it had to kill.
    #[test]
    fn what_hangs_is_not_run_again_and_after_two_the_rest_is_named_and_counts_as_failed() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().display();
        let hangs = |folder: &str, name: &str, status: u8| {
            program(scratch.path(), folder, name, &format!("echo {name} >> {path}/begun; exit {status}"))
        };
        let said = Mutex::new(String::new());
        let show = |text: &str| said.lock().expect("no panic").push_str(text);
        assert_eq!(run_all(&[hangs("lab", "a", 124)], Vec::new(), &mut Skips::default(), &show), ["programs of tests"]);
        assert!(said.lock().expect("no panic").ends_with("> lab: a: FAILED: ended after 900 s\n"));
        assert_eq!(std::fs::read_to_string(scratch.path().join("begun")).expect("names"), "a\n", "it is run once");

        // Also of those that fail beside others and hang alone.
        let later = ["x", "y", "z"].map(|name| {
            let script = format!("echo {name} >> {path}/again; mkdir {path}/{name}.begun && exit 1; exit 124");
            program(scratch.path(), "lab", name, &script)
        });
        assert_eq!(run_all(&later, Vec::new(), &mut Skips::default(), &show), ["programs of tests"]);
        assert_eq!(std::fs::read_to_string(scratch.path().join("again")).expect("names"), "x\ny\nz\nx\ny\n");

        let lab = [hangs("lab", "a", 137), hangs("lab", "b", 124), hangs("lab", "c", 0)];
        let store: Vec<_> = ["d", "e", "f"].map(|name| hangs("store", name, 124)).into();
        let programs: Vec<_> = lab.into_iter().chain(store).collect();
        let (mut is_taken, path) = (false, std::env::var_os("PATH").expect("a path"));
        let plan = Plan {
            programs: &programs,
            sharing: vec![("libraries", Box::new(|_| Ok(std::mem::replace(&mut is_taken, true))))],
            compiling: vec![("clippy", Box::new(|_| Ok(true)))],
            path: &path,
            show: &show,
        };
        let failed = run(plan, &mut Skips::default()).expect("they start");
        assert_eq!(failed, ["libraries", "programs of tests"]);
        assert!(!is_taken, "a step of a lane that has ended");
        let begun = std::fs::read_to_string(scratch.path().join("begun")).expect("names");
        assert!(!begun.contains('c') && !begun.contains('f'), "{begun}");
        let said = said.lock().expect("no panic");
        for last in ["lab: c", "store: f"] {
            assert!(said.contains(&format!("> {last}: FAILED: not run, as others hung before it\n")), "{said}");
        }
        assert!(said.contains("> libraries: FAILED: not run"), "{said}");
        assert!(said.contains("> lab: a: FAILED: ended after 900 s\n"), "{said}");
    }
}
