//! The names of what Minerva is compared with.

/// The arms: elevators as the kernel ships them, BFQ without its `low_latency`, and Minerva on BFQ as shipped.
pub(crate) const ARMS: [&str; 9] =
    ["mq-deadline", "kyber", "none", "bfq", "bfq-low-0", STEERED, "minerva-strict", "minerva-by-use", "minerva-low-0"];

/// Minerva on BFQ as shipped. The further three are shown beside it and judged by nothing: with `strict_guarantees = true` in its
/// file, with `strict_guarantees_by_use = true`, and on BFQ with `low_latency` 0.
pub(crate) const STEERED: &str = "minerva";

/// Arms of what forecasts are worth: equal weights, Fennel as the paper has it, Minerva without forecasts, with the last session of the
/// same name in place of the forecast, BFQ as shipped, Minerva with forecasts, and an oracle that knows the sizes.
pub(crate) const WORTH: [&str; 7] = ["equal", "fennel", "minerva-off", "minerva-last", "kernel", "minerva", "oracle"];

/// What came before sessions that start together: sessions of the same names, of the same looks without names, none like them.
pub(crate) const LIKE: [&str; 3] = ["named", "unnamed", "unseen"];
