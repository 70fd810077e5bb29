//! What was not tested, and why. A test that lacks a facility prints `skipped: needs X` and passes, and what passing tests print
//! nobody sees: so it is caught here, told at the end, and fails the run where all has to be there.

use crate::shell::display;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// What a line that tells of a skip begins with.
const SKIPPED: &str = "skipped: ";

/// Skips that fail no run: a part of what they print, and the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("as `cargo xtask sdk check` sets it", "the same task runs these again, with what they need"),
    (
        "a loop device that was never throttled",
        "a disk once throttled is until the boot ends, and other tests throttle some",
    ),
    ("shared/data", "traces and drives of others lie beside the repository and are not part of it"),
];

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

    /// Runs a `cargo test` command, which has no arguments for the tests themselves; whether it succeeded.
    pub(crate) fn test(&mut self, command: &mut Command) -> Result<bool> {
        let line = display(command);
        eprintln!("> {line}");
        command.args(["--", "--show-output"]).stdout(Stdio::piped());
        let mut tests = command.spawn().with_context(|| format!("start `{line}`"))?;
        let output = tests.stdout.take().context("tests without an output")?;
        self.read(BufReader::new(output), &mut std::io::stdout().lock()).context("read what the tests print")?;
        Ok(tests.wait().with_context(|| format!("wait for `{line}`"))?.success())
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
            } else if let Some(test) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
                test.clone_into(&mut name);
            } else if let Some(why) = line.trim_start().strip_prefix(SKIPPED) {
                self.told.push(format!("{name}: {why}"));
            }
        }
        Ok(())
    }

    /// Prints all of them; how many are not on the list of those that fail no run.
    pub(crate) fn tell(&self) -> usize {
        let mut refused = 0;
        for skip in &self.told {
            match ALLOWED.iter().find(|(part, _)| skip.contains(part)) {
                Some((_, reason)) => eprintln!("{SKIPPED}{skip} (allowed: {reason})"),
                None => {
                    refused += 1;
                    eprintln!("{SKIPPED}{skip}");
                }
            }
        }
        eprintln!("{} skipped, {refused} of them for what this machine lacks", self.told.len());
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::Skips;

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
