//! `minerva-lab figure characterise`

use super::Line;
use crate::cli::CharacteriseArguments;
use crate::reproduce::characterise::{judged, measure};
use minerva_lab::figure::{BatchProgram, Characterised, batch_programs};

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
        met: is_met(&all.iter().map(|(percent, is_papers, _)| (*percent, *is_papers)).collect::<Vec<_>>()),
        detail: format!(
            "{} of {} programs, {}, {}, scale {}: {}",
            seen.len(),
            batch_programs().len(),
            arguments.profile,
            arguments.elevator,
            arguments.scale,
            words.join(", ")
        ),
    }
}

/// From how much of its time each program was told as it was, and whether as the paper's kind: fewer than all meet no goal.
fn is_met(programs: &[(f64, bool)]) -> bool {
    let mean = programs.iter().map(|(percent, _)| percent).sum::<f64>() / programs.len().max(1) as f64;
    programs.len() == batch_programs().len()
        && mean >= TOLD_PERCENT_MIN
        && programs.iter().all(|(_, is_papers)| *is_papers)
}

#[cfg(test)]
mod tests {
    use super::{batch_programs, is_met};

    #[test]
    fn all_programs_together_meet_the_goal_and_one_does_not() {
        let all = vec![(80.0, true); batch_programs().len()];
        assert!(is_met(&all) && !is_met(&all[1..]) && !is_met(&[]));
        assert!(!is_met(&[&all[1..], &[(90.0, false)]].concat()));
    }
}
