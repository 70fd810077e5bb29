//! Keys of the forecasts. Rows as in `keys`.

use crate::key::{Key, Kind, show_duration, show_text};
use crate::settings::Config;
use minerva_model::{ForecastMode, Nanos, SessionSource};

const MINUTE: Nanos = Nanos::from_secs(60);
const DAY: Nanos = Nanos::from_secs(24 * 3600);
pub(crate) const FORECAST_WORDS: [&str; 3] =
    [ForecastMode::ALL[0].as_str(), ForecastMode::ALL[1].as_str(), ForecastMode::ALL[2].as_str()];

const SESSION_WORDS: [&str; 2] = [SessionSource::ALL[0].as_str(), SessionSource::ALL[1].as_str()];

pub(crate) const FORECAST: &[Key<Config>] = &[
    Key {
        name: "mode",
        doc: "`off`: no forecasts. `shadow`: they are made, measured and shown. `on`: shares also go by them, as far as their measured skill has earned.",
        kind: Kind::Choice { words: &FORECAST_WORDS, set: |c, at| c.engine.forecast.mode = ForecastMode::ALL[at] },
        show: |c| show_text(c.engine.forecast.mode.as_str()),
        example: "",
    },
    Key {
        name: "keep_every",
        doc: "Fitted models are kept for the next start once in this time, and at the end.",
        kind: Kind::Duration { least: MINUTE, most: DAY, set: |c, v| c.engine.forecast.keep_every = v },
        show: |c| show_duration(c.engine.forecast.keep_every),
        example: "",
    },
    Key {
        name: "days_ahead",
        doc: "The day and the week ahead of disks and groups are forecast too, in bins of ten minutes.",
        kind: Kind::Flag { set: |c, on| c.engine.forecast.days_ahead = on },
        show: |c| Some(c.engine.forecast.days_ahead.to_string()),
        example: "",
    },
    Key {
        name: "sessions",
        doc: "What an I/O session is expected to transfer: `model`: by what its processes show and sessions like it did. `last`: as the last of its group or name.",
        kind: Kind::Choice { words: &SESSION_WORDS, set: |c, at| c.engine.forecast.sessions = SessionSource::ALL[at] },
        show: |c| show_text(c.engine.forecast.sessions.as_str()),
        example: "",
    },
];
