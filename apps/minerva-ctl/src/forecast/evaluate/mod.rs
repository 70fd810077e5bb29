//! `minerva-ctl forecast evaluate`: every model of `core/forecast` on data of one's own.
//!
//! | file | what |
//! |---|---|
//! | `table`, `columns`, `times`, `recording` | files to rows |
//! | `series` | rows to series at equal steps, and what was wrong |
//! | `steps`, `learned`, `sessions`, `days` | backtests |
//! | `score` | accounts, and what is told of them |
//! | `page`, `plots` | the report |

mod columns;
mod days;
mod horizon;
mod learned;
mod page;
mod plots;
mod recording;
mod score;
mod series;
mod sessions;
mod steps;
mod table;
mod times;

use crate::arguments::Evaluated as Arguments;
use crate::output::{self, CommandStatus};
use crate::progress::Progress;
use anyhow::{Context as _, bail};
use days::Binned;
use score::{Board, Score};
use series::{Problems, Series};
use std::fmt::Write as _;

/// One series with everything that was measured on it.
struct Evaluated {
    series: Series,
    binned: Option<Binned>,
    boards: Vec<Board>,
}

/// What is said of a horizon without forecasts.
#[derive(serde::Serialize)]
struct NoForecast<'a> {
    series: &'a str,
    horizon: &'static str,
    forecasts: u64,
    why: &'a str,
}

/// Reads, backtests, prints; whatever could not be used is a finding.
pub(crate) fn run(arguments: &Arguments, json: bool) -> anyhow::Result<CommandStatus> {
    if let Some(folder) = arguments.report.as_deref().and_then(std::path::Path::parent)
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        bail!("the report cannot be written into {}: there is no such folder; make it first", folder.display());
    }
    if arguments.step.is_some_and(|step| step.is_zero()) {
        bail!("--step 0s is no step: write how long one is, or leave --step away for the median time from row to row");
    }
    let (mut problems, mut progress) = (Problems::of(&arguments.file), Progress::new());
    let all = read(arguments, &mut problems, &mut progress)?;
    for line in problems.lines() {
        output::warning(&line)?;
    }
    if arguments.by.is_none() && problems.begins_again_often() {
        let file = arguments.file.display();
        output::warning(&format!(
            "{file}: are these several series, one after the other? Name the column that tells them apart: --by COLUMN"
        ))?;
    }
    if all.is_empty() {
        bail!("{} holds no series: nobody did any I/O in it", arguments.file.display());
    }
    let mut evaluated = Vec::new();
    let count = all.len();
    for (number, series) in (1..).zip(all) {
        progress.begin(format!("{} ({number} of {count}): ", series.name));
        let one = evaluate(series, &mut progress);
        if json {
            print_json(&one)?
        } else {
            output::text(&text(&one))?
        }
        evaluated.push(one);
    }
    if !json {
        output::text(LEGEND)?;
    }
    if let Some(path) = &arguments.report {
        page::write(path, &arguments.file, &evaluated)?;
    }
    let is_known = |one: &Evaluated| one.boards.iter().any(|board| board.best().is_some());
    Ok(CommandStatus::found_if(!problems.is_empty() || !evaluated.iter().all(is_known)))
}

fn read(arguments: &Arguments, problems: &mut Problems, progress: &mut Progress) -> anyhow::Result<Vec<Series>> {
    match table::read(&arguments.file)? {
        Some(table) => columns::all(&table, arguments, problems)
            .with_context(|| format!("failed to use {}", arguments.file.display())),
        None => recording::read(&arguments.file, arguments.step.map(|step| step.as_secs_f64()), problems, progress),
    }
}

fn evaluate(series: Series, progress: &mut Progress) -> Evaluated {
    // Fifteen steps of more than a minute are no pattern of seconds, but the next step is as good as any.
    let mut boards: Vec<Board> = steps::backtest(&series, progress).into();
    boards.push(sessions::backtest(&series, progress));
    let binned = match days::binned(&series) {
        Ok(binned) => {
            boards.extend(days::backtest(&binned, progress));
            Some(binned)
        }
        Err(why) => {
            boards.push(Board::none("day", why));
            None
        }
    };
    Evaluated { series, binned, boards }
}

fn print_json(one: &Evaluated) -> anyhow::Result<()> {
    for board in &one.boards {
        for score in board.scores(&one.series.name) {
            output::json(&score)?;
        }
        if let Some(why) = &board.none_because {
            output::json(&NoForecast { series: &one.series.name, horizon: board.horizon, forecasts: 0, why })?;
        }
    }
    Ok(())
}

/// Heads of a table of scores.
const HEADS: [&str; 10] =
    ["model", "MAE", "RMSE", "SMAPE", "MPE", "MASE", "80 % held", "busy right", "Brier", "a forecast"];

/// What the heads mean.
const LEGEND: &str = "\
MAE, RMSE: in the unit of the data; of 15 steps, and of a session, of their sum. SMAPE: 0 to 200 %. MPE: what all forecasts together lack, in percent of what came.
MASE: the MAE in units of that of the last value or session, or of a day or a week ago. 80 % held: of the intervals that are to hold 80 %; what lies exactly on
an edge counts in part. busy right, Brier: whether each of the 15 steps is busy or idle. a forecast: time, fits included.
";

/// The cells of a score.
fn cells(score: &Score) -> [String; HEADS.len()] {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let percent = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} %"));
    [
        score.model.to_owned(),
        number(score.mae),
        number(score.rmse),
        percent(score.smape_percent),
        percent(score.mpe_percent),
        score.mase.map_or("-".to_owned(), |value| format!("{value:.3}")),
        percent(score.interval_coverage_percent),
        percent(score.busy_hit_rate_percent),
        score.brier_score.map_or("-".to_owned(), |value| format!("{value:.3}")),
        score.microseconds_per_forecast.map_or("-".to_owned(), |value| format!("{value:.1} us")),
    ]
}

/// Four digits, whatever the unit is.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e10 => format!("{value:.3e}"),
        size if size >= 1_000.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn text(one: &Evaluated) -> String {
    let Series { name, step_seconds, values, .. } = &one.series;
    let gaps = values.iter().filter(|value| !value.is_finite()).count();
    let mut text = format!("{name}: {} steps of {} s", values.len(), short(*step_seconds));
    if gaps > 0 {
        let _ = write!(text, ", {gaps} without a value");
    }
    text.push('\n');
    for board in &one.boards {
        let _ = writeln!(text, "\n  {}", board.horizon);
        if let Some(why) = &board.none_because {
            let _ = writeln!(text, "  {why}");
            continue;
        }
        let rows: Vec<[String; HEADS.len()]> = board.scores(name).iter().map(cells).collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([HEADS[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: [usize; HEADS.len()] = std::array::from_fn(width);
        for row in std::iter::once(&HEADS.map(str::to_owned)).chain(&rows) {
            let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
    text.push('\n');
    text
}
