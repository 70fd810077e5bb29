//! `minerva-lab reproduce characterise`: the kinds of I/O of the paper's eight programs, and what `jobs profile` says of them.

mod plot;

use crate::cli::CharacteriseArguments;
use crate::{binaries, output, signals};
use anyhow::Context;
use minerva_lab::figure::{BatchProgram, CharacterisePlan, Characterised, TruePhase, batch_programs, characterise};
use minerva_lab::workload::WorkerProgram;
use serde_json::Value;
use std::fmt::Write as _;

/// In how many steps a run is compared with what was done.
const COMPARED: usize = 1_000;

pub(crate) fn run(arguments: &CharacteriseArguments) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    let mut seen: Vec<(BatchProgram, Characterised)> = Vec::new();
    let measured = measure(arguments, &mut seen);
    // An interruption too leaves what was measured before it.
    if !seen.is_empty() {
        if arguments.output.json {
            for (program, result) in &seen {
                output::line(line(program, result))?;
            }
        } else {
            output::line(table(&seen))?;
        }
        let (profile, elevator, scale) = (&arguments.profile, &arguments.elevator, arguments.scale);
        let page = plot::page(&seen, &format!("{profile}, {elevator}, scale {scale}"));
        std::fs::write(&arguments.report, page)
            .with_context(|| format!("failed to write {}", arguments.report.display()))?;
        eprintln!("report with plots: {}", arguments.report.display());
    }
    measured
}

/// Runs the programs one after the other; `seen` has those that ended, also where it fails.
pub(crate) fn measure(
    arguments: &CharacteriseArguments,
    seen: &mut Vec<(BatchProgram, Characterised)>,
) -> anyhow::Result<()> {
    let scale = arguments.scale;
    anyhow::ensure!(scale > 0.0 && scale <= 100.0, "a scale of {scale} is not possible: use one above 0, up to 100");
    let all = batch_programs();
    let is_asked = |program: &BatchProgram| arguments.program.iter().any(|name| name == program.name);
    if let Some(name) = arguments.program.iter().find(|name| !all.iter().any(|program| program.name == **name)) {
        let names: Vec<&str> = all.iter().map(|program| program.name).collect();
        anyhow::bail!("there is no program {name}: use {}", names.join(", "));
    }
    let programs: Vec<BatchProgram> =
        all.into_iter().filter(|program| arguments.program.is_empty() || is_asked(program)).collect();
    let interrupted = signals::interrupt_flag()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let plan = CharacterisePlan {
        profile: arguments.profile.clone(),
        elevator: arguments.elevator.clone(),
        programs: programs.clone(),
        scale,
        daemon: binaries::minervad(&arguments.output)?,
        tool: binaries::minerva_ctl(&arguments.output)?,
    };
    let measured = characterise(&plan, &WorkerProgram::own()?, &interrupted, |result| {
        eprintln!("minerva-lab: {}: {}", result.name, sentence(result));
        let program = programs.iter().find(|program| program.name == result.name).cloned();
        seen.extend(program.map(|program| (program, result.clone())));
    });
    measured.map_err(anyhow::Error::new)
}

/// The part of a run that was told as it was, in percent, and what kind it was found to be.
pub(crate) fn judged(result: &Characterised) -> (f64, &str) {
    let kind = result.profile.get("intensity").and_then(Value::as_str).unwrap_or("of no kind");
    (100.0 * agreement(&result.did, &phases(&result.profile)), kind)
}

fn line(program: &BatchProgram, result: &Characterised) -> Value {
    let (read_gb, written_gb, seconds) = program.paper;
    serde_json::json!({
        "program": program.name,
        "paper": { "read_gb": read_gb, "written_gb": written_gb, "seconds": seconds, "kind": program.paper_kind },
        "did": result.did,
        "profile": result.profile,
        "agreement": agreement(&result.did, &phases(&result.profile)),
    })
}

/// Kinds of a profile's phases with their lengths in seconds.
fn phases(profile: &Value) -> Vec<(String, f64)> {
    let phase = |phase: &Value| Some((phase.get("kind")?.as_str()?.to_owned(), phase.get("seconds")?.as_f64()?));
    profile.get("phases").and_then(Value::as_array).into_iter().flatten().filter_map(phase).collect()
}

/// The part of a run in which the profile says what was done.
fn agreement(did: &[TruePhase], seen: &[(String, f64)]) -> f64 {
    let did: Vec<(&str, f64)> = did.iter().map(|phase| (phase.kind, phase.seconds)).collect();
    let seen: Vec<(&str, f64)> = seen.iter().map(|(kind, seconds)| (kind.as_str(), *seconds)).collect();
    let whole = did.iter().map(|(_, seconds)| seconds).sum::<f64>();
    let same = (0..COMPARED).filter(|at| {
        let instant = (*at as f64 + 0.5) / COMPARED as f64 * whole;
        let did = kind_at(&did, instant);
        did.is_some() && did == kind_at(&seen, instant)
    });
    same.count() as f64 / COMPARED as f64
}

fn kind_at<'a>(phases: &[(&'a str, f64)], instant: f64) -> Option<&'a str> {
    let mut over = 0.0;
    phases.iter().find_map(|(kind, seconds)| {
        over += seconds;
        (instant < over).then_some(*kind)
    })
}

fn number(profile: &Value, name: &str) -> f64 {
    // What is 0, or an integer beyond what JSON's numbers hold, is told as text by some writers.
    let value = profile.get(name);
    value.and_then(Value::as_f64).or_else(|| value?.as_str()?.parse().ok()).unwrap_or(0.0)
}

fn correlation(profile: &Value, name: &str) -> String {
    profile.get(name).and_then(Value::as_f64).map_or_else(|| "?".to_owned(), |value| format!("{value:+.2}"))
}

fn kinds(phases: impl Iterator<Item = (String, f64)>) -> String {
    let words: Vec<String> = phases.map(|(kind, seconds)| format!("{kind} {seconds:.0}")).collect();
    words.join(", ")
}

fn sentence(result: &Characterised) -> String {
    let (percent, kind) = judged(result);
    format!("{kind}; the profile is right for {percent:.0} % of the time")
}

fn table(all: &[(BatchProgram, Characterised)]) -> String {
    let mut text = String::new();
    for (program, result) in all {
        let (read_gb, written_gb, seconds) = program.paper;
        let profile = &result.profile;
        let kind = program.paper_kind.map_or_else(String::new, |kind| format!(", {kind}"));
        let did = kinds(result.did.iter().map(|phase| (phase.kind.to_owned(), phase.seconds)));
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{}\n  paper    read {read_gb} GB, wrote {written_gb} GB, {seconds} s{kind}\n  ours     read {:.2} GB, wrote \
             {:.2} GB, {:.0} s; disk busy {:.0} %, correlation with CPU {}, with memory {}: {}\n  did      {did} s\n  profile \
              {} s ({:.0} % of the time right)",
            program.name,
            number(profile, "read_bytes") / 1e9,
            number(profile, "write_bytes") / 1e9,
            number(profile, "seconds"),
            number(profile, "disk_permille") / 10.0,
            correlation(profile, "cpu_correlation"),
            correlation(profile, "memory_correlation"),
            profile.get("intensity").and_then(Value::as_str).unwrap_or("?"),
            kinds(phases(profile).into_iter()),
            100.0 * agreement(&result.did, &phases(profile)),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{agreement, table};
    use minerva_lab::figure::{Characterised, TruePhase, batch_programs};

    fn did(kind: &'static str, seconds: f64) -> TruePhase {
        TruePhase { kind, seconds, bytes: 0 }
    }

    #[test]
    fn the_part_that_was_told_as_it_was_is_counted_by_time() {
        let true_ones = [did("read", 5.0), did("compute", 3.0), did("write", 2.0)];
        let seen = |phases: &[(&str, f64)]| {
            let phases: Vec<(String, f64)> =
                phases.iter().map(|(kind, seconds)| ((*kind).to_owned(), *seconds)).collect();
            agreement(&true_ones, &phases)
        };
        assert_eq!(seen(&[("read", 5.0), ("compute", 3.0), ("write", 2.0)]), 1.0);
        assert_eq!(seen(&[("read", 8.0), ("write", 2.0)]), 0.7);
        assert_eq!(seen(&[]), 0.0);
    }

    #[test]
    fn a_program_stands_beside_the_papers() {
        let profile = serde_json::json!({
            "read_bytes": 2_000_000_000_u64, "seconds": 10.0, "disk_permille": 910, "cpu_correlation": -0.5,
            "intensity": "disk-intensive", "phases": [{ "kind": "read", "seconds": 10.0 }],
        });
        let result = Characterised { name: "sort", did: vec![did("read", 10.0)], profile };
        let text = table(&[(batch_programs()[0].clone(), result)]);
        for part in
            ["read 15.9 GB", "read 2.00 GB", "disk busy 91 %", "with CPU -0.50", "with memory ?", "100 % of the time"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
