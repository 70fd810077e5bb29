//! The files that the policy is asked about, and what each is told of why it has not moved.

use super::job::Obstacle;
use super::mover::Moves;
use super::site::Site;
use super::{Deferred, Waiting, not_served};
use crate::tenant::Tenant;
use minerva_api::cache::Pool;
use minerva_cachefs::{MoveRefusal, Tree};
use minerva_clock::boottime;
use minerva_decide::{MigrationOrder, MigrationUrgency, WaitingFile};
use minerva_model::Nanos;
use minerva_store::{Deferral, DeferralStep};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// Files that the policy is asked about at once: the most pressing, and of those the ones that waited longest.
const CANDIDATES_MAX: usize = 1000;
/// Links that are made durable in a slice.
const LINKS_SYNCED: usize = 16;

/// So long a program may take to open the file that it has asked for; until then the file is as large as it said.
const TO_OPEN: Nanos = Nanos::from_millis(10_000);

/// How pressing a file is, whether another is under way, for how long it has waited, and its number; the least goes first.
type Precedence = (MigrationUrgency, bool, Reverse<Nanos>, u64);

/// Trees by tenant and pool, each with the thousandths of it that are used.
type Trees = BTreeMap<(String, String), (Arc<Tree>, u32)>;

impl Moves<'_> {
    /// Files of this destination that could be moved, as the policy has them.
    pub(super) fn candidates(&mut self) -> Vec<WaitingFile> {
        self.look_for_left();
        let trees = self.deferred.trees();
        let due = self.due(&trees);
        let under_way = self.job.as_ref().map(|job| job.row.id);
        for row in due.iter().filter(|row| row.step != DeferralStep::Waiting && under_way != Some(row.id)) {
            self.deferred.settle(row.id);
        }
        let wait_max = self.deferred.settings.now().migration.wait_max;
        let mut found = Vec::new();
        for (row, waited) in self.that_wait(due) {
            let Some((tree, pool_permille)) = trees.get(&(row.tenant.clone(), row.pool.clone())) else { continue };
            let (bytes, is_open) = match tree.deferred_use(&row.source) {
                Ok(used) => used,
                Err(error) => {
                    let is_gone = error == Errno::NOENT;
                    let obstacle = if is_gone { Obstacle::Gone } else { MoveRefusal::Failed(error).into() };
                    self.deferred.failed(row.id, &obstacle);
                    continue;
                }
            };
            let may_grow = is_open || waited < TO_OPEN;
            self.deferred.files().entry(row.id).and_modify(|file| {
                (file.bytes, file.occupied_bytes) = (expected(file.bytes, bytes, may_grow), bytes);
            });
            found.push(WaitingFile {
                id: row.id,
                tenant: row.tenant,
                device: self.destination.disk,
                bytes,
                waited,
                is_overdue: waited > wait_max,
                is_asked_for: row.is_asked_for,
                is_under_way: under_way == Some(row.id),
                pool_permille: *pool_permille,
            });
        }
        found
    }

    /// The files that may be tried now, the most pressing of them where there are very many. Which of those is next is the policy's to say.
    fn due(&self, trees: &Trees) -> Vec<Deferral> {
        let under_way = self.job.as_ref().map(|job| job.row.id);
        let wait_max = self.deferred.settings.now().migration.wait_max;
        let (at, now) = (Instant::now(), boottime());
        let precedence = |file: &Waiting| -> Precedence {
            let row = &file.row;
            let tree = trees.get(&(row.tenant.clone(), row.pool.clone()));
            let permille = tree.map_or(0, |(_, permille)| *permille);
            let waited = file.waited.until(now);
            let urgency = MigrationUrgency::of(row.is_asked_for, permille, waited > wait_max);
            (urgency, under_way != Some(row.id), Reverse(waited), row.id)
        };
        let is_due =
            |file: &&Waiting| self.is_for(file) && file.row.step != DeferralStep::Left && file.not_before <= at;
        let is_served = |row: &Deferral| trees.contains_key(&(row.tenant.clone(), row.pool.clone()));
        let mut files = self.deferred.files();
        for file in files.values_mut().filter(|file| is_due(&&**file) && !is_served(&file.row)) {
            file.why = not_served(&file.row);
        }
        // Where very many of those wait they would leave no room for any that can move.
        let due = files.values().filter(|file| is_due(file) && is_served(&file.row));
        let due = most_pressing(due.map(precedence).collect(), CANDIDATES_MAX);
        due.into_iter().filter_map(|(.., id)| files.get(&id).map(|file| file.row.clone())).collect()
    }

    /// Those of which nothing is left of an earlier attempt, as they are now, and the one that is under way; and for how long each has waited.
    /// What could not be seen to yet is not to be begun anew: the copy at its place would be taken for somebody else's file.
    fn that_wait(&self, due: Vec<Deferral>) -> Vec<(Deferral, Nanos)> {
        let under_way = self.job.as_ref().map(|job| job.row.id);
        let files = self.deferred.files();
        let now = boottime();
        let found = due.iter().filter_map(|row| files.get(&row.id));
        let waits = |file: &&Waiting| file.row.step == DeferralStep::Waiting || under_way == Some(file.row.id);
        found.filter(waits).map(|file| (file.row.clone(), file.waited.until(now))).collect()
    }

    /// Every file knows why it has not moved.
    pub(super) fn tell(&self, considered: &[WaitingFile], order: &MigrationOrder) {
        let mut files = self.deferred.files();
        for one in considered {
            let Some(file) = files.get_mut(&one.id) else { continue };
            file.why = if order.file == one.id {
                order.to_string()
            } else {
                format!("file {} goes first on its disk ({})", order.file, order.reason)
            };
        }
    }

    /// A link that was made a moment ago is on its disk from now on, whoever is there. They are looked at in turn: a directory that is gone
    /// keeps none of the others from it.
    pub(super) fn sync_links(&mut self) {
        let new: Vec<_> = {
            let files = self.deferred.files();
            let new = in_turn(&files, self.synced_up_to).filter(|file| self.is_for(file) && !file.is_link_synced);
            new.take(LINKS_SYNCED).map(|file| file.row.clone()).collect()
        };
        let mut synced = BTreeMap::new();
        for row in new {
            let is_synced = *synced.entry(row.directory_identity).or_insert_with(|| {
                Site::open(&row.directory, row.directory_identity).is_ok_and(|site| site.sync().is_ok())
            });
            if is_synced {
                self.deferred.files().entry(row.id).and_modify(|file| file.is_link_synced = true);
            }
            self.synced_up_to = row.id;
        }
    }
}

impl Deferred {
    /// The trees of everybody who is served. Whoever changes which tenants there are does not wait for what is done with them.
    fn trees(&self) -> Trees {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let of = |tenant: &Tenant, pool: Pool| {
            let tree = &tenant.mount(pool).tree;
            let usage = tree.usage();
            let permille = u128::from(usage.bytes) * 1000 / u128::from(usage.bytes_max.max(1));
            ((tenant.name.clone(), pool.as_str().to_owned()), (Arc::clone(tree), permille as u32))
        };
        tenants.iter().flat_map(|tenant| [of(tenant, Pool::Temporary), of(tenant, Pool::Stable)]).collect()
    }
}

fn most_pressing(mut files: Vec<Precedence>, most: usize) -> Vec<Precedence> {
    if files.len() > most {
        files.select_nth_unstable(most);
        files.truncate(most);
    }
    files
}

/// All of them, those after a number first.
pub(super) fn in_turn<T>(files: &BTreeMap<u64, T>, after: u64) -> impl Iterator<Item = &T> {
    let later = files.range((Bound::Excluded(after), Bound::Unbounded));
    later.chain(files.range(..=after)).map(|(_, file)| file)
}

/// What a file will occupy that was announced to be so large, or was once.
fn expected(announced: u64, bytes: u64, may_grow: bool) -> u64 {
    if may_grow { announced.max(bytes) } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::{Precedence, expected, in_turn, most_pressing};
    use minerva_decide::MigrationUrgency as Urgency;
    use minerva_model::Nanos;
    use std::cmp::Reverse;
    use std::collections::BTreeMap;

    #[test]
    fn however_many_older_files_wait_the_pressing_ones_are_considered() {
        let waited = |seconds| Reverse(Nanos::from_secs(seconds));
        let old = (0..1000).map(|id| (Urgency::Ordinary, true, waited(9), id));
        let pressing = [
            (Urgency::AskedFor, true, waited(8), 1000),
            (Urgency::PoolIsFull, true, waited(7), 1001),
            (Urgency::Overdue, true, waited(10), 1002),
        ];
        let under_way = (Urgency::Ordinary, false, waited(1), 1003);
        let files: Vec<Precedence> = old.chain(pressing).chain([under_way]).collect();
        let mut considered = most_pressing(files.clone(), 5);
        considered.sort_unstable();
        assert_eq!(considered[..3], pressing);
        assert_eq!(considered[3..], [under_way, (Urgency::Ordinary, true, waited(9), 0)]);
        assert_eq!(most_pressing(files, 2000).len(), 1004);
    }

    #[test]
    fn what_a_file_was_announced_to_be_counts_only_as_long_as_it_may_grow() {
        assert_eq!([expected(100, 5, true), expected(5, 100, true), expected(100, 5, false)], [100, 100, 5]);
    }

    #[test]
    fn links_are_looked_at_in_turn_so_that_those_that_fail_keep_up_no_others() {
        let files: BTreeMap<u64, u64> = (1..=5).map(|id| (id, id)).collect();
        let mut after = 0;
        let mut looked_at = Vec::new();
        for _ in 0..3 {
            let next: Vec<u64> = in_turn(&files, after).copied().take(2).collect();
            after = next[1];
            looked_at.extend(next);
        }
        assert_eq!(looked_at, [1, 2, 3, 4, 5, 1]);
    }
}
