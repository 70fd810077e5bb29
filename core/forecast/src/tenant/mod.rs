//! What is kept of one tenant: its recent past as features, its session, its rates over the last minutes.

mod bursts;
mod day_ago;
mod features;
mod phases;
mod rates;
mod session;
mod usage;

pub use bursts::Bursts;
pub use features::{FEATURES, FEATURES_WITHOUT_DAY_AGO, FeatureState, Reading, Row, Usage};
pub use phases::{Phases, busy_ahead};
pub use rates::{AHEAD, BUSY_BYTES_PER_SECOND, BusyModel, RateForecast, Rates};
pub use session::{Cutter, SESSION_CLASSES, SessionClass};
