//! Attempts to move a file that did not end: what an earlier process left, and when the next one may be made.

use super::disks::Destination;
use super::job::Obstacle;
use super::settling::settle;
use super::{Deferred, Waiting};
use minerva_store::{Deferral, DeferralStep};
use std::time::{Duration, Instant};

/// After a failed attempt a file waits so long, after each further one twice as long, up to this.
const AGAIN_MIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(30);

impl Waiting {
    /// It is tried again later, each time after a longer pause.
    pub(super) fn postpone(&mut self) {
        self.tries += 1;
        self.not_before = Instant::now() + (AGAIN_MIN * (1 << self.tries.min(8))).min(AGAIN_MAX);
    }
}

impl Deferred {
    /// Sees to what an earlier process left of files for one destination; `answered` is called after each.
    pub(super) fn settle_found(&self, destination: Destination, answered: impl Fn()) {
        let mut found = Vec::new();
        for file in self.files().values_mut().filter(|file| file.destination == destination && file.is_found) {
            file.is_found = false;
            found.push((file.row.id, file.row.step == DeferralStep::Left));
            if file.row.step == DeferralStep::Left {
                // Whether its link is back takes reading a directory, and nobody waits for that: `left` looks.
                "the link to it was removed or replaced before the service began".clone_into(&mut file.why);
            }
        }
        for (id, is_left) in found {
            if !is_left {
                self.settle(id);
            }
            self.look_at_size(id);
            answered();
        }
    }

    /// What a file of an earlier process occupies.
    fn look_at_size(&self, id: u64) {
        let Some(row) = self.files().get(&id).map(|file| file.row.clone()) else { return };
        // Where it cannot be told now it is once the file may move.
        let Ok((tree, _)) = self.tree_of(&row) else { return };
        let Ok(shown) = tree.deferred_attributes(&row.source) else { return };
        let bytes = shown.blocks * 512;
        self.files().entry(id).and_modify(|file| (file.bytes, file.occupied_bytes) = (bytes, bytes));
    }

    /// Sees to what an earlier attempt left.
    pub(super) fn settle(&self, id: u64) {
        let look = || {
            let row = self.files().get(&id).map(|file| file.row.clone()).ok_or(Obstacle::TakenOut)?;
            let (tree, at) = self.tree_of(&row)?;
            settle(row, &tree, &at)
        };
        let settled = match look() {
            Err(_) if self.find_directory_again(id) => look(),
            found => found,
        };
        self.note_settled(id, settled);
    }

    /// Keeps what a row has become.
    pub(super) fn note_settled(&self, id: u64, settled: Result<Option<Deferral>, Obstacle>) {
        match settled {
            Ok(None) => self.forget(id),
            Ok(Some(row)) => {
                if let Err(error) = self.keep(&row) {
                    self.failed(id, &error);
                }
            }
            Err(obstacle) => self.failed(id, &obstacle),
        }
    }

    /// A destination has not answered for so long.
    pub(super) fn tell_silence(&self, destination: Destination, silent: Duration) {
        for file in self.files().values_mut().filter(|file| file.destination == destination) {
            file.why = format!("its disk has not answered for {} s", silent.as_secs());
        }
    }

    /// An attempt ended without a move.
    pub(super) fn failed(&self, id: u64, obstacle: &Obstacle) {
        match obstacle {
            Obstacle::Gone => return self.forget(id),
            // Its row is kept by who took it out, who may put it back.
            Obstacle::TakenOut => return,
            _ => (),
        }
        let mut files = self.files();
        let Some(file) = files.get_mut(&id) else { return };
        let is_left = matches!(obstacle, Obstacle::Left(_));
        if !is_left || file.row.step != DeferralStep::Left {
            // To look for a link that was gone before is no attempt.
            self.count(&file.row, |counts| counts.failed += 1);
        }
        file.why = obstacle.to_string();
        file.postpone();
        if is_left && file.row.step != DeferralStep::Left {
            file.row.step = DeferralStep::Left;
            let row = &file.row;
            // A name of a user's choice: escaped, so that it cannot look like a line of ours.
            eprintln!("minerva-fs: {:?} of {} stays in the pool: {obstacle}", row.target(), row.tenant);
            // Where this fails it is found out again.
            let _ = self.log(|log| log.keep(row));
        }
    }
}
