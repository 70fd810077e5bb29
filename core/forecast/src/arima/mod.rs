//! Seconds ahead: ARIMA with automatic order (Hyndman and Khandakar 2008) and Burg's long autoregression beside it.
//!
//! Non-seasonal ARIMA hardly sees a cycle of reading, computing and flushing that takes 10 to 30 s (Malensek et al. 2016, section 4.2); an
//! autoregression over 40 s does. Both are fitted and the better by AICc is taken.

mod burg;
mod css;
mod kpss;
mod model;
mod search;

pub use burg::fit as fit_burg;
pub use css::STEPS_MAX;
pub use kpss::{lags as kpss_lags, level_statistic as kpss_level_statistic};
pub use model::{AR_MAX, Arima, HORIZON_MAX, MA_MAX, Path};
pub use search::{MODELS_MAX, fit, fit_stepwise};

/// How much work a fit may do, in counts: time is not core's to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Models that may still be fitted.
    pub models: u32,
    /// Steps of Levenberg and Marquardt's method that may still be made, over all models.
    pub steps: u32,
}

impl Default for Budget {
    /// What the slowest series tried needed, so that nothing is cut short.
    fn default() -> Self {
        Self { models: MODELS_MAX, steps: MODELS_MAX * STEPS_MAX }
    }
}

impl Budget {
    fn take_model(&mut self) -> bool {
        let left = self.models > 0;
        self.models = self.models.saturating_sub(1);
        left
    }

    fn take_step(&mut self) -> bool {
        let left = self.steps > 0;
        self.steps = self.steps.saturating_sub(1);
        left
    }
}

/// Buffers as long as the series, kept from fit to fit so that none allocates after the first.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    stationary: Vec<f64>,
    residuals: Vec<f64>,
    trial: Vec<f64>,
    by_ar: Vec<f64>,
    by_ma: Vec<f64>,
    by_mean: Vec<f64>,
    forward: Vec<f64>,
    backward: Vec<f64>,
}

/// The corrected Akaike criterion (Hurvich and Tsai 1989).
#[derive(Clone, Copy, Debug)]
struct Criterion {
    values: usize,
    /// Coefficients, mean and variance.
    parameters: usize,
}

impl Criterion {
    /// Without the constants that all models of a series share.
    fn aicc(self, sigma2: f64) -> f64 {
        let (n, k) = (self.values as f64, self.parameters as f64);
        if n <= k + 1.0 {
            return f64::INFINITY;
        }
        n * libm::log(sigma2) + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0)
    }
}
