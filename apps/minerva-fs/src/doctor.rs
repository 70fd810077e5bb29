//! `minerva-fs doctor`: whether it can serve here and how well, and what earlier runs left.

use crate::finding::Finding;
use crate::flusher;
use crate::guest_doctor;
use crate::leftovers;
use crate::mount_point::prepare;
use crate::pool_disk;
use crate::projects;
use crate::settings::{load, socket};
use anyhow::bail;
use minerva_api::cache::{Answer, Request, TenantStatus, ask};
use minerva_cachefs::{Account, MountOptions, Tree, TreeOptions, mount, take_census};
use minerva_config::{FsConfig, SecondAccount};
use rustix::fs::{FlockOperation, flock};
use rustix::mount::{UnmountFlags, unmount};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// File systems by their numbers (statfs(2)).
const EXT4: rustix::fs::FsWord = 0xef53;
const XFS: rustix::fs::FsWord = 0x5846_5342;
/// How directories begin in which it tries to serve, in the pool. No tenant's lies beside them.
const OWN: &str = ".doctor-";
const BTRFS: rustix::fs::FsWord = 0x9123_683e;

/// Looks at everything, prints it, and fails if it cannot be served.
pub(crate) fn run(path: &Path, json: bool) -> anyhow::Result<()> {
    let config = load(path)?;
    let findings = if config.server.is_guest { guest_doctor::findings(&config) } else { of_host(&config) };
    for finding in &findings {
        if json {
            println!("{}", serde_json::to_string(finding)?);
        } else {
            println!("{} {}: {}", if finding.is_good { "ok  " } else { "BAD " }, finding.what, finding.detail);
        }
    }
    if findings.iter().any(|finding| !finding.is_good) {
        bail!("a problem has to be fixed first");
    }
    Ok(())
}

fn of_host(config: &FsConfig) -> Vec<Finding> {
    let mut findings = vec![pool_disk(config)];
    if !findings[0].is_good {
        // Whatever is there is not the pool, and nothing is to be made in it.
        return findings;
    }
    findings.extend([fuse(config), pool(config), flusher(config)]);
    let answer = ask(&socket(config), &Request::Status).ok();
    let served = if let Some(Answer::Status { tenants, .. }) = answer { Some(tenants) } else { None };
    findings.push(service(served.as_deref()));
    findings.push(quota(config, served.as_deref()));
    findings.extend(served.iter().flatten().flat_map(second_accounts));
    findings.extend(leftovers::find(config, served.is_some()));
    findings
}

fn pool_disk(config: &FsConfig) -> Finding {
    let judged = pool_disk::judge(config);
    let good = || format!("{} is the pool that was served before, or a new one", config.stable.path.display());
    Finding {
        what: "pool disk".to_owned(),
        is_good: judged.is_ok(),
        detail: judged.map_or_else(|error| error.to_string(), |()| good()),
    }
}

/// Whether the service may have memory while the kernel waits for it to write.
fn flusher(config: &FsConfig) -> Finding {
    let detail = match flusher::of_service(config) {
        None => "no service runs that could be asked".to_owned(),
        Some(true) => "the service has memory while pages of its trees are written".to_owned(),
        Some(false) => flusher::WITHOUT.to_owned(),
    };
    Finding::note("memory", detail)
}

/// Tries it: a tree of its own beside the pool, mounted and unmounted.
fn fuse(config: &FsConfig) -> Finding {
    let what = "passthrough".to_owned();
    let tried = try_passthrough(&config.stable.path);
    match tried {
        Ok(true) => Finding { what, is_good: true, detail: "the kernel reads files of the pool by itself".to_owned() },
        Ok(false) => Finding {
            what,
            is_good: true,
            detail: "not available: it needs Linux 6.9 or later and a pool that is not on overlayfs; reads are slower"
                .to_owned(),
        },
        Err(error) => Finding {
            what: "fuse".to_owned(),
            is_good: false,
            detail: format!("{error:#}; it needs root and /dev/fuse (`modprobe fuse`)"),
        },
    }
}

fn try_passthrough(pool: &Path) -> anyhow::Result<bool> {
    fs::create_dir_all(pool)?;
    remove_interrupted(pool);
    let place = pool.join(format!("{OWN}{}", std::process::id()));
    let _used = make_own(pool, &place)?;
    let (below, at) = (place.join("below"), place.join("at"));
    fs::create_dir_all(&below)?;
    fs::create_dir_all(&at)?;
    let tried = || {
        let options = TreeOptions { has_passthrough: true, ..TreeOptions::default() };
        let tree = Arc::new(Tree::open(&below, Arc::new(Account::new(1 << 20, 10)), options, None)?);
        let options = MountOptions { name: "minerva-doctor".to_owned(), threads: 1, wants_passthrough: true };
        let mounted = mount(tree, &at, &options)?;
        fs::write(at.join("file"), "text")?;
        let is_same = fs::read(at.join("file"))? == b"text";
        let passes = mounted.has_passthrough() && is_same;
        unmount(&at, UnmountFlags::DETACH)?;
        mounted.join()?;
        Ok(passes)
    };
    let tried = tried();
    fs::remove_dir_all(&place)?;
    tried
}

/// Makes a directory to try in. Others take it for left over only once this is dropped.
fn make_own(pool: &Path, place: &Path) -> anyhow::Result<fs::File> {
    let _whole = lock_whole(pool)?;
    fs::create_dir_all(place)?;
    let used = fs::File::open(place)?;
    flock(&used, FlockOperation::NonBlockingLockExclusive)?;
    Ok(used)
}

/// Of several who make such directories or remove those left over, one at a time.
fn lock_whole(pool: &Path) -> std::io::Result<fs::File> {
    let whole = fs::File::open(pool)?;
    flock(&whole, FlockOperation::LockExclusive)?;
    Ok(whole)
}

/// Removes what doctors left in a pool that were ended in the middle, mounts among it. One that is at work has its directory locked.
pub(crate) fn remove_interrupted(pool: &Path) {
    // Where the pool cannot be opened nothing is found in it either.
    let Ok(_whole) = lock_whole(pool) else { return };
    for entry in fs::read_dir(pool).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(OWN) {
            continue;
        }
        let place = entry.path();
        let is_left =
            fs::File::open(&place).is_ok_and(|used| flock(&used, FlockOperation::NonBlockingLockExclusive).is_ok());
        if !is_left {
            continue;
        }
        let removed = prepare(&place.join("at")).and_then(|_| Ok(fs::remove_dir_all(&place)?));
        if let Err(error) = removed {
            eprintln!("minerva-fs: {} was left by a doctor that was interrupted: {error:#}", place.display());
        }
    }
}

fn pool(config: &FsConfig) -> Finding {
    let path = &config.stable.path;
    let wanted: u64 = config.tenants.values().map(|tenant| tenant.stable_bytes).sum();
    let free = rustix::fs::statvfs(path).map(|below| below.f_bavail * below.f_frsize).unwrap_or(0);
    let detail = format!("{} has {} MiB free; quotas add up to {} MiB", path.display(), free >> 20, wanted >> 20);
    Finding { what: "stable pool".to_owned(), is_good: free > config.stable.reserve_bytes, detail }
}

fn service(served: Option<&[TenantStatus]>) -> Finding {
    let Some(tenants) = served else {
        return Finding::note("service", "none answers; start it: systemctl start minerva-fs".to_owned());
    };
    let leaving: Vec<_> = tenants.iter().filter(|tenant| !tenant.leaving.is_empty()).collect();
    let mut detail = format!("{} tenants are served", tenants.len());
    for tenant in leaving {
        // Writing to a string cannot fail.
        let _ = write!(detail, "; {} is no longer in the file but is still served: {}", tenant.name, tenant.leaving);
    }
    Finding::note("service", detail)
}

/// The count that the service keeps beside what a walk finds.
fn quota(config: &FsConfig, served: Option<&[TenantStatus]>) -> Finding {
    let kind = match rustix::fs::statfs(&config.stable.path).map(|below| below.f_type) {
        Ok(EXT4) => "ext4",
        Ok(XFS) => "XFS",
        Ok(BTRFS) => "btrfs, whose qgroups are not used",
        _ => "a file system of another kind",
    };
    let kernel = match (config.stable.second_account, projects::is_offered(&config.stable.path)) {
        (SecondAccount::Kernel, Ok(())) => "the kernel counts projects there too".to_owned(),
        (SecondAccount::Kernel, Err(why)) => format!("{why}; walks compare instead"),
        (_, Ok(())) => "the kernel could count as well: `second_account = \"kernel\"`".to_owned(),
        (SecondAccount::Walk, Err(_)) => "walks compare it while it serves".to_owned(),
        (SecondAccount::None, Err(_)) => {
            "nobody counts as well while it serves: `second_account = \"walk\"`".to_owned()
        }
    };
    let how = format!(
        "by the service's own count, checked before each write and set by a walk at each start; the pool is on {kind}; {kernel}"
    );
    let mut differences = Vec::new();
    for tenant in served.unwrap_or_default() {
        let memory = config.server.runtime.join("temporary").join(&tenant.name).join("tree");
        let stable = [
            config.stable.path.join("tenants").join(&tenant.name),
            config.stable.path.join("spilled").join(&tenant.name),
        ];
        for (tree, folders) in [(&tenant.temporary, &[memory][..]), (&tenant.stable, &stable[..])] {
            let found: u64 = folders.iter().map(|folder| bytes_in(folder)).sum();
            if found != tree.bytes {
                differences.push(format!("{}: {} bytes counted, {found} found", tree.path.display(), tree.bytes));
            }
        }
    }
    let compared = match (served, differences.is_empty()) {
        (None, _) => String::new(),
        (Some(_), true) => "; a walk finds the same".to_owned(),
        (Some(_), false) => {
            format!(
                "; a walk differs, as it does while files change: {}; the next start counts again",
                differences.join(", ")
            )
        }
    };
    Finding::note("quota", how + &compared)
}

/// What somebody else counts of a tenant, and whether it differs.
fn second_accounts(tenant: &TenantStatus) -> Vec<Finding> {
    let trees = [&tenant.temporary, &tenant.stable];
    let compared = trees.into_iter().filter(|tree| !tree.second_account.is_empty());
    let told = compared.map(|tree| {
        let what = if tree.difference.is_empty() { "no difference" } else { tree.difference.as_str() };
        format!("{}: counted as well by {}: {what}", tree.path.display(), tree.second_account)
    });
    told.map(|detail| Finding::note("second account", detail)).collect()
}

fn bytes_in(folder: &Path) -> u64 {
    fs::File::open(folder).ok().and_then(|folder| take_census(&folder).ok()).map_or(0, |census| census.bytes)
}

#[cfg(test)]
mod tests {
    use super::{OWN, lock_whole, make_own, remove_interrupted};
    use std::time::Duration;
    use std::{fs, thread};

    #[test]
    fn what_a_doctor_makes_is_left_over_only_once_it_has_ended() {
        let pool = tempfile::tempdir().unwrap();
        let [made, left] = ["1", "2"].map(|process| pool.path().join(format!("{OWN}{process}")));
        fs::create_dir(&left).unwrap();
        let whole = lock_whole(pool.path()).unwrap();
        thread::scope(|scope| {
            let making = scope.spawn(|| make_own(pool.path(), &made));
            let removing = scope.spawn(|| remove_interrupted(pool.path()));
            // Far more than either takes.
            thread::sleep(Duration::from_millis(200));
            assert_eq!((made.exists(), left.exists()), (false, true), "one at a time");
            drop(whole);
            let used = making.join().unwrap().unwrap();
            removing.join().unwrap();
            remove_interrupted(pool.path());
            assert_eq!((made.exists(), left.exists()), (true, false));
            drop(used);
        });
        remove_interrupted(pool.path());
        assert!(!made.exists());
    }
}
