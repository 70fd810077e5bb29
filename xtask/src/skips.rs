//! What was not tested, and why. A test that lacks a facility prints `skipped: needs X` and passes, and what passing tests print
//! nobody sees: so it is caught here, told at the end, and fails the run where all has to be there.

use crate::left_behind::Run;
use crate::shell::display;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Seek, Write};
use std::process::{Command, ExitStatus, Stdio};

/// What a line that tells of a skip begins with.
const SKIPPED: &str = "skipped: ";

/// What a line of a test's output says was skipped, if it does. Where tests are run quietly the line may begin with their dots.
pub(crate) fn reason(line: &str) -> Option<&str> {
    line.trim_start_matches(['.', ' ']).strip_prefix(SKIPPED)
}

/// Why known vulnerabilities were not looked for.
pub(crate) const ADVISORIES_SKIPPED: &str = "advisories need RustSec's database, a git repository at github.com";

/// Skips that fail no run: a part of what they print, and the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("as `cargo xtask sdk check` sets it", "the same task runs these again, with what they need"),
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

/// How tests ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What they printed, without what passing ones did.
    pub(crate) said: String,
    /// What is to be said of processes that they left behind.
    left: String,
}

impl Ended {
    /// What is to be shown: what passing tests print would only hide what failing ones do.
    pub(crate) fn shown(&self, passed: bool) -> String {
        if passed { self.left.clone() } else { format!("{}{}", self.said, self.left) }
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

    /// Runs tests to the end, by a command that has `--show-output`, and ends what they leave behind. Errors: it cannot be started.
    pub(crate) fn test(&mut self, command: &mut Command) -> Result<Ended> {
        let line = display(command);
        // Files, as a pipe has no end while a program that the tests left behind has it open.
        let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?);
        let run = Run::of(command);
        let status = command.status().with_context(|| format!("start `{line}`"))?;
        // Before their output is read, to which what they left could add for ever.
        let left = run.end();
        output.rewind()?;
        errors.rewind()?;
        let mut shown = Vec::new();
        self.read(BufReader::new(output), &mut shown).context("read what the tests print")?;
        self.told.extend(pass_on_errors(BufReader::new(errors), &mut shown));
        Ok(Ended { status, said: String::from_utf8_lossy(&shown).into_owned(), left })
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
    use super::{Skips, pass_on_errors};

    #[test]
    fn a_skip_past_the_harness_is_caught_on_either_output() {
        let mut skips = Skips::default();
        skips.read("running\n..skipped: needs X\n".as_bytes(), &mut Vec::new()).expect("read");
        assert_eq!(skips.told, ["needs X"]);
        assert_eq!(pass_on_errors("warning: y\nskipped: needs Z\n".as_bytes(), &mut Vec::new()), ["needs Z"]);
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
