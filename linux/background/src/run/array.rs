//! What the kernel does on an array for a queue, which goes on without a worker: slowed, and ended.

#[cfg(test)]
mod tests;

use super::Run;
use crate::directories::{read, replace};
use crate::error::WorkError;
use crate::md::{Array, Speeds};
use crate::spec::Kind;
use minerva_model::BackgroundState;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// After this what could not be ended is tried again, and after four times as long each time.
const END_AGAIN: Duration = Duration::from_millis(100);
/// After so many attempts it is not tried less and less often any more, and an array that was not there is gone, with whatever it did. A node
/// that is made anew is away for a moment only.
const END_ATTEMPTS: u32 = 5;

/// Attempts to end what the kernel does that failed one after the other.
#[derive(Debug, Default)]
pub(super) struct Ending {
    failed: u32,
    /// When the next one may be.
    next: Option<Instant>,
    /// Why the last one failed that found the array.
    why: String,
}

impl Ending {
    fn may_begin(&self) -> bool {
        self.next.is_none_or(|next| Instant::now() >= next)
    }

    fn failed(&mut self, error: &WorkError) {
        self.next = Some(Instant::now() + END_AGAIN * 4_u32.pow(self.failed.min(END_ATTEMPTS)));
        self.failed += 1;
        if !matches!(error, WorkError::Absent(_)) {
            self.why = error.in_full();
        }
    }
}

impl Run {
    /// Its array: another may have its number by now.
    pub(super) fn array(&self, sys: &Path) -> Result<Array, WorkError> {
        self.spec.look(sys)?;
        Array::of(&self.spec.path, sys)
    }

    /// What the knobs of its array held before it was slowed.
    fn speeds(&self) -> PathBuf {
        self.place.runtime.join("speeds")
    }

    /// Its array was slowed, perhaps by half, and its speeds are still to be put back.
    pub(super) fn is_slowed(&self) -> bool {
        self.speeds().exists()
    }

    /// Its array was slowed altogether.
    pub(super) fn is_slow(&self) -> bool {
        self.is_slowed() && !self.could_not_slow
    }

    pub(super) fn slow_array(&mut self, sys: &Path) -> Result<(), WorkError> {
        let (array, path) = (self.array(sys)?, self.speeds());
        if !path.exists() {
            replace(&path, &array.speeds()?, true)?;
        }
        let slowed = array.stop();
        self.could_not_slow = slowed.is_err();
        slowed
    }

    pub(super) fn put_speeds_back(&self, array: &Array) -> Result<(), WorkError> {
        let path = self.speeds();
        if let Some(speeds) = read::<Speeds>(&path) {
            array.put_back(&speeds)?;
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }

    /// What the kernel goes on with after its worker died is slowed until there is another one, and ended if there is to be none: nobody
    /// would pace it.
    pub(super) fn hold_array(&mut self, sys: &Path) {
        if self.state == BackgroundState::Failed {
            self.end_array(sys);
        } else if self.deaths.has_failed() && !self.state.is_over() && !self.is_absent && !self.is_slow() {
            // It is tried again at the next look.
            let _ = self.stop_with(sys);
        }
    }

    /// Ends what the kernel does without the worker; whether that is over. To be called until it is: it waits for nothing, and what failed is
    /// tried again after a while.
    pub(super) fn end_array(&mut self, sys: &Path) -> bool {
        self.note_cancel_outcome();
        if self.is_ended || self.is_cancelling() || !self.ending.may_begin() {
            return self.is_ended;
        }
        match self.end_apart(sys) {
            Ok(is_begun) => self.is_ended = !is_begun,
            Err(error) => {
                self.ending.failed(&error);
                if matches!(error, WorkError::Absent(_)) && self.ending.failed >= END_ATTEMPTS {
                    // A check that runs once it is there again is somebody else's.
                    self.place.forget_check();
                    self.is_ended = true;
                }
            }
        }
        self.is_ended
    }

    /// Ends what the kernel does, which takes as long as it needs, on a thread of its own; whether there is anything.
    fn end_apart(&mut self, sys: &Path) -> Result<bool, WorkError> {
        let array = self.array(sys);
        if let Ok(array) = &array {
            // It is tried again with the rest of what it had.
            let _ = self.put_speeds_back(array);
        }
        // Somebody else's goes on: that of the host's timer, if this queue never began one.
        if self.spec.kind != Kind::MdCheck || !self.place.has_check() {
            return Ok(false);
        }
        // What cannot be ended goes on at the speeds that the operator set.
        let (array, place) = (array?, self.place.clone());
        let end = move || array.end().inspect(|()| place.forget_check());
        let thread = std::thread::Builder::new().name("end".to_owned()).spawn(end);
        self.cancelling = Some(thread.map_err(WorkError::io("start a thread for", &self.spec.path))?);
        Ok(true)
    }

    /// What came of that.
    pub(super) fn note_end_outcome(&mut self, outcome: Result<(), WorkError>) {
        match outcome {
            Ok(()) => {
                // A worker that came meanwhile may begin another.
                self.is_ended = !self.is_alive;
                self.ending = Ending::default();
            }
            Err(error) => self.ending.failed(&error),
        }
    }

    /// What people are told: of a queue that failed also what goes on all the same.
    pub(crate) fn said(&self) -> String {
        if self.state != BackgroundState::Failed || self.ending.why.is_empty() {
            return self.message.clone();
        }
        let what = "what the array does for it could not be ended and goes on, trying again";
        format!("{}; {what}: {}", self.message, self.ending.why)
    }
}
