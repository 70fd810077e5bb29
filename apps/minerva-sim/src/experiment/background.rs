//! Kachmar and Kaeli 2020: days of virtual desktops, under each policy of background work. The choices are in docs/adr/0017.

use minerva_sim_background::{Forecaster, Load, Outcome, Pattern, Policy, Server, run, synthetic};

/// The third midnight that is played: a Saturday's.
const DOUBLES_SECONDS: usize = (17 + 2 * 24) * 3600;

/// A load, a server, and how wrong forecasts are.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    pub(crate) server: Server,
    /// Times what a forecaster says.
    pub(crate) factor: f64,
}

impl Case {
    fn new(name: &'static str, load: Load) -> Self {
        let server = Server::for_load(&load);
        Self { name, load, server, factor: 1.0 }
    }

    pub(crate) fn run(&self, policy: Policy, forecaster: Forecaster) -> Outcome {
        // Someone who knows the future is not wrong about it.
        let factor = if forecaster == Forecaster::Perfect { 1.0 } else { self.factor };
        run(&self.load, self.server, policy, forecaster, factor)
    }
}

/// The paper's six days, on a load that was read or drawn.
pub(crate) fn paper(load: Load) -> Case {
    Case::new("the paper's six days", load)
}

/// What a policy must stand besides.
pub(crate) fn hard(seed: u64) -> Vec<Case> {
    let office = || synthetic(Pattern::Office, seed);
    let wrong = |name, factor| Case { factor, ..Case::new(name, office()) };
    let mut small = Case::new("a pool for half a day's debt", office());
    small.server.capacity_blocks /= 2.0;
    // The pool was bought for the load that was known.
    let doubled =
        Case { load: office().grown(DOUBLES_SECONDS, 2.0), ..Case::new("load doubles on Saturday", office()) };
    vec![
        wrong("forecasts 30 % too low", 0.7),
        wrong("forecasts 30 % too high", 1.3),
        doubled,
        Case::new("a week without a pattern", synthetic(Pattern::Walk, seed)),
        small,
    ]
}
