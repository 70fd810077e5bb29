//! For how long a file has waited.

use minerva_clock::boottime;
use minerva_model::Nanos;
use minerva_store::Deferral;

/// The wall clock says how long that was when the service learnt of the file. From then on the clock since the boot counts, so that no step
/// of the wall clock makes a file overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waited {
    before: Nanos,
    learnt_at: Nanos,
}

impl Waited {
    /// Of a file that the service learns of now. One that is of the future by the wall clock has waited for no time.
    pub(super) fn begin(row: &Deferral, now_unix_ms: i64) -> Self {
        let before_ms = now_unix_ms.saturating_sub(row.added_unix_ms);
        Self { before: Nanos::from_millis(u64::try_from(before_ms).unwrap_or(0)), learnt_at: boottime() }
    }

    /// Up to an instant of the clock since the boot.
    pub(super) fn until(self, now: Nanos) -> Nanos {
        self.before + now.since(self.learnt_at)
    }
}

#[cfg(test)]
mod tests {
    use crate::deferred::disks::Destination;
    use crate::deferred::mover::Moves;
    use crate::deferred::{Deferred, Waiting, unix_ms};
    use crate::mount::Mount;
    use crate::settings::Settings;
    use crate::tenant::Tenant;
    use crate::user::User;
    use minerva_cachefs::{Account, Caller, Descriptors, Tree, TreeOptions};
    use minerva_config::FsConfig;
    use minerva_store::{Deferral, DeferralStep};
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::{Arc, RwLock};

    const DAY_MS: i64 = 86_400_000;

    /// A tenant whose trees need no mount.
    fn tenant(folder: &Path) -> Tenant {
        let open = |kind: &str| {
            let at = folder.join(kind);
            fs::create_dir(&at).unwrap();
            let descriptors = Arc::new(Descriptors::new(1000, 1));
            let options = TreeOptions { descriptors, ..TreeOptions::default() };
            Mount::served_elsewhere(Tree::open(&at, Arc::new(Account::new(1 << 30, 100)), options, None).unwrap(), &at)
        };
        Tenant::of_guest("web", open("temporary"), open("stable"))
    }

    /// Files that wait, each since when the wall clock says.
    struct Fixture {
        deferred: Deferred,
        destination: Destination,
        _folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new(added_unix_ms: &[i64]) -> Self {
            let folder = tempfile::Builder::new().prefix("minerva-test-").tempdir().unwrap();
            let [pool, data] = ["pool", "data"].map(|name| folder.path().join(name));
            [&pool, &data].into_iter().for_each(|directory| fs::create_dir(directory).unwrap());
            let mut config = FsConfig::default();
            config.server.is_guest = true;
            config.stable.path = pool;
            let tenant = tenant(folder.path());
            let tree = Arc::clone(&tenant.stable.tree);
            let tenants = Arc::new(RwLock::new(vec![tenant]));
            let deferred = Deferred::open(Arc::new(Settings::new(config)), tenants).unwrap();
            let shown = fs::metadata(&data).unwrap();
            let destination = Destination::of(&data, shown.dev());
            for (number, added_unix_ms) in added_unix_ms.iter().enumerate() {
                let name = number.to_string();
                let caller = Caller { uid: shown.uid(), gid: shown.gid(), umask: 0 };
                tree.create_deferred(caller, name.as_ref(), 0o600).unwrap();
                let mut row = Deferral {
                    id: 0,
                    tenant: "web".to_owned(),
                    pool: "stable".to_owned(),
                    source: name.clone().into(),
                    directory: data.clone(),
                    directory_identity: (shown.dev(), shown.ino()),
                    copy_name: format!(".minerva-{name}.part").into(),
                    name: name.into(),
                    link_inode: 0,
                    copy_inode: 0,
                    user: (0, 0, Vec::new()),
                    added_unix_ms: *added_unix_ms,
                    is_asked_for: false,
                    step: DeferralStep::Waiting,
                    cgroup: String::new(),
                    counted_bytes: 0,
                };
                row.id = deferred.log(|log| log.add(&row)).unwrap();
                deferred.add(Waiting::new(row));
            }
            Self { deferred, destination, _folder: folder }
        }

        /// By name: whether it is a candidate that is overdue.
        fn are_overdue(&self) -> Vec<bool> {
            let candidates = Moves::new(&self.deferred, self.destination).candidates();
            let by_id: BTreeMap<u64, bool> = candidates.iter().map(|file| (file.id, file.is_overdue)).collect();
            by_id.into_values().collect()
        }
    }

    #[test]
    fn files_of_a_clock_that_was_wrong_are_overdue_or_new_and_all_may_move() {
        let now = unix_ms();
        let added = [i64::MIN, 0, now - 2 * DAY_MS, now, now + 2 * DAY_MS, i64::MAX];
        let fixture = Fixture::new(&added);
        assert_eq!(fixture.are_overdue(), [true, true, true, false, false, false]);
        let root = User { uid: 0, gid: 0, groups: Vec::new() };
        let shown = fixture.deferred.list(&root, None);
        let days: Vec<u64> = shown.iter().map(|file| file.waited_seconds / 86_400).collect();
        assert_eq!((days[2], &days[3..]), (2, &[0, 0, 0][..]));
    }

    #[test]
    fn a_step_of_the_clock_makes_no_file_overdue_and_none_young_again() {
        let now = unix_ms();
        let fixture = Fixture::new(&[now, now - 2 * DAY_MS]);
        let before = fixture.are_overdue();
        assert_eq!(before, [false, true]);
        for step in [-400 * DAY_MS, 800 * DAY_MS] {
            // As far from the wall clock as if that had been stepped.
            fixture.deferred.files().values_mut().for_each(|file| file.row.added_unix_ms += step);
            assert_eq!(fixture.are_overdue(), before, "{step}");
        }
    }
}
