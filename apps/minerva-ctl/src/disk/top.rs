//! `minerva-ctl disk top`: each disk of a guest and each priority on it, live: rates, queue, times, who has the time, and contracts. What the
//! terminal shows is a pure function of one or two reports.

use crate::figures::{rate, size, span, table};
use crate::keys::{Pressed, pressed};
use crate::output::{self, CommandStatus};
use crate::screen;
use crate::signals::Signals;
use anyhow::{Context, bail};
use minerva_model::{ContractFigures, DiskReport, Nanos, RecentFigures, ServerReport, TagFigures};
use ratatui::widgets::Paragraph;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(1);
/// How often keys and signals are looked for.
const KEY_PERIOD: Duration = Duration::from_millis(50);
const HEADER: [&str; 13] = [
    "disk", "on", "IOPS", "moves", "queue", "median", "95 %", "99 %", "99.9 %", "longest", "busy", "of it", "contract",
];

/// Shows reports until `q` is pressed, or one. A contract that was missed is a finding.
pub(crate) fn run(
    ask: impl Fn() -> anyhow::Result<ServerReport> + Send + 'static,
    once: bool,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    if once || json {
        loop {
            let report = ask()?;
            if json {
                output::json(&report)?
            } else {
                output::text(&page(None, &report))?
            }
            if once {
                return Ok(CommandStatus::found_if(report.disks.iter().any(is_missed)));
            }
            std::thread::sleep(PERIOD);
        }
    }
    let first = ask()?;
    // None ends this program before the terminal is as it was.
    let mut signals = Signals::catch()?;
    let mut terminal = screen::take()?;
    screen::give_back(live(&mut terminal, first, ask, &mut signals))
}

fn live(
    terminal: &mut ratatui::DefaultTerminal,
    first: ServerReport,
    ask: impl Fn() -> anyhow::Result<ServerReport> + Send + 'static,
    signals: &mut Signals,
) -> anyhow::Result<CommandStatus> {
    let (tell, told) = sync_channel(0);
    let ask_again = move || {
        loop {
            std::thread::sleep(PERIOD);
            if tell.send(ask()).is_err() {
                break;
            }
        }
    };
    // In a thread of its own: a server that hangs does not hold up the keys.
    std::thread::Builder::new().name("ask".to_owned()).spawn(ask_again).context("failed to start a thread")?;
    let (mut before, mut now) = (None, first);
    loop {
        let text = format!("q quits    {}", page(before.as_ref(), &now));
        terminal
            .draw(|frame| frame.render_widget(Paragraph::new(text.as_str()), frame.area()))
            .context("failed to draw")?;
        let next = loop {
            if let Some(came) = signals.came() {
                return Ok(CommandStatus::Signalled(came.number));
            }
            if matches!(pressed()?, Pressed::Quit) {
                return Ok(CommandStatus::Well);
            }
            match told.recv_timeout(KEY_PERIOD) {
                Ok(report) => break report?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the thread that asks has ended"),
            }
        };
        before = Some(std::mem::replace(&mut now, next));
    }
}

fn is_missed(disk: &DiskReport) -> bool {
    disk.figures.contract.as_ref().is_some_and(|contract| !contract.is_kept())
}

/// What is known of all disks; of the time since `before`, where it is of the same server, who had how much of the host's disk.
pub(super) fn page(before: Option<&ServerReport>, now: &ServerReport) -> String {
    let before = before.filter(|before| (before.process, before.began) == (now.process, now.began));
    let had = |disk: &DiskReport| {
        let same =
            before.and_then(|before| before.disks.iter().find(|other| other.settings.name == disk.settings.name));
        let earlier = same.map_or(Nanos::ZERO, |same| same.figures.device_time);
        disk.figures.device_time.since(earlier).0
    };
    let mut rows = Vec::new();
    for disk in &now.disks {
        let all: u64 = now.disks.iter().filter(|other| other.device == disk.device).map(had).sum();
        let figures = &disk.figures;
        let contract =
            figures.contract.as_ref().map_or("-".to_owned(), |contract| told(contract, disk.settings.terms.delay));
        let contract = match &figures.hung_up {
            Some(why) => format!("not served: {why}"),
            None => contract,
        };
        let part = if all == 0 { "-".to_owned() } else { format!("{:.0} %", had(disk) as f64 * 100.0 / all as f64) };
        let busy = format!("{:.1} s", had(disk) as f64 / 1e9);
        let name = vec![disk.settings.name.clone(), disk.device.clone()];
        rows.push(row(name, &figures.recent, disk.under_way, [busy, part, contract]));
        let is_told = |tag: &&TagFigures| figures.tags.len() > 1 || tag.given_ops > 0;
        for tag in figures.tags.iter().filter(is_told) {
            let name = vec![format!("  tag {}", tag.tag), String::new()];
            let given = if tag.given_ops == 0 { "by default" } else { "" };
            rows.push(row(name, &tag.recent, tag.under_way, [String::new(), String::new(), given.to_owned()]));
        }
    }
    let since = if before.is_some() { "since the line before" } else { "since the server began" };
    format!(
        "{}, process {}; rates and times of the last 5 to 10 s, who was busy {since}\n\n{}{}{}",
        now.program,
        now.process,
        table(&HEADER, &rows, &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        super::text::image_failures(now),
        super::text::refused(now)
    )
}

fn row(mut cells: Vec<String>, recent: &RecentFigures, under_way: u64, last: [String; 3]) -> Vec<String> {
    cells.push(format!("{:.0}", recent.ops_per_second()));
    cells.push(rate(recent.bytes_per_second() as u64));
    cells.push(format!("{under_way} ({:.1})", recent.queue_mean()));
    let time = |time: Nanos| span(Some(time.0).filter(|_| recent.ops > 0));
    cells.extend([recent.median, recent.p95, recent.p99, recent.p999, recent.longest].map(time));
    cells.extend(last);
    cells
}

/// Whether a contract was kept, in a line.
pub(crate) fn told(contract: &ContractFigures, delay: Nanos) -> String {
    let ContractFigures { requests, late, late_max, seconds, seconds_late, seconds_short, short_bytes_max, .. } =
        contract;
    let overdue = contract.overdue;
    if contract.is_kept() {
        let early = if contract.early > 0 { format!(", {} beyond it", contract.early) } else { String::new() };
        return format!("kept: {requests} requests in {seconds} s{early}");
    }
    let mut parts = Vec::new();
    if late + overdue > 0 {
        let (worst, delay) = (span(Some(late_max.0)), span(Some(delay.0)));
        parts.push(format!("{late} of {requests} late and {overdue} overdue, the worst {worst} after {delay}, in {seconds_late} of {seconds} s"));
    }
    if *seconds_short > 0 {
        parts.push(format!("too little in {seconds_short} of {seconds} s, {} at worst", size(*short_bytes_max as f64)));
    }
    let all = contract.took.iter().map(|took| took.device_time.0).sum::<u64>().max(1);
    let took = contract.took.iter().map(|took| format!("{} {} %", took.disk, took.device_time.0 * 100 / all));
    let took: Vec<String> = took.collect();
    let took = if took.is_empty() { String::new() } else { format!("; the time was had by {}", took.join(", ")) };
    format!("missed: {}{took}", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::{page, told};
    use minerva_model::{
        ContractFigures, DiskFigures, DiskReport, DiskSettings, DiskTerms, FailureFigures, IoCounters, Nanos,
        RecentFigures, RefusedDisk, ServerReport, TagFigures, TookFigures, WaitCounters,
    };

    fn disk(name: &str, busy_ms: u64, figures: DiskFigures) -> DiskReport {
        let terms = DiskTerms {
            weight: 100,
            rate_bytes_per_second: None,
            burst_bytes: 4096,
            delay: Nanos::from_millis(200),
            limit_bytes_per_second: None,
            tag_default: 64,
            tag_max: 254,
            is_random: false,
            request_bytes: 4096,
            force: false,
        };
        let (image, socket) = (String::new(), String::new());
        let settings =
            DiskSettings { name: name.to_owned(), image, socket, read_only: false, direct: true, queues: 1, terms };
        DiskReport {
            settings,
            device: "sda".to_owned(),
            length_bytes: 0,
            share: 100,
            front_end: None,
            under_way: 3,
            io: IoCounters::default(),
            wait: WaitCounters::default(),
            other_ops: 0,
            tagged_ops: 0,
            failed_ops: 0,
            refused_ops: 0,
            figures: DiskFigures { device_time: Nanos::from_millis(busy_ms), ..figures },
        }
    }

    fn report(disks: Vec<DiskReport>) -> ServerReport {
        ServerReport {
            program: "minerva-blk".to_owned(),
            process: 7,
            began: Nanos(1),
            config: String::new(),
            user: 0,
            socket_group: None,
            devices: Vec::new(),
            disks,
            refused: vec![RefusedDisk {
                name: "vm9".to_owned(),
                why: "it is locked".to_owned(),
                retry_in: Some(Nanos::from_secs(8)),
            }],
        }
    }

    fn missed() -> ContractFigures {
        let took = |disk: &str, ms| TookFigures { disk: disk.to_owned(), device_time: Nanos::from_millis(ms) };
        ContractFigures {
            requests: 1234,
            early: 5,
            late: 12,
            overdue: 1,
            late_max: Nanos::from_millis(35),
            seconds: 60,
            seconds_late: 2,
            seconds_short: 1,
            short_bytes_max: 1_200_000,
            took: vec![took("vm2", 750), took("vm3", 250)],
        }
    }

    #[test]
    fn a_contract_is_told_with_by_how_much_it_was_missed_and_who_had_the_time() {
        let delay = Nanos::from_millis(200);
        assert_eq!(
            told(&missed(), delay),
            "missed: 12 of 1234 late and 1 overdue, the worst 35.0 ms after 200.0 ms, in 2 of 60 s; too little in 1 of 60 s, 1.2 MB at worst; \
             the time was had by vm2 75 %, vm3 25 %"
        );
        let kept = ContractFigures { late: 0, overdue: 0, seconds_late: 0, seconds_short: 0, ..missed() };
        assert_eq!(told(&kept, delay), "kept: 1234 requests in 60 s, 5 beyond it");
    }

    #[test]
    fn what_an_image_failed_and_that_it_was_removed_is_told_with_what_to_do() {
        let failure = FailureFigures {
            errno: 28,
            ago: Nanos::from_secs(72),
            why: "No space left on device: make room there".to_owned(),
        };
        let failed = DiskFigures { failure: Some(failure), ..DiskFigures::default() };
        let removed = DiskFigures { image_removed: Some("its image was removed".to_owned()), ..DiskFigures::default() };
        let disks = vec![
            DiskReport { failed_ops: 3, ..disk("vm1", 0, failed) },
            disk("vm2", 0, removed),
            disk("vm3", 0, DiskFigures::default()),
        ];
        let report = report(disks);
        let lines = "\nvm1: 3 failed, the last one 1 min 12 s ago: No space left on device: make room there\nvm2: its image was removed\n";
        for text in [page(None, &report), super::super::text::list(&report)] {
            assert!(text.contains(lines) && !text.contains("vm3:"), "{text}");
        }
    }

    #[test]
    fn a_page_has_each_disk_and_each_priority_and_who_was_busy_since() {
        let recent = RecentFigures {
            span: Nanos::from_secs(10),
            ops: 1000,
            bytes: 40_960_000,
            wait: Nanos::from_secs(40),
            median: Nanos::from_millis(4),
            p99: Nanos::from_millis(9),
            ..RecentFigures::default()
        };
        let tag = |tag, given_ops| TagFigures { tag, ops: 10, given_ops, recent, ..TagFigures::default() };
        let figures = DiskFigures { recent, tags: vec![tag(200, 10), tag(64, 0)], ..DiskFigures::default() };
        let contract = DiskFigures { contract: Some(missed()), ..DiskFigures::default() };
        let before = report(vec![disk("vm1", 9_000, figures.clone()), disk("vm2", 1_000, contract.clone())]);
        let now = report(vec![disk("vm1", 9_250, figures), disk("vm2", 1_750, contract)]);
        let text = page(Some(&before), &now);
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        let words = |name: &str| line(name).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words("vm1").starts_with("vm1 sda 100 4.1 MB/s 3 (4.0) 4.0 ms "), "{text}");
        assert!(words("vm1").contains("0.2 s 25 %") && words("vm2").contains("75 % missed: 12 of"), "{text}");
        assert!(line("  tag 200").contains("9.0 ms") && line("  tag 64").ends_with("by default"), "{text}");
        assert!(page(None, &now).contains("since the server began"));
        assert!(text.ends_with("\nvm9 is not served: it is locked (tried again in 8 s)\n"), "{text}");
    }
}
