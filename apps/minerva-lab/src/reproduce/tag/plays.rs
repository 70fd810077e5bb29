//! What came of each arm of each figure.

use crate::figure::median;
use crate::reproduce::beside::By;
use crate::vm::tags::{Program, Scene, apart, inverted, off};
use minerva_lab::figure::VmRun;
use serde::Serialize;

/// One arm of one figure, once.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Play {
    pub(super) by: By,
    pub(super) figure: u8,
    pub(super) arm: &'static str,
    pub(super) programs: Vec<ProgramPlay>,
    pub(super) inversions: Vec<String>,
    /// By which factor programs of one priority in different guests are apart at most.
    pub(super) apart: f64,
    /// How far the program that is furthest off is from its part by priority.
    pub(super) off: f64,
    /// All together.
    pub(super) mb_per_second: f64,
    pub(super) waited: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct ProgramPlay {
    pub(super) guest: usize,
    pub(super) tag: u8,
    pub(super) mb_per_second: f64,
}

impl Play {
    /// What came of a run of the paper's figure `figure`.
    pub(super) fn of((figure, arm): (u8, &'static str), scene: &Scene, run: &VmRun, by: By) -> Self {
        let seconds = run.end.since(run.begin).as_secs_f64().max(1e-9);
        let programs = scene.programs(run);
        let one = |program: &Program| ProgramPlay {
            guest: program.guest,
            tag: program.tag,
            mb_per_second: program.bytes as f64 / 1e6 / seconds,
        };
        let told = |(better, worse): &(Program, Program)| {
            format!("vm{} at {} before vm{} at {}", worse.guest, worse.tag, better.guest, better.tag)
        };
        Self {
            by,
            figure,
            arm,
            programs: programs.iter().map(one).collect(),
            inversions: inverted(&programs).iter().map(told).collect(),
            apart: apart(&programs),
            off: off(&programs),
            mb_per_second: programs.iter().map(|program| program.bytes as f64).sum::<f64>() / 1e6 / seconds,
            waited: run.waited.guests.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// All that was played.
pub(super) struct Plays<'a>(pub(super) &'a [Play]);

impl Plays<'_> {
    /// By round.
    pub(super) fn of(&self, figure: u8, arm: &str, by: By) -> Vec<&Play> {
        self.0.iter().filter(|play| play.figure == figure && play.arm == arm && play.by == by).collect()
    }

    /// MB a second of all programs of Fig. 8 together.
    pub(super) fn throughput(&self, arm: &str, by: By) -> f64 {
        median(self.of(8, arm, by).iter().map(|play| play.mb_per_second))
    }
}
