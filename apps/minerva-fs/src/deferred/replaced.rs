//! What waits to go to a place where another file is about to be put.

use super::job::{as_logged, link_text};
use super::site::{Found, Site};
use super::under_way::UnderWayGuard;
use super::{Deferred, Waiting, mount_of};
use crate::tenant::Tenant;
use minerva_store::{Deferral, DeferralStep};

/// A file that was taken out. Its tenant, which need not be that of the file that is put, does not leave meanwhile.
pub(super) struct Replaced<'a> {
    pub(super) file: Waiting,
    _under_way: UnderWayGuard<'a>,
}

impl Deferred {
    /// Takes out the file that waits to go to this very place, because another is about to be put there. From now on it is one of which the
    /// link may not be there: a crash finds it replaced and removes it, or finds its link and lets it wait on.
    pub(super) fn take_replaced(
        &self,
        row: &Deferral,
        site: &Site,
        tenants: &[Tenant],
    ) -> anyhow::Result<Option<Replaced<'_>>> {
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
        let under_way = self.under_way.enter(&found.row.tenant);
        files.remove(&found.row.id);
        Ok(Some(Replaced { file: found, _under_way: under_way }))
    }

    /// It was not replaced after all.
    pub(super) fn put_back(&self, replaced: Replaced<'_>) {
        // Where this fails the next start finds its link.
        let _ = self.log(|log| log.keep(&as_logged(&replaced.file.row)));
        // Before its tenant may leave.
        self.add(replaced.file);
    }
}

#[cfg(test)]
mod tests {
    use crate::deferred::job::link_text;
    use crate::deferred::site::Site;
    use crate::deferred::{Deferred, Waiting};
    use crate::mount::Mount;
    use crate::settings::Settings;
    use crate::tenant::Tenant;
    use minerva_api::cache::Pool;
    use minerva_cachefs::{Account, Tree, TreeOptions};
    use minerva_config::FsConfig;
    use minerva_store::{Deferral, DeferralStep};
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;
    use std::sync::{Arc, RwLock};
    use std::thread;

    /// One whose trees need no mount.
    fn tenant(name: &str, folder: &Path) -> Tenant {
        let open = |kind: &str| {
            let at = folder.join(name).join(kind);
            fs::create_dir_all(&at).unwrap();
            let options = TreeOptions { is_served_elsewhere: true, ..TreeOptions::default() };
            let tree = Tree::open(&at, Arc::new(Account::new(u64::MAX, u64::MAX)), options, None).unwrap();
            Mount::served_elsewhere(tree, &at)
        };
        Tenant::of_guest(name, open("temporary"), open("stable"))
    }

    fn row(tenant: &str, directory: &Path) -> Deferral {
        let shown = fs::metadata(directory).unwrap();
        Deferral {
            id: 0,
            tenant: tenant.to_owned(),
            pool: Pool::Stable.as_str().to_owned(),
            source: tenant.into(),
            directory: directory.to_owned(),
            directory_identity: (shown.dev(), shown.ino()),
            name: "name".into(),
            link_inode: 0,
            copy_inode: 0,
            copy_name: format!(".minerva-{tenant}.part").into(),
            user: (0, 0, Vec::new()),
            added_unix_ms: 0,
            is_asked_for: false,
            step: DeferralStep::Waiting,
            cgroup: String::new(),
            counted_bytes: 0,
        }
    }

    #[test]
    fn a_tenant_whose_file_another_replaces_has_it_until_that_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let [pool, data] = ["pool", "data"].map(|name| folder.path().join(name));
        [&pool, &data].into_iter().for_each(|directory| fs::create_dir(directory).unwrap());
        let mut config = FsConfig::default();
        config.server.is_guest = true;
        config.stable.path = pool;
        let tenants = Arc::new(RwLock::new(["a", "b"].map(|name| tenant(name, folder.path())).into()));
        let deferred = Deferred::open(Arc::new(Settings::new(config)), Arc::clone(&tenants)).unwrap();
        let tenants = tenants.read().unwrap();
        let [mut old, new] = ["a", "b"].map(|tenant| row(tenant, &data));
        old.id = deferred.log(|log| log.add(&old)).unwrap();
        let text = link_text(&tenants[0].mount(Pool::Stable).at, &old.source);
        symlink(text, data.join("name")).unwrap();
        deferred.add(Waiting::new(old));
        let site = Site::open(&data, new.directory_identity).unwrap();
        let take = || deferred.take_replaced(&new, &site, &tenants).unwrap();
        let one = BTreeMap::from([("a".to_owned(), 1)]);
        let taken = take().expect("its link is there");
        assert!(deferred.files().is_empty());
        assert_eq!(deferred.files_by_tenant(), one);
        deferred.put_back(taken);
        assert_eq!(deferred.files_by_tenant(), one);
        // At no moment is it missed.
        thread::scope(|scope| {
            let putting =
                scope.spawn(|| (0..20).for_each(|_| take().into_iter().for_each(|taken| deferred.put_back(taken))));
            while !putting.is_finished() {
                assert!(deferred.files_by_tenant().contains_key("a"));
            }
        });
        drop(take());
        assert_eq!(deferred.files_by_tenant(), BTreeMap::new());
    }
}
