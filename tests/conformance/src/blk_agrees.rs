//! The figure `blk-agrees`: the simulator and `minerva-blk` under the same scheduler, and beside them the kernel's elevator.

use crate::judged::{Judged, describe};
use crate::selection::{Selection, Set, WINDOWS, chosen};
use anyhow::{Context as _, ensure};
use minerva_blocksched::SchedulerName;
use minerva_conformance::compare::{Pair, Quantity, beside};
use minerva_conformance::job::Job;
use minerva_conformance::real::{Run, check_machine};
use minerva_conformance::recorded::{Recorded, ServedMeasured};
use minerva_conformance::served::ServedRun;
use minerva_conformance::simulated::{self, Time};
use std::path::PathBuf;

/// The server.
const PROGRAM: &str = "minerva-blk";

#[derive(clap::Args)]
pub(crate) struct BlkAgrees {
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// A scheduler of `minerva-blk`; without this the one that does what the job's elevator does.
    #[arg(long, value_name = "NAME")]
    pub(crate) scheduler: Option<SchedulerName>,
    /// Folder with `minerva-blk`; without this the one with this program.
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<PathBuf>,
}

impl BlkAgrees {
    fn scheduler(&self, job: &Job) -> SchedulerName {
        self.scheduler.unwrap_or(job.elevator.scheduler())
    }

    fn program(&self) -> anyhow::Result<PathBuf> {
        let path = match &self.binaries {
            Some(folder) => folder.join(PROGRAM),
            None => std::env::current_exe().context("find this program")?.with_file_name(PROGRAM),
        };
        ensure!(
            path.is_file(),
            "there is no {PROGRAM} at {}: build it with `cargo build --release --bin {PROGRAM}`, or give its folder with --binaries",
            path.display()
        );
        Ok(path)
    }
}

/// Measures it, and tells it; whether everything agrees.
pub(crate) fn run(options: &BlkAgrees) -> anyhow::Result<bool> {
    let sets = chosen(&options.selection)?;
    let recorded = match &options.selection.recorded {
        Some(path) => Recorded::read(path)?,
        None => measure(&sets.iter().flat_map(|set| set.jobs.clone()).collect::<Vec<Job>>(), options)?,
    };
    let mut met = true;
    for Set { name, jobs } in sets {
        let (mut pairs, mut kernels) = (Vec::new(), Vec::new());
        for (index, job) in jobs.into_iter().enumerate() {
            let (pair, kernel) = compare(job, options, &recorded, &format!("{name} {:>2}", index + 1))?;
            pairs.push(pair);
            kernels.push(kernel);
        }
        let judged = Judged { id: "blk-agrees", set: &name, pairs: &pairs, json: options.selection.json };
        for quantity in Quantity::ALL {
            let within = kernels.iter().filter(|pair| pair.error(quantity) <= quantity.error_max()).count();
            let beside = format!("; beside them the kernel's elevator is as near to minerva-blk in {within}");
            met &= judged.tell(quantity, &beside);
        }
    }
    Ok(met)
}

/// The simulator beside the server; and the kernel beside it, which is only shown.
fn compare(
    job: Job,
    options: &BlkAgrees,
    recorded: &Recorded<ServedMeasured>,
    title: &str,
) -> anyhow::Result<(Pair, Pair)> {
    let scheduler = options.scheduler(&job);
    let measured = recorded.get(&job)?;
    ensure!(
        measured.scheduler == scheduler.as_str(),
        "`{job}` was recorded under the scheduler {}, not {scheduler}; give that with --scheduler, or record it anew",
        measured.scheduler
    );
    let time = Time { seconds: measured.seconds, windows: WINDOWS, seed: 1 };
    let simulated = simulated::run_served(&job, scheduler, &measured.host, time)?;
    let pair = Pair { job: job.clone(), simulated, real: measured.served.clone() };
    let kernel = beside(&format!("the kernel's {}", job.elevator.as_str()), &measured.kernel);
    let host = describe(&measured.host);
    eprintln!("{title} simulated/minerva-blk under {scheduler} {}; beside them {kernel} ({host})", pair.line());
    Ok((pair, Pair { job, simulated: measured.kernel.clone(), real: measured.served.clone() }))
}

/// The server's arm and the kernel's, one behind the other, so that both meet the machine in much the same state.
fn measure(jobs: &[Job], options: &BlkAgrees) -> anyhow::Result<Recorded<ServedMeasured>> {
    check_machine()?;
    let program = options.program()?;
    minerva_lab::sweep::sweep("minerva-lab-agree")?;
    let seconds = options.selection.seconds();
    let prefix = format!("minerva-lab-agree-{}", std::process::id());
    let served_run = ServedRun { prefix: prefix.clone(), seconds, program };
    let kernel_run = Run { prefix, seconds };
    let measure_host = || served_run.host().context("measure what this host adds to a request through minerva-blk");
    let record = options.selection.record.as_deref();
    let mut recorded = Recorded::read_or_begin(record)?;
    for (index, job) in jobs.iter().enumerate() {
        eprintln!("{:>2}/{} {job}", index + 1, jobs.len());
        let kernel = kernel_run.job(job).with_context(|| format!("run {job} on the kernel"))?;
        let scheduler = options.scheduler(job);
        // A shared machine changes from minute to minute, so its part is measured before and behind each job.
        let before = measure_host()?;
        let served = served_run.job(job, scheduler).with_context(|| format!("run {job} at minerva-blk"))?.arm;
        let host = before.between(&measure_host()?);
        let scheduler = scheduler.to_string();
        recorded.add(job, ServedMeasured { scheduler, host, served, kernel, seconds });
        if let Some(path) = record {
            recorded.write(path)?;
        }
    }
    Ok(recorded)
}
