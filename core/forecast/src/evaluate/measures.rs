//! Errors of forecasts against what then came (Hyndman and Koehler 2006).

/// Running sums of a forecast's errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy {
    count: f64,
    absolute: f64,
    squared: f64,
    symmetric: f64,
    error: f64,
    actual: f64,
    intervals: f64,
    covered: f64,
}

impl Accuracy {
    /// A forecast and what came. Pairs that are not finite are passed over.
    pub fn add(&mut self, forecast: f64, actual: f64) {
        if !(forecast.is_finite() && actual.is_finite()) {
            return;
        }
        let error = actual - forecast;
        let size = forecast.abs() + actual.abs();
        self.count += 1.0;
        self.absolute += error.abs();
        self.squared += error * error;
        self.symmetric += if size > 0.0 { 2.0 * error.abs() / size } else { 0.0 };
        self.error += error;
        self.actual += actual;
    }

    /// An interval and what came.
    pub fn add_interval(&mut self, low: f64, high: f64, actual: f64) {
        if actual.is_finite() {
            self.intervals += 1.0;
            self.covered += f64::from(u8::from((low..=high).contains(&actual)));
        }
    }

    /// How much of what came was within an interval, 0 to 1 (see [`super::Edges`]).
    pub fn add_covered(&mut self, part: f64) {
        self.intervals += 1.0;
        self.covered += part;
    }

    /// Pairs added.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Mean absolute error.
    pub fn mae(&self) -> f64 {
        self.absolute / self.count
    }

    /// Root of the mean squared error.
    pub fn rmse(&self) -> f64 {
        (self.squared / self.count).sqrt()
    }

    /// Symmetric mean absolute percentage error, 0 to 200 %; a pair of zeros is no error.
    pub fn smape_percent(&self) -> f64 {
        100.0 * self.symmetric / self.count
    }

    /// Mean percentage error as Kachmar and Kaeli 2020 use it: what all forecasts together lack, in percent of all that came. Above 0
    /// if too little was forecast.
    pub fn mpe_percent(&self) -> f64 {
        100.0 * self.error / self.actual
    }

    /// Mean absolute scaled error: to the mean absolute error of `naive` on the same pairs.
    pub fn mase(&self, naive: &Self) -> f64 {
        self.mae() / naive.mae()
    }

    /// The part of intervals that held what came, in percent.
    pub fn coverage_percent(&self) -> f64 {
        100.0 * self.covered / self.intervals
    }
}

/// Errors of probabilities that something happens (Brier 1950).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Brier {
    count: f64,
    squared: f64,
    hits: f64,
    happened: f64,
}

impl Brier {
    /// A probability and whether it happened.
    pub fn add(&mut self, probability: f64, happened: bool) {
        if probability.is_finite() {
            let outcome = f64::from(u8::from(happened));
            self.count += 1.0;
            self.squared += (probability - outcome) * (probability - outcome);
            self.hits += f64::from(u8::from((probability >= 0.5) == happened));
            self.happened += outcome;
        }
    }

    /// Mean squared error of the probability: 0 is perfect, a coin's is 0.25.
    pub fn score(&self) -> f64 {
        self.squared / self.count
    }

    /// The part of cases told right by the likelier outcome, in percent.
    pub fn hit_rate_percent(&self) -> f64 {
        100.0 * self.hits / self.count
    }

    /// 1 less the score in units of what always saying the frequency scores; below 0 is worse than that.
    pub fn skill(&self) -> f64 {
        let frequency = self.happened / self.count;
        1.0 - self.score() / (frequency * (1.0 - frequency))
    }
}
