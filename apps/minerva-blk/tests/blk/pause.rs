//! How long guests wait while servers change, for the figures. A test asserts no time; `cargo xtask figures` judges it.

use std::time::Duration;

/// A guest waits less at a hand-over.
const GOAL: Duration = Duration::from_millis(200);

/// Prints the longest as a figure's line, after what its test proved.
pub(crate) fn print_longest(id: &str, longest: Duration, what: &str) {
    let line = serde_json::json!({
        "id": id,
        "value": longest.as_secs_f64() * 1e3,
        "unit": "ms at most",
        "goal": format!("less than {} ms", GOAL.as_millis()),
        "met": longest < GOAL,
        "detail": what,
    });
    println!("{line}");
}
