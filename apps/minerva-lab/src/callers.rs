//! `minerva-lab callers`: many clients in one process, as tenants are. It connects them all, says so, and at a word asks at an
//! even pace whatever the answers do, so that a slow one delays no other.

use anyhow::{Context, bail, ensure};
use minerva_client::v1;
use minerva_client::v1::coordinate_request::Deadline;
use minerva_client::{Address, Client, Options};
use minerva_lab::figure::{CallersReport, CallersSpec};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Connections that are made at once; the daemon's queue of those that wait is finite.
const CONNECTING: usize = 64;

/// Does what the parent says.
pub(crate) fn run(spec: &CallersSpec) -> anyhow::Result<()> {
    let own = std::process::id().to_string();
    std::fs::write(&spec.cgroup_processes, own)
        .with_context(|| format!("failed to move into {}", spec.cgroup_processes.display()))?;
    raise_descriptor_limit()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to begin")?;
    runtime.block_on(async {
        let clients = connect(spec).await?;
        println!("connected");
        let mut word = String::new();
        std::io::stdin().read_line(&mut word).context("failed to wait for the parent's start signal")?;
        ensure!(!word.is_empty(), "the parent process ended");
        let report = ask(spec, &clients).await;
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    })
}

fn raise_descriptor_limit() -> anyhow::Result<()> {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)
        .context("failed to raise the limit of open files")
}

async fn connect(spec: &CallersSpec) -> anyhow::Result<Vec<Client>> {
    let (mut connecting, mut clients) = (JoinSet::new(), Vec::with_capacity(spec.clients));
    for _ in 0..spec.clients {
        if connecting.len() >= CONNECTING
            && let Some(one) = connecting.join_next().await
        {
            clients.push(one??);
        }
        let options = Options { address: Some(Address::Unix(spec.socket.clone())), ..Options::from_environment()? };
        connecting.spawn(async move {
            let client = options.connect().await?;
            if let Some(absence) = client.absence() {
                bail!("no daemon: {absence}");
            }
            // Once, so that what a connection needs when it is used is there.
            client.describe().await?;
            anyhow::Ok(client)
        });
    }
    while let Some(one) = connecting.join_next().await {
        clients.push(one??);
    }
    Ok(clients)
}

async fn ask(spec: &CallersSpec, clients: &[Client]) -> CallersReport {
    let (mut asking, mut report) = (JoinSet::new(), CallersReport::default());
    let period = Duration::from_secs(1) / spec.requests_per_second.max(1);
    let begin = Instant::now();
    // A fifth of the steps are two requests.
    let steps = u64::from(spec.requests_per_second) * u64::from(spec.seconds) * 5 / 6;
    for step in 0..steps {
        let due = begin + period.mul_f64(1.2).mul_f64(step as f64);
        tokio::time::sleep_until(due.into()).await;
        let client = clients[step as usize % clients.len()].clone();
        asking.spawn(async move { one_step(&client, step, due).await });
        while let Some(done) = asking.try_join_next() {
            note(&mut report, done.map_err(anyhow::Error::new).and_then(|done| done));
        }
    }
    while let Some(done) = asking.join_next().await {
        note(&mut report, done.map_err(anyhow::Error::new).and_then(|done| done));
    }
    report
}

fn note(report: &mut CallersReport, done: anyhow::Result<Vec<Duration>>) {
    match done {
        Ok(answers) => report.answers_us.extend(answers.iter().map(|answer| answer.as_micros() as u32)),
        Err(error) => {
            report.failed += 1;
            if report.failure.is_empty() {
                report.failure = format!("{error:#}");
            }
        }
    }
}

/// Of five steps two look who one is, one looks at the account, one steps back or comes back, and one announces an operation
/// and ends it. The times from the moment at which each was due.
async fn one_step(client: &Client, step: u64, due: Instant) -> anyhow::Result<Vec<Duration>> {
    let Some(mut raw) = client.participation() else { bail!("no daemon") };
    match step % 5 {
        0 | 1 => drop(raw.describe(v1::DescribeRequest {}).await?),
        2 => drop(raw.credits(v1::CreditsRequest { entries_max: 10 }).await?),
        3 => {
            let level = if step % 10 == 3 { v1::Level::Low } else { v1::Level::Normal };
            drop(raw.set_level(v1::SetLevelRequest { level: level as i32, lifetime: None }).await?);
        }
        _ => {
            let request_id = format!("{}-{step}", std::process::id());
            let request = v1::CoordinateRequest {
                request_id: request_id.clone(),
                size_bytes: 1 << 20,
                deadline: Some(Deadline::BeginWithinNs(5_000_000_000)),
                ..v1::CoordinateRequest::default()
            };
            let mut answers = raw.coordinate(request).await?.into_inner();
            ensure!(answers.message().await?.is_some(), "no answer to an operation");
            let (asked, ended) = (due.elapsed(), Instant::now());
            raw.finish(v1::FinishRequest { request_id }).await?;
            return Ok(vec![asked, ended.elapsed()]);
        }
    }
    Ok(vec![due.elapsed()])
}
