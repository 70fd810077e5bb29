//! `minerva-ctl background`: work that is put off, and the plan for it.

pub(crate) mod arguments;
mod calibrate;
mod explained;
mod page;
mod plan;
mod slots;
mod space;

use crate::daemon::answered;
use crate::figures::{long_span, size, table};
use crate::output::{self, CommandStatus};
use crate::seen;
use anyhow::{Context, anyhow};
use arguments::{Added, BackgroundCommand};
use minerva_api::client::Operator;
use minerva_api::v1;

/// Does what is asked; a refusal is a finding.
pub(crate) async fn run(client: Operator, command: BackgroundCommand, json: bool) -> anyhow::Result<CommandStatus> {
    // That lasts long, and says how long.
    let is_calibration = matches!(command, BackgroundCommand::Calibrate { .. });
    let work = ask(client, command, json);
    if is_calibration { work.await } else { answered(work).await }
}

async fn ask(client: Operator, command: BackgroundCommand, json: bool) -> anyhow::Result<CommandStatus> {
    match command {
        BackgroundCommand::Add(added) => add(client, added, json).await,
        BackgroundCommand::List => list(client, json).await,
        BackgroundCommand::Plan(planned) => plan::run(client, planned, json).await,
        BackgroundCommand::Explain { name } => explain(client, &name, json).await,
        BackgroundCommand::Calibrate { disk, duration } => calibrate::run(client, &disk, duration, json).await,
        BackgroundCommand::Pause { name } => change(client, name, v1::BackgroundChange::Pause, json).await,
        BackgroundCommand::Resume { name } => change(client, name, v1::BackgroundChange::Resume, json).await,
        BackgroundCommand::Remove { name } => change(client, name, v1::BackgroundChange::Remove, json).await,
    }
}

async fn add(mut client: Operator, added: Added, json: bool) -> anyhow::Result<CommandStatus> {
    let path = std::path::absolute(&added.path).context("failed to make the path absolute")?;
    let path =
        path.to_str().ok_or_else(|| anyhow!("{} is no UTF-8, which the daemon does not take", path.display()))?;
    let kind = added.kind.unwrap_or_else(|| "command".to_owned());
    let request = v1::AddBackgroundRequest {
        name: added.name,
        seen: seen::of_path(&kind, path),
        kind,
        path: path.to_owned(),
        command: added.command,
        sla_ns: added.sla.map(|sla| u64::try_from(sla.as_nanos()).unwrap_or(u64::MAX)),
        priority: added.priority.into(),
        never_stop: added.never_stop,
        used_percent_max: added.used_percent_max.map(u32::from),
    };
    match client.add_background(request).await {
        Ok(answer) => {
            let queue = answer.into_inner().queue.unwrap_or_default();
            if json {
                output::json(&queue)?;
            } else {
                let due = crate::moment::show(queue.due_unix_ns);
                output::text(&format!("{} works on {} in its gaps, and is due {due}\n", queue.name, queue.device))?;
            }
            Ok(CommandStatus::Well)
        }
        Err(status) => refused(status, json),
    }
}

async fn change(
    mut client: Operator,
    name: String,
    change: v1::BackgroundChange,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    match client.change_background(v1::ChangeBackgroundRequest { name, change: change.into() }).await {
        Ok(answer) if json => output::json(&answer.into_inner())?,
        Ok(answer) => output::text(&format!("{}\n", answer.into_inner().message))?,
        Err(status) => return refused(status, json),
    }
    Ok(CommandStatus::Well)
}

fn refused(status: tonic::Status, json: bool) -> anyhow::Result<CommandStatus> {
    if status.code() != tonic::Code::FailedPrecondition {
        return Err(status.into());
    }
    if json {
        output::json(&serde_json::json!({ "refusal": status.message() }))?;
    }
    output::note(status.message());
    Ok(CommandStatus::Found)
}

async fn list(mut client: Operator, json: bool) -> anyhow::Result<CommandStatus> {
    let answer = client.background(v1::BackgroundRequest::default()).await?.into_inner();
    if json {
        answer.queues.iter().try_for_each(output::json)?;
    } else if answer.queues.is_empty() {
        output::text("no background work; minerva-ctl background add registers some\n")?;
    } else {
        let header = ["NAME", "KIND", "DISK", "STATE", "DONE", "LEFT", "DUE", "PRIO", "TIES", "CPUS", "WHY"];
        let rows: Vec<Vec<String>> = answer.queues.iter().map(row).collect();
        output::text(&table(&header, &rows, &[4, 5, 7, 8]))?;
    }
    Ok(CommandStatus::found_if(answer.queues.iter().any(|queue| queue.state == "failed")))
}

fn row(queue: &v1::BackgroundQueue) -> Vec<String> {
    let is_over = matches!(queue.state.as_str(), "done" | "failed");
    let why = if queue.message.is_empty() { &queue.reason } else { &queue.message };
    vec![
        queue.name.clone(),
        queue.kind.clone(),
        queue.device.clone(),
        queue.state.clone(),
        done(queue),
        if is_over { "-".to_owned() } else { seconds(queue.left_seconds) },
        due(queue),
        queue.priority.to_string(),
        if queue.tied_bytes == 0 { "-".to_owned() } else { size(queue.tied_bytes as f64) },
        if is_confined(queue) { queue.processors.clone() } else { "all".to_owned() },
        why.clone(),
    ]
}

/// Its processors are a list, and no sentence that says why it may use all.
fn is_confined(queue: &v1::BackgroundQueue) -> bool {
    let is_of_list = |byte: u8| byte.is_ascii_digit() || byte == b',';
    !queue.processors.is_empty() && queue.processors.bytes().all(is_of_list)
}

/// By when it is to be done. Of what was done before the daemon started it is not known where none was set.
fn due(queue: &v1::BackgroundQueue) -> String {
    if queue.due_unix_ns == 0 { "-".to_owned() } else { crate::moment::show(queue.due_unix_ns) }
}

/// How far it is, in percent if the whole is known.
fn done(queue: &v1::BackgroundQueue) -> String {
    match queue.total_items {
        _ if queue.state == "done" => "100 %".to_owned(),
        Some(total) if total > 0.0 => format!("{:.0} %", (100.0 * queue.done_items / total).min(100.0)),
        _ => amount(queue.done_items, &queue.items),
    }
}

fn amount(items: f64, what: &str) -> String {
    match what {
        "bytes" => size(items),
        "seconds" => seconds(items),
        what => format!("{items:.0} {what}"),
    }
}

fn seconds(seconds: f64) -> String {
    long_span((seconds.clamp(0.0, 1e9) * 1e9) as u64)
}

async fn one(client: &mut Operator, name: &str) -> anyhow::Result<v1::BackgroundQueue> {
    let answer = client.background(v1::BackgroundRequest::default()).await?.into_inner();
    let queue = answer.queues.into_iter().find(|queue| queue.name == name);
    queue.ok_or_else(|| anyhow!("there is no background work called {name}"))
}

async fn explain(mut client: Operator, name: &str, json: bool) -> anyhow::Result<CommandStatus> {
    let queue = one(&mut client, name).await?;
    let request = v1::BackgroundRequest { span: v1::BackgroundSpan::Month.into() };
    let plans = client.background(request).await?.into_inner().plans;
    let plan = plans.into_iter().find(|plan| plan.device == queue.device);
    if json {
        let plan = plan.map(|plan| v1::BackgroundPlan { slots: Vec::new(), ..plan });
        output::json(&serde_json::json!({ "queue": queue, "plan": plan }))?;
        return Ok(CommandStatus::Well);
    }
    output::text(&explained::text(&queue, plan.as_ref()))?;
    Ok(CommandStatus::Well)
}

/// Whether a plan's payment is that of a queue. Names alone do not tell: each tenant gives its own. Daemons of earlier versions say no more.
fn is_of(payment: &v1::BackgroundPayment, queue: &v1::BackgroundQueue) -> bool {
    if payment.id.is_empty() { payment.name == queue.name } else { payment.id == queue.id }
}

#[cfg(test)]
mod tests {
    use super::due;
    use minerva_api::v1;

    #[test]
    fn a_deadline_that_is_not_known_is_no_date() {
        assert_eq!(due(&v1::BackgroundQueue::default()), "-");
        let queue = v1::BackgroundQueue { due_unix_ns: 1, ..v1::BackgroundQueue::default() };
        assert!(due(&queue).starts_with("19"), "{}", due(&queue));
    }
}
