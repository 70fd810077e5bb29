//! Change points, intervals and skill on drawn streams.

use minerva_forecast::online::{Adwin, Cusum, IntervalMeter, Naive, SkillMeter};

/// Numbers that look like noise, the same in every run.
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 2.0_f64.powi(53)
    }

    /// Gamma of shape 4: heavy to the right, as I/O is.
    fn gamma(&mut self) -> f64 {
        (0..4).map(|_| -(1.0 - self.uniform()).ln()).sum()
    }
}

/// False alarms in the first thousand values of twenty streams, and the delays with which a factor at the thousandth was told.
fn tried(mut detector: impl FnMut() -> Box<dyn FnMut(f64) -> bool>, factor: f64) -> (usize, Vec<usize>) {
    let (mut false_alarms, mut delays) = (0, Vec::new());
    for stream in 0..20 {
        let (mut draws, mut observe) = (Draws(stream * 7919 + 1), detector());
        let mut told = None;
        for at in 0..2000 {
            let value = draws.gamma() * if at < 1000 { 1.0 } else { factor };
            if observe((1.0 + value).ln()) {
                match at < 1000 {
                    true => false_alarms += 1,
                    false => told = told.or(Some(at - 1000)),
                }
            }
        }
        delays.extend(told);
    }
    delays.sort_unstable();
    (false_alarms, delays)
}

#[test]
fn a_sudden_shift_is_told_within_seconds() {
    let cusum = || -> Box<dyn FnMut(f64) -> bool> {
        let mut cusum = Cusum::default();
        Box::new(move |value| cusum.observe(value))
    };
    let (false_alarms, twice) = tried(cusum, 2.0);
    let (_, fourfold) = tried(cusum, 4.0);
    assert!(false_alarms <= 1, "{false_alarms} in 20,000 values");
    assert!(twice.len() >= 18 && twice[twice.len() / 2] <= 25, "{twice:?}");
    assert!(fourfold.len() == 20 && fourfold[10] <= 8, "{fourfold:?}");
}

#[test]
fn a_small_shift_is_told_in_the_end() {
    let adwin = || -> Box<dyn FnMut(f64) -> bool> {
        let mut adwin = Adwin::default();
        Box::new(move |value| adwin.observe(value))
    };
    let (false_alarms, half_more) = tried(adwin, 1.5);
    assert!(false_alarms <= 1, "{false_alarms} in 20,000 values");
    assert!(half_more.len() == 20 && half_more[10] <= 150, "{half_more:?}");
}

#[test]
fn intervals_cover_what_they_promise() {
    let (mut draws, mut meter) = (Draws(5), IntervalMeter::new(0.8));
    let (mut held, mut count) = (0.0, 0.0);
    for at in 0..5000 {
        // The spread grows threefold half way.
        let value = 100.0 * (draws.gamma() - 4.0).mul_add(if at < 2500 { 0.1 } else { 0.3 }, 2.0).max(0.0);
        if let Some(interval) = meter.interval(200.0) {
            held += f64::from(u8::from((interval.low..=interval.high).contains(&value)));
            count += 1.0;
        }
        meter.observe(200.0, value);
    }
    assert!((0.75..=0.85).contains(&(held / count)), "{}", held / count);
}

/// Of ten values nine lie below what is foreseen, most of them near a value that repeats.
#[test]
fn intervals_around_forecasts_that_lie_above_most_of_what_comes_cover_no_more_than_they_promise() {
    let covered = |mut meter: IntervalMeter| {
        let (mut draws, mut held) = (Draws(11), 0.0);
        for at in 0..20_000 {
            let draw = draws.gamma() / 4.0;
            let value = if at % 25 == 7 { 300.0 } else { 100.0 * draw };
            let forecast = 250.0 + (at % 3) as f64;
            if let Some(interval) = meter.interval(forecast).filter(|_| at >= 2_000) {
                assert!(interval.low <= forecast && forecast <= interval.high);
                held += f64::from(u8::from((interval.low..=interval.high).contains(&value)));
            }
            meter.observe(forecast, value);
        }
        held / 18_000.0
    };
    let (shared, before) = (covered(IntervalMeter::around_any(0.8)), covered(IntervalMeter::new(0.8)));
    assert!((0.77..=0.83).contains(&shared) && before > 0.85, "{shared}, {before}");
}

#[test]
fn white_noise_earns_no_skill() {
    let mut earned = 0;
    for stream in 0..50 {
        let (mut draws, mut naive, mut meter) = (Draws(stream + 100), Naive::default(), SkillMeter::default());
        // As good a forecast of noise as there is: its mean, known from the start.
        for _ in 0..600 {
            let value = draws.gamma();
            meter.observe(4.0, &naive.forecasts(), value);
            naive.observe(value);
            earned += usize::from(meter.earned() > 0.02);
        }
    }
    assert!(earned < 50 * 600 / 100, "{earned} of 30,000 slices");
}
