//! When space runs out: likely, and within what that lies.

use super::Worklist;
use crate::ahead::{Forecast, Span, WrittenBetween};
use crate::nouns::{Plan, Shortage};
use crate::spread::Spread;
use minerva_model::{DeviceId, Nanos};

/// When space runs out though work takes every gap, and from others what it may. Each is absent where space lasts as long as the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpaceDate {
    /// If as much is written as the upper end of the forecast's interval says.
    pub earliest_seconds: Option<f64>,
    /// If as much is written as is expected.
    pub likely_seconds: Option<f64>,
    /// If no more is written than the lower end says.
    pub latest_seconds: Option<f64>,
    /// The forecast has an interval; without one all three are the likely one.
    pub is_interval_known: bool,
}

impl Worklist {
    /// When space runs out on a disk.
    pub fn space_date(
        &self,
        now: Nanos,
        device: DeviceId,
        span: Span,
        forecast: Forecast<'_>,
        written: Option<WrittenBetween>,
    ) -> SpaceDate {
        let runs_out =
            |factor: f64| first_shortage(&self.planned(now, device, (span, Spread::Early), forecast, factor));
        let likely_seconds = runs_out(1.0);
        let (lower, upper) = written.unwrap_or((1.0, 1.0));
        let at = |factor: f64| if factor == 1.0 { likely_seconds } else { runs_out(factor) };
        SpaceDate {
            // What is expected lies in the interval, whatever the forecast says.
            earliest_seconds: at(upper.max(1.0)),
            likely_seconds,
            latest_seconds: at(lower.clamp(0.0, 1.0)),
            is_interval_known: written.is_some(),
        }
    }
}

fn first_shortage(plan: &Plan) -> Option<f64> {
    let is_space = |shortage: Shortage| matches!(shortage, Shortage::Space { .. });
    plan.alarms.iter().find(|alarm| is_space(alarm.shortage)).map(|alarm| alarm.at_seconds)
}
