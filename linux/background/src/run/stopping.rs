//! Letting a worker run, and stopping it.

#[cfg(test)]
mod tests;

use super::Run;
use crate::directories::{Groups, read, replace};
use crate::error::WorkError;
use crate::md::{Array, Speeds};
use crate::spec::{Kind, Spec};
use crate::{balance, groups, processors, scrub};
use minerva_model::{BackgroundHold, BackgroundState};
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
    pub(super) fn let_run(&mut self, sys: &Path) -> Result<(), WorkError> {
        if self.spec.kind.is_of_array() {
            self.put_speeds_back(&Array::of(&self.spec.path, sys)?)?;
        }
        self.freezer.set(false)
    }

    /// Its groups, or the speeds of its array, are as it was told last. The guard of a daemon that stalls stops all work, and the daemon may
    /// go on.
    pub(super) fn is_as_told(&self) -> bool {
        let is_frozen = self.freezer.is_set().unwrap_or(!self.is_running);
        let is_slowed = self.is_slowed();
        match self.spec.kind {
            _ if self.is_running => !is_frozen && !is_slowed,
            _ if self.spec.hold() == BackgroundHold::Cap => true,
            // Its worker only looks, and is not frozen.
            Kind::MdCheck | Kind::MdResync => is_slowed,
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
                if self.is_alive { self.cancel_apart() } else { Ok(()) }
            }
            // What the array does is not its check, but what comes before one, such as a recovery.
            Kind::MdCheck if !self.is_alive && !self.place.has_check() => Ok(()),
            // Its worker only looks, and must see the end of what the kernel does slowly now.
            Kind::MdCheck | Kind::MdResync => {
                let array = Array::of(&self.spec.path, sys)?;
                let path = self.place.runtime.join("speeds");
                if !path.exists() {
                    replace(&path, &array.speeds()?, true)?;
                }
                array.stop()
            }
            _ => self.freezer.set(true),
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

    /// Ends what the kernel does without the worker, which takes as long as it needs, in the same way; whether there is anything.
    fn end_apart(&mut self, sys: &Path) -> bool {
        // Another array may have its number by now.
        let is_there = self.spec.kind.is_of_array() && self.spec.look(sys).is_ok();
        let Some(array) = is_there.then(|| Array::of(&self.spec.path, sys).ok()).flatten() else { return false };
        // It is tried again with the rest of what it had.
        let _ = self.put_speeds_back(&array);
        // Somebody else's goes on: that of the host's timer, if this queue never began one.
        if self.spec.kind != Kind::MdCheck || !self.place.has_check() {
            return false;
        }
        // What cannot be ended goes on at the speeds that the operator set.
        let place = self.place.clone();
        let end = move || array.end().inspect(|()| place.forget_check());
        self.cancelling = std::thread::Builder::new().name("end".to_owned()).spawn(end).ok();
        self.cancelling.is_some()
    }

    /// What the kernel goes on with after its worker died is slowed until there is another one, and ended if there is to be none: nobody
    /// would pace it.
    pub(super) fn hold_array(&mut self, sys: &Path) {
        if self.state == BackgroundState::Failed {
            if !std::mem::replace(&mut self.is_ended, true) {
                self.end_apart(sys);
            }
        } else if self.deaths.has_failed() && !self.state.is_over() && !self.is_slowed() {
            // It is tried again at the next look.
            let _ = self.stop_with(sys);
        }
    }

    /// Its call into the kernel is being ended: it must not go on meanwhile.
    pub(super) fn is_cancelling(&self) -> bool {
        self.cancelling.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// What came of ending its call. While that goes on all the same, people are told, and it is tried again.
    pub(super) fn note_cancel_outcome(&mut self) {
        if !self.is_cancelling()
            && let Some(thread) = self.cancelling.take()
            && let Ok(Err(error)) = thread.join()
            && self.is_alive
        {
            self.could_not_cancel = true;
            self.message = format!("it could not be stopped and goes on, trying again: {}", error.in_full());
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
            Kind::MdResync => Array::of(&self.spec.path, sys).and_then(|array| self.put_speeds_back(&array)),
            // The kernel goes on with it also without a worker.
            Kind::MdCheck => self.stop_with(sys),
            _ if self.is_alive => self.stop_with(sys),
            // A worker may still come, of a service that was asked for.
            _ if self.spec.hold() != BackgroundHold::Cap && self.freezer.is_set() == Some(false) => {
                self.freezer.set(true)
            }
            _ => Ok(()),
        };
        let outcomes = [stopped, processors::free(&self.place)];
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
        // The worker would have taken the end for that of the whole check.
        if !std::mem::replace(&mut self.is_ended, true) && self.state != BackgroundState::Done && self.end_apart(sys) {
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

    /// Its array was slowed, and is still.
    fn is_slowed(&self) -> bool {
        self.place.runtime.join("speeds").exists()
    }

    fn put_speeds_back(&self, array: &Array) -> Result<(), WorkError> {
        let path = self.place.runtime.join("speeds");
        if let Some(speeds) = read::<Speeds>(&path) {
            array.put_back(&speeds)?;
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }

    pub(super) fn clean_up(&mut self) -> bool {
        if self.spec.kind.is_of_array()
            && let Ok(array) = Array::of(&self.spec.path, Path::new("/sys"))
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
