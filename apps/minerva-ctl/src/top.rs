//! `minerva-ctl top`: the latest slice, live. One frame is a pure function of one slice, so that `--once` and the tests see
//! what the terminal shows.

use crate::figures::{rate, span};
use crate::output::{self, Verdict};
use anyhow::Context;
use minerva_api::client::Operator;
use minerva_api::v1;
use ratatui::Frame;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use std::time::Duration;

/// How often keys are looked for between slices.
const KEY_PERIOD: Duration = Duration::from_millis(50);
/// The frame that `--once` draws where no terminal gives its width.
const WIDTH_ONCE: u16 = 160;

/// Shows slices until `q` is pressed, or one.
pub(crate) async fn run(mut client: Operator, once: bool, json: bool) -> anyhow::Result<Verdict> {
    let mut slices = client.watch(v1::WatchRequest {}).await?.into_inner();
    if json {
        while let Some(answer) = slices.message().await? {
            output::json(&answer.slice.unwrap_or_default())?;
            if once {
                break;
            }
        }
        return Ok(Verdict::Well);
    }
    if once {
        let slice = slices.message().await?.and_then(|answer| answer.slice).unwrap_or_default();
        output::text(&frame_text(&slice)?)?;
        return Ok(Verdict::Well);
    }
    let mut terminal = ratatui::try_init().context("failed to take over the terminal; try --once")?;
    let result = live(&mut terminal, &mut slices).await;
    ratatui::try_restore().context("failed to give the terminal back")?;
    result.map(|()| Verdict::Well)
}

async fn live(
    terminal: &mut ratatui::DefaultTerminal,
    slices: &mut tonic::Streaming<v1::WatchResponse>,
) -> anyhow::Result<()> {
    let mut slice = v1::Slice::default();
    let mut keys = tokio::time::interval(KEY_PERIOD);
    terminal.draw(|frame| draw(frame, &slice)).context("failed to draw")?;
    loop {
        tokio::select! {
            answer = slices.message() => match answer? {
                Some(answer) => slice = answer.slice.unwrap_or_default(),
                None => anyhow::bail!("the daemon stopped"),
            },
            _ = keys.tick() => match pressed()? {
                Pressed::Quit => return Ok(()),
                Pressed::Nothing => continue,
                Pressed::Resized => {}
            },
        }
        terminal.draw(|frame| draw(frame, &slice)).context("failed to draw")?;
    }
}

/// What came from the terminal.
enum Pressed {
    Nothing,
    Resized,
    Quit,
}

/// Takes what came so far.
fn pressed() -> anyhow::Result<Pressed> {
    let mut result = Pressed::Nothing;
    while event::poll(Duration::ZERO).context("failed to look for keys")? {
        match event::read().context("failed to read a key")? {
            Event::Key(key) => {
                let interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                    return Ok(Pressed::Quit);
                }
            }
            Event::Resize(..) => result = Pressed::Resized,
            _ => {}
        }
    }
    Ok(result)
}

/// One frame as text, high enough for everything.
fn frame_text(slice: &v1::Slice) -> anyhow::Result<String> {
    let lines = slice.devices.len() + slice.tenants.iter().map(|tenant| tenant.uses.len().max(1)).sum::<usize>() + 5;
    let height = u16::try_from(lines).unwrap_or(u16::MAX);
    let mut terminal = ratatui::Terminal::new(TestBackend::new(WIDTH_ONCE, height)).context("failed to lay out")?;
    terminal.draw(|frame| draw(frame, slice)).context("failed to draw")?;
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

/// Draws one slice.
fn draw(frame: &mut Frame<'_>, slice: &v1::Slice) {
    let disks = u16::try_from(slice.devices.len()).unwrap_or(u16::MAX).saturating_add(2);
    let areas =
        Layout::vertical([Constraint::Length(1), Constraint::Length(disks), Constraint::Min(1)]).split(frame.area());
    let title = if slice.number == 0 {
        "minerva: waiting for the first slice    q quits".to_owned()
    } else {
        let (number, when, cost) = (slice.number, crate::moment::show(slice.unix_ns), span(Some(slice.cost_ns)));
        format!("minerva: slice {number} at {when}, cost {cost}, {} tenants    q quits", slice.tenants.len())
    };
    frame.render_widget(Paragraph::new(Line::styled(title, Style::new().add_modifier(Modifier::BOLD))), areas[0]);
    frame.render_widget(disk_table(slice), areas[1]);
    frame.render_widget(tenant_table(slice), areas[2]);
}

fn header<'a>(cells: impl IntoIterator<Item = &'a str>) -> Row<'a> {
    Row::new(cells).style(Style::new().add_modifier(Modifier::REVERSED))
}

fn disk_table(slice: &v1::Slice) -> Table<'_> {
    let rows = slice.devices.iter().map(|device| {
        Row::new([
            device.name.clone(),
            device.back_end.clone(),
            device.contention.to_string(),
            format!("{} %", device.busy_permille / 10),
            rate(device.read_bytes_per_second),
            rate(device.write_bytes_per_second),
            span(device.read_latency_ns),
            span(device.write_latency_ns),
            device.reason.clone(),
        ])
    });
    let widths = [12, 11, 6, 6, 11, 11, 9, 9].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    Table::new(rows, widths.collect::<Vec<_>>()).header(header([
        "DISK",
        "BACK END",
        "ACTIVE",
        "BUSY",
        "READ",
        "WRITE",
        "READ LAT",
        "WRITE LAT",
        "REASON",
    ]))
}

fn tenant_table(slice: &v1::Slice) -> Table<'_> {
    let widths = [28, 12, 11, 11, 9, 6].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    Table::new(tenant_rows(slice), widths.collect::<Vec<_>>())
        .header(header(["TENANT", "DISK", "READ", "WRITE", "LATENCY", "SHARE", "WHY"]))
}

/// A row for each tenant on each disk, the busiest first; tenants that never used a disk are left out.
fn tenant_rows(slice: &v1::Slice) -> Vec<Row<'static>> {
    let name_of = |number: &str| {
        slice.devices.iter().find(|device| device.number == number).map_or(number.to_owned(), |d| d.name.clone())
    };
    let mut uses: Vec<(&v1::Tenant, &v1::Use)> =
        slice.tenants.iter().flat_map(|tenant| tenant.uses.iter().map(move |used| (tenant, used))).collect();
    uses.sort_by_key(|(_, used)| std::cmp::Reverse(used.read_bytes_per_second + used.write_bytes_per_second));
    uses.into_iter()
        .map(|(tenant, used)| {
            let style = if used.active { Style::new() } else { Style::new().add_modifier(Modifier::DIM) };
            Row::new([
                Cell::new(tenant.name.clone()),
                Cell::new(name_of(&used.device)),
                Cell::new(rate(used.read_bytes_per_second)),
                Cell::new(rate(used.write_bytes_per_second)),
                Cell::new(span(used.latency_ns)),
                Cell::new(used.share.map_or("-".to_owned(), |share| share.to_string())),
                Cell::new(used.why.clone()),
            ])
            .style(style)
        })
        .collect()
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
            active: read > 0,
            ..v1::Use::default()
        };
        let tenant = |name: &str, used| v1::Tenant { name: name.to_owned(), uses: vec![used], ..v1::Tenant::default() };
        let device = v1::Device { number: "7:0".to_owned(), name: "loop0".to_owned(), ..v1::Device::default() };
        let slice = v1::Slice {
            number: 7,
            devices: vec![device],
            tenants: vec![tenant("sparing", used(0, 100)), tenant("heavy", used(22_400_000, 4))],
            ..v1::Slice::default()
        };
        let text = frame_text(&slice).expect("a frame in memory");
        let heavy = text.find("heavy").expect("the heavy tenant");
        assert!(heavy < text.find("sparing").expect("the sparing tenant"), "{text}");
        assert!(text.contains("22.4 MB/s"), "{text}");
        assert!(text.contains("loop0"), "{text}");
    }
}
