//! What must be bought so that a job has a rate in every interval of some length.
//!
//! A contract of rate rho and delay delta gives a job that never stops asking rho * (t - delta) in any interval t, and a request
//! that straddles the end of an interval counts in the next one. So `rate` in every interval T needs a contract of
//! (rate * T + one request) / (T - delta).

use anyhow::bail;
use minerva_model::Nanos;
use minerva_sim_workload::job::{Amount, BoundJob};

/// A time on the command line; a bare number is seconds.
pub(crate) fn parse(text: &str) -> Result<Nanos, String> {
    let time = minerva_quantity::parse_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(time.as_nanos()).map(Nanos).map_err(|_| format!("`{text}` is longer than any run"))
}

/// Gives each job with a contract the one that has its rate in every interval this long.
pub(crate) fn buy(jobs: &mut [BoundJob], every: Nanos) -> anyhow::Result<()> {
    for job in jobs {
        let Some((rate, _, delay)) = job.terms.contract.as_mut() else { continue };
        if *delay >= every {
            bail!(
                "`{}` has a delay of {}: a contract says nothing of an interval that is no longer than its delay; give it a \
                 delay below {}",
                job.name,
                text(*delay),
                text(every)
            );
        }
        let left_s = every.since(*delay).as_secs_f64();
        let bought = |amount: f64, request: f64| (amount * every.as_secs_f64() + request) / left_s;
        *rate = match *rate {
            // Up to the next KiB and the next tenth of a request, which is what a job file will say.
            Amount::Bytes(bytes) => {
                Amount::Bytes((bought(bytes as f64, f64::from(job.plan.block_bytes)) / 1024.0).ceil() as u64 * 1024)
            }
            Amount::Requests(requests) => Amount::Requests((bought(requests, 1.0) * 10.0).ceil() / 10.0),
        };
    }
    Ok(())
}

/// The contracts of jobs that have one, as a job file says them, by the names of the jobs.
pub(crate) fn contracts(jobs: &[BoundJob]) -> Vec<(String, String)> {
    let contract = |job: &BoundJob| {
        let (rate, burst, delay) = job.terms.contract?;
        Some((job.name.clone(), format!("{}/s,{},{}", amount(rate), amount(burst), text(delay))))
    };
    jobs.iter().filter_map(contract).collect()
}

fn amount(amount: Amount) -> String {
    match amount {
        Amount::Bytes(bytes) if bytes % 1024 == 0 => format!("{}k", bytes / 1024),
        Amount::Bytes(bytes) => format!("{bytes}b"),
        Amount::Requests(requests) => requests.to_string(),
    }
}

/// A time in the largest unit that says it exactly.
pub(crate) fn text(time: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let exact = units.into_iter().find(|(unit_ns, _)| time.0.is_multiple_of(*unit_ns));
    exact.map_or_else(|| format!("{}ns", time.0), |(unit_ns, unit)| format!("{}{unit}", time.0 / unit_ns))
}
