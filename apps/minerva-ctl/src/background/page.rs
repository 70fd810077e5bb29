//! The plan as a page of its own, with plots.

use super::is_of;
use super::slots::together;
use crate::figures::size;
use crate::forecast::page::escaped;
use crate::moment::show;
use minerva_api::v1;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;

/// The page.
pub(crate) fn of(answer: &v1::BackgroundResponse, span: &str) -> String {
    let plans: String = answer.plans.iter().map(|plan| section(plan, &answer.queues)).collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Background work, the next {span}</title>\n\
         <style>body{{font:15px sans-serif;margin:2em;max-width:60em}}svg{{background:#fafafa;border:1px solid #ddd}}\
         table{{border-collapse:collapse}}td,th{{padding:.2em .8em;text-align:left}}.alarm{{color:#b00020;font-weight:bold}}</style>\n\
         <h1>Background work, the next {span}</h1>\n{plans}</html>\n"
    )
}

fn section(plan: &v1::BackgroundPlan, queues: &[v1::BackgroundQueue]) -> String {
    let mut text = format!("<h2>{}</h2>\n", escaped(&plan.device));
    if let Some(space) = super::space::sentence(plan) {
        text.push_str(&format!("<p class=\"alarm\">{}</p>\n", escaped(&space)));
    }
    for alarm in &plan.alarms {
        let (at, message) = (show(alarm.at_unix_ns), escaped(&alarm.message));
        text.push_str(&format!(
            "<p class=\"alarm\">Oversubscribed, add a disk or move load: from {at} on {message}</p>\n"
        ));
    }
    text.push_str("<p>The disk's time: others (grey), background work (blue), taken from others (red)</p>\n");
    text.push_str(&time_plot(&plan.slots));
    if plan.slots.iter().any(|slot| slot.limit_bytes > 0) {
        text.push_str("<p>Space: in use (grey), tied by work (orange), of what both may be</p>\n");
        text.push_str(&space_plot(&plan.slots));
    }
    text.push_str("<table><tr><th>Queue</th><th>Ties</th><th>Due</th><th>Paid</th></tr>\n");
    for payment in &plan.payments {
        let queue = queues.iter().find(|queue| is_of(payment, queue));
        let paid = payment.paid_unix_ns.map_or_else(|| "not in this time".to_owned(), show);
        text.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{paid}</td></tr>\n",
            escaped(&payment.name),
            size(queue.map_or(0, |queue| queue.tied_bytes) as f64),
            queue.map_or_else(String::new, |queue| show(queue.due_unix_ns)),
        ));
    }
    text.push_str("</table>\n");
    for payment in plan.payments.iter().filter(|payment| !payment.stretches.is_empty()) {
        text.push_str(&format!(
            "<p>{}: what it owes (orange), and the disk's time that it has (blue)</p>\n",
            escaped(&payment.name)
        ));
        text.push_str(&queue_plot(&payment.stretches));
    }
    text
}

/// A queue's debt, as a part of the most that it owes, and below it the part of the disk's time that it has.
fn queue_plot(stretches: &[v1::BackgroundStretch]) -> String {
    const HALF: f64 = HEIGHT / 4.0;
    let width = WIDTH / stretches.len().max(1) as f64;
    let most = stretches.iter().map(|stretch| stretch.left_seconds).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |(number, stretch): (usize, &v1::BackgroundStretch)| {
        let x = number as f64 * width;
        let (debt, time) = (HALF * stretch.left_seconds / most, HALF * f64::from(stretch.permille) / 1000.0);
        format!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"{debt:.1}\" fill=\"#e90\"/>\
             <rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"{time:.1}\" fill=\"#47c\"/>",
            HALF - debt,
            2.0 * HALF - time,
        )
    };
    let bars: String = stretches.iter().enumerate().map(bar).collect();
    let height = 2.0 * HALF;
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">{bars}</svg>\n")
}

/// Bars, a slot each, from the bottom up.
fn bars(slots: &[v1::BackgroundSlot], parts: impl Fn(&v1::BackgroundSlot) -> [(f64, &'static str); 3]) -> String {
    let width = WIDTH / slots.len().max(1) as f64;
    let mut text = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\">");
    for (number, slot) in slots.iter().enumerate() {
        let mut bottom = HEIGHT;
        for (share, colour) in parts(slot) {
            let height = share.clamp(0.0, 1.0) * HEIGHT;
            bottom -= height;
            let x = number as f64 * width;
            text.push_str(&format!(
                "<rect x=\"{x:.1}\" y=\"{bottom:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
            ));
        }
    }
    text.push_str("</svg>\n");
    let shown = together(slots);
    if let (Some(first), Some(last)) = (shown.first(), shown.last()) {
        text.push_str(&format!("<p>{} to {}</p>\n", show(first.start_unix_ns), show(last.start_unix_ns)));
    }
    text
}

fn time_plot(slots: &[v1::BackgroundSlot]) -> String {
    bars(slots, |slot| {
        let part = |permille: u32| f64::from(permille) / 1000.0;
        let taken = slot.stolen_permille.min(slot.background_permille);
        [
            (part(slot.foreground_permille.saturating_sub(taken)), "#bbb"),
            (part(taken), "#d33"),
            (part(slot.background_permille - taken), "#47c"),
        ]
    })
}

fn space_plot(slots: &[v1::BackgroundSlot]) -> String {
    bars(slots, |slot| {
        let part = |bytes: u64| bytes as f64 / slot.limit_bytes.max(1) as f64;
        [(part(slot.used_bytes), "#bbb"), (part(slot.tied_bytes), "#e90"), (0.0, "none")]
    })
}

#[cfg(test)]
mod tests {
    use super::of;
    use minerva_api::v1;

    #[test]
    fn the_page_has_a_bar_for_each_slot_and_no_foreign_markup() {
        let slot = v1::BackgroundSlot { foreground_permille: 300, background_permille: 500, ..Default::default() };
        let plan = v1::BackgroundPlan {
            device: "<sda>".to_owned(),
            slots: vec![slot; 60],
            alarms: vec![v1::BackgroundAlarm { at_unix_ns: 0, message: "space runs out".to_owned() }],
            ..Default::default()
        };
        let owes = v1::BackgroundPayment {
            name: "<scrub>".to_owned(),
            stretches: vec![v1::BackgroundStretch { permille: 500, left_seconds: 60.0, ..Default::default() }; 24],
            ..Default::default()
        };
        let plan = v1::BackgroundPlan { payments: vec![owes], ..plan };
        let page = of(&v1::BackgroundResponse { plans: vec![plan], ..Default::default() }, "hour");
        assert_eq!(page.matches("<rect").count(), 180 + 48);
        assert!(page.contains("&lt;scrub&gt;") && !page.contains("<scrub>"));
        assert!(page.contains("&lt;sda&gt;") && !page.contains("<sda>") && page.contains("space runs out"));
    }
}
