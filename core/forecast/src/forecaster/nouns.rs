//! Outlooks in the words of `core/model`.

use super::Key;
use super::SessionOutlook;
use super::basis::Source;
use super::tenants::{Tenant, TenantOutlook};
use crate::online::{counted, of_both, of_both_that_earned};
use crate::tenant::{AHEAD, Reading, busy_ahead};
use minerva_model::{Burst, Forecast, Horizon, Interval, Nanos, Phases};

/// All intervals hold so much of what comes.
pub const COVERAGE_PERMILLE: u32 = 800;

/// The most that is told of a tenant: the next slice, the pattern, the session.
pub(super) const ROWS_A_TENANT: usize = 3;
/// How far [`Horizon::Pattern`] reaches.
pub(super) const PATTERN_SECONDS: f64 = 15.0;

/// When forecasts are made, and for how long.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) at: Nanos,
    /// Length of the next slice.
    pub(super) seconds: f64,
    /// Slices that make up [`Horizon::Pattern`].
    pub(super) ahead: usize,
    /// Of a session what ordering by it is worth is told, in place of its skill.
    pub(super) by_order: bool,
    /// See [`super::ForecasterSettings::skill_by_bytes`].
    pub(super) skill_by_bytes: bool,
}

/// Adds a tenant's forecasts within each horizon of which something is known.
pub(super) fn forecasts(
    (tenant, device): Key,
    state: &Tenant,
    outlook: &TenantOutlook,
    made: Made,
    rows: &mut Vec<Forecast>,
) {
    let Made { at: now, seconds, ahead, .. } = made;
    let (share, rest) = (state.read_share(), 1.0 - state.read_share());
    let forecast = |horizon, read_bytes, write_bytes, busy: f64, (skill, is_naive)| Forecast {
        tenant,
        device,
        horizon,
        read_bytes,
        write_bytes,
        busy_permille: (busy.clamp(0.0, 1.0) * 1000.0) as u32,
        skill,
        is_naive,
        made_at: now,
    };
    let next = &outlook.next_slice;
    let of_slice = |part: f64| interval(next.bytes_per_second, next.low, next.high, part * seconds);
    let busy_next = |at: usize| {
        let idle =
            |rates: &Option<crate::tenant::RateForecast>| 1.0 - rates.map_or(0.0, |rates| f64::from(rates.busy[at]));
        1.0 - idle(&outlook.reads) * idle(&outlook.writes)
    };
    let basis = (next.skill, next.source == Source::Naive);
    rows.push(forecast(Horizon::NextSlice, of_slice(share), of_slice(rest), busy_next(0), basis));
    if let (Some(reads), Some(writes)) = (&outlook.reads, &outlook.writes) {
        let sums = state.rates().each_ref();
        let of = |index: usize, forecast| {
            let (sum, bounds) = sums[index].sum(forecast, ahead);
            interval(sum, bounds.low, bounds.high, PATTERN_SECONDS / ahead as f64)
        };
        let idle: f64 = (0..ahead).map(|at| 1.0 - busy_next(at)).product();
        let (read_bytes, write_bytes) = (of(0, reads), of(1, writes));
        let (may_come, skills) = ([read_bytes.upper, write_bytes.upper], [reads.skill, writes.skill]);
        let skill = if made.skill_by_bytes { of_both(may_come, skills) } else { of_both_that_earned(skills) };
        let counted = counted(may_come).into_iter().zip([reads, writes]);
        let is_naive = counted.filter(|(counts, _)| *counts).all(|(_, rates)| rates.is_naive);
        rows.push(forecast(Horizon::Pattern, read_bytes, write_bytes, 1.0 - idle, (skill, is_naive)));
    }
    rows.extend(outlook.session.as_ref().map(|session| of_session((tenant, device), share, session, made)));
}

/// The forecast of a session that begins with a reading.
pub(super) fn beginning(key: Key, reading: &Reading, session: &SessionOutlook, made: Made) -> Forecast {
    let all = reading.read_bytes + reading.write_bytes;
    let share = if all > 0.0 { (reading.read_bytes / all).clamp(0.0, 1.0) } else { 1.0 };
    of_session(key, share, session, made)
}

fn of_session((tenant, device): Key, share: f64, session: &SessionOutlook, made: Made) -> Forecast {
    let of = |part| interval(session.remaining_bytes, session.low_bytes, session.high_bytes, part);
    Forecast {
        tenant,
        device,
        horizon: Horizon::Session,
        read_bytes: of(share),
        write_bytes: of(1.0 - share),
        busy_permille: if session.remaining_bytes > 0.0 { 1_000 } else { 0 },
        skill: if made.by_order { session.ordering } else { session.skill },
        is_naive: session.is_naive,
        made_at: made.at,
    }
}

/// When a tenant will use the disk and when not, where its series have models of it, or its bursts are alike.
pub(super) fn phases((tenant, device): Key, state: &Tenant, made_at: Nanos) -> Option<Phases> {
    let (bytes, certainty) = state.bursts().outlook();
    let busy = busy_ahead(state.rates());
    if busy.is_none() && certainty == 0.0 {
        return None;
    }
    let skill = if busy.is_some() { state.phases().skill() } else { 0.0 };
    let busy_permille =
        busy.map_or([UNKNOWN_PERMILLE; AHEAD], |busy| busy.map(|busy| (busy.clamp(0.0, 1.0) * 1e3) as u16));
    Some(Phases { tenant, device, busy_permille, skill, burst: Burst { bytes, certainty, by_runs: false }, made_at })
}

/// Busy as likely as not.
const UNKNOWN_PERMILLE: u16 = 500;

fn interval(value: f64, low: f64, high: f64, factor: f64) -> Interval {
    let value = value.max(0.0);
    Interval {
        value: value * factor,
        lower: low.clamp(0.0, value) * factor,
        upper: high.max(value) * factor,
        coverage_permille: COVERAGE_PERMILLE,
    }
}
