//! `minerva-lab figure …`: each prints one line a condition, with `--json` in the form of docs/figures.md.

use crate::cli::{FigureCommand, NoisyNeighbourArguments, WeightsBiteArguments};
use crate::{minervad, signals};
use anyhow::Context as _;
use minerva_lab::disk::DiskSpec;
use minerva_lab::figure::{BitePlan, SHARES, weights_bite};
use minerva_lab::scene::{Comparison, Equal, FixedWeights, Minervad, SCALE_DEFAULT, Scene, Stage, Steering, run_scene};
use minerva_lab::workload::{Access, WorkerProgram};
use minerva_model::Nanos;
use std::path::Path;

/// Within this part of 8:1 the weights bite.
const ERROR_MAX: f64 = 0.15;
/// Short enough that newcomers are seen while they are there.
const SLICE_MS: u64 = 500;

pub(crate) fn run(command: FigureCommand) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    match command {
        FigureCommand::WeightsBite(arguments) => bite(&arguments),
        FigureCommand::NoisyNeighbour(arguments) => noisy_neighbour(&arguments),
    }
}

/// One measured condition.
struct Line {
    id: &'static str,
    value: f64,
    unit: &'static str,
    goal: String,
    met: bool,
    detail: String,
}

impl Line {
    fn print(&self, json: bool) {
        let Self { id, value, unit, goal, met, detail } = self;
        let value = (value * 1000.0).round() / 1000.0;
        if json {
            let line = serde_json::json!({
                "id": id, "value": value, "unit": unit, "goal": goal, "met": met, "detail": detail,
            });
            println!("{line}");
        } else {
            println!("{id}: {value} {unit}, goal {goal}, {}: {detail}", if *met { "met" } else { "not met" });
        }
    }
}

/// The daemon, or fixed weights in its place.
fn steering(weights: Option<Vec<u32>>, asked: Option<&Path>) -> anyhow::Result<Box<dyn Steering>> {
    Ok(match weights {
        Some(weights) => Box::new(FixedWeights(weights)),
        None => Box::new(Minervad { program: minervad::find(asked)?, slice_ms: SLICE_MS }),
    })
}

fn bite(arguments: &WeightsBiteArguments) -> anyhow::Result<()> {
    let steering = steering(arguments.raw.then(|| SHARES.to_vec()), arguments.minervad.as_deref())?;
    let settings = arguments.settings.iter().map(|setting| {
        let (file, value) = setting.split_once('=').with_context(|| format!("`{setting}` is no FILE=VALUE"))?;
        Ok((file.to_owned(), value.to_owned()))
    });
    let settings = settings.collect::<anyhow::Result<Vec<_>>>()?;
    let interrupted = signals::interrupt_flag()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let program = WorkerProgram::own()?;
    for block in &arguments.block {
        let mut disk = DiskSpec::new(format!("bite-{}", std::process::id()), arguments.profile.clone());
        disk.queue_depth = arguments.queue_depth;
        let plan = BitePlan {
            disk,
            block_bytes: u32::try_from(*block).context("a block of 4 GiB or more cannot be read at once")?,
            access: if arguments.random { Access::RandomRead } else { Access::SequentialRead },
            window: Nanos::from_secs(arguments.seconds.max(1)),
            settings: settings.clone(),
        };
        let result = weights_bite(&plan, &program, steering.as_ref(), &interrupted)?;
        let order = if arguments.random { "random" } else { "sequential" };
        let line = Line {
            id: "weights-bite",
            value: result.ratio,
            unit: "ratio",
            goal: "8 within 15 %".to_owned(),
            met: result.error <= ERROR_MAX,
            detail: format!(
                "{}, {order} reads of {} KiB: {:.2} and {:.2} MB/s, {:.2} together",
                steering.name(),
                block >> 10,
                result.heavy_mb_per_s,
                result.light_mb_per_s,
                result.total_mb_per_s
            ),
        };
        line.print(arguments.json);
    }
    Ok(())
}

fn noisy_neighbour(arguments: &NoisyNeighbourArguments) -> anyhow::Result<()> {
    let steering = steering(arguments.weights.clone(), arguments.minervad.as_deref())?;
    let interrupted = signals::interrupt_flag()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let program = WorkerProgram::own()?;
    let stage = Stage { program: &program, profile: &arguments.profile, interrupted: &interrupted };
    let scene = Scene::noisy_neighbour(arguments.scale.unwrap_or(SCALE_DEFAULT));
    let equal = run_scene(&scene, &Equal, &stage, &mut |_| ())?;
    let steered = run_scene(&scene, steering.as_ref(), &stage, &mut |_| ())?;
    let comparison = Comparison::new(&equal, &steered);
    let pairs = comparison.tenants.iter().zip(equal.tenants.iter().zip(&steered.tenants));
    for (index, (change, (before, after))) in pairs.enumerate() {
        // The short tenants are to gain, the scans not to lose.
        let most = if index < 2 { -40.0 } else { 5.0 };
        let line = Line {
            id: "noisy-neighbour",
            value: change.completion_change_percent,
            unit: "% completion",
            goal: format!("at most {most:+}"),
            met: change.completion_change_percent <= most,
            detail: format!(
                "{} ({}): {:.2} s with equal weights, {:.2} s under {}",
                change.name, before.description, before.completion_s, after.completion_s, comparison.steering
            ),
        };
        line.print(arguments.json);
    }
    let line = Line {
        id: "noisy-neighbour",
        value: comparison.disk_percent,
        unit: "% of throughput",
        goal: "at least 97".to_owned(),
        met: comparison.disk_percent >= 97.0,
        detail: format!(
            "whole disk: {:.2} MB/s with equal weights, {:.2} MB/s under {}; {:.0} % under contention",
            equal.disk_mb_per_s, steered.disk_mb_per_s, comparison.steering, comparison.contended_percent
        ),
    };
    line.print(arguments.json);
    Ok(())
}
