//! What waits to go to a place where another file is about to be put.

use super::job::{as_logged, link_text};
use super::site::{Found, Site};
use super::under_way::UnderWayGuard;
use super::{Deferred, Waiting, mount_of};
use minerva_store::{Deferral, DeferralStep};
use std::path::PathBuf;
use std::sync::PoisonError;

/// A file that was taken out. Its tenant, which need not be that of the file that is put, does not leave meanwhile.
pub(super) struct Replaced<'a> {
    pub(super) file: Waiting,
    _under_way: UnderWayGuard<'a>,
}

impl Deferred {
    /// Takes out the file that waits to go to this very place, because another is about to be put there. From now on it is one of which the
    /// link may not be there: a crash finds it replaced and removes it, or finds its link and lets it wait on. While the place is looked at,
    /// which may take for ever, nobody waits but who asks.
    pub(super) fn take_replaced(&self, row: &Deferral, site: &Site) -> anyhow::Result<Option<Replaced<'_>>> {
        for (waiting, link) in self.waiting_at(row) {
            // By its link: one that was renamed is another file's, whatever its row says.
            if !matches!(site.find_named(&row.name, &waiting, &link), Ok(Found::Link)) {
                continue;
            }
            let mut files = self.files();
            // It may have moved meanwhile, or another took it out.
            let Some(found) = files.get(&waiting.id).filter(|file| is_for_same(&file.row, row)).cloned() else {
                continue;
            };
            self.log(|log| log.keep(&Deferral { step: DeferralStep::Placing, ..found.row.clone() }))?;
            let under_way = self.under_way.enter(&found.row.tenant);
            files.remove(&found.row.id);
            return Ok(Some(Replaced { file: found, _under_way: under_way }));
        }
        Ok(None)
    }

    /// What waits to go to the place of a file, by its rows, each with the link that leads to it.
    fn waiting_at(&self, row: &Deferral) -> Vec<(Deferral, PathBuf)> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let files = self.files();
        let waiting = files.values().filter(|file| is_for_same(&file.row, row)).filter_map(|file| {
            let mount = mount_of(&tenants, &file.row)?;
            Some((file.row.clone(), link_text(&mount.at, &file.row.source)))
        });
        waiting.collect()
    }

    /// It was not replaced after all.
    pub(super) fn put_back(&self, replaced: Replaced<'_>) {
        // Where this fails the next start finds its link.
        let _ = self.log(|log| log.keep(&as_logged(&replaced.file.row)));
        // Before its tenant may leave.
        self.add(replaced.file);
    }
}

fn is_for_same(one: &Deferral, other: &Deferral) -> bool {
    one.directory_identity == other.directory_identity && one.name == other.name
}

#[cfg(test)]
mod tests {
    use super::Replaced;
    use crate::deferred::job::link_text;
    use crate::deferred::link_attributes::link_attributes;
    use crate::deferred::site::Site;
    use crate::deferred::{Deferred, Waiting};
    use crate::mount::Mount;
    use crate::settings::Settings;
    use crate::tenant::Tenant;
    use fuser::{Config, Filesystem, Generation, INodeNo, ReplyAttr, ReplyData, ReplyEntry, Request, Session};
    use minerva_api::cache::Pool;
    use minerva_cachefs::{Account, Tree, TreeOptions};
    use minerva_config::FsConfig;
    use minerva_store::{Deferral, DeferralStep};
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Arc, RwLock};
    use std::thread;
    use std::time::Duration;

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

    /// A file of the tenant `a` that waits to go to a place, and one of `b` that is about to be put there.
    struct Fixture {
        deferred: Deferred,
        new: Deferral,
        site: Site,
        folder: tempfile::TempDir,
    }

    impl Fixture {
        /// `fill` puts a link with this text in this directory.
        fn new<T>(fill: impl FnOnce(&Path, PathBuf) -> T) -> (Self, T) {
            let folder = tempfile::Builder::new().prefix("minerva-test-").tempdir().unwrap();
            let [pool, data] = ["pool", "data"].map(|name| folder.path().join(name));
            [&pool, &data].into_iter().for_each(|directory| fs::create_dir(directory).unwrap());
            let mut config = FsConfig::default();
            config.server.is_guest = true;
            config.stable.path = pool;
            let tenants: Vec<_> = ["a", "b"].map(|name| tenant(name, folder.path())).into();
            let filled = fill(&data, link_text(&tenants[0].mount(Pool::Stable).at, OsStr::new("a")));
            let tenants = Arc::new(RwLock::new(tenants));
            let deferred = Deferred::open(Arc::new(Settings::new(config)), tenants).unwrap();
            let [mut old, new] = ["a", "b"].map(|tenant| row(tenant, &data));
            old.id = deferred.log(|log| log.add(&old)).unwrap();
            deferred.add(Waiting::new(old));
            let site = Site::open(&data, new.directory_identity).unwrap();
            (Self { deferred, new, site, folder }, filled)
        }

        fn with_link() -> Self {
            Self::new(|data, text| symlink(text, data.join("name")).unwrap()).0
        }

        fn take(&self) -> Option<Replaced<'_>> {
            self.deferred.take_replaced(&self.new, &self.site).unwrap()
        }
    }

    #[test]
    fn a_tenant_whose_file_another_replaces_has_it_until_that_is_done() {
        let fixture = Fixture::with_link();
        let deferred = &fixture.deferred;
        let one = BTreeMap::from([("a".to_owned(), 1)]);
        let taken = fixture.take().expect("its link is there");
        assert!(deferred.files().is_empty());
        assert_eq!(deferred.files_by_tenant(), one);
        deferred.put_back(taken);
        assert_eq!(deferred.files_by_tenant(), one);
        // At no moment is it missed.
        thread::scope(|scope| {
            let putting = scope
                .spawn(|| (0..20).for_each(|_| fixture.take().into_iter().for_each(|taken| deferred.put_back(taken))));
            while !putting.is_finished() {
                assert!(deferred.files_by_tenant().contains_key("a"));
            }
        });
        drop(fixture.take());
        assert_eq!(deferred.files_by_tenant(), BTreeMap::new());
    }

    #[test]
    fn a_file_that_is_not_replaced_after_all_is_in_the_log_whatever_its_mover_met_meanwhile() {
        for is_back in [false, true] {
            let fixture = Fixture::with_link();
            let deferred = &fixture.deferred;
            let logged = || deferred.log(|log| log.all()).unwrap();
            let before = logged();
            let taken = fixture.take().unwrap();
            // A copy of it is under way.
            let met = deferred.keep(&before[0]).unwrap_err();
            if is_back {
                deferred.put_back(taken);
                deferred.failed(before[0].id, &met);
            } else {
                deferred.failed(before[0].id, &met);
                deferred.put_back(taken);
            }
            assert_eq!(logged(), before, "{is_back}");
            assert_eq!(deferred.files().len(), 1);
        }
    }

    /// A directory with one link in it, and who looks for that waits.
    struct Hanging {
        text: PathBuf,
        asked: Sender<()>,
        answers: Arc<RwLock<()>>,
    }

    impl Filesystem for Hanging {
        fn lookup(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEntry) {
            let _ = self.asked.send(());
            drop(self.answers.read());
            reply.entry(&Duration::ZERO, &link_attributes(2), Generation(0));
        }

        fn getattr(&self, _request: &Request, node: INodeNo, _handle: Option<fuser::FileHandle>, reply: ReplyAttr) {
            reply.attr(&Duration::ZERO, &link_attributes(node.0));
        }

        fn readlink(&self, _request: &Request, _node: INodeNo, reply: ReplyData) {
            reply.data(self.text.as_os_str().as_bytes());
        }
    }

    #[test]
    fn a_place_that_does_not_answer_who_replaces_a_file_holds_up_nobody_else() {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            println!("skipped: needs root and /dev/fuse for a file system that hangs");
            return;
        }
        let (asked, was_asked) = channel();
        let answers = Arc::new(RwLock::new(()));
        let (fixture, session) = Fixture::new(|data, text| {
            let hanging = Hanging { text, asked, answers: Arc::clone(&answers) };
            Session::new(hanging, data, &Config::default()).unwrap().spawn().unwrap()
        });
        let deferred = &fixture.deferred;
        let held = answers.write().unwrap();
        thread::scope(|scope| {
            let taking = scope.spawn(|| fixture.take().map(|taken| taken.file.row.tenant));
            was_asked.recv().unwrap();
            let is_free = [deferred.files.try_lock().is_ok(), deferred.tenants.try_write().is_ok()];
            drop(held);
            assert_eq!(taking.join().unwrap().as_deref(), Some("a"));
            assert_eq!(is_free, [true; 2], "movers and lists, and reloads");
        });
        let Fixture { site, folder, .. } = fixture;
        drop((site, session, folder));
    }
}
