//! Readings on which forecasts of the next one are judged.

use minerva_forecast::tenant::Reading;

/// One tenant's readings, oldest first.
pub(super) struct Series {
    pub(super) readings: Vec<Reading>,
    pub(super) only_tests: bool,
    /// The step of the recording in which it begins, and how many steps that has.
    pub(super) begins: usize,
    pub(super) length: usize,
}

impl Series {
    /// A recording of its own.
    pub(super) fn alone(readings: Vec<Reading>, only_tests: bool) -> Self {
        Self { begins: 0, length: readings.len(), readings, only_tests }
    }
}
