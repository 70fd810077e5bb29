//! Progress on standard error, for what takes longer than a moment, where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts up to `total`, or as far as it goes.
pub(crate) fn count(what: &'static str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "{bar:30} {pos} of {len} {msg}, {elapsed}, {eta} to go",
        None => "{spinner} {pos} {msg}, {elapsed}",
    };
    // The template is a constant; should it ever be wrong, the bar without it does as well.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::no_length().with_style(style).with_message(what);
    total.into_iter().for_each(|total| bar.set_length(total));
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    bar
}
