//! What was not tested, and why. A test that lacks a facility prints `skipped: needs X` and passes, and what passing tests print
//! nobody sees: so it is caught here, told at the end, and fails the run where all has to be there.

use crate::limited::{self, Ended};
use anyhow::{Context, Result};
use std::io::{BufRead, Write};
use std::process::Command;
use std::time::Duration;

/// What a line that tells of a skip begins with.
const SKIPPED: &str = "skipped: ";

/// What a line of pytest's summary begins with that tells of tests that were skipped; their number and the place follow.
const SKIPPED_PYTHON: &str = "SKIPPED [";

/// What a line of a test's output says was skipped, if it does. Where tests are run quietly the line may begin with their dots.
pub(crate) fn reason(line: &str) -> Option<&str> {
    let python = || line.strip_prefix(SKIPPED_PYTHON)?.split_once("] ").map(|(_, why)| why);
    line.trim_start_matches(['.', ' ']).strip_prefix(SKIPPED).or_else(python)
}

/// Why known vulnerabilities were not looked for.
pub(crate) const ADVISORIES_SKIPPED: &str = "advisories need RustSec's database, a git repository at github.com";

/// What a test says that lacks what `cargo xtask sdk check` gives it.
const NOT_GIVEN: &str = "as `cargo xtask sdk check` sets it";

/// Skips that fail no run: a part of what they print, and the reason.
const ALLOWED: &[(&str, &str)] = &[
    (NOT_GIVEN, "the same task runs these again, with what they need, and then nothing excuses them"),
    (
        "a loop device that was never throttled",
        "a disk once throttled is until the boot ends, and other tests throttle some",
    ),
    (
        "memory keeps attributes of users here",
        "what a disk cannot keep that memory can is tried where memory cannot keep it either",
    ),
    (
        "on v1 the kernel forgets what removed groups did",
        "the guest of the daemon's tests has cgroup v2 and runs the same test",
    ),
    ("needs Linux 6.12, which gives ordinary threads slices of their own", "earlier kernels have nothing to ask for"),
    ("needs CAP_SYS_RESOURCE", "root of a container may lack it, and what is given up there cannot be seen"),
    ("takes a minute; `cargo xtask figures cache-posix` runs it", "a short test does the same with SQLite"),
    (ADVISORIES_SKIPPED, "not every machine reaches the database"),
    ("shared/data", "traces and drives of others lie beside the repository and are not part of it"),
];

/// What came of tests.
pub(crate) struct Tested {
    pub(crate) ended: Ended,
    /// What they printed, without what passing ones did.
    pub(crate) said: String,
}

impl Tested {
    /// What is to be shown: what passing tests print would only hide what failing ones do.
    pub(crate) fn shown(&self, passed: bool) -> String {
        if passed { self.ended.told.clone() } else { format!("{}{}", self.said, self.ended.told) }
    }
}

/// Collects skips.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    told: Vec<String>,
}

impl Skips {
    /// Something was left out, and why. It is printed.
    pub(crate) fn note(&mut self, why: &str) {
        eprintln!("{SKIPPED}{why}");
        self.told.push(why.to_owned());
    }

    /// Runs tests to the end or the limit, by a command that has `--show-output`. Errors: those of [`limited::run`].
    pub(crate) fn test(&mut self, command: &mut Command, limit: Duration) -> Result<Tested> {
        let told = tempfile::tempfile()?;
        let (ended, printed) = limited::output(command.stderr(told.try_clone()?), limit)?;
        let mut shown = Vec::new();
        self.read(printed.as_slice(), &mut shown).context("read what the tests print")?;
        self.told.extend(pass_on_errors(limited::contents(&told)?.as_slice(), &mut shown));
        Ok(Tested { ended, said: String::from_utf8_lossy(&shown).into_owned() })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.told.len()
    }

    /// Runs tests that are given all that they need of this task, and shows what they print; whether they passed. To lack it is then no
    /// excuse: there is no other run.
    pub(crate) fn pass_with_all_given(
        &mut self,
        tests: &mut Command,
        limit: Duration,
        show: impl Fn(&str),
    ) -> Result<bool> {
        let mut own = Self::default();
        let tested = own.test(tests, limit)?;
        show(&tested.shown(false));
        let is_given = !own.told.iter().any(|skip| skip.contains(NOT_GIVEN));
        if !is_given {
            show("> skipped for want of what it was given: FAILED");
        }
        self.join(own);
        Ok(tested.ended.has_succeeded() && is_given)
    }

    /// Takes what others collected.
    pub(crate) fn join(&mut self, other: Self) {
        self.told.extend(other.told);
    }

    /// Passes on what tests print, but for what passing ones do; of that it notes the skips.
    fn read(&mut self, output: impl BufRead, shown: &mut impl Write) -> std::io::Result<()> {
        let (mut passing, mut name) = (false, String::new());
        for line in output.split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            passing = match line.as_ref() {
                "successes:" => true,
                "failures:" => false,
                line => passing && !line.starts_with("test result: "),
            };
            if !passing {
                writeln!(shown, "{line}")?;
                // A test with a main function of its own prints past the harness.
                self.told.extend(reason(&line).map(str::to_owned));
            } else if let Some(test) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
                test.clone_into(&mut name);
            } else if let Some(why) = reason(&line) {
                self.told.push(format!("{name}: {why}"));
            }
        }
        Ok(())
    }

    /// Prints all of them.
    pub(crate) fn tell(&self) {
        for skip in &self.told {
            match allowed(skip) {
                Some(reason) => eprintln!("{SKIPPED}{skip} (allowed: {reason})"),
                None => eprintln!("{SKIPPED}{skip}"),
            }
        }
        eprintln!("{} skipped, {} of them for what this machine lacks", self.told.len(), self.refused());
    }

    /// How many are not on the list of those that fail no run.
    pub(crate) fn refused(&self) -> usize {
        self.told.iter().filter(|skip| allowed(skip).is_none()).count()
    }
}

/// Why a skip fails no run.
fn allowed(skip: &str) -> Option<&'static str> {
    ALLOWED.iter().find(|(part, _)| skip.contains(part)).map(|(_, reason)| *reason)
}

/// Passes on what is said there; the skips in it.
fn pass_on_errors(errors: impl BufRead, shown: &mut impl Write) -> Vec<String> {
    let mut skipped = Vec::new();
    for line in errors.split(b'\n').map_while(std::io::Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // What nobody can be shown is counted all the same.
        let _ = writeln!(shown, "{line}");
        skipped.extend(reason(&line).map(str::to_owned));
    }
    skipped
}

#[cfg(test)]
mod tests {
    use super::{NOT_GIVEN, Skips, pass_on_errors};
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_skip_past_the_harness_is_caught_on_either_output() {
        let mut skips = Skips::default();
        skips.read("running\n..skipped: needs X\n".as_bytes(), &mut Vec::new()).expect("read");
        assert_eq!(skips.told, ["needs X"]);
        assert_eq!(pass_on_errors("warning: y\nskipped: needs Z\n".as_bytes(), &mut Vec::new()), ["needs Z"]);
    }

    #[test]
    fn a_skip_in_python_is_caught_and_a_missing_compiler_is_not_excused() {
        let mut skips = Skips::default();
        let summary =
            "..s\n=== short test summary info ===\nSKIPPED [1] tests/test_find.py:96: skipped: needs openssl\n";
        skips.read(summary.as_bytes(), &mut Vec::new()).expect("read");
        assert_eq!(skips.told, ["tests/test_find.py:96: skipped: needs openssl"]);
        skips.read("skipped: needs cc\nskipped: needs pkg-config\n".as_bytes(), &mut Vec::new()).expect("read");
        assert_eq!(skips.refused(), 3);
        let not_given = format!("skipped: needs MINERVA_C_PREFIX, {NOT_GIVEN}\n");
        skips.read(not_given.as_bytes(), &mut Vec::new()).expect("read");
        assert_eq!((skips.refused(), skips.count()), (3, 4));
    }

    #[test]
    fn tests_that_lack_what_they_were_given_have_not_passed() {
        let mut skips = Skips::default();
        let mut passed = |script: &str| {
            let mut shell = Command::new("sh");
            // What is shown here would be read as this test's own.
            skips.pass_with_all_given(shell.args(["-c", script]), Duration::from_secs(60), |_| ()).expect("it starts")
        };
        assert!(passed("echo 'skipped: leaks are found with valgrind'"));
        assert!(!passed(&format!("echo 'skipped: needs MINERVA_C_PREFIX, {NOT_GIVEN}' >&2")));
        assert!(!passed("exit 1"));
        assert_eq!(skips.count(), 2);
    }

    #[test]
    fn what_passing_tests_skip_is_caught_and_what_failing_ones_print_is_shown() {
        let output = "\nrunning 3 tests\n.F.\nsuccesses:\n\n---- a::b stdout ----\nhello\nskipped: needs X\n\n---- c stdout ----\n\
                      skipped: needs Y\n\n\nsuccesses:\n    a::b\n    c\n\nfailures:\n\n---- d stdout ----\nit broke\n\n\nfailures:\n    d\n\n\
                      test result: FAILED. 2 passed; 1 failed\n\nrunning 1 test\n.\nsuccesses:\n\nsuccesses:\n    e\n\ntest result: ok. 1 passed\n";
        let (mut skips, mut shown) = (Skips::default(), Vec::new());
        skips.read(output.as_bytes(), &mut shown).expect("read");
        assert_eq!(skips.told, ["a::b: needs X", "c: needs Y"]);
        let shown = String::from_utf8(shown).expect("text");
        for part in ["it broke", "test result: FAILED", "test result: ok. 1 passed"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(!shown.contains("hello"), "{shown}");
    }
}
