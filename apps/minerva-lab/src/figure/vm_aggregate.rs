//! `minerva-lab figure vm-contracts --readers`: what sequential readers with equal contracts, each in a guest of its own, have together.
//! HTBS lets one read on where pClock seeks with every request, and the kernel's BFQ, which promises nothing, does too.

use super::vm_mix::{RUNS_MIN, SECONDS_MIN};
use super::{Line, drawn_seed, median};
use crate::vm::Programs;
use crate::vm::contracts::{Scene, seconds_kb};
use crate::vm_cli::VmContractsArguments;
use minerva_lab::figure::VmRun;
use std::sync::atomic::AtomicBool;

const ARMS: [&str; 3] = ["htbs", "pclock", "kernel-bfq"];
/// Of what they have under pClock, and of what the kernel's BFQ gives them.
const OF_PCLOCK_MIN: f64 = 2.0;
const OF_BFQ_MIN: f64 = 0.95;

/// So many readers: MB a second of all together, run by run, in the order of [`ARMS`].
struct Fared {
    scene: Scene,
    rates: [Vec<f64>; ARMS.len()],
    /// Requests that were late, and seconds in which a contract was missed, by `htbs`.
    late: u64,
    missed: u64,
}

pub(super) fn run(
    arguments: &VmContractsArguments,
    block: u32,
    programs: &Programs,
    interrupted: &AtomicBool,
) -> anyhow::Result<()> {
    let mut random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
    let scenes = arguments.readers.iter().map(|count| Scene::equal_readers(*count, block));
    let mut all: Vec<Fared> = scenes.map(Fared::of).collect();
    let disk = (arguments.profile.as_str(), arguments.seconds);
    for number in 1..=arguments.runs {
        let arms = |place: usize| (0..ARMS.len()).map(move |arm| (place, arm));
        let mut order: Vec<(usize, usize)> = (0..all.len()).flat_map(arms).collect();
        random.shuffle(&mut order);
        for (place, arm) in order {
            let fared = &mut all[place];
            eprintln!("run {number} of {}, {}: {} guests boot", arguments.runs, ARMS[arm], fared.count());
            let run = fared.scene.play(programs, ARMS[arm], disk, None, interrupted)?;
            fared.add(arm, &run);
            eprintln!("  {:.1} MB/s", fared.rates[arm].last().copied().unwrap_or_default());
        }
    }
    all.iter().try_for_each(|fared| fared.line(arguments).print(arguments.output.json))
}

impl Fared {
    fn of(scene: Scene) -> Self {
        Self { scene, rates: [const { Vec::new() }; ARMS.len()], late: 0, missed: 0 }
    }

    fn count(&self) -> usize {
        self.scene.rates_kb.len()
    }

    fn add(&mut self, arm: usize, run: &VmRun) {
        let of_guest = |place| {
            let seconds = seconds_kb(run, place);
            seconds.iter().sum::<f64>() / seconds.len().max(1) as f64
        };
        self.rates[arm].push((0..self.count()).map(of_guest).sum::<f64>() / 1e3);
        if ARMS[arm] == "htbs" {
            for kept in self.scene.judge(run) {
                self.late += kept.late;
                self.missed += kept.missed;
            }
        }
    }

    fn line(&self, arguments: &VmContractsArguments) -> Line {
        let [htbs, pclock, bfq] = self.rates.each_ref().map(|rates| median(rates.iter().copied()));
        let (of_pclock, of_bfq) = (htbs / pclock, htbs / bfq);
        Line {
            id: "vm-contracts",
            value: of_pclock,
            unit: "times pClock's throughput",
            goal: format!(
                "{OF_PCLOCK_MIN}, and {OF_BFQ_MIN} of BFQ's, no contract missed, in {RUNS_MIN} runs of {SECONDS_MIN} s"
            ),
            met: is_met(of_pclock, of_bfq)
                && (self.late, self.missed) == (0, 0)
                && arguments.runs as usize >= RUNS_MIN
                && arguments.seconds >= SECONDS_MIN,
            detail: format!(
                "{} sequential readers together, medians of {} runs of {} s: {htbs:.1} MB/s by htbs, {pclock:.1} by pclock, {bfq:.1} by the \
                 kernel's BFQ, of which htbs has {of_bfq:.3}; {} KiB, on {}; {} requests late and {} seconds missed by htbs",
                self.count(),
                arguments.runs,
                arguments.seconds,
                arguments.block / 1024,
                arguments.profile,
                self.late,
                self.missed,
            ),
        }
    }
}

fn is_met(of_pclock: f64, of_bfq: f64) -> bool {
    of_pclock >= OF_PCLOCK_MIN && of_bfq >= OF_BFQ_MIN
}

#[cfg(test)]
mod tests {
    use super::is_met;

    #[test]
    fn both_goals_have_to_be_met_and_what_was_not_measured_meets_none() {
        assert!(is_met(2.0, 0.95) && !is_met(1.9, 1.2) && !is_met(9.0, 0.94));
        assert!(!is_met(f64::NAN, f64::NAN));
    }
}
