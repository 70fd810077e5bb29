//! The names of what Minerva is compared with.

/// The arms: elevators as the kernel ships them, BFQ without its `low_latency`, and Minerva on BFQ as shipped.
pub(crate) const ARMS: [&str; 9] =
    ["mq-deadline", "kyber", "none", "bfq", "bfq-low-0", STEERED, "minerva-strict", "minerva-by-use", "minerva-low-0"];

/// Minerva on BFQ as shipped. The further three are shown beside it and judged by nothing: with `strict_guarantees = true` in its
/// file, with `strict_guarantees_by_use = true`, and on BFQ with `low_latency` 0.
pub(crate) const STEERED: &str = "minerva";
