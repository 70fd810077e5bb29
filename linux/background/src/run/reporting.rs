//! What a queue's daemon tells of it: how far it is, and on which space it works.

use super::Run;
use crate::automount::Automounts;
use crate::directories::Progress;
use crate::identity::file_system;
use crate::spec::{Found, Kind};
use crate::turns::BeginsAgain;
use minerva_background::HUNG;
use minerva_model::{BackgroundBeside, BackgroundReport, Nanos};
use rustix::fs::fstatvfs;
use std::path::Path;

/// What was known of a queue before it is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Before {
    /// For how long it ran.
    pub ran: Nanos,
    /// Items done.
    pub done_items: f64,
    /// Items in all, if known.
    pub total_items: Option<f64>,
}

/// What a report said, by which the next one is seen to get on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    done: f64,
    /// See [`Progress::looked`].
    looked: u64,
}

impl Reported {
    pub(super) const fn of(before: &Before) -> Self {
        Self { done: before.done_items, looked: 0 }
    }

    /// Takes what is said now; whether more was done or looked at.
    fn gets_on(&mut self, done: f64, looked: u64) -> bool {
        // Another worker looks at everything from the start, with less than there was.
        let before = std::mem::replace(self, Self { done, looked });
        done > before.done || looked > before.looked
    }
}

impl Run {
    /// What came of it since the last report. What `automounts` would wait for is not opened.
    pub(crate) fn report(&mut self, automounts: &Automounts, sys: &Path) -> BackgroundReport {
        let is_command = self.spec.kind == Kind::Command;
        // After a reboot no worker has said anything yet, and all that was done is done.
        let Before { done_items, total_items, .. } = self.before;
        let nothing = Progress { done: done_items, total: total_items, ..Progress::default() };
        let progress = self.place.progress().unwrap_or(nothing);
        // Of a command nothing is known but for how long it ran.
        let done_items = if is_command { self.ran_in_all.as_secs_f64() } else { progress.done };
        let gets_on = if is_command {
            self.gets_on(progress.worker)
        } else {
            Some(self.reported.gets_on(progress.done, progress.looked))
        };
        let ran = std::mem::take(&mut self.ran);
        self.in_vain = if gets_on == Some(false) { self.in_vain + ran } else { Nanos::ZERO };
        let (used_bytes, size_bytes) = self.space(automounts).unwrap_or((0, 0));
        BackgroundReport {
            id: self.spec.id,
            state: self.state,
            done_items,
            total_items: progress.total,
            tied_bytes: progress.tied_bytes,
            ran,
            used_bytes,
            size_bytes,
            file_system: (size_bytes > 0).then(|| self.spec.identity.file_system_number()),
            processors: None,
            gets_on,
            is_beside_others: self.limiting.was_beside_others(self.is_running),
            ran_beside: std::mem::take(&mut self.ran_beside),
            beside: Some(self.beside(sys)),
        }
    }

    /// How it can run beside others, also while it need not.
    fn beside(&self, sys: &Path) -> BackgroundBeside {
        match self.spec.kind.begins_again() {
            false => BackgroundBeside::Stretches,
            true if self.can_be_limited(sys) => BackgroundBeside::Limit,
            true => BackgroundBeside::Nothing,
        }
    }

    /// Bytes in use, and bytes in all, of the file system that it works on; of what is below one nothing, and nothing while another is
    /// where that was: it is not mounted, and the numbers of the one above it are not its own.
    fn space(&self, automounts: &Automounts) -> Option<(u64, u64)> {
        automounts.check(self.spec.kind, &self.spec.path).ok()?;
        let directory = self.spec.open_near()?;
        let (file_system, _) = file_system(&directory).ok()?;
        let facts = fstatvfs(&directory).ok().filter(|_| self.spec.identity.is_on(file_system))?;
        Some(((facts.f_blocks - facts.f_bfree) * facts.f_frsize, facts.f_blocks * facts.f_frsize))
    }

    /// It runs and gets nowhere, as the engine sees it too.
    pub(crate) fn hangs(&self) -> bool {
        self.in_vain >= HUNG
    }

    /// Where it is, if it runs and what it has done from there on is lost when it is stopped.
    pub(crate) fn begins_again(&self) -> Option<BeginsAgain> {
        let is_limited = self.limiting.limit().is_some();
        (self.spec.kind.begins_again() && self.is_running).then(|| BeginsAgain { at: self.position().0, is_limited })
    }

    /// Where another worker would go on, and what was found up to there.
    pub(crate) fn position(&self) -> (u64, Found) {
        let progress = self.place.progress();
        progress.map_or((self.spec.position, self.spec.found), |progress| (progress.position, progress.found))
    }

    /// Takes over what its last worker said, which is about to be forgotten.
    pub(super) fn remember_progress(&mut self) {
        (self.spec.position, self.spec.found) = self.position();
        if let Some(progress) = self.place.progress() {
            (self.before.done_items, self.before.total_items) = (progress.done, progress.total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Before;
    use crate::automount::Automounts;
    use crate::directories::{Progress, replace};
    use crate::run::Run;
    use crate::run::tests::run;
    use crate::spec::Kind;
    use minerva_model::{BackgroundState, Nanos};
    use std::path::Path;

    /// A queue of which the store has this.
    fn stored(root: &Path, before: Before) -> Run {
        let Run { mut spec, device, place, .. } = run(root, Kind::Delete, root);
        spec.position = 6_000;
        Run::new(spec, device, place, Nanos::ZERO, before)
    }

    fn say(run: &Run, progress: Progress) {
        replace(&run.place.runtime.join("progress"), &progress, false).unwrap();
    }

    /// The runtime directory is empty then.
    #[test]
    fn after_a_reboot_what_was_done_is_done_before_a_worker_says_so() {
        let root = tempfile::tempdir().unwrap();
        let before = Before { ran: Nanos::from_secs(60), done_items: 6_000.0, total_items: Some(8_000.0) };
        let mut run = stored(root.path(), before);
        let mut report = || {
            let report = run.report(&Automounts::default(), Path::new("/sys"));
            (report.done_items, report.total_items, report.gets_on)
        };
        assert_eq!(report(), (6_000.0, Some(8_000.0), Some(false)));
        say(&run, Progress { done: 6_000.0, total: Some(8_000.0), position: 6_000, ..Progress::default() });
        let report = run.report(&Automounts::default(), Path::new("/sys"));
        assert_eq!((report.done_items, report.gets_on), (6_000.0, Some(false)), "nothing was done twice");
    }

    #[test]
    fn who_looks_at_more_or_does_more_gets_on_and_another_worker_is_not_compared_with_the_one_before() {
        let root = tempfile::tempdir().unwrap();
        let mut run = stored(root.path(), Before { done_items: 6_000.0, ..Before::default() });
        let mut gets_on = |done: f64, looked: u64| {
            say(&run, Progress { done, looked, ..Progress::default() });
            run.report(&Automounts::default(), Path::new("/sys")).gets_on
        };
        assert_eq!(gets_on(6_000.0, 64), Some(true), "it counts");
        assert_eq!(gets_on(6_000.0, 128), Some(true));
        assert_eq!(gets_on(6_000.0, 128), Some(false));
        assert_eq!(gets_on(6_001.0, 128), Some(true), "it deletes");
        assert_eq!(gets_on(6_001.0, 64), Some(false), "another one begins to count");
        assert_eq!(gets_on(6_001.0, 128), Some(true));
    }

    #[test]
    fn what_runs_for_ten_minutes_without_getting_on_hangs_until_it_does() {
        let root = tempfile::tempdir().unwrap();
        let mut run = stored(root.path(), Before::default());
        let mut hangs_after = |seconds: u64, done: f64| {
            run.ran = Nanos::from_secs(seconds);
            say(&run, Progress { done, ..Progress::default() });
            run.report(&Automounts::default(), Path::new("/sys"));
            run.hangs()
        };
        let hung = [(0, 1.0), (599, 1.0), (1, 1.0), (0, 1.0), (1, 2.0), (599, 2.0)];
        assert_eq!(hung.map(|(seconds, done)| hangs_after(seconds, done)), [false, false, true, true, false, false]);
    }

    #[test]
    fn only_of_what_goes_by_chunks_it_matters_where_it_is_when_it_is_stopped() {
        let root = tempfile::tempdir().unwrap();
        let mut run = stored(root.path(), Before::default());
        run.is_running = true;
        assert_eq!(run.begins_again().map(|begins| begins.at), None);
        for kind in [Kind::BtrfsBalance, Kind::BtrfsScrub] {
            run.spec.kind = kind;
            assert_eq!(run.begins_again().map(|begins| begins.at), Some(6_000));
        }
        say(&run, Progress { position: 5_000, ..Progress::default() });
        assert_eq!(run.begins_again().map(|begins| begins.at), Some(5_000));
        run.is_running = false;
        assert_eq!(run.begins_again().map(|begins| begins.at), None, "that is lost already");
    }

    #[test]
    fn what_failed_is_begun_again_where_it_was() {
        let root = tempfile::tempdir().unwrap();
        let mut run = stored(root.path(), Before::default());
        run.state = BackgroundState::Failed;
        say(&run, Progress { done: 7_000.0, total: Some(8_000.0), position: 7_000, ..Progress::default() });
        run.begin_again();
        assert!(run.place.progress().is_none());
        assert_eq!(run.position().0, 7_000);
        let report = run.report(&Automounts::default(), Path::new("/sys"));
        assert_eq!((report.done_items, report.total_items), (7_000.0, Some(8_000.0)));
    }
}
