//! Whether the pool's directory is the pool. Where its disk is absent, the directory below the mount point is there in its stead: served,
//! every tree would seem empty, the redo log too, and what is written would be lost from sight once the disk is back.
//!
//! A mark in the pool names it, and a record beside the mounts of the trees, which is not on the pool's disk, says which pool was served
//! here. A pool without a mark is a new one, if nothing says otherwise.

use anyhow::{Context, bail};
use minerva_config::FsConfig;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// In the pool.
const MARK: &str = "pool-id";
/// In the directory of mounts. No tenant's name begins so.
const RECORD: &str = ".pool";
const FSTAB: &str = "/etc/fstab";
const MOUNTS: &str = "/proc/self/mountinfo";

/// Refuses a directory that is not the pool, with what to do. Changes nothing.
pub(crate) fn judge(config: &FsConfig) -> anyhow::Result<()> {
    // A guest has no pool of its own, and its directory of mounts is the host's.
    if config.server.is_guest {
        return Ok(());
    }
    let (pool, record) = (&config.stable.path, config.server.mount.join(RECORD));
    let mark = read(&pool.join(MARK))?;
    let recorded = read(&record)?.and_then(|text| of_pool(&text, pool).map(str::to_owned));
    match (mark, recorded) {
        (Some(mark), Some(recorded)) if mark.trim() == recorded => Ok(()),
        (mark, Some(_)) => {
            let what = if mark.is_some() { "is another pool than" } else { "is not" };
            bail!(
                "{0} {what} the pool that was served here before, and nothing was changed; is its disk mounted? Mount it (`findmnt \
                 --target {0}` shows what is there). Where this is to be the pool from now on, remove {1}",
                pool.display(),
                record.display()
            )
        }
        (Some(_), None) => Ok(()),
        (None, None) => judge_new(pool),
    }
}

/// Where nothing is known of a pool, the machine's table of file systems may say that a disk is to be there.
fn judge_new(pool: &Path) -> anyhow::Result<()> {
    let table = fs::read_to_string(FSTAB).unwrap_or_default();
    let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
    if let Some(absent) = absent_below(&table, &mounts, pool) {
        bail!(
            "{0} is to be mounted by {FSTAB} and is not, so that the pool {1} would not be on that disk; mount it first: mount {0}",
            absent.display(),
            pool.display()
        );
    }
    Ok(())
}

/// Names the pool unless it has a name, and remembers it. Whoever calls has the pool, and has judged it.
pub(crate) fn adopt(config: &FsConfig) -> anyhow::Result<()> {
    if config.server.is_guest {
        return Ok(());
    }
    let (pool, mark) = (&config.stable.path, config.stable.path.join(MARK));
    let id = match read(&mark)? {
        Some(text) => text.trim().to_owned(),
        None => {
            let id = uuid::Uuid::new_v4().to_string();
            write(&mark, &id).with_context(|| format!("failed to write {}", mark.display()))?;
            id
        }
    };
    let record = config.server.mount.join(RECORD);
    let text = format!("{id} {}", pool.display());
    if read(&record)?.is_some_and(|known| known.trim() == text) {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o711).create(&config.server.mount);
    if let Err(error) = made.and_then(|()| write(&record, &text)) {
        eprintln!(
            "minerva-fs: failed to write {}: {error}; a later start will not notice that the pool's disk is absent",
            record.display()
        );
    }
    Ok(())
}

/// What a record says of this pool; nothing where it is of another, which the operator's file named before.
fn of_pool<'a>(text: &'a str, pool: &Path) -> Option<&'a str> {
    let (id, path) = text.trim().split_once(' ')?;
    (Path::new(path) == pool).then_some(id)
}

/// None where there is none, or it is empty.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", path.display())),
    }
}

/// Whole or not at all, and durable on return.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// A place of the table that the pool lies below, and at which nothing is mounted.
fn absent_below(table: &str, mounts: &str, pool: &Path) -> Option<PathBuf> {
    let unescaped = |path: &str| PathBuf::from(path.replace("\\040", " ").replace("\\011", "\t"));
    let mounted: Vec<PathBuf> = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(unescaped).collect();
    let lines = table.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let places = lines.filter_map(|line| line.split_whitespace().nth(1)).map(unescaped);
    places.into_iter().find(|place| place.is_absolute() && pool.starts_with(place) && !mounted.contains(place))
}

#[cfg(test)]
mod tests {
    use super::{absent_below, adopt, judge};
    use minerva_config::FsConfig;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_disk_that_the_table_names_and_that_is_not_mounted_is_found() {
        let table =
            "# /dev/x /srv/pool ext4\n/dev/vda / ext4\nUUID=7 /srv/pool\\040disk ext4 nofail 0 2\n/dev/s none swap\n\n";
        let mounts = "20 1 8:1 / / rw - ext4 /dev/vda rw\n";
        let with = format!("{mounts}21 20 8:2 / /srv/pool\\040disk rw - ext4 /dev/b rw\n");
        let absent = |mounts: &str, pool: &str| absent_below(table, mounts, Path::new(pool));
        assert_eq!(absent(mounts, "/srv/pool disk/minerva"), Some(PathBuf::from("/srv/pool disk")));
        assert_eq!(absent(&with, "/srv/pool disk/minerva"), None);
        assert_eq!(absent(mounts, "/srv/pool"), None, "a directory of the root's file system");
    }

    #[test]
    fn a_new_pool_is_taken_and_from_then_on_no_other_in_its_place_unless_the_record_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let mut config = FsConfig::default();
        config.server.mount = place.path().join("mount");
        config.stable.path = place.path().join("pool");
        judge(&config).unwrap();
        assert!(!config.stable.path.exists() && !config.server.mount.exists(), "to judge changes nothing");
        fs::create_dir(&config.stable.path).unwrap();
        adopt(&config).unwrap();
        judge(&config).unwrap();
        // Its disk is absent.
        fs::rename(&config.stable.path, place.path().join("away")).unwrap();
        for _ in 0..2 {
            let said = judge(&config).unwrap_err().to_string();
            assert!(
                said.contains("is not the pool that was served here before") && said.contains("Mount it"),
                "{said}"
            );
            fs::create_dir_all(&config.stable.path).unwrap();
        }
        fs::write(config.stable.path.join("pool-id"), "somebody's\n").unwrap();
        let said = judge(&config).unwrap_err().to_string();
        assert!(said.contains("is another pool than"), "{said}");
        // The operator wants that one.
        fs::remove_file(config.server.mount.join(".pool")).unwrap();
        judge(&config).unwrap();
        adopt(&config).unwrap();
        judge(&config).unwrap();
        // Or names another.
        config.stable.path = place.path().join("away");
        judge(&config).unwrap();
    }
}
