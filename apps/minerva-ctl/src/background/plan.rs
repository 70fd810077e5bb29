//! The plan of background work, as a table with bars, or as a page.

use super::arguments::Planned;
use super::slots::together;
use super::{is_of, page};
use crate::figures::{long_span, size, table};
use crate::moment::show;
use crate::output::{self, CommandStatus};
use anyhow::Context;
use minerva_api::client::Operator;
use minerva_api::v1;

const BAR_CELLS: u32 = 20;

/// Shows the plans; an alarm is a finding.
pub(crate) async fn run(mut client: Operator, planned: Planned, json: bool) -> anyhow::Result<CommandStatus> {
    let span = match planned.span.as_str() {
        "hour" => v1::BackgroundSpan::Hour,
        "week" => v1::BackgroundSpan::Week,
        "month" => v1::BackgroundSpan::Month,
        _ => v1::BackgroundSpan::Day,
    };
    let answer = client.background(v1::BackgroundRequest { span: span.into() }).await?.into_inner();
    if let Some(path) = &planned.html {
        let text = page::of(&answer, &planned.span);
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    if json {
        answer.plans.iter().try_for_each(output::json)?;
    } else {
        output::text(&text(&answer, &planned.span))?;
    }
    Ok(CommandStatus::found_if(answer.plans.iter().any(|plan| !plan.alarms.is_empty())))
}

fn text(answer: &v1::BackgroundResponse, span: &str) -> String {
    if answer.plans.is_empty() {
        return "no background work is waiting\n".to_owned();
    }
    answer.plans.iter().map(|plan| plan_text(plan, &answer.queues, span)).collect::<Vec<_>>().join("\n")
}

fn plan_text(plan: &v1::BackgroundPlan, queues: &[v1::BackgroundQueue], span: &str) -> String {
    let mut text = format!("{}: the next {span} (# others, = background work, ! taken from others)\n", plan.device);
    let rows: Vec<Vec<String>> = together(&plan.slots).iter().map(slot_row).collect();
    text.push_str(&table(
        &["FROM", "THE DISK'S TIME", "OTHERS", "WORK", "TAKEN", "TIED", "FREE"],
        &rows,
        &[2, 3, 4, 5, 6],
    ));
    text.push('\n');
    let debts: Vec<Vec<String>> = plan.payments.iter().map(|payment| payment_row(payment, queues)).collect();
    text.push_str(&table(&["QUEUE", "DEBT", "TIES", "DUE", "PAID"], &debts, &[1, 2]));
    let over_time: Vec<Vec<String>> =
        plan.payments.iter().filter(|payment| !payment.stretches.is_empty()).map(over_time).collect();
    if !over_time.is_empty() {
        text.push_str("\nfrom left to right, the disk's time that each has (█ all of it), and what it still owes (█ what it owes most)\n");
        text.push_str(&table(&["QUEUE", "TIME", "DEBT", "MOST"], &over_time, &[3]));
    }
    if let Some(space) = super::space::sentence(plan) {
        text.push_str(&format!("{space}\n"));
    }
    for alarm in &plan.alarms {
        let (at, message) = (show(alarm.at_unix_ns), output::one_line(&alarm.message));
        text.push_str(&format!("oversubscribed: add a disk or move load: from {at} on {message}\n"));
    }
    text
}

fn slot_row(slot: &v1::BackgroundSlot) -> Vec<String> {
    let cells = |permille: u32| (permille.min(1000) * BAR_CELLS).div_ceil(1000) as usize;
    let (others, work, taken) =
        (cells(slot.foreground_permille), cells(slot.background_permille), cells(slot.stolen_permille));
    let bar: String =
        "#".repeat(others.saturating_sub(taken)) + &"!".repeat(taken) + &"=".repeat(work.saturating_sub(taken));
    let percent =
        |permille: u32| if permille == 0 { "-".to_owned() } else { format!("{:.0} %", f64::from(permille) / 10.0) };
    let free = slot.limit_bytes.saturating_sub(slot.used_bytes + slot.tied_bytes);
    vec![
        show(slot.start_unix_ns),
        bar.chars().take(BAR_CELLS as usize).collect(),
        percent(slot.foreground_permille),
        percent(slot.background_permille),
        percent(slot.stolen_permille),
        if slot.tied_bytes == 0 { "-".to_owned() } else { size(slot.tied_bytes as f64) },
        if slot.limit_bytes == 0 { "?".to_owned() } else { size(free as f64) },
    ]
}

fn payment_row(payment: &v1::BackgroundPayment, queues: &[v1::BackgroundQueue]) -> Vec<String> {
    let queue = queues.iter().find(|queue| is_of(payment, queue));
    let left = queue.map_or(0.0, |queue| queue.left_seconds);
    let tied = queue.map_or(0, |queue| queue.tied_bytes);
    vec![
        payment.name.clone(),
        long_span((left.clamp(0.0, 1e9) * 1e9) as u64),
        if tied == 0 { "-".to_owned() } else { size(tied as f64) },
        queue.map_or_else(String::new, |queue| show(queue.due_unix_ns)),
        payment.paid_unix_ns.map_or_else(|| "not in this time".to_owned(), show),
    ]
}

/// A queue's part of the disk's time and its debt, a character a stretch.
fn over_time(payment: &v1::BackgroundPayment) -> Vec<String> {
    let stretches = &payment.stretches;
    let most = stretches.iter().map(|stretch| stretch.left_seconds).fold(0.0, f64::max);
    let time = stretches.iter().map(|stretch| level(f64::from(stretch.permille) / 1000.0));
    let debt = stretches.iter().map(|stretch| level(stretch.left_seconds / most.max(f64::MIN_POSITIVE)));
    let most = long_span((most.clamp(0.0, 1e9) * 1e9) as u64);
    vec![payment.name.clone(), time.collect(), debt.collect(), most]
}

/// A bar as high as a part of a line.
fn level(part: f64) -> char {
    const LEVELS: [char; 9] = ['.', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    LEVELS.get((part.clamp(0.0, 1.0) * 8.0).ceil() as usize).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::{payment_row, text};
    use minerva_api::v1;

    fn slot(foreground_permille: u32, background_permille: u32, stolen_permille: u32) -> v1::BackgroundSlot {
        v1::BackgroundSlot {
            foreground_permille,
            background_permille,
            stolen_permille,
            length_ns: 60_000_000_000,
            limit_bytes: 950_000_000,
            used_bytes: 50_000_000,
            ..v1::BackgroundSlot::default()
        }
    }

    #[test]
    fn of_queues_of_one_name_each_has_its_own_row() {
        let of = |id: &str, tied_bytes| v1::BackgroundQueue {
            id: id.to_owned(),
            name: "rebuild".to_owned(),
            tied_bytes,
            ..v1::BackgroundQueue::default()
        };
        let queues = [of("b3", 1_000_000), of("b2147483648", 2_000_000)];
        let payment = v1::BackgroundPayment { id: queues[1].id.clone(), name: "rebuild".to_owned(), ..<_>::default() };
        assert_eq!(payment_row(&payment, &queues)[2], "2.0 MB");
        let plan = v1::BackgroundPlan { payments: vec![payment], ..v1::BackgroundPlan::default() };
        let answer = v1::BackgroundResponse { queues: queues.to_vec(), plans: vec![plan], ..<_>::default() };
        assert!(crate::background::page::of(&answer, "hour").contains("<td>2.0 MB</td>"));
    }

    fn stretch(permille: u32, left_seconds: f64) -> v1::BackgroundStretch {
        v1::BackgroundStretch { permille, left_seconds, ..v1::BackgroundStretch::default() }
    }

    #[test]
    fn a_plan_is_read_at_a_glance_and_says_what_does_not_hold() {
        let plan = v1::BackgroundPlan {
            device: "sda".to_owned(),
            slots: vec![slot(200, 800, 0), slot(900, 200, 100)],
            payments: vec![v1::BackgroundPayment {
                name: "scrub".to_owned(),
                paid_unix_ns: None,
                stretches: vec![stretch(800, 7200.0), stretch(200, 3600.0), stretch(0, 0.0)],
                id: "b3".to_owned(),
            }],
            alarms: vec![v1::BackgroundAlarm { at_unix_ns: 0, message: "scrub misses its deadline".to_owned() }],
            ..v1::BackgroundPlan::default()
        };
        let text = text(&v1::BackgroundResponse { plans: vec![plan], ..v1::BackgroundResponse::default() }, "hour");
        assert!(text.contains("####================"), "{text}");
        assert!(text.contains("################!!=="), "{text}");
        assert!(text.contains("▇▂.") && text.contains("█▄."), "what each queue has and owes: {text}");
        assert!(text.contains("900.0 MB") && text.contains("not in this time"), "{text}");
        assert!(text.contains("oversubscribed: add a disk or move load") && text.contains("scrub misses"), "{text}");
    }
}
