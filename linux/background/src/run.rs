//! One queue's worker, as its daemon sees it: started or taken over, let run and stopped.

mod array;
mod confined;
mod limited;
mod reporting;
mod starting;
mod stopping;
#[cfg(test)]
mod tests;

use crate::activity::Activity;
use crate::directories::QueueDirectories;
use crate::duty::{Chance, Duty, LOOK_MAX};
use crate::error::WorkError;
use crate::freezer::Freezer;
use crate::processors::Hierarchy;
use crate::spec::{Kind, Spec};
use minerva_model::{BackgroundHold, BackgroundPace, BackgroundState, DeviceId, Nanos};
use std::path::Path;
use std::process::Child;
use std::thread::JoinHandle;

pub use reporting::Before;
pub use starting::WorkerProgram;

use array::Ending;
use limited::{Limit, Limiting};
use reporting::Reported;
use starting::Attempts;

/// A queue.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) spec: Spec,
    pub(crate) device: DeviceId,
    place: QueueDirectories,
    freezer: Freezer,
    pub(crate) duty: Duty,
    child: Option<Child>,
    attempts: Attempts,
    /// Of workers that ended without saying how.
    deaths: Attempts,
    /// A worker lives.
    is_alive: bool,
    /// The worker may run.
    is_running: bool,
    /// Somebody else let it run or stopped it since, or that is not known.
    is_in_doubt: bool,
    pub(crate) state: BackgroundState,
    pub(crate) message: String,
    /// What it is for is not at its path: it is not begun until that was found again.
    pub(crate) is_absent: bool,
    ran: Nanos,
    /// Of that, while others used the disk too.
    ran_beside: Nanos,
    ran_in_all: Nanos,
    counted_at: Nanos,
    /// What was known of it before this worker said anything.
    before: Before,
    /// What the last report said.
    reported: Reported,
    /// For how long it ran since it last got on.
    pub(crate) in_vain: Nanos,
    /// Ends the call into the kernel that the worker was in when it was stopped.
    cancelling: Option<JoinHandle<Result<(), WorkError>>>,
    /// That call could not be ended, as the message says.
    could_not_cancel: bool,
    /// What the kernel does for it was ended too.
    is_ended: bool,
    /// Attempts to do that.
    ending: Ending,
    /// Its array could not be slowed, or by half only.
    could_not_slow: bool,
    /// Of a scrub.
    limiting: Limiting,
    /// What the message said when it could not be stopped or let run, and whether at a limit.
    could_not_turn: Option<(String, bool)>,
    /// It had stopped before it was removed, outside of any call into the kernel.
    had_stopped: bool,
    /// So many processors its processes may use; 0: all.
    pub(crate) processors_wanted: u32,
    /// Which they are, or why they are not fewer than all.
    pub(crate) processors_said: String,
    activity: Activity,
}

impl Run {
    /// A queue, with the worker that it has from before if there is one: that is stopped until it is let run.
    pub(crate) fn new(spec: Spec, device: DeviceId, place: QueueDirectories, now: Nanos, before: Before) -> Self {
        let (ran_in_all, reported) = (before.ran, Reported::of(&before));
        let mut run = Self { device, ran_in_all, counted_at: now, before, reported, ..Self::left(spec, place) };
        // Whoever was there before may have left it either way.
        if run.is_alive {
            run.stop();
        }
        run.is_running = false;
        run.look();
        run
    }

    /// A queue as its daemon left it: nothing is stopped yet.
    pub(crate) fn left(spec: Spec, place: QueueDirectories) -> Self {
        let freezer = Freezer::at(&place.groups.freezer);
        Self {
            is_alive: place.is_alive(),
            spec,
            device: DeviceId { major: 0, minor: 0 },
            place,
            freezer,
            duty: Duty::default(),
            child: None,
            attempts: Attempts::default(),
            deaths: Attempts::default(),
            is_running: true,
            is_in_doubt: false,
            state: BackgroundState::Waiting,
            message: String::new(),
            is_absent: false,
            ran: Nanos::ZERO,
            ran_beside: Nanos::ZERO,
            ran_in_all: Nanos::ZERO,
            counted_at: Nanos::ZERO,
            before: Before::default(),
            reported: Reported::default(),
            in_vain: Nanos::ZERO,
            cancelling: None,
            could_not_cancel: false,
            is_ended: false,
            ending: Ending::default(),
            could_not_slow: false,
            limiting: Limiting::default(),
            could_not_turn: None,
            had_stopped: false,
            processors_wanted: 0,
            processors_said: String::new(),
            activity: Activity::default(),
        }
    }

    pub(crate) fn group(&self) -> &Path {
        &self.place.groups.io
    }

    pub(crate) const fn is_running(&self) -> bool {
        self.is_running
    }

    /// It is to run some time.
    pub(crate) fn wants(&self) -> bool {
        self.duty.pace != BackgroundPace::Hold && !self.state.is_over() && !self.is_absent
    }

    fn has_worker(&mut self) -> bool {
        if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
            self.child_ended(status);
        }
        self.child.is_some() || self.place.is_alive()
    }

    /// Looks how the worker is.
    pub(crate) fn look(&mut self) {
        let is_alive = self.has_worker();
        let was_alive = std::mem::replace(&mut self.is_alive, is_alive);
        // What has ended runs no more.
        self.is_running &= self.is_alive;
        if self.is_alive {
            (self.is_ended, self.ending) = (false, Ending::default());
        }
        self.note_cancel_outcome();
        if !self.is_alive {
            // It is tried again at the next look.
            let _ = self.lift_limit();
        }
        self.is_in_doubt = self.is_alive && !self.is_as_told();
        if let Some(ended) = self.place.ended().filter(|_| !self.is_alive) {
            self.state = match (ended.is_absent, ended.is_done) {
                (true, _) => BackgroundState::Waiting,
                (false, true) => BackgroundState::Done,
                (false, false) => BackgroundState::Failed,
            };
            self.message = ended.message;
            if ended.is_absent {
                self.is_absent = true;
                self.place.forget_end();
            }
        } else if !self.is_alive && was_alive && self.place.has_begun() && !self.spec.kind.can_be_repeated() {
            self.lost();
        } else if !self.is_alive && was_alive && !self.attempts.has_failed() {
            self.state = BackgroundState::Waiting;
            self.worker_died();
        } else if self.is_alive || self.state != BackgroundState::Failed {
            if self.is_alive {
                self.note_worker_appeared();
                self.note_worker_gets_on();
            }
            self.state = if self.is_running { BackgroundState::Running } else { BackgroundState::Waiting };
        }
        if (self.state.is_over() || self.is_absent) && !self.is_alive && !self.clean_up() {
            // What a command leaves running (setsid(1)) is ended with it, as systemd does with a service's: nobody would pace it.
            let _ = self.freezer.kill();
        }
    }

    /// Lets it run or stops it, as its pace says and as its disk has a chance for it now.
    pub(crate) fn turn(
        &mut self,
        now: Nanos,
        chance: Chance,
        (worker, hierarchy): (&WorkerProgram, Option<&Hierarchy>),
        sys: &Path,
    ) {
        let passed = now.since(self.counted_at).min(LOOK_MAX);
        self.counted_at = now;
        self.count(passed, chance.is_gap());
        let limit = self.limit_beside(chance, sys);
        let may = self.may_run(passed, chance, limit) && !self.is_cancelling();
        // What the kernel has begun by itself goes on meanwhile, so that it is slowed at once, not after the first gap.
        let is_begun = self.spec.kind == Kind::MdResync;
        if (may || is_begun) && !self.is_alive && self.wants() && self.may_begin(now) {
            self.begin(worker, hierarchy);
            self.is_in_doubt = true;
        }
        if !self.is_alive && self.spec.kind.is_of_array() {
            self.hold_array(sys);
        }
        let is_new = may != self.is_running || (may && limit != self.limiting.limit());
        if self.is_alive && (is_new || self.is_in_doubt) {
            let outcome = if may { self.let_run(limit, sys) } else { self.stop_with(sys) };
            // What failed is tried again.
            if outcome.is_ok() {
                (self.is_running, self.is_in_doubt) = (may, false);
            }
            self.note_turned(outcome, limit.is_some());
        }
    }

    fn may_begin(&self, now: Nanos) -> bool {
        self.attempts.may_begin(now) && self.deaths.may_begin(now)
    }

    /// With a limit it may all the time, and needs nothing of what it still has of its share. What would begin again after each stretch has
    /// none: it would take time from others and get on by nothing.
    fn may_run(&mut self, passed: Nanos, chance: Chance, limit: Option<Limit>) -> bool {
        if !self.wants() || limit.is_some() {
            self.duty.rest();
            return limit.is_some();
        }
        if self.spec.kind.begins_again() {
            return chance.is_gap();
        }
        self.spec.hold() == BackgroundHold::Cap || self.duty.may_run(passed, chance, self.is_running)
    }

    /// Stops it, whatever its pace.
    fn stop(&mut self) {
        let outcome = self.stop_with(Path::new("/sys"));
        self.note_turned(outcome, false);
        self.is_running = false;
    }

    /// Begins anew what failed, where that was.
    pub(crate) fn begin_again(&mut self) {
        if self.state == BackgroundState::Failed && !self.is_alive {
            self.remember_progress();
            self.place.forget_run();
            (self.attempts, self.deaths) = <_>::default();
            self.state = BackgroundState::Waiting;
            self.message.clear();
        }
    }

    fn begin(&mut self, worker: &WorkerProgram, hierarchy: Option<&Hierarchy>) {
        // It came since it was looked for.
        if self.place.is_alive() {
            return;
        }
        if self.place.has_begun() && !self.spec.kind.can_be_repeated() {
            return self.lost();
        }
        if let Err(error) = self.start(worker, hierarchy) {
            self.state = BackgroundState::Failed;
            self.message = error.in_full();
        }
    }

    /// It was begun and is gone, and nothing says how it ended.
    fn lost(&mut self) {
        self.state = BackgroundState::Failed;
        "it ended without saying how, by a reboot or a kill; it is not begun again by itself: minerva-ctl background resume does"
            .clone_into(&mut self.message);
    }
}
