//! In a virtual machine: the trees that its host serves to it by virtiofs (`machine` there), out of which files are moved to the machine's own
//! disks (docs/adr/0064). Nothing is mounted or counted here; everybody in the machine may use them.

use crate::mount::Mount;
use crate::tenant::{Tenant, Tenants};
use anyhow::{Context, bail};
use minerva_cachefs::{Account, Tree, TreeOptions};
use minerva_config::{FsConfig, MigrationSettings};
use rustix::fs::statfs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// What its one tenant is called here.
const NAME: &str = "guest";
/// Where the agent listens.
const AGENT: &str = "/run/minerva/agent.sock";
/// FUSE's number of a file system (statfs(2)), which virtiofs has too.
const FUSE: i64 = 0x6573_5546;

/// The one tenant.
pub(crate) fn tenants(config: &FsConfig) -> anyhow::Result<Tenants> {
    let open = |kind| open(&config.server.mount.join(kind), kind == "stable");
    let tenant = Tenant::of_guest(NAME, open("temporary")?, open("stable")?);
    Ok(Arc::new(RwLock::new(vec![tenant])))
}

/// Where the host is asked: at the agent, unless the file names another socket.
pub(crate) fn agent(config: &FsConfig) -> PathBuf {
    let named = &config.migration.daemon;
    if *named == MigrationSettings::default().daemon { PathBuf::from(AGENT) } else { named.clone() }
}

/// Finds trees again that the host serves anew.
pub(crate) fn look_again(tenants: &Tenants) {
    let mut tenants = tenants.write().unwrap_or_else(PoisonError::into_inner);
    for tenant in tenants.iter_mut() {
        for mount in [&mut tenant.temporary, &mut tenant.stable] {
            if !mount.is_served()
                && let Ok(new) = open(&mount.at, mount.at.ends_with("stable"))
            {
                eprintln!("minerva-fs: {} is served again", mount.at.display());
                *mount = new;
            }
        }
    }
}

/// Whether a tree of the host is mounted there; else what to do.
pub(crate) fn judge(at: &Path) -> anyhow::Result<()> {
    // An empty directory of the machine's own must not be taken for a tree without files: links to them would go.
    let found = statfs(at).with_context(|| format!("failed to look at {}; is it mounted?", at.display()))?;
    if found.f_type as i64 != FUSE {
        bail!(
            "{} is no tree of the host: mount -t virtiofs minerva {}",
            at.display(),
            at.parent().unwrap_or(at).display()
        );
    }
    Ok(())
}

fn open(at: &Path, has_xattrs: bool) -> anyhow::Result<Mount> {
    judge(at)?;
    let options = TreeOptions { has_xattrs, is_served_elsewhere: true, ..TreeOptions::default() };
    let tree = Tree::open(at, Arc::new(Account::new(u64::MAX, u64::MAX)), options, None)?;
    Ok(Mount::served_elsewhere(tree, at))
}
