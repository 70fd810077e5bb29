//! Letting a worker run, and stopping it.

#[cfg(test)]
mod tests;

use super::Run;
use super::limited::Limit;
use crate::directories::{Groups, replace};
use crate::error::WorkError;
use crate::spec::{Kind, Spec};
use crate::{balance, groups, processors, scrub};
use minerva_model::{BackgroundHold, BackgroundPace, BackgroundState};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a call is cancelled until its caller has stopped, and how long at most.
const CANCEL_PERIOD: Duration = Duration::from_millis(10);
const CANCEL_MAX: Duration = Duration::from_secs(10);

/// Ends the call into the kernel of a kind that works inside one.
fn cancel(spec: &Spec) -> Result<(), WorkError> {
    match spec.kind {
        Kind::BtrfsScrub => scrub::cancel(spec),
        Kind::BtrfsBalance => balance::cancel(spec),
        _ => Ok(()),
    }
}

/// Cancels until the caller has stopped. One that had already is in no call: a scrub or a balance that runs is somebody else's then.
fn cancel_until(
    has_stopped: impl Fn() -> bool,
    mut cancel: impl FnMut() -> Result<(), WorkError>,
) -> Result<(), WorkError> {
    let begun = Instant::now();
    while !has_stopped() {
        if begun.elapsed() >= CANCEL_MAX {
            let why = format!("the kernel was asked to end it for {} seconds, and did not", CANCEL_MAX.as_secs());
            return Err(WorkError::Refused(why));
        }
        cancel()?;
        std::thread::sleep(CANCEL_PERIOD);
    }
    Ok(())
}

impl Run {
    pub(super) fn let_run(&mut self, limit: Option<Limit>, sys: &Path) -> Result<(), WorkError> {
        if self.spec.kind.is_of_array() {
            self.put_speeds_back(&self.array(sys)?)?;
        }
        self.set_limit(limit, sys)?;
        self.freezer.set(false)
    }

    /// Its groups, the speeds of its array, or the limits of its scrub are as it was told last. The guard of a daemon that stalls stops all work, and the daemon may
    /// go on.
    pub(super) fn is_as_told(&self) -> bool {
        let is_frozen = self.freezer.is_set().unwrap_or(!self.is_running);
        let is_slowed = self.is_slowed();
        match self.spec.kind {
            _ if !self.is_limited_as_told() => false,
            _ if self.is_running => !is_frozen && !is_slowed,
            _ if self.spec.hold() == BackgroundHold::Cap => true,
            // Its worker only looks, and is not frozen.
            Kind::MdCheck | Kind::MdResync => self.is_slow(),
            // It goes on until its call into the kernel has ended.
            Kind::BtrfsScrub | Kind::BtrfsBalance => {
                is_frozen && (self.cancelling.is_some() || self.freezer.is_frozen())
            }
            _ => is_frozen,
        }
    }

    pub(super) fn stop_with(&mut self, sys: &Path) -> Result<(), WorkError> {
        if self.spec.hold() == BackgroundHold::Cap {
            return Ok(());
        }
        match self.spec.kind {
            Kind::BtrfsScrub | Kind::BtrfsBalance => {
                // Takes effect when the call returns, for which it must end.
                self.freezer.set(true)?;
                replace(&self.place.runtime.join("stopped"), &(), false)?;
                // That it stops is more urgent. Until this is done too it is in doubt, and tried again.
                let _ = self.lift_limit();
                if self.is_alive { self.cancel_apart() } else { Ok(()) }
            }
            // What the array does is not its check, but what comes before one, such as a recovery.
            Kind::MdCheck if !self.is_alive && !self.place.has_check() => Ok(()),
            // Its worker only looks, and must see the end of what the kernel does slowly now.
            Kind::MdCheck | Kind::MdResync => self.slow_array(sys),
            _ => self.freezer.set(true),
        }
    }

    /// Says that it could not be stopped or let run, or that what was said of that is over: also of a limit only once it was let run at one,
    /// or is to have none.
    pub(super) fn note_turned(&mut self, outcome: Result<(), WorkError>, at_limit: bool) {
        match outcome {
            Err(error) => {
                self.message = error.in_full();
                self.could_not_turn = Some((self.message.clone(), at_limit));
            }
            Ok(()) => {
                let is_to_be_limited = !at_limit && matches!(self.duty.pace, BackgroundPace::Share(_));
                let over = self.could_not_turn.take_if(|(_, failed_at_limit)| !*failed_at_limit || !is_to_be_limited);
                // Something else may have been said since.
                if over.is_some_and(|(said, _)| said == self.message) {
                    self.message.clear();
                }
            }
        }
    }

    /// Ends the call into the kernel that the worker is in, which takes as long as the kernel needs: on a thread of its own, as others'
    /// work is looked at meanwhile. More than once, because the worker may just have been about to call.
    fn cancel_apart(&mut self) -> Result<(), WorkError> {
        if self.is_cancelling() {
            return Ok(());
        }
        let (spec, place, freezer) = (self.spec.clone(), self.place.clone(), self.freezer.clone());
        let has_stopped = move || freezer.is_frozen() || !place.is_alive();
        let until_it_stopped = move || cancel_until(has_stopped, || cancel(&spec));
        let thread = std::thread::Builder::new().name("cancel".to_owned()).spawn(until_it_stopped);
        self.cancelling = Some(thread.map_err(WorkError::io("start a thread for", &self.spec.path))?);
        Ok(())
    }

    /// Its call into the kernel is being ended: it must not go on meanwhile.
    pub(super) fn is_cancelling(&self) -> bool {
        self.cancelling.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// What came of ending its call. While that goes on all the same, people are told, and it is tried again.
    pub(super) fn note_cancel_outcome(&mut self) {
        if !self.is_cancelling()
            && let Some(thread) = self.cancelling.take()
        {
            let failed = "the thread that was to do it failed";
            let outcome = thread.join().unwrap_or_else(|_| Err(WorkError::Refused(failed.to_owned())));
            if self.spec.kind.is_of_array() {
                self.note_end_outcome(outcome);
            } else if let Err(error) = outcome
                && self.is_alive
            {
                self.could_not_cancel = true;
                self.message = format!("it could not be stopped and goes on, trying again: {}", error.in_full());
            }
        }
        if self.could_not_cancel && (self.is_running || !self.is_alive || self.freezer.is_frozen()) {
            self.could_not_cancel = false;
            self.message.clear();
        }
    }

    /// The daemon ends, or is gone. Work begins to stop and waits for the next daemon; this waits for nothing. A resync goes on as the kernel
    /// would have it, since until its end a disk that fails takes data along. What failed, if anything.
    pub(crate) fn leave(&mut self, sys: &Path) -> Vec<WorkError> {
        let stopped = match self.spec.kind {
            Kind::MdResync if !self.is_slowed() => Ok(()),
            Kind::MdResync => self.array(sys).and_then(|array| self.put_speeds_back(&array)),
            // The kernel goes on with it also without a worker.
            Kind::MdCheck => self.stop_with(sys),
            _ if self.is_alive => self.stop_with(sys),
            // A worker may still come, of a service that was asked for.
            _ if self.spec.hold() != BackgroundHold::Cap && self.freezer.is_set() == Some(false) => {
                self.freezer.set(true)
            }
            _ => Ok(()),
        };
        let outcomes = [stopped, self.lift_limit(), processors::free(&self.place)];
        outcomes.into_iter().filter_map(Result::err).map(|error| self.named(&error)).collect()
    }

    /// Waits for the end of the call into the kernel in which it was stopped. What takes longer goes on by itself: nobody can hurry it.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> Result<(), WorkError> {
        let Some(thread) = self.cancelling.take() else { return Ok(()) };
        while !thread.is_finished() {
            if Instant::now() >= deadline {
                let why = format!("the kernel has not ended yet what it does on {}", self.spec.path.display());
                return Err(self.named(&WorkError::Refused(why)));
            }
            std::thread::sleep(CANCEL_PERIOD);
        }
        // One that panicked has cancelled nothing more than one that never ran.
        thread.join().unwrap_or(Ok(())).map_err(|error| self.named(&error))
    }

    /// For whoever is told of several.
    fn named(&self, error: &WorkError) -> WorkError {
        WorkError::Refused(format!("{}: {}", self.spec.name, error.in_full()))
    }

    /// Ends the worker and removes what it had; whether all of it is gone. To be called until it is: it waits for nothing, as others' work
    /// is looked at meanwhile.
    pub(crate) fn remove(&mut self, sys: &Path) -> bool {
        self.is_alive = self.has_worker();
        if self.is_alive {
            // Before the end of its processes, after which nobody can tell. It begins no call any more.
            self.had_stopped |= self.freezer.is_frozen();
            let _ = self.freezer.kill();
        }
        if self.is_cancelling() {
            return false;
        }
        if self.is_alive {
            // After that, so that it begins no more.
            if matches!(self.spec.kind, Kind::BtrfsScrub | Kind::BtrfsBalance) && !self.had_stopped {
                let _ = self.cancel_apart();
            }
            return false;
        }
        // What could not be put back is lost with where it is written down, as it is where a worker had gone before.
        let _ = self.lift_limit();
        // The worker would have taken the end for that of the whole check.
        if self.spec.kind.is_of_array() && self.state != BackgroundState::Done && !self.end_array(sys) {
            return false;
        }
        let is_gone = self.clean_up();
        if is_gone {
            self.place.remove();
        } else {
            // On v1 processes are ended by a list, and what was forked meanwhile is not in it. It would go on for ever, let run.
            let _ = self.freezer.kill();
        }
        is_gone
    }

    pub(super) fn clean_up(&mut self) -> bool {
        if self.spec.kind.is_of_array()
            && let Ok(array) = self.array(Path::new("/sys"))
        {
            // What could not be put back stays written down, for whoever lets it run or ends it.
            let _ = self.put_speeds_back(&array);
        }
        let Groups { io, freezer, processors } = &self.place.groups;
        let mut is_gone = self.freezer.remove();
        let others = [Some(io), processors.as_ref()].into_iter().flatten().filter(|group| *group != freezer);
        others.for_each(|group| is_gone &= groups::remove(group));
        // What is to be put back went with the group.
        is_gone && processors::free(&self.place).is_ok()
    }
}
