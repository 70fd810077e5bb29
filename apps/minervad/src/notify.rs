//! Tells the service manager how the daemon is. Without one (no `NOTIFY_SOCKET`) nothing happens.

use sd_notify::NotifyState;
use std::time::Duration;

/// The service manager, as far as it listens.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Reads from the environment what the manager expects.
    pub(crate) fn from_environment() -> Self {
        Self { watchdog: sd_notify::watchdog_enabled() }
    }

    /// Started, or reloaded, and working.
    pub(crate) fn ready(&self, status: &str) {
        send(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// A reload begins. The manager wants the instant with it, to match it with the `ready` that follows.
    pub(crate) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(instant) => send(&[NotifyState::Reloading, instant]),
            Err(_) => send(&[NotifyState::Reloading]),
        }
    }

    /// The end begins.
    pub(crate) fn stopping(&self) {
        send(&[NotifyState::Stopping]);
    }

    /// The slice loop turns. Sent by that loop and nobody else, so that a loop that hangs is seen.
    pub(crate) fn alive(&self) {
        if self.watchdog.is_some() {
            send(&[NotifyState::Watchdog]);
        }
    }

    /// The longest the loop may sleep; half of what the manager allows.
    pub(crate) fn longest_sleep(&self) -> Option<Duration> {
        self.watchdog.map(|period| period / 2)
    }
}

/// A manager that does not listen any more is no reason to stop steering.
fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager did not take a notification, ignoring");
    }
}
