//! The log: to standard error, where the service manager takes it.
//!
//! Levels, by what the operator does: `error` the daemon cannot do its work, look now; `warn` something to act on, as the
//! message says; `info` what changed; `debug` each decision; `trace` each read and write.

use minerva_config::{LogFormat, LogLevel, LogSettings};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// Changes the level of the running log.
#[derive(Clone, Debug)]
pub(crate) struct LevelSwitch(Handle<Targets, Registry>);

impl LevelSwitch {
    /// Nothing below `level` from now on.
    pub(crate) fn set(&self, level: LogLevel) {
        // Fails only when the log is gone, and then nobody misses it.
        let _ = self.0.reload(filter(level));
    }
}

/// Starts the log. Lines carry no time of their own where the journal stamps them.
pub(crate) fn start(settings: LogSettings) -> LevelSwitch {
    let (level, handle) = reload::Layer::new(filter(settings.level));
    let in_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let layer = match (settings.format, in_journal) {
        (LogFormat::Json, _) => fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed(),
        (LogFormat::Text, true) => fmt::layer().without_time().with_ansi(false).with_writer(std::io::stderr).boxed(),
        (LogFormat::Text, false) => {
            let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
            fmt::layer().with_ansi(colour).with_writer(std::io::stderr).boxed()
        }
    };
    tracing_subscriber::registry().with(layer.with_filter(level)).init();
    LevelSwitch(handle)
}

/// Minerva's own lines from `level` up; those of libraries only when they matter to an operator.
fn filter(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // The daemon and every crate of ours: a part that becomes a crate of its own is not to fall silent.
    let own = ["minervad", "minerva_"];
    Targets::new().with_default(level.min(LevelFilter::WARN)).with_targets(own.map(|target| (target, level)))
}

#[cfg(test)]
mod tests {
    use super::filter;
    use minerva_config::LogLevel;
    use tracing::Level;

    #[test]
    fn what_crates_of_ours_say_is_in_the_log_and_what_libraries_say_is_not() {
        let filter = filter(LogLevel::Info);
        for target in ["minervad::slice_loop", "minerva_tenant_server::refusals", "minerva_store_thread::thread"] {
            assert!(
                filter.would_enable(target, &Level::INFO) && !filter.would_enable(target, &Level::DEBUG),
                "{target}"
            );
        }
        assert!(filter.would_enable("h2::server", &Level::WARN) && !filter.would_enable("h2::server", &Level::INFO));
    }
}
