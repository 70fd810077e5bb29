//! A project of the kernel's for each tenant's files on the pool's disk (docs/adr/0065), so that the kernel counts them as well.
//!
//! Which project a tenant has stands in `projects/TENANT` beside the trees: the number, and `part` as long as not all of its files have it.
//! That is written before the first file gets it, so that a crash leaves no number of ours that nobody knows of.

use anyhow::{Context, bail};
use minerva_cachefs::{ProjectUsage, change_project, count_without_project, project_of, project_usage};
use minerva_config::{FsConfig, SecondAccount};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Our numbers begin here ("MN"), far from those that people choose.
const FIRST: u32 = 0x4d4e_0000;
/// So many are tried.
const TRIED_MAX: u32 = 1 << 16;
/// Numbers of no file that are somebody's all the same (projid(5), projects(5)).
const TABLES: [&str; 2] = ["/etc/projid", "/etc/projects"];
/// How the record of a change that is not complete ends.
const PART: &str = "part";

/// A tenant's project, which the kernel counts.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) number: u32,
    at: File,
}

impl Project {
    /// What the kernel counts of it.
    pub(crate) fn usage(&self) -> Result<ProjectUsage, Errno> {
        project_usage(&self.at, self.number)
    }
}

/// What a file says of a tenant's project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    number: u32,
    /// Every file has it.
    is_whole: bool,
}

/// Whether the kernel counts projects where the pool lies; else why not, and what to do.
pub(crate) fn is_offered(pool: &Path) -> Result<(), String> {
    let counted = File::open(pool).map_err(|error| error.to_string()).and_then(|at| {
        project_usage(at, 0).map_err(|error| match error {
            Errno::SRCH => "it is mounted without project quotas".to_owned(),
            Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL => {
                "its file system or this kernel has no project quotas (Linux 5.14 or later with CONFIG_QUOTA and, for ext4, \
                 QFMT_V2)"
                    .to_owned()
            }
            other => other.to_string(),
        })
    });
    let remedy = "ext4: `tune2fs -O project -Q prjquota DEVICE` while it is not mounted, then mount it with `prjquota`; XFS: mount \
                  it with `prjquota`";
    counted.map(drop).map_err(|why| format!("the kernel does not count at {}: {why}; {remedy}", pool.display()))
}

/// Finds a tenant's project, or gives it one; nobody may use its trees yet. On an error, which says why, nothing was changed.
pub(crate) fn prepare(pool: &Path, tenant: &str) -> anyhow::Result<Project> {
    is_offered(pool).map_err(anyhow::Error::msg)?;
    let at = File::open(pool.join("tenants").join(tenant)).context("failed to open its tree")?;
    let record = read(pool, tenant)?;
    let mut have = Vec::new();
    for folder in folders(pool, tenant) {
        let found = File::open(&folder).map_err(anyhow::Error::from).and_then(|at| Ok(project_of(at)?));
        have.push(found.with_context(|| format!("failed to look at the project of {}", folder.display()))?);
        let (had, ours) = (have[have.len() - 1], record.map(|record| record.number));
        if had != 0 && Some(had) != ours {
            bail!("{0} has project {had}, which is not ours; take it away: chattr -R -p 0 {0}", folder.display());
        }
    }
    if let Some(Record { number, is_whole: true }) = record
        && have.iter().all(|have| *have == number)
    {
        return Ok(Project { number, at });
    }
    let number = record.map_or_else(|| choose(pool), |record| Ok(record.number))?;
    for folder in folders(pool, tenant) {
        let strangers = File::open(&folder).map_err(anyhow::Error::from).and_then(|at| Ok(count_without_project(at)?));
        match strangers.with_context(|| format!("failed to walk through {}", folder.display()))? {
            0 => (),
            count => bail!(
                "{count} links, sockets or devices in {} were made before it had a project, and cannot be given one; remove them, \
                 or move the tenant's files out and in again",
                folder.display()
            ),
        }
    }
    write(pool, tenant, Record { number, is_whole: false })?;
    if let Err(error) = change(pool, tenant, 0, number) {
        // What has it by now loses it again, or keeps the record so that the next start goes on.
        let _ = undo(pool, tenant);
        return Err(error);
    }
    write(pool, tenant, Record { number, is_whole: true })?;
    Ok(Project { number, at })
}

/// Takes a tenant's project away from its files; whether it had one.
pub(crate) fn undo(pool: &Path, tenant: &str) -> anyhow::Result<bool> {
    let Some(Record { number, .. }) = read(pool, tenant)? else { return Ok(false) };
    write(pool, tenant, Record { number, is_whole: false })?;
    change(pool, tenant, number, 0)?;
    let record = record(pool, tenant);
    fs::remove_file(&record).with_context(|| format!("failed to remove {}", record.display()))?;
    Ok(true)
}

/// Takes projects away that nobody is to have any more: of all if the setting says so, else of tenants that the file does not name.
pub(crate) fn undo_unwanted(config: &FsConfig) -> Vec<String> {
    let pool = &config.stable.path;
    let Ok(records) = fs::read_dir(pool.join("projects")) else { return Vec::new() };
    let mut told = Vec::new();
    for entry in records.flatten() {
        let tenant = entry.file_name().to_string_lossy().into_owned();
        let is_wanted = config.stable.second_account == SecondAccount::Kernel && config.tenants.contains_key(&tenant);
        // A record that was being written.
        if is_wanted || tenant.starts_with('.') {
            continue;
        }
        match undo(pool, &tenant) {
            Ok(true) => told.push(format!("{tenant}'s files have no project any more")),
            Ok(false) => (),
            Err(error) => told.push(format!("{tenant}'s files keep their project: {error:#}")),
        }
    }
    told
}

/// What of a tenant lies on the pool's disk.
fn folders(pool: &Path, tenant: &str) -> [PathBuf; 2] {
    ["tenants", "spilled"].map(|kind| pool.join(kind).join(tenant))
}

fn change(pool: &Path, tenant: &str, from: u32, to: u32) -> anyhow::Result<()> {
    for folder in folders(pool, tenant) {
        match File::open(&folder) {
            Ok(at) => change_project(at, from, to)
                .with_context(|| format!("failed to change the project of what is in {}", folder.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (),
            Err(error) => return Err(error).with_context(|| format!("failed to open {}", folder.display())),
        }
    }
    Ok(())
}

/// A number that no file has, for which nobody has set a limit, and that no table and no other tenant's record names.
fn choose(pool: &Path) -> anyhow::Result<u32> {
    let at = File::open(pool).with_context(|| format!("failed to open {}", pool.display()))?;
    let mut taken: Vec<u32> =
        TABLES.iter().filter_map(|path| fs::read_to_string(path).ok()).flat_map(numbers).collect();
    for entry in fs::read_dir(pool.join("projects")).into_iter().flatten().flatten() {
        taken.extend(read(pool, &entry.file_name().to_string_lossy())?.map(|record| record.number));
    }
    let ours = FIRST..FIRST + TRIED_MAX;
    let last = taken.iter().filter(|number| ours.contains(number)).max();
    for number in last.map_or(FIRST, |last| last + 1)..ours.end {
        let used = project_usage(&at, number).context("failed to ask whether a project is in use")?;
        if used == ProjectUsage::default() && !taken.contains(&number) {
            return Ok(number);
        }
    }
    bail!("no project from {FIRST} to {} is free", ours.end - 1)
}

/// Every number of a table; those that are none of a project do no harm.
fn numbers(table: String) -> Vec<u32> {
    table.split(|byte: char| !byte.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

fn record(pool: &Path, tenant: &str) -> PathBuf {
    pool.join("projects").join(tenant)
}

fn read(pool: &Path, tenant: &str) -> anyhow::Result<Option<Record>> {
    let path = record(pool, tenant);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("failed to read {}", path.display())),
    };
    let parsed = parse(&text);
    let failed = || format!("{} does not say a project; which one has the tree? lsattr -pd", path.display());
    parsed.map(Some).with_context(failed)
}

fn parse(text: &str) -> Option<Record> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok().filter(|number| *number != 0)?;
    match words.next() {
        None => Some(Record { number, is_whole: true }),
        Some(PART) => Some(Record { number, is_whole: false }),
        Some(_) => None,
    }
}

/// Durable on return.
fn write(pool: &Path, tenant: &str, of: Record) -> anyhow::Result<()> {
    let path = record(pool, tenant);
    let folder = pool.join("projects");
    // No tenant's name begins so.
    let new = folder.join(".new");
    let text = format!("{}{}\n", of.number, if of.is_whole { String::new() } else { format!(" {PART}") });
    let written = || {
        fs::create_dir_all(&folder)?;
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(&folder)?.sync_all()
    };
    written().with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{Record, numbers, parse, prepare, read, undo, write};

    #[test]
    fn records_are_found_as_they_were_written_and_a_torn_one_is_told() {
        let pool = tempfile::tempdir().unwrap();
        assert_eq!(read(pool.path(), "web").unwrap(), None);
        for is_whole in [false, true] {
            let record = Record { number: 1_297_000_001, is_whole };
            write(pool.path(), "web", record).unwrap();
            assert_eq!(read(pool.path(), "web").unwrap(), Some(record));
        }
        for torn in ["", "0", "x", "7 whole", "-3"] {
            assert_eq!(parse(torn), None, "{torn}");
        }
        std::fs::write(pool.path().join("projects/web"), "half").unwrap();
        let said = read(pool.path(), "web").unwrap_err().to_string();
        assert!(said.contains("projects/web does not say a project"), "{said}");
    }

    #[test]
    fn numbers_of_the_tables_are_taken_and_without_project_quotas_nothing_is_written() {
        assert_eq!(numbers("logs:77\n# 12\n1297000000:/srv/a\n".to_owned()), [77, 12, 1_297_000_000]);
        let pool = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(pool.path().join("tenants/web")).unwrap();
        match prepare(pool.path(), "web") {
            Ok(_) => println!("this file system counts projects"),
            Err(error) => {
                let said = format!("{error:#}");
                assert!(said.contains("tune2fs -O project"), "{said}");
                assert!(!pool.path().join("projects").exists());
            }
        }
        undo(pool.path(), "web").unwrap();
    }
}
