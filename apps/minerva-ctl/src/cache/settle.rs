//! What a unit or a command left in its directory of the pool goes to its place: directories are made there, links are made anew, and
//! files are written as deferred files, which are at their place at once and move there when its disk is quiet.

use super::{NAME_BYTES_MAX, Service, UNKNOWN, paths};
use crate::output::{self, CommandStatus};
use anyhow::{Context, bail};
use minerva_api::cache::{Answer, Pool, Request};
use rustix::fs::{Access, AtFlags, CWD, SeekFrom, accessat, seek};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Copied at once.
const PIECE: usize = 1 << 20;
/// Permissions of what is not whole yet. Its own come last: a file that nobody may write is written before.
const MODE: u32 = 0o600;
/// Directory of files of the pool to which links lead.
const DEFERRED: &str = ".deferred";
/// From a directory with this bit only the owner of a file, or of the directory, removes it.
const STICKY: u32 = 0o1000;

impl Service<'_> {
    /// Puts everything in `from` to `to`. What cannot go is told and stays.
    pub(super) fn settle(&self, from: &Path, to: &Path) -> anyhow::Result<CommandStatus> {
        let pool = pool_of(from);
        let mut stayed = 0;
        judge_removal(
            from,
            &fs::symlink_metadata(from).with_context(|| format!("failed to look at {}", from.display()))?,
        )?;
        self.settle_directory(from, to, pool, &mut stayed)?;
        Ok(CommandStatus::found_if(stayed > 0))
    }

    fn settle_directory(&self, from: &Path, to: &Path, pool: Pool, stayed: &mut u64) -> anyhow::Result<()> {
        let entries = fs::read_dir(from).with_context(|| format!("failed to list {}", from.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("failed to list {}", from.display()))?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if let Err(error) = self.settle_entry(&from, &to, pool, stayed) {
                output::note(&format!("{} stays in the pool: {error:#}", output::path(&from)));
                *stayed += 1;
            }
        }
        Ok(())
    }

    fn settle_entry(&self, from: &Path, to: &Path, pool: Pool, stayed: &mut u64) -> anyhow::Result<()> {
        let shown = fs::symlink_metadata(from).context("failed to look at it")?;
        let kind = shown.file_type();
        if kind.is_dir() {
            judge_removal(from, &shown)?;
            match DirBuilder::new().mode(shown.mode() & 0o7777).create(to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && to.is_dir() => (),
                made => made.with_context(|| format!("failed to make {}", to.display()))?,
            }
            let before = *stayed;
            self.settle_directory(from, to, pool, stayed)?;
            if *stayed == before {
                fs::remove_dir(from).context("failed to remove it")?;
            }
            return Ok(());
        }
        if kind.is_symlink() {
            let target = fs::read_link(from).context("failed to read it")?;
            let new = temporary_name(to);
            symlink(target, &new).with_context(|| format!("failed to make {}", new.display()))?;
            if let Err(error) = self.take_place(&new, to) {
                let _ = fs::remove_file(&new);
                return Err(error);
            }
        } else if kind.is_file() && shown.nlink() == 1 {
            self.put_file(from, to, &shown, pool)?;
        } else if kind.is_file() {
            bail!("it has {} names, and one file cannot lie in two places", shown.nlink());
        } else {
            bail!("it is neither a file nor a directory nor a link");
        }
        fs::remove_file(from).context("failed to remove it")
    }

    fn put_file(&self, from: &Path, to: &Path, shown: &fs::Metadata, pool: Pool) -> anyhow::Result<()> {
        let source = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(from)
            .context("failed to open it")?;
        let parent = to.parent().unwrap_or(to);
        let there = fs::metadata(parent).with_context(|| format!("failed to look at {}", parent.display()))?;
        let new = temporary_name(to);
        let request = Request::Defer {
            path: new.clone(),
            directory: (there.dev(), there.ino()),
            mode: MODE,
            pool,
            tenant: tenant_of(from),
            bytes: shown.blocks() * 512,
        };
        match self.ask(&request) {
            Ok(Answer::Deferring { id, data }) => {
                let put = self.put_deferred(&source, &data, (&new, to), shown);
                if put.is_err() {
                    let _ = fs::remove_file(&new);
                    // To which no link leads any more.
                    let _ = self.ask(&Request::Drop { id });
                }
                put
            }
            Ok(_) => bail!(UNKNOWN),
            // The pool takes no more: to its place by way of a name of its own, so that nobody sees a part.
            Err(_) => {
                let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new);
                let file = file.with_context(|| format!("failed to make {}", new.display()))?;
                let put = copy(&source, &file, shown).and_then(|()| self.take_place(&new, to));
                if put.is_err() {
                    let _ = fs::remove_file(&new);
                }
                put
            }
        }
    }

    /// The same by a deferred file, which has a name of its own until it is whole: whatever fails, what stands at the place stays there.
    fn put_deferred(
        &self,
        source: &File,
        data: &Path,
        (new, to): (&Path, &Path),
        shown: &fs::Metadata,
    ) -> anyhow::Result<()> {
        let file = OpenOptions::new().write(true).open(data);
        let file = file.with_context(|| format!("failed to open {}", data.display()))?;
        copy(source, &file, shown)?;
        self.take_place(new, to)?;
        // Whoever is asked about it finds that its link was renamed. Until it is closed it does not move, so that this comes first.
        if let Ok(path) = paths::of_file(to) {
            let _ = self.ask(&Request::Explain { path });
        }
        Ok(())
    }

    /// Puts what is whole to its place. What waits to go there is replaced, as by any new file.
    fn take_place(&self, new: &Path, to: &Path) -> anyhow::Result<()> {
        let replaced = self.waiting_at(to);
        fs::rename(new, to).with_context(|| format!("failed to replace {}", to.display()))?;
        if let Some(id) = replaced {
            // It may have moved meanwhile.
            let _ = self.ask(&Request::Drop { id });
        }
        Ok(())
    }

    /// The file that waits to go to a place, by the link that stands there.
    fn waiting_at(&self, to: &Path) -> Option<u64> {
        let data = fs::read_link(to).ok()?;
        data.parent().filter(|parent| parent.ends_with(DEFERRED))?;
        let files = self.deferred(Some(paths::of_file(to).ok()?)).ok()?;
        files.into_iter().find(|file| Path::new(&file.data) == data).map(|file| file.id)
    }
}

/// Whether what lies in a directory can be removed from there: what stayed after it was put would be put again, over newer files.
fn judge_removal(from: &Path, shown: &fs::Metadata) -> anyhow::Result<()> {
    let user = geteuid();
    let may_change = accessat(CWD, from, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok();
    let is_others = shown.mode() & STICKY != 0 && shown.uid() != user.as_raw() && !user.is_root();
    if may_change && !is_others {
        return Ok(());
    }
    let (user, group, from) = (user.as_raw(), rustix::process::getegid().as_raw(), from.display());
    bail!(
        "user {user} may not remove what lies in {from}, so none of it is put to its place; let it: \
         chown -R {user}:{group} {from}; chmod -R u+rwX {from}"
    )
}

/// A name beside a place, which nobody takes for the place.
fn temporary_name(to: &Path) -> PathBuf {
    let mut name = OsString::from(format!(".minerva-{}-", std::process::id()));
    // Where there is no room for it the rest does alone, as one file goes after the other.
    let own = to.file_name().unwrap_or_default();
    if name.len() + own.len() <= NAME_BYTES_MAX {
        name.push(own);
    }
    to.with_file_name(name)
}

/// Data with their holes, permissions and times.
fn copy(from: &File, to: &File, shown: &fs::Metadata) -> anyhow::Result<()> {
    let (mut at, length) = (0, shown.len());
    let mut piece = vec![0; PIECE];
    to.set_len(length).context("failed to write it")?;
    while at < length {
        let end = match seek(from, SeekFrom::Data(at)) {
            Ok(data) => {
                at = data;
                seek(from, SeekFrom::Hole(data)).unwrap_or(length)
            }
            // The rest is a hole.
            Err(Errno::NXIO) => break,
            // Where holes cannot be told it is all data.
            Err(_) => length,
        };
        while at < end {
            let wanted = PIECE.min(usize::try_from(end - at).unwrap_or(PIECE));
            let read = from.read_at(&mut piece[..wanted], at).context("failed to read it")?;
            if read == 0 {
                bail!("it was cut short meanwhile");
            }
            to.write_all_at(&piece[..read], at).context("failed to write it")?;
            at += read as u64;
        }
    }
    to.set_permissions(fs::Permissions::from_mode(shown.mode() & 0o7777)).context("failed to set its permissions")?;
    let times = FileTimes::new().set_accessed(shown.accessed()?).set_modified(shown.modified()?);
    to.set_times(times).context("failed to set its times")?;
    // The source goes next.
    to.sync_all().context("failed to write it")
}

/// Of `MOUNT/TENANT/POOL/.units/NAME/…`: what stands before `.units`.
fn above_units(from: &Path) -> Option<&Path> {
    from.ancestors().find(|at| at.file_name().is_some_and(|name| name == ".units"))?.parent()
}

fn pool_of(from: &Path) -> Pool {
    let name = above_units(from).and_then(Path::file_name);
    if name.is_some_and(|name| name == Pool::Temporary.as_str()) { Pool::Temporary } else { Pool::Stable }
}

fn tenant_of(from: &Path) -> Option<String> {
    above_units(from)?.parent()?.file_name().map(|name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::{pool_of, tenant_of};
    use minerva_api::cache::Pool;
    use std::path::Path;

    #[test]
    fn a_path_in_the_pool_tells_whose_it_is() {
        let path = Path::new("/minerva/web/temporary/.units/dump.service-srv/a/b");
        assert_eq!((pool_of(path), tenant_of(path).as_deref()), (Pool::Temporary, Some("web")));
        let other = Path::new("/minerva/db/stable/.units/x");
        assert_eq!((pool_of(other), tenant_of(other).as_deref()), (Pool::Stable, Some("db")));
        assert_eq!(tenant_of(Path::new("/elsewhere")), None);
    }
}
