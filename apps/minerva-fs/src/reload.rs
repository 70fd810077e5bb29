//! The operator's file, read again while trees are served. What is wrong with it is found before anything changes; new tenants are mounted
//! first, and if one cannot be, all stays as it was.

use crate::deferred::Deferred;
use crate::descriptors;
use crate::owner::Owner;
use crate::pool;
use crate::projects;
use crate::settings::{Settings, load, not_there, socket};
use crate::tenant::{Shared, Tenant, Tenants};
use anyhow::{Context, bail};
use minerva_api::cache::{Answer, Request, ask_within};
use minerva_config::{FsConfig, FsTenantSettings, machine_mistakes};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Who reads the file again.
pub(crate) struct Reloader {
    pub(crate) path: PathBuf,
    pub(crate) settings: Arc<Settings>,
    pub(crate) tenants: Tenants,
    pub(crate) shared: Shared,
    pub(crate) deferred: Arc<Deferred>,
    /// Held by who changes which tenants there are.
    pub(crate) changing: Mutex<()>,
}

impl Reloader {
    /// Puts the file in force; what changed, a line each. Where it fails nothing has changed.
    pub(crate) fn reload(&self) -> anyhow::Result<Vec<String>> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = load(&self.path)?;
        let running = self.settings.now();
        if running.server.is_guest || config.server.is_guest {
            bail!("in a guest, and to become one, the file takes a restart: systemctl restart minerva-fs");
        }
        let mut changes = keep_what_takes_a_restart(&running, &mut config);
        changes.extend(self.keep_machines(&mut config));
        self.refuse_shared_machines(&config)?;
        let owners = owners(&config)?;
        let started = self.start_new(&config)?;
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        changes.extend(started.iter().map(|tenant| format!("{} is served", tenant.name)));
        for tenant in tenants.iter_mut() {
            changes.extend(match config.tenants.get(&tenant.name) {
                Some(settings) => {
                    let before = running.tenants.get(&tenant.name);
                    let came_back = tenant.come_back();
                    tenant.adjust(&config, settings, owners[&tenant.name]);
                    change(tenant, before, settings, came_back)
                }
                None => tenant.leave().then(|| {
                    format!("{} leaves: it is unmounted once nobody uses it and nothing waits in it", tenant.name)
                }),
            });
        }
        tenants.extend(started);
        tenants.sort_by(|one, other| one.name.cmp(&other.name));
        drop(tenants);
        changes.extend(pool_changes(&running, &config));
        self.settings.set(config);
        Ok(changes)
    }

    /// Whether a tenant is a machine, and whose its trees are there, decided how they were opened. Also of one that leaves.
    fn keep_machines(&self, config: &mut FsConfig) -> Vec<String> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let mut told = Vec::new();
        for tenant in tenants.iter() {
            let Some(settings) = config.tenants.get_mut(&tenant.name) else { continue };
            let now = tenant.settings.machine.as_ref().map(|_| tenant.settings.ids);
            if settings.machine.as_ref().map(|_| settings.ids) == now {
                continue;
            }
            told.push(takes_a_restart(&format!("tenants.{}.{}", tenant.name, machine_key(&tenant.settings, settings))));
            settings.machine.clone_from(&tenant.settings.machine);
            settings.ids = tenant.settings.ids;
            // They say whose it is once it is no machine.
            settings.user.clone_from(&tenant.settings.user);
            settings.group.clone_from(&tenant.settings.group);
        }
        told
    }

    /// The file was judged as it stands. With what stays as it was, and beside those that leave, two machines could have the same users
    /// all the same, or one be two tenants.
    fn refuse_shared_machines(&self, config: &FsConfig) -> anyhow::Result<()> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = config.tenants.clone();
        for leaving in tenants.iter() {
            let Tenant { name, settings, .. } = leaving;
            // A machine by another tenant's name is the same one as long as it has the same numbers.
            let is_same = |other: &FsTenantSettings| (&other.machine, other.ids) == (&settings.machine, settings.ids);
            if !all.values().any(is_same) {
                all.entry(name.clone()).or_insert_with(|| settings.clone());
            }
        }
        drop(tenants);
        let mistakes = machine_mistakes(&all);
        if !mistakes.is_empty() {
            bail!(
                "{}, until what is served now is served as the file says: systemctl restart minerva-fs",
                mistakes.join("; ")
            );
        }
        Ok(())
    }

    /// Mounts the tenants that are not served yet, and those of whom a part is unmounted already. If one fails, none stays.
    fn start_new(&self, config: &FsConfig) -> anyhow::Result<Vec<Tenant>> {
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        for tenant in tenants.iter_mut().filter(|tenant| config.tenants.contains_key(&tenant.name)) {
            // Where a later one fails this one still leaves, as the next look finds.
            tenant.mount_again(config)?;
        }
        let served: Vec<String> = tenants.iter().map(|tenant| tenant.name.clone()).collect();
        drop(tenants);
        let new: Vec<_> = config.tenants.iter().filter(|(name, _)| !served.contains(*name)).collect();
        descriptors::share_among(&self.shared.descriptors, served.len() + new.len(), config.server.threads);
        let mut started: Vec<Tenant> = Vec::new();
        for (name, settings) in new {
            match Tenant::start(config, name, settings, &self.shared) {
                Ok(tenant) => started.push(tenant),
                Err(error) => {
                    for mut tenant in started {
                        // Nobody knows of it yet.
                        for mount in [&mut tenant.temporary, &mut tenant.stable] {
                            let _ = mount.unmount();
                        }
                        tenant.tidy(config);
                        let name = tenant.name.clone();
                        drop(tenant);
                        pool::give_back(config, &name);
                    }
                    descriptors::share_among(&self.shared.descriptors, served.len(), config.server.threads);
                    return Err(error).with_context(|| format!("{}: tenant `{name}`", settings.place));
                }
            }
        }
        Ok(started)
    }

    /// Unmounts the tenants that leave, as far as nobody uses them and nothing waits in them; says once why one is still there.
    pub(crate) fn look_after_leaving(&self) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_leaving = |tenant: &Tenant| !tenant.leaving.is_empty();
        if !self.tenants.read().unwrap_or_else(PoisonError::into_inner).iter().any(is_leaving) {
            return;
        }
        let waiting = self.deferred.files_by_tenant();
        let config = self.settings.now();
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Vec::new();
        tenants.retain_mut(|tenant| {
            let files = waiting.get(&tenant.name).copied().unwrap_or(0);
            let has_left = is_leaving(tenant) && tenant.try_to_leave(&config, files);
            if has_left {
                gone.push(tenant.name.clone());
            }
            !has_left
        });
        let left = tenants.len();
        for name in &gone {
            // Before anybody is told that it has left, or it is named again.
            pool::give_back(&config, name);
        }
        drop(tenants);
        if !gone.is_empty() {
            descriptors::share_among(&self.shared.descriptors, left, config.server.threads);
        }
        for name in gone {
            // A walk through all of its files, for which nobody else has to wait but who changes tenants.
            if let Err(error) = projects::undo(&config.stable.path, &name) {
                eprintln!("minerva-fs: {name}'s files keep their project: {error:#}");
            }
        }
    }
}

/// To the log.
pub(crate) fn tell(changes: &[String]) {
    if changes.is_empty() {
        eprintln!("minerva-fs: the file was read again and says nothing new");
    }
    for change in changes {
        eprintln!("minerva-fs: {change}");
    }
}

/// `minerva-fs reload`.
pub(crate) fn run(config: &Path) -> anyhow::Result<()> {
    let socket = socket(&load(config)?);
    match ask_within(&socket, &Request::Reload, None).with_context(|| not_there(&socket))? {
        Answer::Reloaded { changes } if changes.is_empty() => println!("the file says nothing new"),
        Answer::Reloaded { changes } => println!("{}", changes.join("\n")),
        Answer::Refused { why } => bail!("nothing was changed: {why}"),
        _ => bail!("the minerva-fs that serves is another version; restart it: systemctl restart minerva-fs"),
    }
    Ok(())
}

/// Who owns each tenant's trees; all are found before anything changes.
fn owners(config: &FsConfig) -> anyhow::Result<BTreeMap<String, Owner>> {
    let find = |(name, settings): (&String, &FsTenantSettings)| {
        let owner = Owner::find(settings).with_context(|| format!("{}: tenant `{name}`", settings.place))?;
        Ok((name.clone(), owner))
    };
    config.tenants.iter().map(find).collect()
}

fn takes_a_restart(key: &str) -> String {
    format!("`{key}` takes a restart: systemctl restart minerva-fs")
}

/// Which key of a machine is another.
fn machine_key(before: &FsTenantSettings, after: &FsTenantSettings) -> &'static str {
    if before.machine.is_some() == after.machine.is_some() { "ids" } else { "machine" }
}

/// Keys that decide where everything lies are those of the start.
fn keep_what_takes_a_restart(running: &FsConfig, config: &mut FsConfig) -> Vec<String> {
    let mut told = Vec::new();
    let mut keep = |key: &str, is_same: bool| {
        if !is_same {
            told.push(takes_a_restart(key));
        }
    };
    keep("server.mount", running.server.mount == config.server.mount);
    keep("server.runtime", running.server.runtime == config.server.runtime);
    keep("server.threads", running.server.threads == config.server.threads);
    keep("server.metrics", running.server.metrics == config.server.metrics);
    keep("pools.stable.path", running.stable.path == config.stable.path);
    keep("pools.stable.scheduler", running.stable.is_scheduled == config.stable.is_scheduled);
    keep("pools.stable.second_account", running.stable.second_account == config.stable.second_account);
    keep("pools.stable.depth", running.stable.depth == config.stable.depth);
    keep("migration.daemon", running.migration.daemon == config.migration.daemon);
    for (name, settings) in &config.tenants {
        let before = running.tenants.get(name).map_or(settings.kernel_writes, |before| before.kernel_writes);
        keep(&format!("tenants.{name}.writes"), before == settings.kernel_writes);
    }
    config.server = running.server.clone();
    config.stable.path.clone_from(&running.stable.path);
    (config.stable.is_scheduled, config.stable.depth) = (running.stable.is_scheduled, running.stable.depth);
    config.stable.second_account = running.stable.second_account;
    config.migration.daemon.clone_from(&running.migration.daemon);
    told
}

fn pool_changes(before: &FsConfig, after: &FsConfig) -> Vec<String> {
    let mut told = Vec::new();
    if before.temporary != after.temporary {
        let temporary = &after.temporary;
        told.push(format!(
            "above {} % of a tenant's memory closed files go to the disk, down to {} %",
            temporary.watermark_percent, temporary.spill_to_percent
        ));
    }
    if before.stable != after.stable {
        told.push(format!("{} MiB stay free on the disk of the pool", after.stable.reserve_bytes >> 20));
    }
    if before.migration != after.migration {
        let (defer_up_to_percent, wait_max) = (after.migration.defer_up_to_percent, after.migration.wait_max);
        told.push(format!(
            "files are deferred up to {defer_up_to_percent} % of a pool, and wait for a quiet disk for {} s at most",
            wait_max.0 / 1_000_000_000
        ));
    }
    told
}

/// What is told of one tenant; nothing where nothing changed.
fn change(
    tenant: &Tenant,
    before: Option<&FsTenantSettings>,
    after: &FsTenantSettings,
    came_back: bool,
) -> Option<String> {
    let name = &tenant.name;
    let same = |settings: &FsTenantSettings| FsTenantSettings { place: after.place.clone(), ..settings.clone() };
    match before {
        _ if came_back => Some(format!("{name} stays after all")),
        Some(before) if same(before) == *after => None,
        Some(before) if (&before.user, &before.group) != (&after.user, &after.group) => Some(format!(
            "{name} has new settings and another owner; the roots of its trees stay whose they were: chown {}:{} {} {}",
            tenant.owner.uid,
            tenant.owner.gid,
            tenant.temporary.at.display(),
            tenant.stable.at.display()
        )),
        _ => Some(format!("{name} has new settings")),
    }
}
