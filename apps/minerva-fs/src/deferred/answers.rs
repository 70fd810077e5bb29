//! What is told of files that wait, and what their users do with them.

use super::job::link_text;
use super::site::Site;
use super::waited::Waited;
use super::{Deferred, Earned, MoveCounts, Waiting};
use crate::user::User;
use anyhow::Context;
use minerva_api::cache::{DeferredFile, MigrationStatus};
use minerva_clock::boottime;
use minerva_decide::ToldBy;
use minerva_store::{Deferral, DeferralStep};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Instant;

impl Deferred {
    /// What is asked for is moved now; how many files that are. One transaction keeps all of it: the asker waits for the answer, and a
    /// mover may have kept a later step of any of these rows.
    pub(crate) fn flush(&self, user: &User, directory: Option<&Path>) -> anyhow::Result<u64> {
        let mut asked = Vec::new();
        for file in self.files().values_mut() {
            if is_visible(user, &file.row)
                && is_below(&file.row.target(), directory)
                && file.row.step != DeferralStep::Left
            {
                file.row.is_asked_for = true;
                (file.tries, file.not_before) = (0, Instant::now());
                asked.push(file.row.id);
            }
        }
        self.log(|log| log.ask_for(&asked))?;
        Ok(asked.len() as u64)
    }

    /// Removes what no link leads to any more.
    pub(crate) fn drop_left(&self, user: &User, id: u64) -> anyhow::Result<()> {
        let found = self.files().get(&id).map(|file| file.row.clone()).filter(|row| is_visible(user, row));
        let row = found.with_context(|| format!("there is no deferred file {id} of yours"))?;
        let is_found_left = row.step == DeferralStep::Left;
        // Under another name its directory has the link as before, and what was left may have its link again.
        let has_link = || if is_found_left { self.has_link(&row) } else { !self.has_lost_link(&row) };
        if self.find_directory_again(id) || has_link() {
            let target = self.files().get(&id).map_or_else(|| row.target(), |file| file.row.target());
            anyhow::bail!("{} still leads to it: remove that link, or flush the file", target.display());
        }
        self.discard(&row).context("it was not dropped")?;
        if !is_found_left {
            // A copy may be under way, of which nobody knows now that the row is gone.
            let _ = Site::open(&row.directory, row.directory_identity).map(|site| site.remove(&row.copy_name));
        }
        Ok(())
    }

    /// The files that wait, as their user sees them.
    pub(crate) fn list(&self, user: &User, directory: Option<&Path>) -> Vec<DeferredFile> {
        let is_seen = |file: &&Waiting| is_visible(user, &file.row) && is_below(&file.row.target(), directory);
        let seen: Vec<_> = self.files().values().filter(is_seen).map(told).collect();
        // Movers and whoever changes tenants do not wait for what follows.
        seen.into_iter().map(|told| self.show(told)).collect()
    }

    /// The file that waits at this path, or is this one in the pool.
    pub(crate) fn find(&self, user: &User, path: &Path) -> Option<DeferredFile> {
        let name = path.file_name()?;
        let is_named = |row: &Deferral| is_visible(user, row) && (row.name == name || row.source == name);
        let named: Vec<_> = self.files().values().filter(|file| is_named(&file.row)).map(told).collect();
        let mut shown = named.into_iter().map(|told| self.show(told));
        shown.find(|file| Path::new(&file.path) == path || Path::new(&file.data) == path)
    }

    fn show(&self, (row, waited, why): (Deferral, Waited, String)) -> DeferredFile {
        let tree = self.tree_of(&row).ok();
        let shown = tree.as_ref().and_then(|(tree, _)| tree.deferred_attributes(&row.source).ok());
        // Where its tenant is not served now, it was there, and will be again.
        let at = tree.map_or_else(|| self.mounts.join(&row.tenant).join(&row.pool), |(_, at)| at);
        DeferredFile {
            id: row.id,
            tenant: row.tenant.clone(),
            path: row.target().display().to_string(),
            data: link_text(&at, &row.source).display().to_string(),
            bytes: shown.map_or(0, |shown| shown.blocks * 512),
            waited_seconds: waited.until(boottime()).0 / 1_000_000_000,
            pool: row.pool.clone(),
            step: row.step.as_str().to_owned(),
            why,
            counted_bytes: self.reports.counted_bytes(row.id),
        }
    }

    /// What was moved, by tenant and pool.
    pub(crate) fn moves(&self) -> BTreeMap<(String, String), MoveCounts> {
        self.counts().clone()
    }

    /// What moving in gaps earned a tenant.
    pub(crate) fn earned(&self, tenant: &str) -> Earned {
        self.reports.earned(tenant)
    }

    /// How many files each tenant has here, those included to which no link leads, and those that are being put or replaced.
    pub(crate) fn files_by_tenant(&self) -> BTreeMap<String, u64> {
        // Both at one time: one that is being put comes to be among the files, and one that is replaced goes from there.
        let files = self.files();
        let mut sums = self.under_way.by_tenant();
        for file in files.values() {
            *sums.entry(file.row.tenant.clone()).or_default() += 1;
        }
        sums
    }

    /// Whether only the host can say that a disk is quiet.
    pub(crate) fn is_of_guest(&self) -> bool {
        self.daemon.is_of_guest()
    }

    /// Who says whether others use a disk.
    fn told_by(&self) -> &'static str {
        match (self.daemon.is_of_guest(), self.daemon.told_by()) {
            (true, _) => "host",
            (false, ToldBy::Daemon) => "daemon",
            (false, ToldBy::Counters) => "counters",
        }
    }

    /// Sums of what waits.
    pub(crate) fn status(&self, user: &User) -> MigrationStatus {
        let moved = self.moves();
        let mut status = MigrationStatus {
            moved_files: moved.values().map(|counts| counts.moved_files).sum(),
            moved_bytes: moved.values().map(|counts| counts.moved_bytes).sum(),
            failed: moved.values().map(|counts| counts.failed).sum(),
            told_by: self.told_by().to_owned(),
            ..MigrationStatus::default()
        };
        for file in self.list(user, None) {
            if file.step == DeferralStep::Left.as_str() {
                status.left_files += 1;
                status.left_bytes += file.bytes;
            } else {
                status.waiting_files += 1;
                status.waiting_bytes += file.bytes;
            }
        }
        status
    }
}

impl Deferred {
    /// Tells the operator's log what stays in the pool because no link leads to it any more. It is never removed unasked, as it may be all that is
    /// left of what somebody wrote, and until somebody drops it its tenant has less room.
    pub(super) fn tell_left(&self) {
        let mut sums: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for file in self.list(&User::root(), None) {
            if file.step == DeferralStep::Left.as_str() {
                let (files, bytes, oldest) = sums.entry(file.tenant).or_default();
                *files += 1;
                *bytes += file.bytes;
                *oldest = file.waited_seconds.max(*oldest);
            }
        }
        for (tenant, (files, bytes, oldest)) in sums {
            eprintln!(
                "minerva-fs: {files} deferred files of {tenant}, {} MiB, stay in the pool because their links, or the directories of those, are gone, \
                 the oldest from {} h ago: `minerva-ctl cache deferred` names them and where they lie, `minerva-ctl cache drop` removes one",
                bytes.div_ceil(1 << 20),
                oldest / 3600
            );
        }
    }

    /// How many files wait in trees that are not served, by tenant.
    pub(crate) fn unserved(&self) -> BTreeMap<String, u64> {
        let mut sums = self.files_by_tenant();
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        sums.retain(|name, _| tenants.iter().all(|tenant| tenant.name != *name));
        sums
    }

    /// Tells it what waits in such trees. Nobody moves that, and its links lead to nothing.
    pub(crate) fn tell_unserved(&self) {
        for (tenant, files) in self.unserved() {
            eprintln!(
                "minerva-fs: {files} deferred files wait in the trees of `{tenant}`, which the file does not name, so nobody reads or moves \
                 them: name it again, then `minerva-fs reload`; `minerva-ctl cache deferred` names them"
            );
        }
    }
}

/// What is told of a file, when nobody waits for the list of all any more.
fn told(file: &Waiting) -> (Deferral, Waited, String) {
    (file.row.clone(), file.waited, file.why.clone())
}

/// Whether a place is in a directory, or below it.
fn is_below(place: &Path, directory: Option<&Path>) -> bool {
    directory.is_none_or(|directory| place.starts_with(directory))
}

/// Everybody sees what they asked for, root all.
pub(super) fn is_visible(user: &User, row: &Deferral) -> bool {
    user.uid == 0 || user.uid == row.user.0
}
