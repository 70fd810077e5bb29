//! The dates on which space runs out, foreseen at midnight, on real VMs: all that is written counts as growth.

use crate::reference::data::Measure;
use minerva_forecast::seasonal::BINS_PER_DAY;
use minerva_model::{LoadForecast, LoadPart};

/// Days for which free space would last at the pace of growth.
const DAYS: [(usize, &str); 4] = [(1, "a day"), (3, "three days"), (7, "a week"), (14, "two weeks")];
/// No date is told beyond this, as by the daemon.
const SPAN_BINS: usize = 30 * BINS_PER_DAY;
/// Of what was written, as the daemon's of growth.
const HALF_LIFE_BINS: f64 = BINS_PER_DAY as f64;

/// When space runs out, in bins from when it was told; nothing: not within the span.
#[derive(Clone, Copy, Debug)]
struct Date {
    earliest: Option<f64>,
    latest: Option<f64>,
}

impl Date {
    fn holds(self, came: Option<usize>) -> bool {
        let within = SPAN_BINS as f64;
        let came = came.map_or(f64::INFINITY, |bins| bins as f64);
        // Dates are told by the hour, six bins.
        let step = 6.0;
        self.earliest.unwrap_or(within) - step <= came
            && came <= self.latest.map_or(f64::INFINITY, |latest| latest + step)
    }
}

/// A date that was told, and what was written since.
struct Told {
    horizon: usize,
    free: f64,
    dates: [Date; 2],
    came: f64,
    bins: usize,
    is_whole: bool,
}

/// Of one horizon: dates that came within what is told, and within what was told before that was by sums; and dates.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    within: [u32; 2],
    dates: u32,
}

/// The dates of one VM after the other.
#[derive(Debug, Default)]
pub(super) struct Dates {
    counts: [Count; DAYS.len()],
}

/// The dates of a VM under way.
#[derive(Default)]
pub(super) struct Pending {
    written: f64,
    weight: f64,
    told: Vec<Told>,
}

impl Pending {
    /// At a midnight with so many bins still to come.
    pub(super) fn tell(&mut self, forecast: &LoadForecast, bins_left: usize) {
        let rate = if self.weight > 0.0 { self.written / self.weight } else { 0.0 };
        // By the sum of a week, else of a day, where they were better foreseen than by naive forecasts.
        let [skill_day, skill_week] = forecast.skill_written.unwrap_or_default();
        let sums = [(skill_week, forecast.week.written), (skill_day, forecast.day.written)];
        let known = sums.into_iter().find(|(skill, sum)| *skill > 0.0 && sum.value > 0.0 && sum.lower < sum.upper);
        let Some((_, sum)) = known.filter(|_| rate > 0.0 && bins_left >= SPAN_BINS) else { return };
        let (lower, upper) =
            (f64::from(sum.lower / sum.value).clamp(0.0, 1.0), f64::from(sum.upper / sum.value).max(1.0));
        let within = |bins: f64| Some(bins).filter(|bins| *bins < SPAN_BINS as f64);
        for (horizon, (days, _)) in DAYS.iter().enumerate() {
            let bins = (days * BINS_PER_DAY) as f64;
            let by_rate = Date { earliest: within(bins / upper), latest: within(bins / lower) };
            let free = rate * bins;
            let runs_out = |end: fn(&minerva_model::Expectation) -> f32| {
                let reached = |bins: &usize| f64::from(end(&forecast.sum(LoadPart::Written, *bins))) >= free;
                (1..=SPAN_BINS).step_by(6).find(reached).map(|bins| bins as f64)
            };
            let by_sums = Date { earliest: runs_out(|sum| sum.upper), latest: runs_out(|sum| sum.lower) };
            self.told.push(Told { horizon, free, dates: [by_sums, by_rate], came: 0.0, bins: 0, is_whole: true });
        }
    }

    /// A bin's bytes; no number where nothing is known.
    pub(super) fn bin(&mut self, written: f64, dates: &mut Dates) {
        if written.is_finite() {
            let keep = 0.5_f64.powf(1.0 / HALF_LIFE_BINS);
            (self.written, self.weight) = (self.written * keep + written, self.weight * keep + 1.0);
        }
        for told in &mut self.told {
            told.bins += 1;
            told.is_whole &= written.is_finite();
            told.came += written;
        }
        let over = self.told.extract_if(.., |told| !told.is_whole || told.came >= told.free || told.bins == SPAN_BINS);
        for told in over.filter(|told| told.is_whole) {
            let came = (told.came >= told.free).then_some(told.bins);
            let count = &mut dates.counts[told.horizon];
            count.dates += 1;
            let within = told.dates.map(|date| u32::from(date.holds(came)));
            count.within = [count.within[0] + within[0], count.within[1] + within[1]];
        }
    }
}

impl Dates {
    pub(super) fn measured(&self) -> Vec<Measure> {
        let mut measures = Vec::new();
        for (Count { within, dates }, (_, what)) in self.counts.iter().zip(DAYS) {
            let covered = within.map(|within| 100.0 * f64::from(within) / f64::from((*dates).max(1)));
            println!(
                "Bitbrains, {dates} dates {what} ahead: {:.1} % by sums, {:.1} % by the rate of growth as before",
                covered[0], covered[1]
            );
            let name = format!("Bitbrains, cover of 80 % intervals of dates on which space runs out, {what} ahead");
            // A dozen dates that follow each other cannot tell 75 of 100 from 85.
            measures.push(Measure::at_least(&name, covered[0], "%", 0.0, "shown: 80 %, the dates are few"));
        }
        measures
    }
}
