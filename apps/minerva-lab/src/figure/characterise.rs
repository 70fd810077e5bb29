//! `minerva-lab figure characterise`

use super::Line;
use crate::cli::CharacteriseArguments;
use crate::reproduce::characterise::{judged, measure};
use minerva_lab::figure::{BatchProgram, Characterised};

/// Of a run's time, in percent, in the mean of all programs.
const TOLD_PERCENT_MIN: f64 = 75.0;

pub(super) fn run(arguments: &CharacteriseArguments) -> anyhow::Result<()> {
    let mut seen = Vec::new();
    let measured = measure(arguments, &mut seen);
    // An interruption too leaves what was measured before it.
    if !seen.is_empty() {
        line(arguments, &seen).print(arguments.output.json)?;
    }
    measured
}

fn line(arguments: &CharacteriseArguments, seen: &[(BatchProgram, Characterised)]) -> Line {
    let one = |(program, result): &(BatchProgram, Characterised)| {
        let (percent, kind) = judged(result);
        let by_paper = program.paper_kind.map_or_else(String::new, |kind| format!(", the paper's {kind}"));
        (
            percent,
            program.paper_kind.is_none_or(|paper| paper == kind),
            format!("{} {percent:.0} % ({kind}{by_paper})", program.name),
        )
    };
    let all: Vec<(f64, bool, String)> = seen.iter().map(one).collect();
    let mean = all.iter().map(|(percent, _, _)| percent).sum::<f64>() / all.len() as f64;
    let words: Vec<&str> = all.iter().map(|(_, _, words)| words.as_str()).collect();
    Line {
        id: "characterise",
        value: mean,
        unit: "% of the time told as it was",
        goal: format!("at least {TOLD_PERCENT_MIN} in the mean, and the paper's kind of each for which it names one"),
        met: mean >= TOLD_PERCENT_MIN && all.iter().all(|(_, is_papers, _)| *is_papers),
        detail: format!(
            "{}, {}, scale {}: {}",
            arguments.profile,
            arguments.elevator,
            arguments.scale,
            words.join(", ")
        ),
    }
}
