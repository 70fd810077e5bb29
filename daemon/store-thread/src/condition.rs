//! Whether the store works, as people are told it. What it is used for fails and works by itself: on a disk that is nearly full small
//! batches are written while nothing can be deleted, and that must not be told as one that works again and fails by turns.

use std::sync::{Arc, Mutex, PoisonError};

/// What the store is used for.
#[derive(Clone, Copy)]
pub(super) enum Task {
    /// Rows are written.
    Writing,
    /// Old rows are deleted, and the log is moved into the file.
    Tending,
}

impl Task {
    pub(super) const ALL: [Self; 2] = [Self::Writing, Self::Tending];
}

/// See the file's documentation.
pub(super) struct Condition {
    /// What each task failed with last; empty while it works.
    failed: [String; 2],
    /// What is shown: the first of them.
    shown: Arc<Mutex<String>>,
}

impl Condition {
    /// All works, until something fails. What fails is shown there.
    pub(super) fn new(shown: Arc<Mutex<String>>) -> Self {
        Self { failed: Default::default(), shown }
    }

    /// The task was done.
    pub(super) fn works(&mut self, task: Task) {
        if std::mem::take(&mut self.failed[task as usize]).is_empty() {
            return;
        }
        if self.show() {
            tracing::info!("the store works again, and nothing of the histories was lost");
        }
    }

    /// The task failed with this.
    pub(super) fn fails(&mut self, task: Task, message: String) {
        // Said once, not every slice; the metric counts on.
        if self.failed[task as usize] != message {
            tracing::warn!(error = message, "the store does not work, steering goes on");
            self.failed[task as usize] = message;
            self.show();
        }
    }

    /// Whether nothing fails.
    fn show(&self) -> bool {
        let first = self.failed.iter().find(|message| !message.is_empty());
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = first.cloned().unwrap_or_default();
        first.is_none()
    }
}
