//! I/O sessions, as the daemon cuts them: what each transfers, told in its first step by the host's model of sessions. The model learns from
//! the sessions of one series alone.

use super::score::{Account, Board};
use super::series::Series;
use crate::progress::Progress;
use minerva_forecast::tenant::Cutter;
use minerva_forecast::{Forecaster, ForecasterSettings, Key, SliceTime};
use minerva_model::{DeviceId, TenantId};
use std::time::Instant;

const HORIZON: &str = "session";
/// Sessions before the first that is judged, and how many have to follow.
const FIRST: usize = 5;
const JUDGED_MIN: usize = 5;
const ONLY: Key = (TenantId(1), DeviceId { major: 0, minor: 0 });
/// Sessions of one series are alike.
const FAMILY: u64 = 1;

/// A session under way: what was said of its size by the model, the last session and the mean of their logarithms.
struct Begun {
    step: usize,
    told: [f64; 3],
}

/// Backtests the model beside the last session and the mean of those before.
pub(super) fn backtest(series: &Series, progress: &mut Progress) -> Board {
    let mut accounts = ["model of sessions", "last session", "mean of logarithms"].map(Account::new);
    let mut forecaster = Forecaster::new(ForecasterSettings::default());
    let mut cutter = Cutter::default();
    let mut begun: Option<Begun> = None;
    // Sessions that are over, their last size and the sum of their logarithms.
    let (mut over, mut last, mut logs) = (0, 0.0, 0.0);
    for step in 0..series.values.len() {
        progress.part("sessions", step, series.values.len());
        let Some(reading) = series.reading(step) else { continue };
        let ended = cutter.observe(&reading);
        let begun_before = if ended.is_some() { begun.take() } else { None };
        // One that did not come to anything is none.
        if let Some(total) = ended.filter(|total| *total > 0.0) {
            if let Some(Begun { step, told }) = begun_before.filter(|_| over >= FIRST) {
                accounts.iter_mut().zip(told).for_each(|(account, told)| account.take(step, told, total));
            }
            (over, last, logs) = (over + 1, total, logs + total.ln_1p());
        }
        let began = Instant::now();
        forecaster.observe(SliceTime { seconds: 1.0, wall_seconds: reading.wall_seconds }, &[(ONLY, FAMILY, reading)]);
        let session = forecaster.outlook(ONLY).and_then(|outlook| outlook.session);
        accounts[0].time += began.elapsed();
        if begun.is_none()
            && cutter.is_open()
            && let Some(session) = session
        {
            let (attained, _) = cutter.progress();
            let usual: f64 = logs / f64::max(over as f64, 1.0);
            begun = Some(Begun { step, told: [attained + session.remaining_bytes, last, usual.exp_m1()] });
        }
    }
    if over < FIRST + JUDGED_MIN {
        let least = FIRST + JUDGED_MIN;
        return Board::none(HORIZON, format!("none: {over} sessions that ended, and at least {least} are needed"));
    }
    Board { horizon: HORIZON, accounts: accounts.into(), simplest: 1, none_because: None }
}
