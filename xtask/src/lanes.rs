//! What of the tests runs beside what, so that neither a processor nor a disk waits for the other.
//!
//! One thread runs the programs that share the machine's disks, cgroups and mounts, one after the other: they mostly wait. A second
//! one runs those that need only a processor, and gives way to the first, which helps it at the end. A third one has what only
//! compiles, such as clippy; it gets the processors when nothing else wants them.

use crate::shell::{is_installed, target};
use crate::skips::Skips;
use crate::test_programs::TestProgram;
use anyhow::{Result, anyhow};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// So many programs that failed are run again; of more the cause is not chance.
const RETRIED_MAX: usize = 3;
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
        lane.run_all(&sharing, false)?;
        lane.take_steps(sharing_steps)?;
        lane.run_waiting(&waiting)?;
        let lanes = [lane, joined(beside)?, joined(compiler)?];
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

/// What one thread ran.
struct Lane<'a> {
    path: &'a OsStr,
    show: Show<'a>,
    skips: Skips,
    /// Programs that failed, with the names of the tests that did; none where the program does not say.
    failed: Vec<(&'a TestProgram, Vec<String>)>,
    /// Steps that failed.
    failed_steps: Vec<&'static str>,
}

impl<'a> Lane<'a> {
    fn new(path: &'a OsStr, show: Show<'a>) -> Self {
        Self { path, show, skips: Skips::default(), failed: Vec::new(), failed_steps: Vec::new() }
    }

    fn run_all(&mut self, programs: &[&'a TestProgram], gives_way: bool) -> Result<()> {
        programs.iter().try_for_each(|program| self.run(program, gives_way, &[]))
    }

    /// Runs what no other thread has begun.
    fn run_waiting(&mut self, waiting: &Mutex<std::vec::IntoIter<&'a TestProgram>>) -> Result<()> {
        // Nothing panics while it holds the lock, and if it did, the list would still be whole.
        while let Some(program) = { waiting.lock().unwrap_or_else(PoisonError::into_inner).next() } {
            self.run(program, true, &[])?;
        }
        Ok(())
    }

    /// Runs what failed beside others once more, if it is of few programs, and says what became of each; whether all passed.
    fn passed_alone(&mut self, failed: &[&(&'a TestProgram, Vec<String>)]) -> Result<bool> {
        let is_retried = failed.len() <= RETRIED_MAX;
        for (program, tests) in failed.iter().filter(|_| is_retried) {
            self.run(program, false, tests)?;
        }
        let mut are_passed = true;
        for (program, _) in failed {
            let is_still = !is_retried || self.failed.iter().any(|(one, _)| std::ptr::eq(*one, *program));
            are_passed &= !is_still;
            let outcome = if is_still { "FAILED" } else { "failed beside others, passed alone" };
            (self.show)(&format!("> {}: {outcome}\n", program.title()));
        }
        Ok(are_passed)
    }

    /// Runs one, or of it the tests of these names. What it prints is shown when it is over, so that lines of two never mix.
    fn run(&mut self, program: &'a TestProgram, gives_way: bool, tests: &[String]) -> Result<()> {
        let begun = Instant::now();
        let mut command = if gives_way { program.nice_command() } else { program.command() };
        command.args(tests).args((!tests.is_empty()).then_some("--exact"));
        command.env("PATH", self.path).env(BUILT, target()?.join("debug/xtask"));
        let (passed, said) = self.skips.test(&mut command)?;
        // A name that no test has would pass.
        let passed = passed && (tests.is_empty() || said.contains(&format!("running {} test", tests.len())));
        // What passing tests print would only hide what failing ones do.
        self.tell(&program.title(), passed, begun, if passed { "" } else { &said });
        self.failed.extend((!passed).then(|| (program, failed_tests(&said))));
        Ok(())
    }

    fn take_steps(&mut self, steps: Vec<Step<'_>>) -> Result<()> {
        for (title, take) in steps {
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
}
