//! `minerva-lab figure vm-mix`: a database and a file server with contracts beside a greedy guest without one.

use super::{Line, drawn_seed, median};
use crate::signals;
use crate::vm::mix::{self, Had, MEMBERS};
use crate::vm::simulated::{Simulation, simulate};
use crate::vm::{Programs, contracts};
use crate::vm_cli::VmMixArguments;
use minerva_model::Nanos;

/// The goal is that of so many runs in guests, and of so many seconds each; fewer show nothing.
pub(super) const RUNS_MIN: usize = 5;
pub(super) const SECONDS_MIN: u64 = 60;

/// Results of one arm, run by run.
struct Fared {
    arm: String,
    runs: Vec<Vec<Had>>,
}

pub(super) fn run(arguments: &VmMixArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let seed = drawn_seed(arguments.seed);
    for arm in &arguments.arm {
        let Some(scheduler) = contracts::simulated(arm) else { continue };
        let guests = mix::guests(arm, &arguments.profile);
        let run = simulate(&Simulation {
            profile: &arguments.profile,
            guests: &guests,
            parameters: mix::parameters(scheduler),
            scheduler,
            is_kernel: arm == "kernel-bfq",
            tag_depth: None,
            think: Nanos::ZERO,
            seconds: arguments.seconds,
            seed,
        })?;
        let fared = Fared { arm: arm.clone(), runs: vec![mix::judge(&run)] };
        fared.line("simulator", 1, arguments).print(arguments.output.json)?;
    }
    if arguments.runs == 0 {
        return Ok(());
    }
    let programs = Programs::prepare(&arguments.output)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all: Vec<Fared> = arguments.arm.iter().map(|arm| Fared { arm: arm.clone(), runs: Vec::new() }).collect();
    for number in 1..=arguments.runs {
        let mut order: Vec<usize> = (0..all.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let fared = &mut all[index];
            eprintln!("run {number} of {}, {}: three guests boot", arguments.runs, fared.arm);
            let log = arguments.logs.as_ref().map(|folder| folder.join(format!("mix-{}-{number}.csv", fared.arm)));
            let disk = (arguments.profile.as_str(), arguments.seconds);
            fared.runs.push(mix::judge(&mix::play(&programs, &fared.arm, disk, log, &interrupted)?));
        }
    }
    all.iter().try_for_each(|fared| fared.line("guests", RUNS_MIN, arguments).print(arguments.output.json))
}

impl Fared {
    /// Of one guest: late requests, all requests, missed seconds, seconds in which it asked; none without a log of requests.
    fn missed(&self, place: usize) -> Option<[u64; 4]> {
        self.runs.iter().try_fold([0; 4], |sum, run| {
            let kept = run[place].kept.as_ref()?;
            let one = [kept.late, kept.requests, kept.missed, kept.asked];
            Some(std::array::from_fn(|at| sum[at] + one[at]))
        })
    }

    /// Throughput, latencies and contract of one guest, in words.
    fn told(&self, place: usize) -> String {
        let of = |what: &dyn Fn(&Had) -> f64| median(self.runs.iter().map(|run| what(&run[place])));
        let rate = of(&|had| had.bytes_per_second) / 1e6;
        let (half, most) = (of(&|had| had.milliseconds(50)), of(&|had| had.milliseconds(99)));
        let times = match self.runs.iter().all(|run| run[place].times.is_empty()) {
            true => String::new(),
            false => format!(", median {half:.1} ms, 99 % within {most:.1}"),
        };
        let kept = self.missed(place).map_or_else(String::new, |[late, requests, seconds, asked]| {
            format!(", {late} of {requests} requests late, {seconds} of {asked} seconds missed")
        });
        format!("{} {rate:.2} MB/s{times}{kept}", MEMBERS[place].name)
    }

    fn line(&self, by: &str, runs_min: usize, arguments: &VmMixArguments) -> Line {
        let contracts: Vec<[u64; 4]> = (0..MEMBERS.len()).filter_map(|place| self.missed(place)).collect();
        let is_measured = !contracts.is_empty() && contracts.iter().all(|[_, requests, ..]| *requests > 0);
        let (value, unit) = match is_measured {
            true => (
                contracts.iter().map(|[late, _, seconds, _]| late + seconds).sum::<u64>() as f64,
                "requests late and seconds missed",
            ),
            false => {
                let all = |run: &Vec<Had>| run.iter().map(|had| had.bytes_per_second).sum::<f64>() / 1e6;
                (median(self.runs.iter().map(all)), "MB/s in all; contracts not judged, as there is no log of requests")
            }
        };
        let each: Vec<String> = (0..MEMBERS.len()).map(|place| self.told(place)).collect();
        let is_judged = self.arm == "htbs";
        let is_enough = self.runs.len() >= runs_min && arguments.seconds >= SECONDS_MIN;
        let goal = match is_judged {
            true => format!("0 in {runs_min} runs of {SECONDS_MIN} s"),
            false => "none: shown beside".to_owned(),
        };
        Line {
            id: "vm-mix",
            value,
            unit,
            goal,
            met: !is_judged || (value == 0.0 && is_measured && is_enough),
            detail: format!(
                "{by}, {}: {}; {} runs of {} s on {}",
                self.arm,
                each.join("; "),
                self.runs.len(),
                arguments.seconds,
                arguments.profile
            ),
        }
    }
}
