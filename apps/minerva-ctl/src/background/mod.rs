//! `minerva-ctl background`: work that is put off, and the plan for it.

pub(crate) mod arguments;
mod calibrate;
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
    let mut text = format!("{} ({}): {} {}\n", queue.name, queue.id, queue.kind, queue.path);
    if !queue.command.is_empty() {
        text.push_str(&format!("  command   {}\n", queue.command.join(" ")));
    }
    text.push_str(&format!("  state     {}: {}\n", queue.state, queue.reason));
    if !queue.message.is_empty() {
        text.push_str(&format!("  message   {}\n", queue.message));
    }
    text.push_str(&format!(
        "  progress  {} done in {}\n",
        amount(queue.done_items, &queue.items),
        seconds(queue.ran_seconds)
    ));
    text.push_str(&cost(&queue));
    let how = match queue.hold.as_str() {
        "cap" => "slowed by weight and a cap, never stopped",
        "told" => "told to pause: its program does so by itself",
        _ => "stopped",
    };
    text.push_str(&format!("  others    while they use {} it is {how}\n", queue.device));
    text.push_str(&processors(&queue));
    text.push_str(&format!("  due       {}\n", due(&queue)));
    text.push_str(&format!(
        "  priority  {}: the greater goes first on its disk, unless a deadline is near\n",
        queue.priority
    ));
    text.push_str(&slip(&queue));
    if let Some(plan) = &plan {
        text.push_str(&planned(plan, &queue));
    }
    output::text(&text)?;
    Ok(CommandStatus::Well)
}

/// When a queue is done by the plan, and what is wrong with its disk.
fn planned(plan: &v1::BackgroundPlan, queue: &v1::BackgroundQueue) -> String {
    let paid = plan.payments.iter().find(|payment| payment.name == queue.name).and_then(|paid| paid.paid_unix_ns);
    let paid = paid.map_or_else(|| "not within a month".to_owned(), crate::moment::show);
    let mut text = format!("  planned   done {paid}\n");
    if let Some(space) = space::sentence(plan) {
        text.push_str(&format!("  {space}\n"));
    }
    for alarm in &plan.alarms {
        text.push_str(&format!("  ALARM     {}: {}\n", crate::moment::show(alarm.at_unix_ns), alarm.message));
    }
    text
}

/// Its processors are a list, and no sentence that says why it may use all.
fn is_confined(queue: &v1::BackgroundQueue) -> bool {
    let is_of_list = |byte: u8| byte.is_ascii_digit() || byte == b',';
    !queue.processors.is_empty() && queue.processors.bytes().all(is_of_list)
}

/// The processors that it may use, and why no more.
fn processors(queue: &v1::BackgroundQueue) -> String {
    match (queue.processors.as_str(), queue.others_processors) {
        ("", _) => String::new(),
        (list, Some(others)) if is_confined(queue) => {
            format!("  cpus      only {list}: others use {others:.1} processors, and keep as many as they need\n")
        }
        (list, None) if is_confined(queue) => format!("  cpus      only {list}\n"),
        (why, _) => format!("  cpus      all: {why}\n"),
    }
}

/// By how much its end moved from plan to plan, and what that changes.
fn slip(queue: &v1::BackgroundQueue) -> String {
    // Seconds are rounding.
    const LEAST_SECONDS: f64 = 60.0;
    let moved = match queue.slipped_seconds {
        later if later >= LEAST_SECONDS => format!("its end moved {} away from plan to plan", seconds(later)),
        sooner if sooner <= -LEAST_SECONDS => format!("its end came {} nearer from plan to plan", seconds(-sooner)),
        _ => return "  slip      none: its end stayed where it was planned\n".to_owned(),
    };
    let sooner_ns = queue.due_unix_ns.saturating_sub(queue.planned_due_unix_ns);
    if queue.planned_due_unix_ns == 0 || sooner_ns as f64 / 1e9 < LEAST_SECONDS {
        return format!("  slip      {moved}\n");
    }
    let planned = crate::moment::show(queue.planned_due_unix_ns);
    format!("  slip      {moved}, so that it is planned as if it were due {planned}\n")
}

fn cost(queue: &v1::BackgroundQueue) -> String {
    let per_second = amount(1.0 / queue.seconds_per_item.max(f64::MIN_POSITIVE), &queue.items);
    let known = match queue.measured_seconds {
        measured if measured > 0.0 => format!("measured over {}", seconds(measured)),
        _ => "assumed, nothing was measured yet".to_owned(),
    };
    let slow = match queue.slow_down {
        Some(lost) => format!("; a second of it beside others costs them {lost:.1} s of their requests"),
        None => "; what others lose beside it was not measured".to_owned(),
    };
    format!("  cost      {per_second} a second of running ({known}){slow}; {} to go\n", seconds(queue.left_seconds))
}

#[cfg(test)]
mod tests {
    use super::{due, slip};
    use minerva_api::v1;

    #[test]
    fn a_deadline_that_is_not_known_is_no_date() {
        assert_eq!(due(&v1::BackgroundQueue::default()), "-");
        let queue = v1::BackgroundQueue { due_unix_ns: 1, ..v1::BackgroundQueue::default() };
        assert!(due(&queue).starts_with("19"), "{}", due(&queue));
    }

    #[test]
    fn a_queue_that_slips_says_by_how_much_and_by_when_it_is_planned() {
        let queue = |slipped_seconds, planned_due_unix_ns| v1::BackgroundQueue {
            slipped_seconds,
            due_unix_ns: 36_000_000_000_000,
            planned_due_unix_ns,
            ..v1::BackgroundQueue::default()
        };
        assert!(slip(&queue(12.0, 0)).contains("none"));
        let sooner = slip(&queue(-7200.0, 36_000_000_000_000));
        assert!(sooner.contains("nearer") && !sooner.contains("planned as if"), "{sooner}");
        let later = slip(&queue(7200.0, 18_000_000_000_000));
        assert!(later.contains("away") && later.contains(&crate::moment::show(18_000_000_000_000)), "{later}");
    }
}
