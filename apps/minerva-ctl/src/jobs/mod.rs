//! `minerva-ctl jobs`: batch jobs, who goes first and why, and what runs of a name were like.

mod page;
mod profile;

use crate::arguments::JobsCommand;
use crate::figures::{long_span, size, table};
use crate::output::{self, CommandStatus};
use minerva_api::client::Operator;
use minerva_api::v1;

/// Shows all jobs, or the profile of one; one that moved much more than it declared is a finding.
pub(crate) async fn run(
    mut client: Operator,
    command: Option<JobsCommand>,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    if let Some(JobsCommand::Profile { name, html }) = command {
        return profile::run(client, name, html.as_deref(), json).await;
    }
    let answer = client.jobs(v1::JobsRequest {}).await?.into_inner();
    if json {
        output::json(&answer)?;
    } else {
        output::text(&text(&answer))?;
    }
    Ok(CommandStatus::found_if(answer.jobs.iter().any(|job| job.overrun)))
}

fn text(answer: &v1::JobsResponse) -> String {
    let mut text = if answer.jobs.is_empty() {
        "no batch jobs; minerva-ctl run --job NAME starts one, [[jobs]] in the operator's file names others\n"
            .to_owned()
    } else {
        let header = ["JOB", "TENANT", "DISK", "ORDER", "MOVED", "OF", "LEFT", "CERTAIN", "PHASES", "WHY"];
        let rows: Vec<Vec<String>> = answer.jobs.iter().flat_map(rows).collect();
        table(&header, &rows, &[4, 5, 6, 7])
    };
    for job in answer.jobs.iter().filter(|job| job.overrun) {
        let moved: u64 = job.disks.iter().map(|disk| disk.moved_bytes).sum();
        text.push_str(&format!(
            "{} ({}) declared {} and moved {}: what it declares counts no longer\n",
            job.name,
            job.tenant,
            size(job.declared_bytes.unwrap_or(0) as f64),
            size(moved as f64)
        ));
    }
    if !answer.known.is_empty() {
        let rows: Vec<Vec<String>> = answer.known.iter().map(known).collect();
        text.push('\n');
        text.push_str(&table(&["KNOWN JOB", "RUNS", "MOVES", "GIVE OR TAKE"], &rows, &[1, 2, 3]));
    }
    text
}

/// A row a disk; one without disks has moved nothing yet.
fn rows(job: &v1::Job) -> Vec<Vec<String>> {
    let phases: Vec<String> =
        job.phases.iter().map(|phase| format!("{} {}", phase.kind, seconds(phase.seconds))).collect();
    let row = |disk: Option<&v1::JobOnDisk>| {
        let order = disk.filter(|disk| disk.place > 0).map(|disk| format!("{}/{}", disk.place, disk.jobs));
        let of_disk = |shown: fn(&v1::JobOnDisk) -> String| disk.map_or_else(|| "-".to_owned(), shown);
        vec![
            job.name.clone(),
            job.tenant.clone(),
            of_disk(|disk| disk.device.clone()),
            order.unwrap_or_else(|| "-".to_owned()),
            of_disk(|disk| size(disk.moved_bytes as f64)),
            job.declared_bytes.map_or_else(|| "?".to_owned(), |bytes| size(bytes as f64)),
            of_disk(|disk| seconds(disk.left_seconds)),
            of_disk(|disk| format!("{} %", disk.certainty_permille / 10)),
            phases.join(", "),
            disk.map_or_else(|| "it has not used a disk yet".to_owned(), |disk| disk.reason.clone()),
        ]
    };
    if job.disks.is_empty() { vec![row(None)] } else { job.disks.iter().map(|disk| row(Some(disk))).collect() }
}

fn known(known: &v1::KnownJob) -> Vec<String> {
    vec![known.name.clone(), known.runs.to_string(), size(known.mean_bytes), size(known.spread_bytes)]
}

pub(super) fn seconds(seconds: f64) -> String {
    long_span((seconds.clamp(0.0, 1e9) * 1e9) as u64)
}

/// What was read, written and computed a second, in as many steps as there are.
fn curves(run: &v1::JobRun) -> [(&'static str, Vec<f64>); 3] {
    let of = |value: fn(&v1::JobStep) -> f64| run.steps.iter().map(value).collect();
    let per_second = |bytes: u64, step: &v1::JobStep| bytes as f64 / step.seconds.max(f64::MIN_POSITIVE);
    [
        ("reads", run.steps.iter().map(|step| per_second(step.read_bytes, step)).collect()),
        ("writes", run.steps.iter().map(|step| per_second(step.write_bytes, step)).collect()),
        ("cores", of(|step| step.cores.unwrap_or(0.0))),
    ]
}

#[cfg(test)]
mod tests {
    use super::text;
    use minerva_api::v1;

    #[test]
    fn who_goes_first_and_who_lied_is_read_at_a_glance() {
        let disk = |place, moved_bytes| v1::JobOnDisk {
            device: "sda".to_owned(),
            moved_bytes,
            left_seconds: 5.0,
            certainty_permille: 800,
            place,
            jobs: 2,
            reason: format!("job {place} of 2"),
            ..Default::default()
        };
        let job = |name: &str, place, moved, overrun| v1::Job {
            name: name.to_owned(),
            tenant: format!("of-{name}"),
            declared_bytes: Some(1),
            overrun,
            phases: vec![v1::JobPhase { kind: "read".to_owned(), seconds: 3.0, ..Default::default() }],
            disks: vec![disk(place, moved)],
            ..Default::default()
        };
        let known = v1::KnownJob { name: "sort".to_owned(), runs: 3, mean_bytes: 2e9, spread_bytes: 1e8 };
        let jobs = vec![job("sort", 1, 500, false), job("liar", 2, 1_000_000_000_000, true), v1::Job::default()];
        let text = text(&v1::JobsResponse { jobs, known: vec![known] });
        assert!(text.contains("1/2") && text.contains("80 %") && text.contains("read 3 s"), "{text}");
        assert!(text.contains("liar (of-liar) declared 1 B and moved 1000.00 GB"), "{text}");
        assert!(text.contains("it has not used a disk yet") && text.contains("2.00 GB"), "{text}");
    }
}
