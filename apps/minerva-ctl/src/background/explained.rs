//! What `background explain` says of one queue.

use super::{amount, due, is_confined, is_of, seconds};
use crate::output::one_line;
use minerva_api::v1;

/// All that is known of a queue, with the plan of its disk if there is one.
pub(super) fn text(queue: &v1::BackgroundQueue, plan: Option<&v1::BackgroundPlan>) -> String {
    let mut text = format!("{} ({}): {} {}\n", one_line(&queue.name), queue.id, queue.kind, one_line(&queue.path));
    if !queue.command.is_empty() {
        text.push_str(&format!("  command   {}\n", one_line(&queue.command.join(" "))));
    }
    text.push_str(&format!("  state     {}: {}\n", queue.state, one_line(&queue.reason)));
    if !queue.message.is_empty() {
        text.push_str(&format!("  message   {}\n", one_line(&queue.message)));
    }
    text.push_str(&format!(
        "  progress  {} done in {}\n",
        amount(queue.done_items, &queue.items),
        seconds(queue.ran_seconds)
    ));
    text.push_str(&cost(queue));
    let how = match queue.hold.as_str() {
        "cap" => "slowed by weight and a cap, never stopped",
        "told" => "told to pause: its program does so by itself",
        _ => "stopped",
    };
    text.push_str(&format!("  others    while they use {} it is {how}\n", queue.device));
    text.push_str(&processors(queue));
    text.push_str(&format!("  due       {}\n", due(queue)));
    text.push_str(&format!(
        "  priority  {}: the greater goes first on its disk, unless a deadline is near\n",
        queue.priority
    ));
    text.push_str(&slip(queue));
    if let Some(plan) = plan {
        text.push_str(&planned(plan, queue));
    }
    text
}

/// When a queue is done by the plan, and what is wrong with its disk.
fn planned(plan: &v1::BackgroundPlan, queue: &v1::BackgroundQueue) -> String {
    let paid = plan.payments.iter().find(|payment| is_of(payment, queue)).and_then(|paid| paid.paid_unix_ns);
    // What is over or paused is in no plan.
    let mut text = match (queue.state.as_str(), paid) {
        ("done" | "failed", _) => String::new(),
        ("paused", _) => "  planned   not while it is paused\n".to_owned(),
        (_, Some(paid)) => format!("  planned   done {}\n", crate::moment::show(paid)),
        (_, None) => "  planned   done not within a month\n".to_owned(),
    };
    if let Some(space) = super::space::sentence(plan) {
        text.push_str(&format!("  {space}\n"));
    }
    for alarm in &plan.alarms {
        let message = one_line(&alarm.message);
        text.push_str(&format!("  ALARM     {}: {message}\n", crate::moment::show(alarm.at_unix_ns)));
    }
    text
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
    use super::{slip, text};
    use minerva_api::v1;

    #[test]
    fn what_is_over_or_paused_is_not_said_to_be_done_too_late_and_is_not_taken_for_another_of_its_name() {
        let payment = |id: &str, paid_unix_ns| v1::BackgroundPayment {
            id: id.to_owned(),
            name: "rebuild".to_owned(),
            paid_unix_ns,
            ..v1::BackgroundPayment::default()
        };
        let (soon, late) = (1_000_000_000, 86_400_000_000_000);
        let plan = v1::BackgroundPlan {
            payments: vec![payment("b2147483648", Some(late)), payment("b3", Some(soon))],
            ..v1::BackgroundPlan::default()
        };
        let planned = |id: &str, state: &str, plan: &v1::BackgroundPlan| {
            let (name, state, id) = ("rebuild".to_owned(), state.to_owned(), id.to_owned());
            let queue = v1::BackgroundQueue { id, name, state, ..v1::BackgroundQueue::default() };
            let text = text(&queue, Some(plan));
            text.lines().find_map(|line| line.strip_prefix("  planned   ")).map(str::to_owned)
        };
        let done_at = |at| Some(format!("done {}", crate::moment::show(at)));
        assert_eq!(planned("b3", "waiting", &plan), done_at(soon));
        assert_eq!(planned("b2147483648", "waiting", &plan), done_at(late));
        assert_eq!(planned("b9", "waiting", &plan), Some("done not within a month".to_owned()));
        assert_eq!(planned("b9", "paused", &plan), Some("not while it is paused".to_owned()));
        for state in ["done", "failed"] {
            assert_eq!(planned("b9", state, &plan), None);
        }
        let of_earlier = v1::BackgroundPlan { payments: vec![payment("", Some(late))], ..plan };
        assert_eq!(planned("b3", "waiting", &of_earlier), done_at(late));
    }

    #[test]
    fn names_that_others_chose_make_no_lines_of_their_own() {
        let forged = || "a\n  state     done: x".to_owned();
        let queue = v1::BackgroundQueue {
            path: forged(),
            command: vec![forged()],
            reason: forged(),
            message: forged(),
            state: "failed".to_owned(),
            ..v1::BackgroundQueue::default()
        };
        let text = text(&queue, None);
        assert!(!text.lines().any(|line| line.starts_with("  state     done")), "{text}");
        assert_eq!(text.matches("a\u{FFFD}  state").count(), 4, "{text}");
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
