//! The day or the week ahead of a disk or a group.

use super::chart;
use super::page;
use super::series::{Point, Series};
use crate::figures::{rate, size};
use crate::output::{self, CommandStatus};
use anyhow::Context;
use minerva_api::client::Operator;
use minerva_api::v1;
use std::path::Path;

/// Bins of ten minutes that are drawn as one, of a day and of a week: 48 and 56 columns ahead, and as many behind.
const DRAWN_OF_DAY: usize = 3;
const DRAWN_OF_WEEK: usize = 18;
const BINS_PER_DAY: usize = 144;

/// Asks, and prints a chart and a summary, or writes them as a page.
pub(crate) async fn run(
    mut client: Operator,
    of: String,
    horizon: &str,
    html: Option<&Path>,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let request = v1::ForecastRequest { tenant: of, horizon: horizon.to_owned() };
    let answer = client.forecast(request).await?.into_inner();
    if let Some(path) = html {
        let page = match &answer.load {
            Some(load) => {
                page::page_of(&title(&answer, horizon), &answer, &drawn(load, answer.unix_ns), &summary(load))
            }
            None => page::page_without(&title(&answer, horizon), &nothing(&answer)),
        };
        std::fs::write(path, page).with_context(|| format!("failed to write {}", path.display()))?;
    }
    if json {
        output::json(&answer)?;
    } else if html.is_none() {
        output::text(&text(&answer, horizon))?;
    }
    if answer.load.is_none() {
        output::say(&nothing(&answer));
    }
    Ok(CommandStatus::found_if(answer.load.is_none()))
}

fn title(answer: &v1::ForecastResponse, horizon: &str) -> String {
    format!("{}: the {horizon} ahead, forecast mode {}", answer.tenant, answer.mode)
}

fn nothing(answer: &v1::ForecastResponse) -> String {
    let why = match answer.mode.as_str() {
        "off" => "forecasts are off (mode in [forecast])",
        _ => "a whole day from midnight to midnight has to be seen first, or days_ahead in [forecast] is false",
    };
    format!("nothing is forecast of {}: {why}", answer.tenant)
}

fn text(answer: &v1::ForecastResponse, horizon: &str) -> String {
    let Some(load) = &answer.load else { return String::new() };
    let mut text = format!("{}\n\n{}\n", title(answer, horizon), chart::chart(&drawn(load, answer.unix_ns)));
    for line in summary(load) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// What is drawn: reads and writes together, several bins as one.
fn drawn(load: &v1::LoadForecast, unix_ns: i64) -> Series {
    let together = if load.bins.len() > BINS_PER_DAY { DRAWN_OF_WEEK } else { DRAWN_OF_DAY };
    let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count.max(1) as f64;
    // The newest of the past stand together, so that the last of them ends now.
    let spare = load.past_bytes_per_second.len() % together;
    let past = load.past_bytes_per_second[spare..]
        .chunks(together)
        .map(|bins| Point { came: Some(mean(&mut bins.iter().copied(), bins.len())), expected: None });
    let ahead = load.bins.chunks(together).map(|bins| {
        let end = |end: fn(v1::Interval) -> f64| mean(&mut bins.iter().map(|bin| both(bin, end)), bins.len());
        let expected = [end(|interval| interval.value), end(|interval| interval.lower), end(|interval| interval.upper)];
        Point { came: None, expected: Some(expected) }
    });
    let points: Vec<Point> = past.chain(ahead).collect();
    let over = points.iter().filter(|point| point.came.is_some()).count();
    let minutes = load.bin_ns as f64 / 60e9;
    Series {
        points,
        past: over,
        slice_seconds: together as f64 * load.bin_ns as f64 / 1e9,
        unix_ns,
        // That of their mean is not known: it is narrower, the less errors of bins go together.
        interval: format!("mean of the intervals of {together} times {minutes} minutes; of these 80 of 100 are within"),
    }
}

fn both(bin: &v1::LoadBin, end: fn(v1::Interval) -> f64) -> f64 {
    [bin.read_bytes_per_second, bin.write_bytes_per_second].into_iter().flatten().map(end).sum()
}

/// What is read, written and discarded in all. A daemon of an earlier version tells bins only, and no interval of their sum.
fn sums(load: &v1::LoadForecast) -> [v1::Interval; 3] {
    let seconds = load.bin_ns as f64 / 1e9;
    let added = |of: fn(&v1::LoadBin) -> Option<v1::Interval>| {
        let value = load.bins.iter().filter_map(of).map(|interval| interval.value * seconds).sum::<f64>();
        v1::Interval { value, lower: value, upper: value, coverage_permille: 0 }
    };
    [
        load.read_bytes.unwrap_or_else(|| added(|bin| bin.read_bytes_per_second)),
        load.write_bytes.unwrap_or_else(|| added(|bin| bin.write_bytes_per_second)),
        load.discard_bytes.unwrap_or_else(|| added(|bin| bin.discard_bytes_per_second)),
    ]
}

/// A sum, and its interval once it is known.
fn bounds(sum: v1::Interval) -> String {
    match sum.lower < sum.upper {
        true => format!("{} ({} to {})", size(sum.value), size(sum.lower), size(sum.upper)),
        false => size(sum.value),
    }
}

/// Totals, mix, when it is busiest and quietest, free space, and how far it is to be believed.
fn summary(load: &v1::LoadForecast) -> Vec<String> {
    let seconds = load.bin_ns as f64 / 1e9;
    let [read, written, discarded] = sums(load);
    let mut lines = vec![format!(
        "reads {}, writes {} ({:.0} % reads), discards {}",
        bounds(read),
        bounds(written),
        100.0 * read.value / (read.value + written.value).max(1.0),
        bounds(discarded)
    )];
    let hour = (3600.0 / seconds).round().max(1.0) as usize;
    let hours: Vec<(usize, f64)> = load
        .bins
        .chunks(hour)
        .enumerate()
        .filter(|(_, bins)| bins.len() == hour)
        .map(|(at, bins)| (at, bins.iter().map(|bin| both(bin, |interval| interval.value)).sum::<f64>() / hour as f64))
        .collect();
    let at = |(at, bytes): &(usize, f64)| {
        let begin = load.first_unix_ns.saturating_add((*at as i64).saturating_mul(3_600_000_000_000));
        format!("{} from {}", rate(*bytes as u64), crate::moment::show(begin))
    };
    let by_load = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
    if let (Some(most), Some(least)) = (hours.iter().max_by(by_load), hours.iter().min_by(by_load)) {
        lines.push(format!("busiest hour: {}; quietest: {}", at(most), at(least)));
    }
    lines.push(match load.bins.last().and_then(|bin| bin.free_bytes) {
        Some(free) => {
            format!("free space at the end: {} ({} to {})", size(free.value), size(free.lower), size(free.upper))
        }
        None => "free space: not known (no file system on this disk alone was seen for a day)".to_owned(),
    });
    lines.push(
        "unique blocks: not known; nothing tells a host which of the blocks that are written are stored already"
            .to_owned(),
    );
    lines.extend(["reads", "writes"].into_iter().filter_map(|of| models(load, of)));
    lines.push(match load.days_scored {
        0..5 => format!("skill: not measured yet ({} of 5 days)", load.days_scored),
        days => format!(
            "skill {:.2}, of {days} days, against the best of: as a day ago, as a week ago, the last value, the week's mean and median, 0",
            load.skill.max(-9.99)
        ),
    });
    lines
}

/// Which models the forecast of reads or of writes is made of, and how far each was off; nothing before a day was scored.
fn models(load: &v1::LoadForecast, of: &str) -> Option<String> {
    let scored = load.models.iter().filter(|model| model.of == of);
    let scored: Vec<(&v1::DayModel, f64)> = scored.filter_map(|model| Some((model, model.error_percent?))).collect();
    let is_on = |(model, _): &&(&v1::DayModel, f64)| model.weight > 0.0;
    let (on, off): (Vec<_>, Vec<_>) = scored.iter().partition(is_on);
    let on: Vec<String> = on
        .iter()
        .map(|(model, error)| format!("{} {:.0} % (error {error:.0} %)", model.name, 100.0 * model.weight))
        .collect();
    let off: Vec<String> = off.iter().map(|(model, error)| format!("{} (error {error:.0} %)", model.name)).collect();
    let off = if off.is_empty() { String::new() } else { format!("; switched off: {}", off.join(", ")) };
    (!on.is_empty()).then(|| format!("{of} by: {}{off}", on.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::{nothing, text};
    use expect_test::expect;
    use minerva_api::v1;

    /// Busy by day, and a day of it is known.
    fn answer() -> v1::ForecastResponse {
        let busy = |bin: usize| if (48..108).contains(&(bin % 144)) { 20e6 } else { 1e6 };
        let around =
            |value: f64| Some(v1::Interval { value, lower: value * 0.7, upper: value * 1.3, coverage_permille: 800 });
        let bin = |bin: usize| v1::LoadBin {
            read_bytes_per_second: around(busy(bin) * 0.75),
            write_bytes_per_second: around(busy(bin) * 0.25),
            discard_bytes_per_second: around(0.0),
            free_bytes: around(500e9 - bin as f64 * 1e9),
        };
        v1::ForecastResponse {
            tenant: "sda".to_owned(),
            mode: "shadow".to_owned(),
            slice_ns: 1_000_000_000,
            unix_ns: 0,
            disks: Vec::new(),
            load: Some(v1::LoadForecast {
                first_unix_ns: 0,
                bin_ns: 600_000_000_000,
                bins: (0..144).map(bin).collect(),
                past_bytes_per_second: (0..144).map(busy).collect(),
                skill: 0.31,
                days_scored: 12,
                read_bytes: Some(v1::Interval { value: 577.8e9, lower: 5e11, upper: 6.5e11, coverage_permille: 800 }),
                write_bytes: None,
                discard_bytes: None,
                models: Vec::new(),
            }),
        }
    }

    #[test]
    fn models_are_told_with_their_weights_and_who_is_switched_off() {
        let model = |name: &str, weight, error_percent| v1::DayModel {
            name: name.to_owned(),
            of: "reads".to_owned(),
            weight,
            error_percent,
        };
        let mut load = answer().load.expect("as it was made");
        assert_eq!(super::models(&load, "reads"), None);
        load.models = vec![
            model("as a day ago", 0.25, Some(40.0)),
            model("Holt-Winters", 0.75, Some(21.4)),
            model("ARMA of a day", 0.0, Some(90.0)),
        ];
        load.models.push(model("states of arrival", 0.0, None));
        let told = super::models(&load, "reads").expect("two speak");
        assert_eq!(
            told,
            "reads by: as a day ago 25 % (error 40 %), Holt-Winters 75 % (error 21 %); switched off: ARMA of a day (error 90 %)"
        );
        assert_eq!(super::models(&load, "writes"), None);
    }

    #[test]
    fn the_day_before_and_the_day_ahead_are_drawn_and_summed() {
        expect![[r#"
            sda: the day ahead, forecast mode shadow

            26.0 MB/s ┤                                                ┊                ░░░░░░░░░░░░░░░░░░░░
                      ┤                                                ┊                ░░░░░░░░░░░░░░░░░░░░
                      ┤                                                ┊                ░░░░░░░░░░░░░░░░░░░░
                      ┤                ●●●●●●●●●●●●●●●●●●●●            ┊                ────────────────────
                      ┤                                                ┊                ░░░░░░░░░░░░░░░░░░░░
                      ┤                                                ┊                ░░░░░░░░░░░░░░░░░░░░
                      ┤                                                ┊                ░░░░░░░░░░░░░░░░░░░░
            13.0 MB/s ┤                                                ┊
                      ┤                                                ┊
                      ┤                                                ┊
                      ┤                                                ┊
                      ┤                                                ┊
                      ┤                                                ┊░░░░░░░░░░░░░░░░                    ░░░░░░░░░░░░
                    0 ┤●●●●●●●●●●●●●●●●                    ●●●●●●●●●●●●┊────────────────                    ────────────
                       -1 d 0 h                                        now 1970-01-01 00:00:00
                       ● came   ─ expected   ░ mean of the intervals of 3 times 10 minutes; of these 80 of 100 are within

            reads 577.80 GB (500.00 GB to 650.00 GB), writes 192.60 GB (75 % reads), discards 0 B
            busiest hour: 20.0 MB/s from 1970-01-01 17:00:00; quietest: 1.0 MB/s from 1970-01-01 00:00:00
            free space at the end: 357.00 GB (249.90 GB to 464.10 GB)
            unique blocks: not known; nothing tells a host which of the blocks that are written are stored already
            skill 0.31, of 12 days, against the best of: as a day ago, as a week ago, the last value, the week's mean and median, 0
        "#]].assert_eq(&text(&answer(), "day"));
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut unknown = answer();
        let load = unknown.load.as_mut().expect("as it was made");
        load.bins.iter_mut().for_each(|bin| bin.free_bytes = None);
        load.days_scored = 2;
        let told = text(&unknown, "day");
        assert!(told.contains("free space: not known") && told.contains("2 of 5 days"), "{told}");
        unknown.load = None;
        assert!(text(&unknown, "day").is_empty() && nothing(&unknown).contains("a whole day"));
        unknown.mode = "off".to_owned();
        assert!(nothing(&unknown).contains("are off"));
    }
}
