//! Progress on standard error, for what takes longer than a moment, where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts up to `total`.
pub(crate) fn count(what: &'static str, total: u64) -> ProgressBar {
    // The template is a constant; should it ever be wrong, the bar without it does as well.
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} {msg}, {elapsed}, {eta} to go")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(total).with_style(style).with_message(what);
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    bar
}
