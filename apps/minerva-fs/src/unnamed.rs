//! A tenant that the operator's file does not name at a start, though files of it wait to go elsewhere: as after a reload that took it out it is
//! served until they are at their places, and takes nothing new.

use crate::deferred::Deferred;
use crate::descriptors;
use crate::tenant::{Shared, Tenant, Tenants};
use anyhow::{Context, bail};
use minerva_cachefs::Tree;
use minerva_config::{FsConfig, FsTenantSettings, MACHINE_IDS};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::PoisonError;

/// Serves those whose files wait.
pub(crate) fn serve(config: &FsConfig, shared: &Shared, tenants: &Tenants, deferred: &Deferred) {
    let waiting = deferred.unserved();
    if waiting.is_empty() {
        return;
    }
    descriptors::share_among(&shared.descriptors, config.tenants.len() + waiting.len(), config.server.threads);
    for (name, files) in waiting {
        match start(config, shared, &name) {
            Ok(tenant) => {
                eprintln!(
                    "minerva-fs: the file does not name `{name}`, of which {files} deferred files wait: it is served until they are at \
                     their places, and takes nothing new"
                );
                let mut tenants = tenants.write().unwrap_or_else(PoisonError::into_inner);
                tenants.push(tenant);
                tenants.sort_by(|one, other| one.name.cmp(&other.name));
            }
            Err(error) => eprintln!("minerva-fs: `{name}`, which the file does not name, cannot be served: {error:#}"),
        }
    }
}

/// Its trees belong to whom they belonged to; the settings are those of a tenant for which the file says nothing.
fn start(config: &FsConfig, shared: &Shared, name: &str) -> anyhow::Result<Tenant> {
    if fs::metadata(config.server.mount.join(name)).is_ok_and(|folder| folder.gid() >= MACHINE_IDS) {
        bail!("it was a virtual machine when it was served last");
    }
    let root = config.stable.path.join("tenants").join(name);
    let root = fs::symlink_metadata(&root).with_context(|| format!("failed to look at {}", root.display()))?;
    let settings = FsTenantSettings {
        user: Some(root.uid().to_string()),
        group: Some(root.gid().to_string()),
        ..FsTenantSettings::default()
    };
    let mut tenant = Tenant::open(config, name, &settings, shared)?;
    // What its quotas were nobody knows.
    [&tenant.temporary, &tenant.stable].into_iter().for_each(|mount| let_stay(&mount.tree));
    tenant.leave();
    Ok(tenant)
}

/// What is in a tree is no more than a half of what may be there.
fn let_stay(tree: &Tree) {
    let used = tree.usage();
    let most = |used: u64, usual: u64| usual.max(used.saturating_mul(2));
    tree.set_limits(most(used.bytes, used.bytes_max), most(used.files, used.files_max));
}
