//! Forecasters of the load, any of which a policy can be given.

use crate::load::{Load, Second};
use crate::server::Server;
use minerva_background::Expected;
use minerva_forecast::evaluate::Accuracy;
use minerva_forecast::seasonal::{
    BIN_SECONDS, BINS_PER_DAY, BINS_PER_WEEK, DayClusters, HoltWinters, LongArma, Seasonal, SeasonalNaive,
};

/// Weight of the newest day in level and profile, and clusters of days.
const CLUSTERS: (usize, f32, f32) = (2, 0.3, 0.15);

/// Who forecasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forecaster {
    /// What will come, in bins of ten minutes.
    Perfect,
    /// Moving averages by cluster of days, as the paper's own.
    DayClusters,
    /// Damped Holt-Winters, period a day.
    HoltWinters,
    /// ARIMA(144, 0, 2).
    LongArma,
    /// As a week ago.
    NaiveWeek,
    /// As a day ago.
    NaiveDay,
    /// Nobody.
    None,
}

impl Forecaster {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Perfect,
        Self::DayClusters,
        Self::HoltWinters,
        Self::LongArma,
        Self::NaiveWeek,
        Self::NaiveDay,
        Self::None,
    ];

    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Perfect => "perfect",
            Self::DayClusters => "EWMA clusters",
            Self::HoltWinters => "Holt-Winters",
            Self::LongArma => "ARIMA(144,0,2)",
            Self::NaiveWeek => "as a week ago",
            Self::NaiveDay => "as a day ago",
            Self::None => "none",
        }
    }

    /// A model that has seen a history, which starts with a Monday.
    fn model(self, history: &[f64]) -> Option<Model> {
        let following = |mut model: Box<dyn Seasonal>| {
            history.iter().enumerate().for_each(|(bin, value)| model.observe(bin % BINS_PER_WEEK, *value));
            Model::Series(model)
        };
        match self {
            Self::Perfect | Self::None => None,
            Self::DayClusters => {
                let (clusters, level, profile) = CLUSTERS;
                let mut model = DayClusters::new(clusters, level, profile);
                history.iter().enumerate().for_each(|(bin, value)| model.observe(bin % BINS_PER_WEEK, *value));
                Some(Model::Clusters(Box::new(model)))
            }
            Self::HoltWinters => Some(Model::Series(Box::new(HoltWinters::fit(history)))),
            Self::LongArma => LongArma::fit(history).map(|model| Model::Series(Box::new(model))),
            Self::NaiveWeek => Some(following(Box::new(SeasonalNaive::week()))),
            Self::NaiveDay => Some(following(Box::new(SeasonalNaive::day()))),
        }
    }
}

/// A model of one series.
enum Model {
    Series(Box<dyn Seasonal>),
    /// Its forecasts are medians; its bias makes means of them.
    Clusters(Box<DayClusters>),
}

impl Model {
    fn observe(&mut self, bin: usize, value: f64) {
        match self {
            Self::Series(model) => model.observe(bin, value),
            Self::Clusters(model) => model.observe(bin, value),
        }
    }

    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool {
        match self {
            Self::Series(model) => model.forecast(bin, ahead),
            Self::Clusters(model) => {
                let known = model.forecast(bin, ahead);
                ahead.iter_mut().for_each(|value| *value *= model.bias());
                known
            }
        }
    }
}

/// A forecaster at work on a load.
pub struct Outlook<'a> {
    load: &'a Load,
    server: Server,
    models: Option<(Model, Model)>,
    is_perfect: bool,
    /// Times what it says.
    factor: f64,
    /// The bin that comes next.
    next_bin: usize,
}

impl<'a> Outlook<'a> {
    /// One that saw the history of a load. What it says is multiplied by `factor`, to be wrong by so much.
    pub fn new(load: &'a Load, server: Server, forecaster: Forecaster, factor: f64) -> Self {
        let history =
            |value: fn(&Second) -> f64| -> Vec<f64> { load.bins[..load.first_bin].iter().map(value).collect() };
        let models =
            forecaster.model(&history(|bin| bin.ops)).zip(forecaster.model(&history(|bin| bin.written_blocks)));
        Self { load, server, models, is_perfect: forecaster == Forecaster::Perfect, factor, next_bin: load.first_bin }
    }

    /// The bin under way is over.
    pub fn end_bin(&mut self) {
        if let (Some((ops, written)), Some(bin)) = (&mut self.models, self.load.bins.get(self.next_bin)) {
            ops.observe(self.next_bin % BINS_PER_WEEK, bin.ops);
            written.observe(self.next_bin % BINS_PER_WEEK, bin.written_blocks);
        }
        self.next_bin += 1;
    }

    /// The bins from the one under way on, of which `gone_seconds` are over; empty without a forecast.
    pub fn expected(&self, gone_seconds: f64, bins: usize) -> Vec<Expected> {
        let Some((ops, written)) = self.ahead(bins) else { return Vec::new() };
        let slot = |(at, (ops, written)): (usize, (f64, f64))| Expected {
            seconds: BIN_SECONDS as f64 - if at == 0 { gone_seconds } else { 0.0 },
            foreground_ops_per_second: self.factor * ops,
            written_blocks_per_second: self.factor * written,
            unique_share: self.server.unique_share,
            capacity_blocks: self.server.capacity_blocks,
        };
        ops.into_iter().zip(written).enumerate().map(slot).collect()
    }

    /// Requests and written blocks a second of the next bins.
    fn ahead(&self, bins: usize) -> Option<(Vec<f64>, Vec<f64>)> {
        if self.is_perfect {
            // Beyond what is known the last week repeats.
            let at = |bin: usize| {
                let over = (bin + 1).saturating_sub(self.load.bins.len()).div_ceil(BINS_PER_WEEK);
                bin.checked_sub(over * BINS_PER_WEEK)
                    .and_then(|bin| self.load.bins.get(bin))
                    .copied()
                    .unwrap_or_default()
            };
            return Some(
                (self.next_bin..self.next_bin + bins).map(at).map(|bin| (bin.ops, bin.written_blocks)).unzip(),
            );
        }
        let (ops, written) = self.models.as_ref()?;
        let (mut ahead, mut ahead_written) = (vec![0.0; bins], vec![0.0; bins]);
        let bin = self.next_bin % BINS_PER_WEEK;
        (ops.forecast(bin, &mut ahead) && written.forecast(bin, &mut ahead_written)).then_some((ahead, ahead_written))
    }
}

/// How well a forecaster tells the days that are played, each from its midnight: requests of bins of ten minutes.
pub fn score(load: &Load, server: Server, forecaster: Forecaster) -> Accuracy {
    let mut outlook = Outlook::new(load, server, forecaster, 1.0);
    let mut accuracy = Accuracy::default();
    let end = load.first_bin + load.seconds.len().div_ceil(BIN_SECONDS as usize);
    while outlook.next_bin + BINS_PER_DAY <= end {
        if outlook.next_bin.is_multiple_of(BINS_PER_DAY)
            && let Some((ahead, _)) = outlook.ahead(BINS_PER_DAY)
        {
            let came = &load.bins[outlook.next_bin..];
            ahead.iter().zip(came).for_each(|(forecast, came)| accuracy.add(*forecast, came.ops));
        }
        outlook.end_bin();
    }
    accuracy
}
