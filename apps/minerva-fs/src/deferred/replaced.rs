//! What waits to go to a place where another file is about to be put.

use super::job::{as_logged, link_text};
use super::site::{Found, Site};
use super::{Deferred, Waiting, mount_of};
use crate::tenant::Tenant;
use minerva_store::{Deferral, DeferralStep};

impl Deferred {
    /// Takes out the file that waits to go to this very place, because another is about to be put there. From now on it is one of which the
    /// link may not be there: a crash finds it replaced and removes it, or finds its link and lets it wait on.
    pub(super) fn take_replaced(
        &self,
        row: &Deferral,
        site: &Site,
        tenants: &[Tenant],
    ) -> anyhow::Result<Option<Waiting>> {
        let mut files = self.files();
        let is_there = |file: &&Waiting| {
            let mount = mount_of(tenants, &file.row);
            // By its link: one that was renamed is another file's, whatever its row says.
            file.row.directory_identity == row.directory_identity
                && file.row.name == row.name
                && mount.is_some_and(|mount| {
                    let link = link_text(&mount.at, &file.row.source);
                    matches!(site.find_named(&row.name, &file.row, &link), Ok(Found::Link))
                })
        };
        let Some(found) = files.values().find(is_there).cloned() else { return Ok(None) };
        self.log(|log| log.keep(&Deferral { step: DeferralStep::Placing, ..found.row.clone() }))?;
        files.remove(&found.row.id);
        Ok(Some(found))
    }

    /// It was not replaced after all.
    pub(super) fn put_back(&self, file: Waiting) {
        // Where this fails the next start finds its link.
        let _ = self.log(|log| log.keep(&as_logged(&file.row)));
        self.add(file);
    }
}
