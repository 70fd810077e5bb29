//! `minerva-ctl top`: the latest slice, live. One frame is a pure function of one slice, so that `--once` and the tests see
//! what the terminal shows.

use crate::daemon::answered;
use crate::disk::{ServedAside, ServedPages};
use crate::disk_name;
use crate::figures::{rate, span};
use crate::forecast;
use crate::keys::{Pressed, pressed};
use crate::output::{self, CommandStatus};
use crate::part;
use crate::screen;
use crate::signals::Signals;
use anyhow::{Context, bail};
use minerva_api::client::Operator;
use minerva_api::v1;
use ratatui::Frame;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};
use std::time::Duration;
use tonic::{Code, Streaming};

/// How often keys are looked for between slices.
const KEY_PERIOD: Duration = Duration::from_millis(50);
/// The frame that `--once` draws where no terminal gives its width.
const WIDTH_ONCE: u16 = 160;

/// What a connection that broke off is told as, and no refusal of the daemon is.
const OF_CONNECTION: [Code; 4] = [Code::Cancelled, Code::Internal, Code::Unavailable, Code::Unknown];

/// Lines at the foot for the selected line in full.
const FOOT_LINES: u16 = 9;

/// Shows slices until `q` is pressed, or one; with `d` guests' disks instead.
pub(crate) async fn run(
    mut client: Operator,
    mut served: ServedPages,
    once: bool,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let mut slices = answered(client.watch(v1::WatchRequest {})).await?.into_inner();
    if json {
        loop {
            output::json(&next(&mut slices).await?)?;
            if once {
                return Ok(CommandStatus::Well);
            }
        }
    }
    if once {
        let slice = next(&mut slices).await?;
        output::text(&format!("{}{}", frame_text(&slice)?, served.text()))?;
        return Ok(CommandStatus::Well);
    }
    let mut served = served.aside()?;
    // None ends this program before the terminal is as it was.
    let mut signals = Signals::catch()?;
    let mut terminal = screen::take()?;
    screen::give_back(live(&mut terminal, &mut slices, &mut served, &mut signals).await)
}

/// The next slice. However the daemon ends, there is none.
async fn next(slices: &mut Streaming<v1::WatchResponse>) -> anyhow::Result<v1::Slice> {
    match slices.message().await {
        Ok(Some(answer)) => Ok(answer.slice.unwrap_or_default()),
        Err(status) if !OF_CONNECTION.contains(&status.code()) => Err(status.into()),
        _ => bail!("the daemon stopped"),
    }
}

async fn live(
    terminal: &mut ratatui::DefaultTerminal,
    slices: &mut Streaming<v1::WatchResponse>,
    served: &mut ServedAside,
    signals: &mut Signals,
) -> anyhow::Result<CommandStatus> {
    let (mut slice, mut selected, mut is_served_shown) = (v1::Slice::default(), 0, false);
    let mut keys = tokio::time::interval(KEY_PERIOD);
    terminal.draw(|frame| draw(frame, &slice, Some(selected))).context("failed to draw")?;
    loop {
        tokio::select! {
            came = next(slices) => {
                slice = came?;
                if is_served_shown {
                    served.want();
                }
            }
            came = signals.next() => return Ok(CommandStatus::Signalled(came.number)),
            () = served.changed() => {}
            _ = keys.tick() => match pressed()? {
                Pressed::Quit => return Ok(CommandStatus::Well),
                Pressed::Nothing => continue,
                Pressed::Resized => {}
                Pressed::OtherPage => {
                    is_served_shown = !is_served_shown;
                    served.want();
                }
                Pressed::Moved(lines) => selected = selected.saturating_add_signed(lines),
            },
        }
        selected = selected.min(uses(&slice).len().saturating_sub(1));
        if is_served_shown {
            let text = served_text(&served.text());
            terminal.draw(|frame| frame.render_widget(Paragraph::new(text), frame.area())).context("failed to draw")?;
        } else {
            terminal.draw(|frame| draw(frame, &slice, Some(selected))).context("failed to draw")?;
        }
    }
}

/// The page of guests' disks.
fn served_text(pages: &str) -> String {
    let pages = if pages.is_empty() { "no server of guests' disks listens here" } else { pages };
    format!("d tenants, q quits\n\n{pages}")
}

/// One frame as text, high enough for everything.
fn frame_text(slice: &v1::Slice) -> anyhow::Result<String> {
    let lines = slice.devices.len() + slice.groups.len() + uses(slice).len() + 5;
    let height = u16::try_from(lines).unwrap_or(u16::MAX);
    let mut terminal = ratatui::Terminal::new(TestBackend::new(WIDTH_ONCE, height)).context("failed to lay out")?;
    terminal.draw(|frame| draw(frame, slice, None)).context("failed to draw")?;
    Ok(buffer_text(terminal.backend().buffer()))
}

fn buffer_text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let line: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Draws one slice. With a selected line, what stands there in short is told in full at the foot.
fn draw(frame: &mut Frame<'_>, slice: &v1::Slice, selected: Option<usize>) {
    let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX).saturating_add(2);
    let uses = uses(slice);
    let foot = if selected.is_some() && !uses.is_empty() { FOOT_LINES } else { 0 };
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(lines(slice.devices.len() + slice.groups.len())),
        Constraint::Min(2),
        Constraint::Length(foot),
    ])
    .split(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(Line::styled(title(slice, selected.is_some()), bold)), areas[0]);
    frame.render_widget(disk_table(slice), areas[1]);
    let mut state = TableState::new().with_selected(selected.filter(|_| foot > 0));
    frame.render_stateful_widget(tenant_table(slice, &uses), areas[2], &mut state);
    if let Some((tenant, used)) = selected.filter(|_| foot > 0).and_then(|index| uses.get(index)) {
        let disk = slice.devices.iter().find(|device| device.number == used.device);
        let group = slice.groups.iter().find(|group| group.name == tenant.group);
        let part = tenant.part.as_ref().map_or_else(String::new, |part| format!(": {}", part::full(part)));
        let guest = match tenant.guest_name.as_str() {
            "" => String::new(),
            name => format!(", calls itself '{name}'"),
        };
        let text = vec![
            Line::styled(format!("{} ({}, {}{guest}){part}", tenant.name, tenant.kind, tenant.cgroup), bold),
            Line::raw(if used.why.is_empty() { "nothing was decided about it" } else { &used.why }),
            Line::raw(used.forecasts.iter().map(forecast::sentence).collect::<Vec<_>>().join("; ")),
            Line::raw(disk.map_or_else(String::new, |disk| in_full(&disk.name, Some(&disk.reason), &disk.ahead))),
            Line::raw(group.map_or_else(String::new, |group| in_full(&group.name, None, &group.ahead))),
        ];
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), areas[3]);
    }
}

/// A disk or a group, with its day and its week ahead.
fn in_full(name: &str, reason: Option<&str>, ahead: &[v1::LoadAhead]) -> String {
    let ahead = ahead.iter().map(forecast::sentence_ahead);
    format!("{name}: {}", reason.map(str::to_owned).into_iter().chain(ahead).collect::<Vec<_>>().join("; "))
}

fn title(slice: &v1::Slice, live: bool) -> String {
    let keys = if live { "    up/down explain, d guests' disks, q quits" } else { "" };
    if slice.number == 0 {
        return format!("minerva: waiting for the first slice{keys}");
    }
    let what = match slice.mode.as_str() {
        "enforce" => "enforce",
        "shadow" => "shadow: shares are decided, nothing is written",
        _ => "observe: nothing is decided",
    };
    let (number, when, cost) = (slice.number, crate::moment::show(slice.unix_ns), span(Some(slice.cost_ns)));
    format!("minerva ({what})  slice {number} at {when}, cost {cost}, {} tenants{keys}", slice.tenants.len())
}

fn header<'a>(cells: impl IntoIterator<Item = Cell<'a>>) -> Row<'a> {
    Row::new(cells).style(Style::new().add_modifier(Modifier::REVERSED))
}

/// Numbers stand to the right, so that their sizes can be compared.
fn right<'a>(text: impl Into<String>) -> Cell<'a> {
    Cell::new(Line::raw(text.into()).right_aligned())
}

fn disk_table(slice: &v1::Slice) -> Table<'_> {
    let rows = slice.devices.iter().map(|device| {
        Row::new([
            Cell::new(device.name.as_str()),
            Cell::new(device.back_end.as_str()),
            right(device.contention.to_string()),
            right(format!("{} %", device.busy_permille / 10)),
            right(rate(device.read_bytes_per_second)),
            right(rate(device.write_bytes_per_second)),
            right(span(device.read_latency_ns)),
            right(span(device.write_latency_ns)),
            right(forecast::brief_ahead(&device.ahead)),
            Cell::new(device.reason.as_str()),
        ])
    });
    let groups = slice.groups.iter().map(|group| {
        let name = [Cell::new(group.name.as_str()), Cell::new("group")];
        let ahead = right(forecast::brief_ahead(&group.ahead));
        Row::new(name.into_iter().chain(std::iter::repeat_n(Cell::new(""), 6)).chain([ahead]))
    });
    let widths = [12, 11, 6, 6, 11, 11, 9, 9, 15].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let numbers = ["ACTIVE", "BUSY", "READ", "WRITE", "READ LAT", "WRITE LAT", "DAY AHEAD SKILL"].map(right);
    let head = [Cell::new("DISK"), Cell::new("BACK END")].into_iter().chain(numbers).chain([Cell::new("REASON")]);
    Table::new(rows.chain(groups), widths.collect::<Vec<_>>()).header(header(head))
}

fn tenant_table<'a>(slice: &'a v1::Slice, uses: &[(&'a v1::Tenant, &'a v1::Use)]) -> Table<'a> {
    let widths = [28, 12, 11, 11, 9, 6, 16, 10].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let numbers = ["READ", "WRITE", "LATENCY", "SHARE", "NEXT 15 S SKILL"].map(right);
    let words = ["PART", "WHY"].map(Cell::new);
    let head = [Cell::new("TENANT"), Cell::new("DISK")].into_iter().chain(numbers).chain(words);
    Table::new(uses.iter().map(|(tenant, used)| tenant_row(slice, tenant, used)), widths.collect::<Vec<_>>())
        .header(header(head))
        .row_highlight_style(Style::new().add_modifier(Modifier::UNDERLINED | Modifier::BOLD))
}

/// Each tenant on each disk, the busiest first; tenants that never used a disk are left out.
fn uses(slice: &v1::Slice) -> Vec<(&v1::Tenant, &v1::Use)> {
    let mut uses: Vec<(&v1::Tenant, &v1::Use)> =
        slice.tenants.iter().flat_map(|tenant| tenant.uses.iter().map(move |used| (tenant, used))).collect();
    uses.sort_by_key(|(_, used)| std::cmp::Reverse(used.read_bytes_per_second + used.write_bytes_per_second));
    uses
}

fn tenant_row<'a>(slice: &'a v1::Slice, tenant: &'a v1::Tenant, used: &'a v1::Use) -> Row<'a> {
    let disk = disk_name::of(slice, &used.device);
    let style = if used.active { Style::new() } else { Style::new().add_modifier(Modifier::DIM) };
    Row::new([
        Cell::new(tenant.name.as_str()),
        Cell::new(disk),
        right(rate(used.read_bytes_per_second)),
        right(rate(used.write_bytes_per_second)),
        right(span(used.latency_ns)),
        right(used.share.map_or("-".to_owned(), |share| share.to_string())),
        right(forecast::brief(&used.forecasts)),
        Cell::new(tenant.part.as_ref().map_or_else(String::new, part::brief)),
        Cell::new(brief(&used.why)),
    ])
    .style(style)
}

/// The reasons alone: who, where and the share stand in the columns before.
fn brief(why: &str) -> &str {
    why.split_once(" = ").map_or(why, |(_, reasons)| reasons)
}

#[cfg(test)]
mod tests {
    use super::frame_text;
    use minerva_api::v1;

    #[test]
    fn one_frame_shows_the_busiest_first() {
        let used = |read, share| v1::Use {
            device: "7:0".to_owned(),
            read_bytes_per_second: read,
            share: Some(share),
            why: format!("t1 on loop0: share {share} = 100 * fennel (group 9)"),
            active: read > 0,
            forecasts: vec![v1::Forecast {
                horizon: "pattern".to_owned(),
                read_bytes: Some(v1::Interval { value: 3e9, ..v1::Interval::default() }),
                skill: 0.25,
                ..v1::Forecast::default()
            }],
            ..v1::Use::default()
        };
        let tenant = |name: &str, used| v1::Tenant { name: name.to_owned(), uses: vec![used], ..v1::Tenant::default() };
        let day = v1::LoadAhead {
            horizon: "day".to_owned(),
            read_bytes: Some(v1::Interval { value: 42e9, ..v1::Interval::default() }),
            skill: 0.5,
            ..v1::LoadAhead::default()
        };
        let group = v1::Group { name: "web".to_owned(), ahead: vec![day.clone()] };
        let (number, name, ahead) = ("7:0".to_owned(), "loop0".to_owned(), vec![day]);
        let device = v1::Device { number, name, ahead, ..v1::Device::default() };
        let part = v1::Part { level: "idle".to_owned(), ..v1::Part::default() };
        let slice = v1::Slice {
            number: 7,
            devices: vec![device],
            groups: vec![group],
            tenants: vec![
                tenant("sparing", used(0, 100)),
                v1::Tenant { part: Some(part), ..tenant("heavy", used(22_400_000, 4)) },
            ],
            ..v1::Slice::default()
        };
        let text = frame_text(&slice).expect("a frame in memory");
        let heavy = text.find("heavy").expect("the heavy tenant");
        assert!(heavy < text.find("sparing").expect("the sparing tenant"), "{text}");
        assert!(text.contains("22.4 MB/s"), "{text}");
        assert!(text.contains("loop0"), "{text}");
        assert!(text.contains("4    3.00 GB  0.25 idle       100 * fennel (group 9)"), "{text}");
        assert!(text.contains("observe: nothing is decided"), "{text}");
        let foreseen: Vec<&str> = text.lines().filter(|line| line.contains("42.00 GB  0.50")).collect();
        assert!(
            matches!(foreseen[..], [disk, group] if disk.starts_with("loop0") && group.starts_with("web")),
            "{text}"
        );
    }
}
