//! What lies in the pool and at its mounts that somebody should know of: mounts that nobody serves, files that no link leads to, files that
//! wait for migration, and trees of tenants that the operator's file does not name.

use crate::deferred::LOG;
use crate::finding::Finding;
use crate::mount_point::{State, state};
use crate::settings::socket;
use minerva_api::cache::{Answer, Request, ask};
use minerva_cachefs::{DEFERRED, take_census};
use minerva_config::FsConfig;
use minerva_store::{Damage, RedoLog};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file is younger while it is being placed.
const SETTLED: Duration = Duration::from_secs(10);
/// Orphans that are named each; of more the number is told.
const NAMED_MAX: usize = 20;

/// All of it.
pub(crate) fn find(config: &FsConfig, is_served: bool) -> Vec<Finding> {
    let mut findings = stale_mounts(config);
    // Looked for first: what is placed meanwhile is known afterwards.
    let files = deferred_files(config);
    let known = known(config, is_served);
    findings.extend(trees_of_nobody(config, &known));
    findings.extend(told_of(files, known));
    findings
}

fn told_of(files: Vec<DirEntry>, known: Result<Known, String>) -> Vec<Finding> {
    match known {
        Ok(known) => {
            let waits = Finding::note("deferred", known.told);
            std::iter::once(waits).chain(orphans(files, &known.sources)).collect()
        }
        Err(why) => vec![Finding::note("deferred", why)],
    }
}

/// The same in a virtual machine, where all that is deferred in its trees is its own.
pub(crate) fn find_in_guest(config: &FsConfig, is_served: bool) -> Vec<Finding> {
    let trees = ["temporary", "stable"].map(|kind| config.server.mount.join(kind));
    let files = trees.iter().flat_map(|tree| entries(&tree.join(DEFERRED))).collect();
    told_of(files, known(config, is_served))
}

fn entries(folder: &Path) -> Vec<DirEntry> {
    fs::read_dir(folder).map(|entries| entries.flatten().collect()).unwrap_or_default()
}

/// Of all tenants whose directories are there, also those that the file does not name any more.
fn stale_mounts(config: &FsConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tenant in entries(&config.server.mount) {
        for kind in ["temporary", "stable"] {
            let at = tenant.path().join(kind);
            if !matches!(state(&at), Ok(State::Stale)) {
                continue;
            }
            let is_named = config.tenants.contains_key(&*tenant.file_name().to_string_lossy());
            let remedy = if is_named {
                "the next start mounts it again".to_owned()
            } else {
                format!("its tenant is not in the file: umount -l {}", at.display())
            };
            findings.push(Finding::note("stale mount", format!("no process serves {}; {remedy}", at.display())));
        }
    }
    findings
}

fn trees_of_nobody(config: &FsConfig, known: &Result<Known, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, remedy) in [
        (config.stable.path.join("tenants"), "add the tenant again, or remove the directory"),
        (config.stable.path.join("spilled"), "add the tenant again, or remove the directory"),
        (config.server.runtime.join("temporary"), "add the tenant again, or unmount it, which loses its files"),
    ] {
        for entry in entries(&folder) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if config.tenants.contains_key(&*name) {
                continue;
            }
            let census =
                fs::File::open(entry.path()).ok().and_then(|folder| take_census(&folder).ok()).unwrap_or_default();
            let detail = format!(
                "{} belongs to no tenant in the file: {} files, {} MiB; {}",
                entry.path().display(),
                census.files,
                census.bytes >> 20,
                remedy_of(config, &name, known, remedy)
            );
            findings.push(Finding::note("orphan", detail));
        }
    }
    findings
}

/// What to do with what is left of a tenant that the file does not name. Its deferred files were acknowledged, and move all the same.
fn remedy_of(config: &FsConfig, tenant: &str, known: &Result<Known, String>, usual: &str) -> String {
    let Ok(known) = known else {
        return "name the tenant in the file again: whether deferred files wait in its trees is not known now"
            .to_owned();
    };
    if let Some(files) = known.by_tenant.get(tenant) {
        return format!(
            "{files} deferred files wait in its trees and move to their places while the service runs: `minerva-ctl cache deferred` \
             says why one does not, `cache drop` deletes one to which no link leads; name tenant `{tenant}` in the file again to keep it"
        );
    }
    let trees = [
        config.stable.path.join("tenants").join(tenant),
        config.server.runtime.join("temporary").join(tenant).join("tree"),
    ];
    match trees.iter().map(|tree| entries(&tree.join(DEFERRED)).len()).sum() {
        0usize => usual.to_owned(),
        files => format!(
            "{files} deferred files in its trees are in no log of this host, but if it was a virtual machine they may be in \
             that machine's: {usual}"
        ),
    }
}

/// Every file in the directories where deferred files lie; not those of machines, which have logs of their own, nor of tenants that the file
/// does not name, which may have been machines.
fn deferred_files(config: &FsConfig) -> Vec<DirEntry> {
    let is_of_host = |tenant: &DirEntry| {
        config.tenants.get(&*tenant.file_name().to_string_lossy()).is_some_and(|settings| settings.machine.is_none())
    };
    let of = |folder: PathBuf| entries(&folder).into_iter().filter(is_of_host);
    let stable = of(config.stable.path.join("tenants")).map(|tenant| tenant.path());
    let memory = of(config.server.runtime.join("temporary")).map(|tenant| tenant.path().join("tree"));
    stable.chain(memory).flat_map(|tree| entries(&tree.join(DEFERRED))).collect()
}

/// Files that wait, by the names that they have in the pool.
struct Known {
    sources: BTreeSet<OsString>,
    /// How many each tenant has, those included to which no link leads.
    by_tenant: BTreeMap<String, u64>,
    told: String,
}

/// From the service, or where none runs from the log that it left.
fn known(config: &FsConfig, is_served: bool) -> Result<Known, String> {
    if !is_served {
        return from_log(&config.stable.path.join(LOG));
    }
    let files = match ask(&socket(config), &Request::Deferred { directory: None }) {
        Ok(Answer::Deferred { files }) => files,
        Ok(_) => return Err("the service is another version, and does not say what waits; restart it".to_owned()),
        Err(error) => return Err(format!("the service does not say what waits: {error}")),
    };
    let sources = files.iter().filter_map(|file| PathBuf::from(&file.data).file_name().map(OsString::from)).collect();
    let left = files.iter().filter(|file| file.step == "left").count();
    let waiting = files.iter().filter(|file| file.step != "left");
    let told = match waiting.clone().max_by_key(|file| file.waited_seconds) {
        None => "no files wait for migration".to_owned(),
        Some(oldest) => format!(
            "{} files of {} MiB wait for migration; longest {}, {} s: {}",
            waiting.clone().count(),
            waiting.map(|file| file.bytes).sum::<u64>() >> 20,
            oldest.path,
            oldest.waited_seconds,
            oldest.why
        ),
    };
    let by_tenant = count(files.iter().map(|file| &file.tenant));
    Ok(Known { sources, by_tenant, told: told + &left_told(left) })
}

fn from_log(path: &Path) -> Result<Known, String> {
    if !path.exists() {
        let told = "no file was ever deferred here".to_owned();
        return Ok(Known { sources: BTreeSet::new(), by_tenant: BTreeMap::new(), told });
    }
    let failed = |error: minerva_store::StoreError| format!("{}: {error}", path.display());
    // Whoever opens a damaged log moves it aside; that is for the service, which says so where it is looked for.
    if let Some(Damage(damage)) = RedoLog::check(path).map_err(failed)? {
        return Err(format!(
            "{} is damaged ({damage}), and what waits is not known: the next start of the service moves it aside, and the files \
             stay in the pool",
            path.display()
        ));
    }
    let rows = RedoLog::open(path).and_then(|(log, _)| log.all()).map_err(failed)?;
    let left = rows.iter().filter(|row| row.step.as_str() == "left").count();
    let told = match rows.iter().find(|row| row.step.as_str() != "left") {
        None => "no files wait for migration".to_owned(),
        Some(first) => format!(
            "{} files wait for migration until the service runs, among them {}",
            rows.len() - left,
            first.target().display()
        ),
    };
    let by_tenant = count(rows.iter().map(|row| &row.tenant));
    let sources = rows.into_iter().map(|row| row.source).collect();
    Ok(Known { sources, by_tenant, told: told + &left_told(left) })
}

fn count<'a>(tenants: impl Iterator<Item = &'a String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for tenant in tenants {
        *counts.entry(tenant.clone()).or_default() += 1;
    }
    counts
}

fn left_told(left: usize) -> String {
    match left {
        0 => String::new(),
        left => format!(
            "; to {left} no link leads any more: `minerva-ctl cache deferred` names them, `cache drop` removes one"
        ),
    }
}

/// Files that the log does not know, so that nothing moves them and no link of ours leads to them.
fn orphans(files: Vec<DirEntry>, sources: &BTreeSet<OsString>) -> Vec<Finding> {
    let is_settled = |file: &DirEntry| {
        let changed = file.metadata().and_then(|shown| shown.modified());
        changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > SETTLED))
    };
    let orphans: Vec<_> =
        files.into_iter().filter(|file| !sources.contains(&file.file_name()) && is_settled(file)).collect();
    let named = orphans.iter().take(NAMED_MAX).map(|file| {
        let bytes = file.metadata().map_or(0, |shown| shown.len());
        let path = file.path();
        let detail = format!(
            "{} is in no log, and no link leads to it: {bytes} bytes; keep what it holds, then remove it",
            path.display()
        );
        Finding::note("orphan", detail)
    });
    let further = orphans.len().saturating_sub(NAMED_MAX);
    let further = (further > 0).then(|| Finding::note("orphan", format!("and {further} more such files")));
    named.chain(further).collect()
}

#[cfg(test)]
mod tests {
    use super::from_log;

    #[test]
    fn a_damaged_log_is_told_and_left_for_the_service_to_move_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deferred.db");
        std::fs::write(&path, [b'x'; 8192]).unwrap();
        let told = from_log(&path).err().unwrap();
        assert!(told.contains("is damaged") && told.contains("what waits is not known"), "{told}");
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["deferred.db"]);
        assert_eq!(std::fs::read(&path).unwrap(), [b'x'; 8192]);
    }
}
