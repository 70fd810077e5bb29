//! Figures that tests prove: the tests run more often than in every test run, with a seed of their own, and what they say is
//! judged. A machine on which they are skipped has shown nothing, nor has a filter that matches no test. What a test measures
//! beside that it prints as a figure's JSON line.

use crate::figure_line::Line;
use crate::shell::{cargo, display};
use crate::skips;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// What came of the tests behind a figure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// They ran, all of them, and passed.
    pub(crate) holds: bool,
    /// What they printed, or why nothing is shown.
    pub(crate) detail: String,
    /// Lines of JSON that they printed, each a figure's.
    pub(crate) measured: Vec<String>,
}

/// The goal of a figure that tests prove: so many promises broken.
const BROKEN_GOAL: u32 = 0;

/// How often the tests behind a figure tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) tries: u32,
    /// So often they are to: fewer meet no goal.
    pub(crate) asked: u32,
}

impl Proof {
    /// The figure's lines: how many promises were broken, and what the tests measured beside it.
    pub(crate) fn lines(self, id: &str, Tried { tries, asked }: Tried) -> Result<Vec<Line>> {
        let Self { holds, detail, measured } = self;
        let is_enough = tries >= asked;
        let told = |detail: String| match is_enough {
            true => detail,
            false => format!("{detail}; too few to meet a goal, which asks for {asked}"),
        };
        let mut lines = vec![Line {
            id: id.to_owned(),
            value: u32::from(!holds).into(),
            unit: "promises broken".to_owned(),
            goal: BROKEN_GOAL.into(),
            met: holds && is_enough,
            detail: told(detail),
        }];
        for text in measured {
            let line: Line =
                serde_json::from_str(&text).with_context(|| format!("the tests of `{id}` printed `{text}`"))?;
            lines.push(Line { met: line.met && is_enough, detail: told(line.detail), ..line });
        }
        Ok(lines)
    }

    /// What several show together. All of it holds only if each does.
    fn together(proofs: Vec<Self>) -> Self {
        let holds = !proofs.is_empty() && proofs.iter().all(|proof| proof.holds);
        let details: Vec<&str> =
            proofs.iter().map(|proof| proof.detail.as_str()).filter(|text| !text.is_empty()).collect();
        let detail = details.join("; ");
        Self { holds, detail, measured: proofs.into_iter().flat_map(|proof| proof.measured).collect() }
    }
}

/// Runs `cargo test --release` with `arguments`, once with each filter, as the harness does not say which of several matched none;
/// `tries` is how often they try, in the environment variable of that name.
pub(crate) fn run(arguments: &[&str], filters: &[&str], (variable, tries): (&str, u32)) -> Result<Proof> {
    // Other cases than those of every test run.
    let seed = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let proofs: Result<Vec<Proof>> =
        filters.iter().map(|filter| run_one(arguments, filter, (variable, tries), seed)).collect();
    let proof = Proof::together(proofs?);
    Ok(Proof { detail: format!("tried {tries} times, seed {seed}; {}", proof.detail), ..proof })
}

fn run_one(arguments: &[&str], filter: &str, (variable, tries): (&str, u32), seed: u64) -> Result<Proof> {
    let mut command = cargo();
    command.args(["test", "--quiet", "--release"]).args(arguments).args(["--", "--nocapture", filter]);
    command.env(variable, tries.to_string()).env("PROPTEST_RNG_SEED", seed.to_string());
    let line = display(&command);
    eprintln!("> {line}");
    let mut tests =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().with_context(|| format!("start `{line}`"))?;
    // Tests say on either that they skip, and cargo what does not compile; people see the latter as it comes.
    let told = tests.stderr.take().map(|errors| {
        std::thread::spawn(move || {
            let mut told = String::new();
            for line in BufReader::new(errors).split(b'\n').map_while(std::io::Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                eprintln!("{line}");
                told.push_str(&line);
                told.push('\n');
            }
            told
        })
    });
    let output = tests.wait_with_output().with_context(|| format!("wait for `{line}`"))?;
    let errors = told.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Ok(judge(filter, output.status.success(), &String::from_utf8_lossy(&output.stdout), &errors))
}

/// What the standard output and error of the tests of a filter show.
fn judge(filter: &str, succeeded: bool, output: &str, errors: &str) -> Proof {
    let skipped: Vec<&str> = output.lines().chain(errors.lines()).filter_map(skips::reason).collect();
    let said = |line: &&str| !line.is_empty() && !line.starts_with("running ");
    let told: Vec<&str> = output.lines().map(|line| line.trim_start_matches('.').trim()).filter(said).collect();
    let (measured, told): (Vec<&str>, Vec<&str>) = told.into_iter().partition(|line| line.starts_with('{'));
    let (holds, detail) = match (succeeded, skipped.as_slice(), passed(output)) {
        (false, ..) => (false, format!("the tests failed: {}", told.join("; "))),
        (true, [], 0) => (false, format!("no test ran: the filter `{filter}` matches none")),
        (true, [], _) => (true, told.join("; ")),
        (true, skipped, _) => (false, format!("skipped: {}", skipped.join("; "))),
    };
    Proof { holds, detail, measured: measured.into_iter().map(str::to_owned).collect() }
}

/// How many tests passed, of all the programs that ran.
fn passed(output: &str) -> u32 {
    let count = |line: &str| {
        let (_, rest) = line.split_once("test result: ok. ")?;
        rest.split_once(" passed")?.0.parse::<u32>().ok()
    };
    output.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::{Proof, Tried, judge};

    const PASSED: &str =
        "\nrunning 1 test\n.0 lost\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 9 filtered out\n";
    const NONE: &str = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 9 filtered out\n";

    #[test]
    fn a_skip_on_either_output_and_a_filter_that_matches_nothing_prove_nothing() {
        // Whether the command succeeded, its outputs, whether the figure is met, and a part of the detail.
        let table = [
            (true, PASSED.to_owned(), "", true, "0 lost"),
            (false, PASSED.to_owned(), "", false, "failed"),
            (true, PASSED.to_owned(), "skipped: needs root\n", false, "needs root"),
            (true, PASSED.to_owned(), "warning: x\n  skipped: needs root\n", false, "needs root"),
            (true, format!("{PASSED}.skipped: needs bfq\n"), "", false, "needs bfq"),
            (true, NONE.to_owned(), "", false, "matches none"),
            (true, String::new(), "", false, "matches none"),
            (true, format!("{NONE}{PASSED}"), "", true, "0 lost"),
        ];
        for (succeeded, output, errors, holds, part) in table {
            let proof = judge("lost", succeeded, &output, errors);
            assert_eq!(proof.holds, holds, "{output} {errors}");
            assert!(proof.detail.contains(part), "{}", proof.detail);
        }
    }

    #[test]
    fn each_of_several_filters_has_to_match() {
        let proof = |output: &&str| judge("posix::", true, output, "");
        let together = |outputs: &[&str]| Proof::together(outputs.iter().map(proof).collect());
        assert!(together(&[PASSED, PASSED]).holds);
        let half = together(&[PASSED, NONE]);
        assert!(!half.holds && half.detail.contains("0 lost") && half.detail.contains("`posix::` matches none"));
        assert!(!together(&[]).holds);
    }

    #[test]
    fn what_tests_measure_is_told_apart_from_what_they_say() {
        let line = r#"{"id":"deadlines","value":2.5}"#;
        let proof = judge("lost", true, &PASSED.replace(".0 lost", &format!(".{line}\n0 lost")), "");
        assert_eq!(proof.measured, [line]);
        assert!(proof.holds && proof.detail.contains("0 lost") && !proof.detail.contains("2.5"), "{}", proof.detail);
    }

    #[test]
    fn fewer_tries_than_are_asked_for_meet_no_goal() {
        let measured = r#"{"id":"deadlines","value":2.5,"unit":"s","goal":"5","met":true,"detail":"longest"}"#;
        let met = |tries, holds| {
            let proof = Proof { holds, detail: String::new(), measured: vec![measured.to_owned()] };
            let lines = proof.lines("deadlines", Tried { tries, asked: 200 }).expect("lines");
            let is_told = |detail: &str| detail.contains("asks for 200") == (tries < 200);
            assert!(lines.iter().all(|line| is_told(&line.detail)), "{lines:?}");
            [lines[0].met, lines[1].met]
        };
        assert_eq!([met(200, true), met(199, true), met(200, false)], [[true; 2], [false; 2], [false, true]]);
    }
}
