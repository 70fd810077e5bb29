//! Work that a tenant's program does by itself: it is told when it may.

use crate::duty::{Chance, Duty, LOOK_MAX};
use minerva_model::{
    BackgroundBeside, BackgroundId, BackgroundPace, BackgroundReport, BackgroundState, DeviceId, Nanos,
};
use std::fmt;
use std::path::PathBuf;

/// Tells the program whether it may work from now on; false where that did not reach it and is to be said again.
pub type Say = Box<dyn FnMut(bool) -> bool + Send>;

/// A queue of a tenant's.
pub struct Told {
    /// Which.
    pub id: BackgroundId,
    /// The disk that it works on.
    pub device: DeviceId,
    /// The tenant's group, as a directory: its own requests are not taken for others'.
    pub group: PathBuf,
    /// Tells its program.
    pub say: Say,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("id", &self.id).field("device", &self.device).finish_non_exhaustive()
    }
}

/// A queue of a tenant's, and how it was let work.
#[derive(Debug)]
pub(crate) struct ToldRun {
    pub(crate) told: Told,
    pub(crate) duty: Duty,
    is_working: bool,
    ran: Nanos,
    ran_beside: Nanos,
    counted_at: Nanos,
}

impl ToldRun {
    pub(crate) fn new(told: Told, now: Nanos) -> Self {
        Self {
            told,
            duty: Duty::default(),
            is_working: false,
            ran: Nanos::ZERO,
            ran_beside: Nanos::ZERO,
            counted_at: now,
        }
    }

    pub(crate) fn wants(&self) -> bool {
        self.duty.pace != BackgroundPace::Hold
    }

    pub(crate) const fn is_working(&self) -> bool {
        self.is_working
    }

    /// Lets it work or stops it, as its disk has a chance for it now.
    pub(crate) fn turn(&mut self, now: Nanos, chance: Chance) {
        let passed = now.since(self.counted_at).min(LOOK_MAX);
        self.counted_at = now;
        if self.is_working {
            self.ran += passed;
            self.ran_beside += if chance.is_gap() { Nanos::ZERO } else { passed };
        }
        let may = if self.wants() {
            self.duty.may_run(passed, chance, self.is_working)
        } else {
            self.duty.rest();
            false
        };
        if may != self.is_working && (self.told.say)(may) {
            self.is_working = may;
        }
    }

    /// For how long it was let work since the last report. What it did meanwhile its program says.
    pub(crate) fn report(&mut self) -> BackgroundReport {
        BackgroundReport {
            id: self.told.id,
            state: if self.is_working { BackgroundState::Running } else { BackgroundState::Waiting },
            done_items: 0.0,
            total_items: None,
            tied_bytes: 0.0,
            ran: std::mem::take(&mut self.ran),
            used_bytes: 0,
            size_bytes: 0,
            file_system: None,
            processors: None,
            gets_on: None,
            is_beside_others: false,
            ran_beside: std::mem::take(&mut self.ran_beside),
            beside: Some(BackgroundBeside::Stretches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, LOOK_MAX, Told, ToldRun};
    use minerva_model::{BackgroundId, BackgroundPace, DeviceId, Nanos};
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_program_is_told_once_and_again_if_it_did_not_hear() {
        let (heard, deaf) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(true)));
        let (said, is_deaf) = (Arc::clone(&heard), Arc::clone(&deaf));
        let say = move |may| {
            said.lock().unwrap().push(may);
            !*is_deaf.lock().unwrap()
        };
        let device = DeviceId { major: 8, minor: 0 };
        let told = Told { id: BackgroundId(1), device, group: "/".into(), say: Box::new(say) };
        let mut run = ToldRun::new(told, Nanos::ZERO);
        run.turn(Nanos::from_secs(1), Chance::Gap);
        assert_eq!(*heard.lock().unwrap(), [] as [bool; 0], "nothing was ordered yet");
        run.duty.pace = BackgroundPace::Gaps;
        run.turn(Nanos::from_secs(2), Chance::Gap);
        *deaf.lock().unwrap() = false;
        run.turn(Nanos::from_secs(3), Chance::Gap);
        run.turn(Nanos::from_secs(4), Chance::Gap);
        run.turn(Nanos::from_secs(5), Chance::Beside);
        run.turn(Nanos::from_secs(6), Chance::Beside);
        assert_eq!(*heard.lock().unwrap(), [true, true, false]);
        assert_eq!(run.report().ran, Nanos::from_secs(2), "from when it heard of it");
    }

    #[test]
    fn a_program_does_not_work_while_the_host_is_suspended() {
        let device = DeviceId { major: 8, minor: 0 };
        let told = Told { id: BackgroundId(1), device, group: "/".into(), say: Box::new(|_| true) };
        let mut run = ToldRun::new(told, Nanos::ZERO);
        run.duty.pace = BackgroundPace::Gaps;
        run.turn(Nanos::from_millis(250), Chance::Gap);
        run.turn(Nanos::from_millis(500), Chance::Gap);
        assert_eq!(run.report().ran, Nanos::from_millis(250));
        run.turn(Nanos::from_secs(8 * 3600), Chance::Gap);
        assert_eq!(run.report().ran, LOOK_MAX);
    }
}
