//! What is expected to any horizon, with an interval: the bytes from now on, and the free space then. For plans that reach beyond the week.

use super::{Expectation, LOAD_BIN, LOAD_BINS, LOAD_BINS_PER_DAY, LoadBin, LoadForecast, LoadSum};

/// Days of a week.
const WEEK_DAYS: f64 = (LOAD_BINS / LOAD_BINS_PER_DAY) as f64;

/// Which of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPart {
    /// What is read.
    Read,
    /// What is written.
    Written,
    /// What is discarded.
    Discarded,
}

impl LoadPart {
    const fn of_bin(self, bin: &LoadBin) -> Expectation {
        match self {
            Self::Read => bin.read,
            Self::Written => bin.written,
            Self::Discarded => bin.discarded,
        }
    }

    const fn of_sum(self, sum: &LoadSum) -> Expectation {
        match self {
            Self::Read => sum.read,
            Self::Written => sum.written,
            Self::Discarded => sum.discarded,
        }
    }
}

/// How a sum is to what its bins' values add up to, and how far its ends lie from it, all as parts.
#[derive(Clone, Copy)]
struct Spread {
    ratio: f64,
    below: f64,
    above: f64,
}

impl Spread {
    /// Of an expected sum; nothing of what adds up to nothing.
    fn of(expected: Expectation, adds_up_to: f64) -> Option<Self> {
        let [value, lower, upper] = [expected.value, expected.lower, expected.upper].map(f64::from);
        let known = value > 0.0 && adds_up_to > 0.0;
        known.then(|| Self { ratio: value / adds_up_to, below: 1.0 - lower / value, above: upper / value - 1.0 })
    }

    /// So far on the way from this one, 0, to the other, 1.
    fn towards(self, other: Self, part: f64) -> Self {
        let between = |from: f64, to: f64| from + (to - from) * part;
        Self {
            ratio: between(self.ratio, other.ratio),
            below: between(self.below, other.below),
            above: between(self.above, other.above),
        }
    }

    /// Of so many days from the week on, given that of a day and of a week. What errs is in part each day's own and in part a level that
    /// wanders (a local level model, Durbin and Koopman 2012, section 2.1): of the mean of `h` days the former has the variance `own / h`
    /// and the latter `step h / 3`. Both follow from the day's spread and the week's.
    fn after_a_week(of_day: Self, of_week: Self, days: f64) -> Self {
        let wider = |day: f64, week: f64| {
            let (day, week) = (day * day, week * week);
            let step = ((week - day / WEEK_DAYS) * 3.0 / (WEEK_DAYS - 1.0 / WEEK_DAYS)).max(0.0);
            let own = (day - step / 3.0).max(0.0);
            let of = |days: f64| own / days + step * days / 3.0;
            if of(WEEK_DAYS) > 0.0 { (of(days) / of(WEEK_DAYS)).max(1.0).sqrt() } else { 1.0 }
        };
        Self {
            ratio: of_week.ratio,
            below: of_week.below * wider(of_day.below, of_week.below),
            above: of_week.above * wider(of_day.above, of_week.above),
        }
    }

    fn around(self, adds_up_to: f64) -> Expectation {
        let value = adds_up_to * self.ratio;
        let ends = [value, value * (1.0 - self.below).max(0.0), value * (1.0 + self.above)];
        Expectation::from(ends.map(|end| end as f32))
    }
}

impl LoadForecast {
    /// The bytes of the first so many bins, from the beginning of the one that is under way.
    ///
    /// A day's and a week's are those of [`Self::day`] and [`Self::week`]; between them, and between a bin and a day, ratio and ends are
    /// interpolated. Weeks after the first are as the first, and their ends lie the farther out the later they are: what makes a week larger than
    /// foreseen mostly lasts and grows.
    pub fn sum(&self, part: LoadPart, bins: usize) -> Expectation {
        let add = |bins: usize| -> f64 {
            self.bins.iter().take(bins).map(|bin| f64::from(part.of_bin(bin).value) * LOAD_BIN.as_secs_f64()).sum()
        };
        let (day, week) = (add(LOAD_BINS_PER_DAY), add(LOAD_BINS));
        let (weeks, rest) = (bins / LOAD_BINS, bins % LOAD_BINS);
        let adds_up_to = weeks as f64 * week + add(rest);
        let first = self.bins.first().map(|bin| part.of_bin(bin)).unwrap_or_default();
        let of_bin = Spread::of(first, f64::from(first.value)).unwrap_or(Spread { ratio: 1.0, below: 0.0, above: 0.0 });
        let of_day = Spread::of(part.of_sum(&self.day), day).unwrap_or(of_bin);
        let of_week = Spread::of(part.of_sum(&self.week), week).unwrap_or(of_day);
        let way = |from: usize, to: usize| (bins.max(from) - from) as f64 / (to - from) as f64;
        let spread = match bins {
            0..=LOAD_BINS_PER_DAY => of_bin.towards(of_day, way(1, LOAD_BINS_PER_DAY)),
            bins if bins <= LOAD_BINS => of_day.towards(of_week, way(LOAD_BINS_PER_DAY, LOAD_BINS)),
            _ => Spread::after_a_week(of_day, of_week, bins as f64 / LOAD_BINS_PER_DAY as f64),
        };
        spread.around(adds_up_to)
    }

    /// The bytes within so many seconds from the beginning of the bin that is under way: [`Self::sum`], interpolated within a bin.
    pub fn sum_within(&self, part: LoadPart, seconds: f64) -> Expectation {
        let bins = seconds.max(0.0) / LOAD_BIN.as_secs_f64();
        let (whole, rest) = (bins.floor(), bins.fract() as f32);
        // Saturates: nobody plans for so long.
        let begun = self.sum(part, whole as usize);
        if rest == 0.0 {
            return begun;
        }
        let ended = self.sum(part, (whole as usize).saturating_add(1));
        let between = |from: f32, to: f32| from + (to - from) * rest;
        Expectation {
            value: between(begun.value, ended.value),
            lower: between(begun.lower, ended.lower),
            upper: between(begun.upper, ended.upper),
        }
    }

    /// The free bytes at the end of so many bins, at least one; absent where nobody knows. Beyond the week the level goes on by what the week
    /// uses up, and its ends part as far again with each.
    pub fn free_after(&self, bins: usize) -> Option<Expectation> {
        let last = bins.clamp(1, LOAD_BINS).min(self.bins.len());
        let free = self.bins.get(last.checked_sub(1)?)?.free?;
        if bins <= last || last < 2 {
            return Some(free);
        }
        let first = f64::from(self.bins.first()?.free?.value);
        let [value, lower, upper] = [free.value, free.lower, free.upper].map(f64::from);
        let further = (bins - last) as f64 / (last - 1) as f64;
        let level = value + (value - first) * further;
        let ends = [level, level - (value - lower) * (1.0 + further), level + (upper - value) * (1.0 + further)];
        Some(Expectation::from(ends.map(|end| end.max(0.0) as f32)))
    }
}

#[cfg(test)]
mod tests {
    use super::LoadPart;
    use crate::{DeviceId, Expectation, LOAD_BINS, LOAD_BINS_PER_DAY, LoadBin, LoadForecast, LoadOf, LoadSum, Nanos};

    fn expectation(value: f32, lower: f32, upper: f32) -> Expectation {
        Expectation { value, lower, upper }
    }

    /// A byte a second, of which a day brings a tenth more and a week a fifth; free space falls by a byte a bin.
    fn forecast() -> LoadForecast {
        let seconds = 600.0;
        let bin = |at: usize| {
            let free = 5_000.0 - at as f32;
            LoadBin {
                written: expectation(1.0, 0.5, 3.0),
                free: Some(expectation(free, free - 100.0, free + 200.0)),
                ..LoadBin::default()
            }
        };
        let sum = |value: f32| LoadSum { written: expectation(value, 0.8 * value, 1.4 * value), ..LoadSum::default() };
        LoadForecast {
            of: LoadOf::Device(DeviceId { major: 8, minor: 0 }),
            made_at: Nanos(0),
            first_ends: Nanos(0),
            bins: (0..LOAD_BINS).map(bin).collect(),
            day: sum(1.1 * seconds * LOAD_BINS_PER_DAY as f32),
            week: sum(1.2 * seconds * LOAD_BINS as f32),
            skill_day: 0.0,
            skill_week: 0.0,
            skill_written: None,
            days_scored: 0,
        }
    }

    fn close(found: Expectation, expected: [f32; 3]) {
        for (found, expected) in <[f32; 3]>::from(found).into_iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-4 * expected.abs(), "{found} in place of {expected}");
        }
    }

    #[test]
    fn bytes_have_an_interval_to_any_horizon() {
        let forecast = forecast();
        let of = |bins| forecast.sum(LoadPart::Written, bins);
        close(of(0), [0.0; 3]);
        close(of(1), [600.0, 300.0, 1800.0]);
        close(of(LOAD_BINS_PER_DAY), forecast.day.written.into());
        close(of(LOAD_BINS), forecast.week.written.into());
        // Ends of a day and of a week lie equally far out, so that 3/8 of the day's variance is a step of the level and 7/8 the day's own: 3.53125
        // times the week's after four weeks, the root of which is 1.87916.
        let month = 4.0 * forecast.week.written.value;
        close(of(4 * LOAD_BINS), [month, month * (1.0 - 0.2 * 1.87916), month * (1.0 + 0.4 * 1.87916)]);
        for bins in 1..5 * LOAD_BINS {
            let (before, found) = (of(bins - 1), of(bins));
            assert!(before.value < found.value && found.lower <= found.value && found.value <= found.upper, "{bins}");
        }
        close(forecast.sum(LoadPart::Discarded, 2 * LOAD_BINS), [0.0; 3]);
        let unknown = LoadForecast { day: LoadSum::default(), week: LoadSum::default(), ..forecast };
        close(unknown.sum(LoadPart::Written, LOAD_BINS), [604_800.0, 302_400.0, 1_814_400.0]);
    }

    #[test]
    fn bytes_within_a_time_are_those_of_its_bins_and_of_a_part_of_one() {
        let forecast = forecast();
        let within = |seconds| forecast.sum_within(LoadPart::Written, seconds);
        close(within(-1.0), [0.0; 3]);
        close(within(150.0), [150.0, 75.0, 450.0]);
        close(within(3_600.0), forecast.sum(LoadPart::Written, 6).into());
        let [before, after] = [6, 7].map(|bins| forecast.sum(LoadPart::Written, bins));
        let half = |of: fn(&Expectation) -> f32| (of(&before) + of(&after)) / 2.0;
        close(within(3_900.0), [half(|sum| sum.value), half(|sum| sum.lower), half(|sum| sum.upper)]);
    }

    #[test]
    fn free_space_has_an_interval_to_any_horizon() {
        let forecast = forecast();
        close(forecast.free_after(1).unwrap(), [5_000.0, 4_900.0, 5_200.0]);
        close(forecast.free_after(LOAD_BINS).unwrap(), [3_993.0, 3_893.0, 4_193.0]);
        let twice = LOAD_BINS + LOAD_BINS - 1;
        close(forecast.free_after(twice).unwrap(), [2_986.0, 2_786.0, 3_386.0]);
        let empty = forecast.free_after(10 * LOAD_BINS).unwrap();
        assert_eq!((empty.value, empty.lower), (0.0, 0.0));
        let unknown = LoadForecast { bins: vec![LoadBin::default(); LOAD_BINS], ..forecast.clone() };
        assert_eq!(unknown.free_after(7), None);
        assert_eq!(LoadForecast { bins: Vec::new(), ..forecast }.free_after(7), None);
    }
}
