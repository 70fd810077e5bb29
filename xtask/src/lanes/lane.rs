//! What one thread runs, one after the other.

use crate::interrupts;
use crate::skips::{Skips, Tested};
use crate::test_programs::TestProgram;
use crate::workspace::target;
use anyhow::Result;
use signal_hook::consts::{SIGBUS, SIGFPE, SIGILL, SIGSEGV};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many programs that failed are run again; of more the cause is not chance.
const RETRIED_MAX: usize = 3;
/// After so many programs that hung a lane ends: whatever let them hang would do so with others too, each for as long.
const HUNG_MAX: usize = 2;
/// What ends a program that uses memory which is not its own, or runs what is no code. No busy machine does that, so that no second run
/// excuses it.
const CRASHES: [i32; 4] = [SIGSEGV, SIGBUS, SIGILL, SIGFPE];
/// Where tests that pack programs find this one, built together with all others, which they then need not build again.
const BUILT: &str = "MINERVA_XTASK";

/// Shows a piece of text; of several threads at once.
pub(crate) type Show<'a> = &'a (dyn Fn(&str) + Sync);

/// A step that is no program of tests; whether it passed.
pub(crate) type Step<'a> = (&'static str, Box<dyn FnOnce(&mut Skips) -> Result<bool> + Send + 'a>);

/// Why a program counts as failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Tests failed: these, or where the program does not say which, none.
    Tests(Vec<String>),
    /// It was ended after this time.
    Hung(Duration),
    /// It was ended by this signal, one of [`CRASHES`].
    Crashed(i32),
    /// Tests that had failed were left out when they were run alone.
    Skipped,
    /// Too many hung before it, or nothing is to be begun any more.
    NotRun,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tests(_) => write!(formatter, "FAILED"),
            Self::Hung(limit) => write!(formatter, "FAILED: ended after {} s", limit.as_secs_f64()),
            Self::Crashed(signal) => write!(formatter, "FAILED: crashed by signal {signal}"),
            Self::Skipped => write!(formatter, "FAILED: skipped when it was run alone"),
            Self::NotRun if interrupts::came() => write!(formatter, "FAILED: not run, as this was interrupted"),
            Self::NotRun => write!(formatter, "FAILED: not run, as others hung before it"),
        }
    }
}

/// What all lanes have.
#[derive(Clone, Copy)]
pub(super) struct RunsWith<'a> {
    pub(super) path: &'a OsStr,
    pub(super) show: Show<'a>,
    pub(super) wait_for_tools: &'a (dyn Fn() + Sync),
}

/// What one thread ran.
pub(super) struct Lane<'a> {
    with: RunsWith<'a>,
    pub(super) skips: Skips,
    /// Programs that failed.
    pub(super) failed: Vec<(&'a TestProgram, Failure)>,
    /// Steps that failed.
    pub(super) failed_steps: Vec<&'static str>,
    /// How many programs hung.
    hung: usize,
}

impl<'a> Lane<'a> {
    pub(super) fn new(with: RunsWith<'a>) -> Self {
        Self { with, skips: Skips::default(), failed: Vec::new(), failed_steps: Vec::new(), hung: 0 }
    }

    fn has_ended(&self) -> bool {
        self.hung >= HUNG_MAX || interrupts::came()
    }

    pub(super) fn run_all(&mut self, programs: &[&'a TestProgram]) {
        for program in programs {
            let failure = if self.has_ended() { Some(Failure::NotRun) } else { self.run(program, false, &[]) };
            self.failed.extend(failure.map(|failure| (*program, failure)));
        }
    }

    /// Runs what no other thread has begun.
    pub(super) fn run_waiting(&mut self, waiting: &Mutex<std::vec::IntoIter<&'a TestProgram>>) {
        // Nothing panics while it holds the lock, and if it did, the list would still be whole.
        while !self.has_ended()
            && let Some(program) = { waiting.lock().unwrap_or_else(PoisonError::into_inner).next() }
        {
            let failure = self.run(program, true, &[]);
            self.failed.extend(failure.map(|failure| (program, failure)));
        }
    }

    /// Runs what failed beside others once more, if it is of few programs, and says what became of each; whether all passed.
    pub(super) fn passed_alone(&mut self, failed: &[&(&'a TestProgram, Failure)]) -> bool {
        let are_few = failed.iter().filter(|(_, failure)| matches!(failure, Failure::Tests(_))).count() <= RETRIED_MAX;
        let mut outcomes = Vec::new();
        for (program, failure) in failed {
            let outcome = match failure {
                Failure::Tests(tests) if are_few && !self.has_ended() => {
                    self.run(program, false, tests).map(|failure| failure.to_string())
                }
                failure => Some(failure.to_string()),
            };
            outcomes.push((program.title(), outcome));
        }
        for (title, outcome) in &outcomes {
            let outcome = outcome.as_deref().unwrap_or("failed beside others, passed alone");
            (self.with.show)(&format!("> {title}: {outcome}\n"));
        }
        outcomes.iter().all(|(_, outcome)| outcome.is_none())
    }

    /// Runs one, or of it the tests of these names; how it failed, if it did. What it prints is shown when it is over, so that lines of
    /// two never mix.
    fn run(&mut self, program: &TestProgram, gives_way: bool, tests: &[String]) -> Option<Failure> {
        if program.needs_tools() {
            (self.with.wait_for_tools)();
        }
        let (begun, skipped) = (Instant::now(), self.skips.count());
        let tested = self.test(program, gives_way, tests);
        let is_left_out = !tests.is_empty() && self.skips.count() > skipped;
        let failure = match &tested {
            // What cannot be started.
            Err(_) => Some(Failure::Tests(Vec::new())),
            Ok(tested) => failure(tested, program.limit, tests).or(is_left_out.then_some(Failure::Skipped)),
        };
        self.hung += usize::from(matches!(failure, Some(Failure::Hung(_))));
        let said = tested.map_or_else(|error| format!("{error:#}\n"), |tested| tested.shown(failure.is_none()));
        self.tell(&program.title(), failure.is_none(), begun, &said);
        failure
    }

    fn test(&mut self, program: &TestProgram, gives_way: bool, tests: &[String]) -> Result<Tested> {
        let mut command = if gives_way { program.nice_command() } else { program.command() };
        command.args(tests).args((!tests.is_empty()).then_some("--exact"));
        command.env("PATH", self.with.path).env(BUILT, target()?.join("debug/xtask"));
        self.skips.test(&mut command, program.limit)
    }

    pub(super) fn take_steps(&mut self, steps: Vec<Step<'_>>) {
        for (title, take) in steps {
            if self.has_ended() {
                (self.with.show)(&format!("> {title}: {}\n", Failure::NotRun));
                self.failed_steps.push(title);
                continue;
            }
            let begun = Instant::now();
            let taken = take(&mut self.skips);
            let passed = matches!(taken, Ok(true));
            self.tell(title, passed, begun, &taken.map_or_else(|error| format!("{error:#}\n"), |_| String::new()));
            self.failed_steps.extend((!passed).then_some(title));
        }
    }

    fn tell(&self, title: &str, passed: bool, begun: Instant, said: &str) {
        let outcome = if passed { "passed" } else { "FAILED" };
        (self.with.show)(&format!("> {title}: {outcome}, {:.1} s\n{said}", begun.elapsed().as_secs_f64()));
    }
}

/// How a program that was to run the tests of these names failed, if it did.
fn failure(tested: &Tested, limit: Duration, tests: &[String]) -> Option<Failure> {
    let Some(status) = tested.ended.status else { return Some(Failure::Hung(limit)) };
    match status.signal() {
        Some(signal) if CRASHES.contains(&signal) => Some(Failure::Crashed(signal)),
        // A name that no test has would pass.
        _ if !status.success() || !is_known(tests, &tested.said) => Some(Failure::Tests(failed_tests(&tested.said))),
        _ => None,
    }
}

/// Whether a program that was to run the tests of these names ran as many.
fn is_known(tests: &[String], said: &str) -> bool {
    tests.is_empty() || said.contains(&format!("running {} test", tests.len()))
}

/// The names that a program of tests lists at its end.
fn failed_tests(said: &str) -> Vec<String> {
    let Some((_, list)) = said.rsplit_once("\nfailures:\n") else { return Vec::new() };
    list.lines().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}
