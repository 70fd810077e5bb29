//! A file that is asked for: empty in the pool, and a link to it at its place.

use super::asker::Peer;
use super::failpoint::reach;
use super::job::{link_text, remove_if_empty};
use super::membership::{find_tenant, judge_machine, judge_member};
use super::namespace::judge_namespace;
use super::replaced::Replaced;
use super::site::{Found, Site, cannot_exchange, trial_name};
use super::under_way::UnderWayGuard;
use super::{Deferred, Waiting, mount_in, unix_ms};
use crate::mount::Mount;
use crate::tenant::Tenant;
use crate::user::User;
use anyhow::{Context, bail};
use minerva_api::cache::Pool;
use minerva_cachefs::{Caller, Tree};
use minerva_store::{Deferral, DeferralStep};
use rustix::fs::{AtFlags, FileType, fstatvfs, renameat, statat, symlinkat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) path: PathBuf,
    pub(crate) directory: (u64, u64),
    pub(crate) mode: u32,
    pub(crate) pool: Pool,
    pub(crate) tenant: Option<String>,
    pub(crate) bytes: u64,
    /// The cgroup of whoever asks, as [`Deferred::group_of`] has it.
    pub(crate) cgroup: String,
    /// Their process, as far as it can be told.
    pub(crate) peer: Option<Peer>,
}

/// A file that is being put. Its tenant does not leave meanwhile.
struct Placing<'a> {
    row: Deferral,
    tree: Arc<Tree>,
    link: PathBuf,
    /// What waited under that name.
    replaced: Option<Replaced<'a>>,
    under_way: UnderWayGuard<'a>,
}

impl Deferred {
    /// The cgroup of the process at the other end of a connection, as it is kept with a file; empty where that cannot be told.
    pub(crate) fn group_of(&self, stream: &UnixStream) -> String {
        self.reports.group_of(stream)
    }

    /// Makes the file and the link; its number, and what is to be written.
    pub(crate) fn place(&self, user: &User, wish: &Wish) -> anyhow::Result<(u64, PathBuf)> {
        let (Some(parent), Some(name)) = (wish.path.parent(), wish.path.file_name()) else {
            bail!("{} is not a file name", wish.path.display());
        };
        if !wish.path.is_absolute() {
            bail!("{} is not an absolute path", wish.path.display());
        }
        let (site, directory) = Site::find(parent, wish.directory, user)?;
        let there = fstatvfs(&site.directory).map_err(io::Error::from).context("failed to check the destination")?;
        let room = there.f_bavail.saturating_mul(there.f_frsize);
        let mut placing = self.begin_placing(user, wish, room, directory, name)?;
        // The destination may take its time, for which nobody waits but who asks.
        let mut put_there = || {
            placing.replaced = self.take_replaced(&placing.row, &site)?;
            put(&site, &mut placing, user, wish.mode)?;
            reach();
            placing.row.step = DeferralStep::Waiting;
            self.log(|log| log.keep(&placing.row))
        };
        if let Err(error) = put_there() {
            self.take_back(placing, &site);
            return Err(error);
        }
        reach();
        let Placing { row, link, replaced, under_way, .. } = placing;
        // What waited under that name is replaced, as by any new file.
        if let Some(Replaced { file, .. }) = &replaced {
            // First a copy that may be under way, of which nobody knows once the row is gone.
            let _ = site.remove(&file.row.copy_name);
            // Where this fails the next start finds it.
            let _ = self.discard(&file.row);
        }
        let id = row.id;
        self.add(Waiting { bytes: wish.bytes, ..Waiting::new(row) });
        drop((replaced, under_way));
        Ok((id, link))
    }

    /// Judges what is asked for and enters it in the log. Whoever changes which tenants there are waits for this.
    fn begin_placing(
        &self,
        user: &User,
        wish: &Wish,
        room: u64,
        directory: PathBuf,
        name: &OsStr,
    ) -> anyhow::Result<Placing<'_>> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let tenant = find_tenant(&tenants, user, wish.tenant.as_deref())?;
        if !tenant.leaving.is_empty() {
            bail!("{} is taken out of the pool and takes nothing new", tenant.name);
        }
        judge_machine(tenant)?;
        let mount = tenant.mount(wish.pool);
        judge_member(tenant, mount, user)?;
        if directory.starts_with(&self.mounts) {
            bail!("{} is in the pool itself: write there", wish.path.display());
        }
        self.judge_view(mount, wish)?;
        self.judge_room(&tenants, mount, room, wish)?;
        let mut row = new_row(tenant, user, wish, directory, name);
        row.id = self.log(|log| log.add(&row))?;
        reach();
        Ok(Placing {
            tree: Arc::clone(&mount.tree),
            link: link_text(&mount.at, &row.source),
            replaced: None,
            under_way: self.under_way.enter(&tenant.name),
            row,
        })
    }

    /// It was not put after all. Where the log fails the next start finds what is left.
    fn take_back(&self, placing: Placing<'_>, site: &Site) {
        let Placing { row, tree, link, replaced, .. } = placing;
        let _ = site.remove(&row.copy_name);
        let _ = site.remove(&trial_name(&row));
        if matches!(site.find_named(&row.name, &row, &link), Ok(Found::Link)) {
            let _ = site.remove(&row.name);
        }
        if let Some(replaced) = replaced {
            self.put_back(replaced);
        }
        // Somebody may have come by the link and written.
        if matches!(remove_if_empty(&tree, &row), Ok(true)) {
            let _ = self.log(|log| log.forget(row.id));
        }
    }

    /// Whether who asks sees the tree that the link leads to.
    fn judge_view(&self, mount: &Mount, wish: &Wish) -> anyhow::Result<()> {
        // In a guest the kernel mounts trees of the host as they are entered, which other namespaces need not have done.
        let is_of_host = mount.tree.is_served_elsewhere();
        judge_namespace(wish.peer.as_ref(), if is_of_host { &self.mounts } else { &mount.at })
    }

    /// What a pool still takes.
    pub(crate) fn left_bytes(&self, mount: &Mount) -> u64 {
        let up_to = self.settings.now().migration.defer_up_to_percent;
        let usage = mount.tree.usage();
        let most = u128::from(usage.bytes_max) * u128::from(up_to) / 100;
        u64::try_from(most).unwrap_or(u64::MAX).saturating_sub(usage.bytes)
    }

    /// Whether the pool takes more, and the place will have room for it.
    fn judge_room(&self, tenants: &[Tenant], mount: &Mount, room: u64, wish: &Wish) -> anyhow::Result<()> {
        let up_to = self.settings.now().migration.defer_up_to_percent;
        let left = self.left_bytes(mount);
        if wish.bytes > left || left == 0 {
            bail!(
                "{} % of the pool {} are used or would be (`defer_up_to`): write to the destination itself until \
                 files have moved",
                up_to,
                wish.pool.as_str()
            );
        }
        if room < wish.bytes.max(1) {
            bail!("{} has no room for it", wish.path.display());
        }
        let waiting = self.waiting_bytes(tenants, wish);
        if room.saturating_sub(waiting) < wish.bytes.max(1) {
            bail!(
                "{} has no room for it beside {} MiB that wait to go to that file system",
                wish.path.display(),
                waiting.div_ceil(1 << 20)
            );
        }
        Ok(())
    }

    /// What waits to go to a file system and has no room there yet, as far as is known; not what waits under this very name, which is replaced.
    fn waiting_bytes(&self, tenants: &[Tenant], wish: &Wish) -> u64 {
        let is_replaced =
            |row: &Deferral| row.directory_identity == wish.directory && Some(&*row.name) == wish.path.file_name();
        let waits = |file: &&Waiting| {
            file.row.directory_identity.0 == wish.directory.0
                && match file.row.step {
                    DeferralStep::Placing | DeferralStep::Waiting => !is_replaced(&file.row),
                    // A copy has its room, and what is left does not go there.
                    DeferralStep::Copying | DeferralStep::Switching | DeferralStep::Left => false,
                }
        };
        let pool_of = |row: &Deferral| (row.tenant.clone(), row.pool.clone());
        let files = self.files();
        let size = |file: &Waiting| (pool_of(&file.row), [file.bytes, file.occupied_bytes]);
        let sizes: Vec<_> = files.values().filter(waits).map(size).collect();
        drop(files);
        sum_of_pools(sizes, |(tenant, pool)| Some(mount_in(tenants, tenant, pool)?.tree.usage().bytes_max))
    }
}

/// The sum of how large files are expected to be and how large they were found, by tenant and pool. Whoever asks says what it likes, so that
/// this counts up to what the pool takes. What was found counts in full: files of memory that went to the disk, or a quota that was
/// lowered since, make it more.
fn sum_of_pools(sizes: Vec<((String, String), [u64; 2])>, bytes_max: impl Fn(&(String, String)) -> Option<u64>) -> u64 {
    let mut sums: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
    for (pool, sizes) in sizes {
        let sum = sums.entry(pool).or_default();
        *sum = [0, 1].map(|index| sum[index].saturating_add(sizes[index]));
    }
    // Who is not served has announced nothing since the service began.
    let capped = |(pool, [expected, found]): ((String, String), [u64; 2])| {
        expected.min(bytes_max(&pool).unwrap_or(u64::MAX)).max(found)
    };
    sums.into_iter().map(capped).fold(0, u64::saturating_add)
}

fn new_row(tenant: &Tenant, user: &User, wish: &Wish, directory: PathBuf, name: &OsStr) -> Deferral {
    let source = uuid::Uuid::new_v4().simple().to_string();
    Deferral {
        id: 0,
        tenant: tenant.name.clone(),
        pool: wish.pool.as_str().to_owned(),
        copy_name: format!(".minerva-{source}.part").into(),
        source: source.into(),
        directory,
        directory_identity: wish.directory,
        name: name.to_owned(),
        link_inode: 0,
        copy_inode: 0,
        user: (user.uid, user.gid, user.groups.clone()),
        added_unix_ms: unix_ms(),
        is_asked_for: false,
        step: DeferralStep::Placing,
        cgroup: wish.cgroup.clone(),
        counted_bytes: 0,
    }
}

/// Makes the file, then the link under a name of ours, then gives it its own.
fn put(site: &Site, placing: &mut Placing<'_>, user: &User, mode: u32) -> anyhow::Result<()> {
    let Placing { row, tree, link: text, .. } = placing;
    let new = row.copy_name.clone();
    if let Ok(stat) = statat(&site.directory, &row.name, AtFlags::SYMLINK_NOFOLLOW)
        && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
    {
        bail!("{} is a directory", row.target().display());
    }
    let caller = Caller { uid: user.uid, gid: site.group_of_new(user.gid)?, umask: 0 };
    tree.create_deferred(caller, &row.source, mode).map_err(io::Error::from).context("the pool did not take it")?;
    reach();
    let link = || {
        symlinkat(&*text, &site.directory, &new)?;
        reach();
        // A move ends by that: better refused now than found out then.
        site.try_exchange(&new, &trial_name(row), text)?;
        reach();
        row.link_inode = site.inode(&new)?;
        renameat(&site.directory, &new, &site.directory, &row.name).map_err(io::Error::from)
    };
    match user.act(link) {
        Err(error) if cannot_exchange(&error) => bail!(
            "{} lies on a file system in which no file can take the place of a link in one step ({error}): write to the \
             destination itself",
            row.target().display()
        ),
        linked => linked.with_context(|| format!("failed to put a link at {}", row.target().display()))?,
    }
    match site.find_named(&row.name, row, text)? {
        Found::Link => Ok(()),
        _ => bail!("{} was replaced at once by somebody else", row.target().display()),
    }
}

#[cfg(test)]
mod put_tests;

#[cfg(test)]
mod tests {
    use super::sum_of_pools;

    #[test]
    fn what_is_announced_counts_up_to_what_the_pool_takes() {
        let sum_of = |sizes: &[(&str, &str, [u64; 2])]| {
            let sizes = sizes.iter().map(|(tenant, pool, sizes)| (((*tenant).to_owned(), (*pool).to_owned()), *sizes));
            sum_of_pools(sizes.collect(), |(tenant, _)| (tenant != "gone").then_some(100))
        };
        let sum = |announced: &[(&str, &str, u64)]| {
            let sizes: Vec<_> = announced.iter().map(|(tenant, pool, bytes)| (*tenant, *pool, [*bytes, 0])).collect();
            sum_of(&sizes)
        };
        assert_eq!(sum(&[]), 0);
        assert_eq!(sum(&[("web", "stable", 60), ("web", "temporary", 60), ("other", "stable", 30)]), 150);
        assert_eq!(sum(&[("web", "stable", 60), ("web", "stable", 60), ("other", "stable", 30)]), 130);
        assert_eq!(sum(&[("web", "stable", u64::MAX), ("web", "stable", 1), ("web", "temporary", 1)]), 101);
        assert_eq!(sum(&[("gone", "stable", 120)]), 120);
        // More than the pool takes was found: much of it has gone to the disk.
        let found = [("web", "temporary", [90, 90]), ("web", "temporary", [90, 80]), ("web", "temporary", [500, 0])];
        assert_eq!(sum_of(&found), 170);
    }
}
