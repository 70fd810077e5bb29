//! What follows from a flow's contract and the options alone: worked out when they are set and not with each request.

use super::HtbsOptions;
use crate::Contract;
use crate::tokens::{BACKGROUND, Fill, unit_ns};
use minerva_model::Nanos;

/// What a flow's requests are judged by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    pub(super) has_contract: bool,
    /// Tokens a second.
    pub(super) rate: f64,
    /// Bounds of its bucket.
    pub(super) fill: Fill,
    /// How long a unit lasts at its rate.
    pub(super) unit_ns: f64,
    pub(super) delay: Nanos,
    /// B_max, or what the contract earns in two delays.
    pub(super) turn_units_max: u64,
    /// Units that it earns in a delay, and those with its burst: what its next turn is taken to be, at least and at most.
    pub(super) turn_units: [f64; 2],
}

impl Terms {
    /// Of a flow with this contract, or without one.
    pub(super) fn of(options: &HtbsOptions, contract: Option<Contract>) -> Self {
        let has_contract = contract.is_some();
        let contract = contract.unwrap_or(BACKGROUND);
        let Contract { rate_per_second: rate, burst, delay } = contract;
        let earned_s = if options.bucket_by_delay { 2.0 * delay.as_secs_f64() } else { 1.0 };
        // The cap is more than the burst, unlike in pClock: a synchronous flow earns while it waits for its turn.
        let cap = rate * earned_s + burst;
        let fill = Fill {
            // A flow that comes with its burst is within its contract; in the original it is not.
            initial: if options.bucket_by_delay { cap } else { rate * earned_s },
            cap,
            floor: -(options.debt_seconds_max * rate.max(f64::MIN_POSITIVE)),
            credit_drift: options.credit_drift,
        };
        let turn_units_max = match has_contract && options.turn_covers_contract {
            true => options.turn_units_max.max((2.0 * rate * delay.as_secs_f64()) as u64),
            false => options.turn_units_max,
        };
        let earned = rate * delay.as_secs_f64();
        let turn_units = [earned, earned + burst];
        let unit_ns = unit_ns(&contract);
        Self { has_contract, rate, fill, unit_ns, delay, turn_units_max, turn_units }
    }
}
