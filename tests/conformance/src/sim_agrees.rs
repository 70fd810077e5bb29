//! The figure `sim-agrees`: the simulator and the kernel.

use crate::judged::{Judged, describe};
use crate::selection::{Selection, Set, WINDOWS, chosen};
use anyhow::Context as _;
use minerva_conformance::Arm;
use minerva_conformance::compare::{Pair, Quantity};
use minerva_conformance::job::Job;
use minerva_conformance::real::{Run, check_machine};
use minerva_conformance::recorded::{Measured, Recorded};
use minerva_conformance::simulated::{self, Time};

/// Measures it, and tells it; whether everything agrees.
pub(crate) fn run(options: &Selection) -> anyhow::Result<bool> {
    let sets = chosen(options)?;
    let recorded = match &options.recorded {
        Some(path) => Recorded::read(path)?,
        None => measure(&sets.iter().flat_map(|set| set.jobs.clone()).collect::<Vec<Job>>(), options)?,
    };
    let mut met = true;
    for Set { name, jobs } in sets {
        let mut pairs = Vec::new();
        for (index, job) in jobs.into_iter().enumerate() {
            let Measured { host, outcome, windows, seconds } = recorded.get(&job)?;
            let simulated = simulated::run(&job, host, Time { seconds: *seconds, windows: WINDOWS, seed: 1 })?;
            let pair = Pair { job, simulated, real: Arm { whole: outcome.clone(), windows: windows.clone() } };
            eprintln!("{name} {:>2} {} ({})", index + 1, pair.line(), describe(host));
            pairs.push(pair);
        }
        let judged = Judged { id: "sim-agrees", set: &name, pairs: &pairs, json: options.json };
        for quantity in Quantity::ALL {
            met &= judged.tell(quantity, "");
        }
    }
    Ok(met)
}

/// The real arm.
fn measure(jobs: &[Job], options: &Selection) -> anyhow::Result<Recorded<Measured>> {
    check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-agree")?;
    let seconds = options.seconds();
    let run = Run { prefix: format!("minerva-lab-agree-{}", std::process::id()), seconds };
    let measure_host = || run.host().context("measure what this host adds to a request");
    let mut recorded = Recorded::read_or_begin(options.record.as_deref())?;
    // A shared machine changes from minute to minute, so its part is measured before and behind each job.
    let mut before = measure_host()?;
    for (index, job) in jobs.iter().enumerate() {
        eprintln!("{:>2}/{} {job}", index + 1, jobs.len());
        let Arm { whole, windows } = run.job(job).with_context(|| format!("run {job}"))?;
        let behind = measure_host()?;
        recorded.add(job, Measured { host: before.between(&behind), outcome: whole, windows, seconds });
        before = behind;
        if let Some(path) = &options.record {
            recorded.write(path)?;
        }
    }
    Ok(recorded)
}
