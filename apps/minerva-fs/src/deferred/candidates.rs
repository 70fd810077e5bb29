//! The files that the policy is asked about, and what each is told of why it has not moved.

use super::job::Obstacle;
use super::mount_of;
use super::mover::Moves;
use super::site::Site;
use minerva_cachefs::MoveRefusal;
use minerva_decide::{MigrationOrder, WaitingFile};
use minerva_model::Nanos;
use minerva_store::DeferralStep;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Instant;

/// Files that the policy is asked about at once, those that waited longest.
const CANDIDATES_MAX: usize = 1000;
/// Links that are made durable in a slice.
const LINKS_SYNCED: usize = 16;

impl Moves<'_> {
    /// Files of this destination that could be moved, as the policy has them.
    pub(super) fn candidates(&mut self) -> Vec<WaitingFile> {
        let now = Instant::now();
        let due: Vec<_> = {
            let files = self.deferred.files();
            let due = files.values().filter(|file| self.is_for(file) && file.not_before <= now).take(CANDIDATES_MAX);
            due.map(|file| file.row.clone()).collect()
        };
        let under_way = self.job.as_ref().map(|job| job.row.id);
        for row in due.iter().filter(|row| row.step != DeferralStep::Waiting && under_way != Some(row.id)) {
            self.deferred.settle(row.id);
        }
        let tenants = self.deferred.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let (unix_ms, mut found) = (super::unix_ms(), Vec::new());
        for row in due {
            let Some(mount) = mount_of(&tenants, &row) else { continue };
            let shown = match mount.tree.deferred_attributes(&row.source) {
                Ok(shown) => shown,
                Err(error) => {
                    let is_gone = error == Errno::NOENT;
                    let obstacle = if is_gone { Obstacle::Gone } else { MoveRefusal::Failed(error).into() };
                    self.deferred.failed(row.id, &obstacle);
                    continue;
                }
            };
            let usage = mount.tree.usage();
            found.push(WaitingFile {
                id: row.id,
                tenant: row.tenant,
                device: self.destination.disk,
                bytes: shown.blocks * 512,
                waited: Nanos::from_millis(u64::try_from(unix_ms - row.added_unix_ms).unwrap_or(0)),
                is_asked_for: row.is_asked_for,
                is_under_way: under_way == Some(row.id),
                pool_permille: (u128::from(usage.bytes) * 1000 / u128::from(usage.bytes_max.max(1))) as u32,
            });
        }
        found
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

    /// A link that was made a moment ago is on its disk from now on, whoever is there.
    pub(super) fn sync_links(&self) {
        let new: Vec<_> = {
            let files = self.deferred.files();
            let new = files.values().filter(|file| self.is_for(file) && !file.is_link_synced).take(LINKS_SYNCED);
            new.map(|file| file.row.clone()).collect()
        };
        let mut synced = BTreeSet::new();
        for row in new {
            if !synced.insert(row.directory_identity)
                || Site::open(&row.directory, row.directory_identity).is_ok_and(|site| site.sync().is_ok())
            {
                self.deferred.files().entry(row.id).and_modify(|file| file.is_link_synced = true);
            }
        }
    }
}
