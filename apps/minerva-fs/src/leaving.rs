//! A tenant that the operator's file does not name any more, or names again, or otherwise.

use crate::mount::Mount;
use crate::owner::Owner;
use crate::pool;
use crate::tenant::Tenant;
use minerva_config::{FsConfig, FsTenantSettings};
use std::fs;

/// Until the first look says more.
const JUST_NOW: &str = "the operator's file does not name it any more";

impl Tenant {
    /// New quotas and choices take effect at once; what is there stays, also where it is more.
    pub(crate) fn adjust(&mut self, config: &FsConfig, settings: &FsTenantSettings, owner: Owner) {
        self.owner = owner;
        self.settings = settings.clone();
        // Who writes is as it was when the tree was opened, and with it what keeps the quota.
        let as_opened = FsTenantSettings { kernel_writes: self.temporary.tree.kernel_writes(), ..settings.clone() };
        pool::resize_memory(config, &self.name, &as_opened);
        self.temporary.tree.set_limits(settings.temporary_bytes, settings.temporary_files);
        self.temporary.tree.set_spills_when_full(settings.spills_when_full);
        self.temporary.tree.set_service_reads(settings.service_reads);
        self.stable.tree.set_limits(settings.stable_bytes, settings.stable_files);
        for mount in [&self.temporary, &self.stable] {
            mount.tree.set_reserve(config.stable.reserve_bytes);
        }
        if let Some(disk) = &self.disk {
            disk.set_weight(settings.weight);
        }
    }

    /// The file does not name it any more; whether that is new.
    pub(crate) fn leave(&mut self) -> bool {
        let is_new = self.leaving.is_empty();
        if is_new {
            JUST_NOW.clone_into(&mut self.leaving);
        }
        is_new
    }

    /// The file names it again; whether it was about to leave.
    pub(crate) fn come_back(&mut self) -> bool {
        let was_leaving = !self.leaving.is_empty();
        self.leaving.clear();
        was_leaving
    }

    /// Unmounts what nobody uses, and says once why the rest stays; whether it has left, and nothing of it is in use any more. `waiting`
    /// files of it are to go elsewhere.
    pub(crate) fn try_to_leave(&mut self, config: &FsConfig, waiting: u64) -> bool {
        let why = if waiting > 0 {
            // Links lead to them.
            format!(
                "{waiting} files in it wait for migration: `minerva-ctl cache deferred` says why, `cache flush` moves them"
            )
        } else {
            match self.unmount() {
                // The spiller does not wait for who changes tenants, and another tree must not be opened beside it.
                Ok(None) if !self.temporary.tree.retire() => {
                    "a file of it is on its way from memory to the disk".to_owned()
                }
                Ok(None) => {
                    eprintln!("minerva-fs: {} has left, and its trees are unmounted", self.name);
                    self.tidy(config);
                    return true;
                }
                Ok(Some(why)) => why,
                Err(error) => format!("{error:#}"),
            }
        };
        if self.leaving != why {
            eprintln!("minerva-fs: {} is no longer in the file but is still served: {why}", self.name);
            self.leaving = why;
        }
        false
    }

    /// Unmounts both trees; if one of them is used, which and by whom.
    pub(crate) fn unmount(&mut self) -> anyhow::Result<Option<String>> {
        // Neither before both can go: who works in one of them may need the other yet.
        for mount in [&mut self.stable, &mut self.temporary] {
            if mount.is_used() {
                return Ok(Some(mount.why_in_use()));
            }
        }
        for mount in [&mut self.stable, &mut self.temporary] {
            if !mount.unmount()? {
                return Ok(Some(mount.why_in_use()));
            }
        }
        Ok(None)
    }

    /// Takes away directories of mounts. Files stay, for when the file names it again. Its memory is given back once nobody has anything of it open, so
    /// after this is dropped.
    pub(crate) fn tidy(&self, config: &FsConfig) {
        for Mount { tree, at, .. } in [&self.temporary, &self.stable] {
            tree.remove_deferred_directory();
            let _ = fs::remove_dir(at);
        }
        let _ = fs::remove_dir(config.server.mount.join(&self.name));
    }

    /// Serves again what was unmounted already.
    pub(crate) fn mount_again(&mut self, config: &FsConfig) -> anyhow::Result<()> {
        self.temporary.mount_again(config)?;
        self.stable.mount_again(config)
    }
}
