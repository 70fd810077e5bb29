//! What the doors refused, on its way to the audit.

use crate::clock::unix_ns;
use minerva_store::{AnswerKind, RequestRow};
use prometheus_client::metrics::counter::Counter;
use std::sync::{Arc, Mutex, PoisonError};

/// Refusals that may wait for the end of a slice. What comes on top is counted only.
const WAITING_MAX: usize = 1_000;

/// Shared between the doors and the loop. Each access is short.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    waiting: Arc<Mutex<Vec<RequestRow>>>,
    dropped: Counter,
}

impl Refusals {
    /// `dropped` counts refusals that found no room.
    pub(crate) fn new(dropped: Counter) -> Self {
        Self { waiting: Arc::default(), dropped }
    }

    /// A door refused something. Name and account are empty where nobody could tell who asked; `text` says what was asked and
    /// why not.
    pub(crate) fn note(&self, tenant_name: &str, account: &str, request: &str, text: String) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WAITING_MAX {
            self.dropped.inc();
            return;
        }
        waiting.push(RequestRow {
            at_unix_ms: unix_ns() / 1_000_000,
            tenant_name: tenant_name.to_owned(),
            account: account.to_owned(),
            kind: AnswerKind::Refused,
            request: request.to_owned(),
            text,
        });
    }

    /// What was refused since this was last asked.
    pub(crate) fn take(&self) -> Vec<RequestRow> {
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusals, WAITING_MAX};

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let refusals = Refusals::default();
        (0..WAITING_MAX + 5).for_each(|_| refusals.note("a", "group:a", "", "flood".to_owned()));
        assert_eq!((refusals.take().len(), refusals.dropped.get()), (WAITING_MAX, 5));
        assert!(refusals.take().is_empty());
    }
}
