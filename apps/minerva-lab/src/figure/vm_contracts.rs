//! `minerva-lab figure vm-contracts`: four synchronous readers (Rocha and Bona, HTBS), each in a guest of its own.

use super::vm_mix::{RUNS_MIN, SECONDS_MIN};
use super::{Line, drawn_seed, vm_aggregate};
use crate::signals;
use crate::vm::Programs;
use crate::vm::contracts::Scene;
use crate::vm_cli::VmContractsArguments;
use anyhow::Context as _;
use minerva_lab::figure::{VmKept, VmRun};

/// What one arm did in all runs.
struct Fared {
    arm: String,
    kept: Vec<Vec<VmKept>>,
    waited: Vec<f64>,
    server_waited: f64,
    is_logged: bool,
}

pub(super) fn run(arguments: &VmContractsArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let programs = Programs::prepare(&arguments.output)?;
    let block = u32::try_from(arguments.block).context("a block must be shorter than 4 GiB")?;
    if !arguments.readers.is_empty() {
        return vm_aggregate::run(arguments, block, &programs, &interrupted);
    }
    let scene = Scene::four_jobs(block);
    let mut random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
    let mut all: Vec<Fared> = arguments.arm.iter().map(|arm| Fared::new(arm)).collect();
    for number in 1..=arguments.runs {
        let mut order: Vec<usize> = (0..all.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let fared = &mut all[index];
            eprintln!("run {number} of {}, {}: four guests boot", arguments.runs, fared.arm);
            let log = arguments.logs.as_ref().map(|folder| folder.join(format!("{}-{number}.csv", fared.arm)));
            let disk = (arguments.profile.as_str(), arguments.seconds);
            fared.add(&scene, scene.play(&programs, &fared.arm, disk, log, &interrupted)?);
            eprintln!("  {}", fared.told_last());
        }
    }
    all.iter().try_for_each(|fared| fared.line(&scene, arguments).print(arguments.output.json))
}

impl Fared {
    fn new(arm: &str) -> Self {
        Self { arm: arm.to_owned(), kept: Vec::new(), waited: Vec::new(), server_waited: 0.0, is_logged: false }
    }

    fn add(&mut self, scene: &Scene, run: VmRun) {
        self.is_logged = !run.records.is_empty();
        self.kept.push(scene.judge(&run));
        self.waited.extend(run.waited.guests);
        self.server_waited = self.server_waited.max(run.waited.server);
    }

    fn sum(&self, of: impl Fn(&VmKept) -> u64) -> Vec<u64> {
        let guests = self.kept.first().map_or(0, Vec::len);
        (0..guests).map(|place| self.kept.iter().map(|run| of(&run[place])).sum()).collect()
    }

    /// MB a second of all guests together.
    fn aggregate(&self) -> f64 {
        let seconds: u64 = self.kept.iter().map(|run| run[0].seconds).sum();
        self.sum(|kept| kept.bytes).iter().sum::<u64>() as f64 / seconds.max(1) as f64 / 1e6
    }

    fn told_last(&self) -> String {
        let Some(last) = self.kept.last() else { return String::new() };
        let one = |kept: &VmKept| {
            format!(
                "{} of {} s missed, {} of {} requests late, least {} KB",
                kept.missed,
                kept.asked,
                kept.late,
                kept.requests,
                kept.least_bytes / 1000
            )
        };
        last.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    fn line(&self, scene: &Scene, arguments: &VmContractsArguments) -> Line {
        let (missed, asked) = (self.sum(|kept| kept.missed), self.sum(|kept| kept.asked));
        let (late, requests) = (self.sum(|kept| kept.late), self.sum(|kept| kept.requests));
        let (within_late, within) = (self.sum(|kept| kept.within_late), self.sum(|kept| kept.within));
        let below = self.sum(|kept| kept.below);
        // Each request is judged by the log only.
        let is_measured = [&asked, &requests].iter().all(|counts| counts.iter().all(|count| *count > 0))
            && self.kept.len() >= RUNS_MIN
            && arguments.seconds >= SECONDS_MIN;
        let value = missed.iter().sum::<u64>() + late.iter().sum::<u64>();
        let least_of = |place: usize| self.kept.iter().map(|run| run[place].least_bytes / 1000).min().unwrap_or(0);
        let least: Vec<u64> = (0..scene.rates_kb.len()).map(least_of).collect();
        let longest = self.kept.iter().flatten().map(|kept| kept.longest).max().unwrap_or_default();
        let seen = if self.is_logged {
            format!(
                "requests late {late:?} of {requests:?} (longest {:.0} ms of 200); if what was had beyond the contract is not counted against it, {within_late:?} of {within:?}",
                longest.as_secs_f64() * 1e3
            )
        } else {
            "by what the readers report".to_owned()
        };
        let (mut waited, is_htbs) = (self.waited.clone(), self.arm == "htbs");
        waited.sort_by(f64::total_cmp);
        let worst = waited.last().copied().unwrap_or_default();
        Line {
            id: "vm-contracts",
            value: value as f64,
            unit: "seconds missed and requests late",
            goal: match is_htbs {
                true => format!("0 in {RUNS_MIN} runs of {SECONDS_MIN} s"),
                false => "none: shown beside".to_owned(),
            },
            met: !is_htbs || (value == 0 && is_measured),
            detail: format!(
                "{}: readers at {:?} KB/s, {} KiB, {} runs of {} s on {}: seconds missed {missed:?} of {asked:?} asked in, below the rate for any reason {below:?}; {seen}; least second {least:?} KB; {:.1} MB/s in all; guests waited for a processor {:.1} % of the time at most, the server {:.1} %",
                self.arm,
                scene.rates_kb,
                arguments.block / 1024,
                self.kept.len(),
                arguments.seconds,
                arguments.profile,
                self.aggregate(),
                worst * 100.0,
                self.server_waited * 100.0,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fared, Scene, VmContractsArguments, VmKept};
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        arguments: VmContractsArguments,
    }

    #[test]
    fn contracts_kept_in_too_few_or_too_short_runs_or_without_requests_meet_no_goal() {
        let met = |runs: usize, seconds: &str, requests: u64| {
            let kept = VmKept { seconds: 60, asked: 60, requests, ..VmKept::default() };
            let fared = Fared { kept: vec![vec![kept; 4]; runs], ..Fared::new("htbs") };
            let words = Words::parse_from(["vm-contracts", "--seconds", seconds]);
            fared.line(&Scene::four_jobs(262_144), &words.arguments).met
        };
        assert!(met(5, "60", 9));
        assert_eq!([met(4, "60", 9), met(5, "59", 9), met(5, "60", 0)], [false; 3]);
    }
}
