//! `minerva-fs doctor`: whether it can serve here and how well, and what earlier runs left.

use crate::mount_point::{State, state};
use crate::settings::load;
use anyhow::bail;
use minerva_cachefs::{Account, MountOptions, Tree, TreeOptions, mount, take_census};
use minerva_config::FsConfig;
use rustix::mount::{UnmountFlags, unmount};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: String,
    is_good: bool,
    detail: String,
}

/// Looks at everything, prints it, and fails if it cannot be served.
pub(crate) fn run(path: &Path, json: bool) -> anyhow::Result<()> {
    let config = load(path)?;
    let mut findings = vec![fuse(&config), pool(&config)];
    findings.extend(leftovers(&config));
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
    let place = pool.join(format!(".doctor-{}", std::process::id()));
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

fn pool(config: &FsConfig) -> Finding {
    let path = &config.stable.path;
    let wanted: u64 = config.tenants.values().map(|tenant| tenant.stable_bytes).sum();
    let free = rustix::fs::statvfs(path).map(|below| below.f_bavail * below.f_frsize).unwrap_or(0);
    let detail = format!("{} has {} MiB free; quotas add up to {} MiB", path.display(), free >> 20, wanted >> 20);
    Finding { what: "stable pool".to_owned(), is_good: free > config.stable.reserve_bytes, detail }
}

/// Mounts that nobody serves, and trees of tenants that the file does not name.
fn leftovers(config: &FsConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in config.tenants.keys() {
        for kind in ["temporary", "stable"] {
            let at = config.server.mount.join(name).join(kind);
            if matches!(state(&at), Ok(State::Stale)) {
                let detail = format!("no process serves {}; the next start mounts it again", at.display());
                findings.push(Finding { what: "stale mount".to_owned(), is_good: true, detail });
            }
        }
    }
    for kind in ["tenants", "spilled"] {
        let Ok(entries) = fs::read_dir(config.stable.path.join(kind)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if config.tenants.contains_key(&name) {
                continue;
            }
            let census =
                fs::File::open(entry.path()).ok().and_then(|folder| take_census(&folder).ok()).unwrap_or_default();
            let detail = format!(
                "{} belongs to no tenant in the file: {} files, {} MiB; add the tenant again, or remove the directory",
                entry.path().display(),
                census.files,
                census.bytes >> 20
            );
            findings.push(Finding { what: "orphan".to_owned(), is_good: true, detail });
        }
    }
    findings
}
