//! What is told of a set of jobs: how many agree, and how far the worst is apart.

use minerva_conformance::compare::{Pair, Quantity, worst};
use minerva_conformance::host::Host;

/// What the host added, for people.
pub(crate) fn describe(host: &Host) -> String {
    format!(
        "the host added {:.0} us and {:.0} us a MiB one request at a time, and {:.0} us more on average",
        host.station_ns / 1e3,
        host.station_ns_per_byte * 1048.576,
        host.delay_mean().0 as f64 / 1e3
    )
}

/// A set of jobs of a figure, to be told.
pub(crate) struct Judged<'a> {
    /// Of the figure.
    pub(crate) id: &'a str,
    /// Of the set.
    pub(crate) set: &'a str,
    pub(crate) pairs: &'a [Pair],
    pub(crate) json: bool,
}

impl Judged<'_> {
    /// Tells how far a quantity is apart, and `beside` it something that is not judged; whether it agrees everywhere.
    pub(crate) fn tell(&self, quantity: Quantity, beside: &str) -> bool {
        let Self { id, set, pairs, json } = *self;
        let (value, most) = (worst(pairs, quantity), quantity.error_max());
        let met = !pairs.is_empty() && value <= most;
        let within = pairs.iter().filter(|pair| pair.error(quantity) <= most).count();
        let chance = pairs.iter().filter(|pair| pair.error(quantity) > most && pair.may_be_chance(quantity)).count();
        let summary = format!(
            "{set}: {}: {within} of {} pairs within {:.0} %, {chance} more as near as the simulator's own windows of that length",
            quantity.as_str(),
            pairs.len(),
            most * 100.0
        );
        if json {
            let apart = pairs.iter().filter(|pair| pair.error(quantity) > most);
            let detail: String = apart.map(|pair| format!("; {}: {}", pair.job, pair.apart(quantity))).collect();
            let line = serde_json::json!({
                "id": id, "value": (value * 1000.0).round() / 1000.0,
                "unit": format!("worst relative error, {}, {set}", quantity.as_str()), "goal": format!("at most {most}"),
                "met": met, "detail": format!("{summary}{beside}{detail}"),
            });
            println!("{line}");
        } else {
            println!("{} {summary}{beside}; worst {:.0} %", if met { "met   " } else { "MISSED" }, value * 100.0);
        }
        met
    }
}
