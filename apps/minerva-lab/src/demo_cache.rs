//! `minerva-lab demo cache`: a burst beside busy neighbours, straight, copied back, and through the pool.

use crate::cli::DemoArguments;
use crate::figure::cache_migration::tell;
use crate::figure::cache_report;
use crate::{binaries, output, signals};
use minerva_lab::figure::{MigrationPlan, cache_migration};
use minerva_lab::workload::WorkerProgram;
use minerva_model::Nanos;

/// Megabytes at scale 1, and the scale that is the default.
const MEGABYTES: f64 = 256.0;
const SCALE: f64 = 0.5;
const BUSY: Nanos = Nanos::from_secs(20);
const BURSTS: u32 = 2;
/// Two demonstrations show the same.
const SEED: u64 = 1;

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    let scale = arguments.scale.unwrap_or(SCALE);
    anyhow::ensure!((0.05..=4.0).contains(&scale), "a scale of {scale} is not possible: use one from 0.05 to 4");
    let plan = MigrationPlan {
        profile: arguments.profile.clone(),
        elevator: "bfq".to_owned(),
        pool_profile: "sata-ssd".to_owned(),
        burst_bytes: (MEGABYTES * scale) as u64 * 1_000_000,
        busy: BUSY,
        bursts: BURSTS,
        rounds: 1,
        seed: SEED,
        service: binaries::minerva_fs(&arguments.output)?,
        daemon: None,
    };
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    eprintln!("disk {}, pool on {}, four runs of about 50 s each", plan.profile, plan.pool_profile);
    let rounds = cache_migration(&plan, &program, &interrupted, &mut tell)?;
    // Before the report, so that one which cannot be written loses nothing.
    if arguments.output.json {
        output::line(serde_json::json!({ "runs": rounds.concat() }))?;
    } else {
        output::line(cache_report::table(&plan, &rounds))?;
    }
    cache_report::write(&arguments.report, &plan, &rounds)?;
    eprintln!("report with plots: {}", arguments.report.display());
    Ok(())
}
