//! `minerva-lab figure vm-urgent`: what more requests of `tag` at the disk cost who asks seldom and in a hurry, and what they gain the rest.

use super::{Line, drawn_seed, median};
use crate::signals;
use crate::vm::Programs;
use crate::vm::simulated::{Simulation, simulate};
use crate::vm::tags::{Scene, inverted, urgent_times};
use crate::vm_cli::VmUrgentArguments;
use anyhow::Context as _;
use minerva_blocksched::SchedulerName;
use minerva_lab::figure::VmRun;
use minerva_lab::workload::Access;
use minerva_model::Nanos;

/// Who orders: `tag` with so many requests at the disk, or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arm(Option<u32>);

/// What came of one run.
struct Fared {
    times: Vec<Nanos>,
    mb_per_second: f64,
    inversions: usize,
}

pub(super) fn run(arguments: &VmUrgentArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let block = u32::try_from(arguments.block).context("a block must be shorter than 4 GiB")?;
    let scene = Scene { has_urgent: true, ..Scene::three_guests(Access::RandomRead, arguments.depth, block) };
    let seed = drawn_seed(arguments.seed);
    let arms: Vec<Arm> = arguments.tag_depth.iter().map(|depth| Arm(Some(*depth))).chain([Arm(None)]).collect();
    for arm in &arms {
        let fared = Fared::of(&scene, &arm.simulate(&scene, arguments, seed)?);
        line(*arm, arguments, "simulator", &[fared]).print(arguments.output.json)?;
    }
    if arguments.runs == 0 {
        return Ok(());
    }
    let programs = Programs::prepare(&arguments.output)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all: Vec<Vec<Fared>> = arms.iter().map(|_| Vec::new()).collect();
    let disk = (arguments.profile.as_str(), arguments.seconds);
    for number in 1..=arguments.runs {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            eprintln!("run {number} of {}, {}: four guests boot", arguments.runs, arms[index].told());
            let run = scene.play(&programs, (arms[index].name(), arms[index].0), disk, None, &interrupted)?;
            let fared = Fared::of(&scene, &run);
            eprintln!("  {:.1} ms median, {:.1} MB/s", fared.milliseconds(50), fared.mb_per_second);
            all[index].push(fared);
        }
    }
    arms.iter().zip(&all).try_for_each(|(arm, runs)| line(*arm, arguments, "guests", runs).print(arguments.output.json))
}

impl Arm {
    const fn name(self) -> &'static str {
        if self.0.is_some() { "tag" } else { "noop" }
    }

    fn told(self) -> String {
        self.0.map_or_else(|| "noop, 32 at the disk".to_owned(), |depth| format!("tag, {depth} at the disk"))
    }

    fn simulate(self, scene: &Scene, arguments: &VmUrgentArguments, seed: u64) -> anyhow::Result<VmRun> {
        let guests = scene.guests(self.name(), &arguments.profile);
        simulate(&Simulation {
            profile: &arguments.profile,
            guests: &guests,
            parameters: scene.parameters(),
            scheduler: if self.0.is_some() { SchedulerName::Tag } else { SchedulerName::Noop },
            is_kernel: false,
            tag_depth: self.0,
            think: Nanos::ZERO,
            seconds: arguments.seconds,
            seed,
        })
    }
}

impl Fared {
    fn of(scene: &Scene, run: &VmRun) -> Self {
        let programs = scene.programs(run);
        let bytes: u64 = programs.iter().map(|program| program.bytes).sum();
        let seconds = run.end.since(run.begin).as_secs_f64().max(1e-9);
        let mb_per_second = bytes as f64 / 1e6 / seconds;
        Self { times: urgent_times(run), mb_per_second, inversions: inverted(&programs).len() }
    }

    fn milliseconds(&self, percent: usize) -> f64 {
        let at = self.times.len() * percent / 100;
        self.times.get(at).or(self.times.last()).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

fn line(arm: Arm, arguments: &VmUrgentArguments, by: &str, runs: &[Fared]) -> Line {
    let of = |percent| median(runs.iter().map(|run| run.milliseconds(percent)));
    let longest = runs.iter().map(|run| run.milliseconds(100)).fold(0.0, f64::max);
    let rate = median(runs.iter().map(|run| run.mb_per_second));
    let inversions: usize = runs.iter().map(|run| run.inversions).sum();
    let requests: usize = runs.iter().map(|run| run.times.len()).sum();
    Line {
        id: "vm-urgent",
        value: of(99),
        unit: "ms, 99th percentile of the urgent",
        goal: "none: shown beside each other".to_owned(),
        met: true,
        detail: format!(
            "{by}, {}: of {requests} requests of 4 KiB of the urgent, one each 30 ms, median {:.1} ms, 99 % within {:.1}, longest {longest:.1}; \
             the others, {} requests of {} KiB at random each, {rate:.1} MB/s together, {inversions} inversions; {} runs of {} s on {}",
            arm.told(),
            of(50),
            of(99),
            arguments.depth,
            arguments.block / 1024,
            runs.len(),
            arguments.seconds,
            arguments.profile,
        ),
    }
}
