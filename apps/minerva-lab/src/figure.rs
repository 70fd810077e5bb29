//! `minerva-lab figure …`

use crate::cli::{FigureCommand, WeightsBiteArguments};
use crate::{minervad, signals};
use anyhow::Context as _;
use minerva_lab::disk::DiskSpec;
use minerva_lab::figure::{BitePlan, SHARES, weights_bite};
use minerva_lab::scene::{FixedWeights, Minervad, Steering};
use minerva_lab::workload::{Access, WorkerProgram};
use minerva_model::Nanos;

/// Within this part of 8:1 the weights bite.
const ERROR_MAX: f64 = 0.15;

pub(crate) fn run(command: FigureCommand) -> anyhow::Result<()> {
    match command {
        FigureCommand::WeightsBite(arguments) => bite(&arguments),
    }
}

fn bite(arguments: &WeightsBiteArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let program = WorkerProgram::own()?;
    let steering: Box<dyn Steering> = if arguments.raw {
        Box::new(FixedWeights(SHARES.to_vec()))
    } else {
        Box::new(Minervad { program: minervad::find(arguments.minervad.as_deref())?, slice_ms: 500 })
    };
    let settings = arguments.settings.iter().map(|setting| {
        let (file, value) = setting.split_once('=').with_context(|| format!("`{setting}` is no FILE=VALUE"))?;
        Ok((file.to_owned(), value.to_owned()))
    });
    let settings = settings.collect::<anyhow::Result<Vec<_>>>()?;
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
        if arguments.json {
            let id = if arguments.raw { "weights-bite-raw" } else { "weights-bite" };
            let line = serde_json::json!({
                "id": id, "value": result.ratio, "unit": "ratio", "goal": "8 +- 15 %",
                "met": result.error <= ERROR_MAX, "detail": result,
            });
            println!("{line}");
        } else {
            println!(
                "block {:>7}: {:>6.2} and {:>5.2} MB/s, {:>6.2} together, ratio {:.2} ({:+.0} % of 8)",
                result.block_bytes,
                result.heavy_mb_per_s,
                result.light_mb_per_s,
                result.total_mb_per_s,
                result.ratio,
                (result.ratio / 8.0 - 1.0) * 100.0
            );
        }
    }
    Ok(())
}
