//! Outlooks in the words of `core/model`.

use super::Key;
use super::tenants::{Tenant, TenantOutlook};
use minerva_model::{Forecast, Horizon, Interval, Nanos};

/// All intervals hold so much of what comes.
const COVERAGE_PERMILLE: u32 = 800;

/// A tenant's forecasts within each horizon of which something is known.
pub(super) fn forecasts(
    (tenant, device): Key,
    state: &Tenant,
    outlook: &TenantOutlook,
    now: Nanos,
    slice: Nanos,
) -> Vec<Forecast> {
    let seconds = slice.as_secs_f64();
    let (share, rest) = (state.read_share(), 1.0 - state.read_share());
    let forecast = |horizon, read_bytes, write_bytes, busy: f64, skill| Forecast {
        tenant,
        device,
        horizon,
        read_bytes,
        write_bytes,
        busy_permille: (busy.clamp(0.0, 1.0) * 1000.0) as u32,
        skill,
        made_at: now,
    };
    let next = &outlook.next_slice;
    let of_slice = |part: f64| interval(next.bytes_per_second, next.low, next.high, part * seconds);
    let busy_next = |at: usize| {
        let idle =
            |rates: &Option<crate::tenant::RateForecast>| 1.0 - rates.map_or(0.0, |rates| f64::from(rates.busy[at]));
        1.0 - idle(&outlook.reads) * idle(&outlook.writes)
    };
    let mut rows = vec![forecast(Horizon::NextSlice, of_slice(share), of_slice(rest), busy_next(0), next.skill)];
    if let (Some(reads), Some(writes)) = (&outlook.reads, &outlook.writes) {
        let sums = state.rates().each_ref();
        let of = |index: usize, forecast| {
            let (sum, bounds) = sums[index].sum(forecast);
            interval(sum, bounds.low, bounds.high, 1.0)
        };
        let idle: f64 = (0..reads.busy.len()).map(|at| 1.0 - busy_next(at)).product();
        // Of two series the less certain counts, unless there is nothing to foresee of it.
        let skill =
            if reads.skill * writes.skill == 0.0 { reads.skill + writes.skill } else { reads.skill.min(writes.skill) };
        rows.push(forecast(Horizon::Pattern, of(0, reads), of(1, writes), 1.0 - idle, skill));
    }
    if let Some(session) = &outlook.session {
        let of = |part| interval(session.remaining_bytes, session.low_bytes, session.high_bytes, part);
        let busy = f64::from(u8::from(session.remaining_bytes > 0.0));
        rows.push(forecast(Horizon::Session, of(share), of(rest), busy, session.skill));
    }
    rows
}

fn interval(value: f64, low: f64, high: f64, factor: f64) -> Interval {
    let value = value.max(0.0);
    Interval {
        value: value * factor,
        lower: low.clamp(0.0, value) * factor,
        upper: high.max(value) * factor,
        coverage_permille: COVERAGE_PERMILLE,
    }
}
