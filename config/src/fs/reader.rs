//! Reads `fs.toml` and its drop-ins onto one another.

use super::keys::{MIGRATION, SERVER, STABLE, TEMPORARY, TENANT};
use super::{FsConfig, SecondAccount, machine};
use crate::judge::{Judge, Locations};
use crate::layered::read_layers;
use crate::problem::{ConfigErrors, Problem};
use crate::value::did_you_mean;
use std::path::PathBuf;
use std::sync::Arc;
use toml::Spanned;
use toml::de::DeValue;

const TABLES: [&str; 4] = ["server", "pools", "migration", "tenants"];
const POOLS: [&str; 2] = ["temporary", "stable"];
/// It is the name of a directory, and part of the name of a mount.
const NAME_BYTES_MAX: usize = 64;

/// Reads files one after the other; later ones win.
pub(super) fn read_all(files: impl IntoIterator<Item = (PathBuf, String)>) -> Result<FsConfig, ConfigErrors> {
    let (mut config, warnings) = read_layers(files, read_file, across_files)?;
    config.warnings = warnings;
    Ok(config)
}

fn read_file(judge: &mut Judge<'_>, config: &mut FsConfig) {
    judge.top_level(&TABLES, |judge, name, value| match name {
        "server" => {
            if let Some(table) = judge.table(value, "server") {
                judge.keys("server", table, SERVER, &mut config.server);
            }
        }
        "pools" => judge.fs_pools(value, config),
        "migration" => {
            if let Some(table) = judge.table(value, "migration") {
                judge.keys("migration", table, MIGRATION, &mut config.migration);
            }
        }
        _ => judge.fs_tenants(value, config),
    });
}

impl Judge<'_> {
    fn fs_pools(&mut self, value: &Spanned<DeValue<'_>>, config: &mut FsConfig) {
        let Some(table) = self.table(value, "pools") else { return };
        for (name, settings) in table {
            match name.get_ref().as_ref() {
                "temporary" => {
                    if let Some(table) = self.table(settings, "pools.temporary") {
                        self.keys("pools.temporary", table, TEMPORARY, &mut config.temporary);
                    }
                }
                "stable" => {
                    if let Some(table) = self.table(settings, "pools.stable") {
                        self.keys("pools.stable", table, STABLE, &mut config.stable);
                    }
                }
                word => {
                    let help = did_you_mean(word, POOLS.into_iter());
                    self.error(name.span(), format!("unknown pool `{word}`"), "there are two", help);
                }
            }
        }
    }

    fn fs_tenants(&mut self, value: &Spanned<DeValue<'_>>, config: &mut FsConfig) {
        let Some(table) = self.table(value, "tenants") else { return };
        for (name, settings) in table {
            let tenant = name.get_ref().as_ref();
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            if tenant.is_empty()
                || tenant.len() > NAME_BYTES_MAX
                || !tenant.bytes().all(is_plain)
                || tenant.starts_with('.')
            {
                let label = format!("1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`");
                self.error(name.span(), format!("`{tenant}` cannot be a tenant's name"), label, None);
                continue;
            }
            let prefix = format!("tenants.{tenant}");
            let Some(table) = self.table(settings, &prefix) else { continue };
            let place = self.place(name.span());
            let into = config.tenants.entry(tenant.to_owned()).or_default();
            if into.place.is_empty() {
                into.place = place;
            }
            self.keys(&prefix, table, TENANT, into);
        }
    }
}

/// What is wrong where one of these keys stands.
fn problem(places: &Locations, keys: [&str; 2], title: String, help: &str) -> Option<Problem> {
    let (source, span) = keys.iter().find_map(|key| places.get(*key))?;
    Some(Problem {
        source: Arc::clone(source),
        span: span.clone(),
        is_error: true,
        title,
        label: "set here".to_owned(),
        help: Some(help.to_owned()),
    })
}

/// What a guest's file cannot say: keys, what, and what to do.
fn of_guest(config: &FsConfig) -> Vec<([&'static str; 2], String, &'static str)> {
    let mut found = Vec::new();
    if !config.server.is_guest {
        return found;
    }
    if let Some(name) = config.tenants.keys().next() {
        found.push((
            ["server.role", "server.role"],
            format!("a guest has no tenants, and `{name}` is one"),
            "tenants are named on the host: remove them here, or `role`",
        ));
    }
    if config.stable.second_account != SecondAccount::None {
        found.push((
            ["pools.stable.second_account", "server.role"],
            "a guest counts nothing, so that there is nothing to compare".to_owned(),
            "remove `second_account` here, and set it on the host",
        ));
    }
    found
}

/// Tenants whose own watermarks, with what holds of all, leave nothing between the two.
fn watermarks_of_tenants(config: &FsConfig) -> Vec<(&str, String)> {
    let judge = |name: &str| {
        let of = config.watermarks_of(name);
        (of.spill_to_percent >= of.watermark_percent).then(|| {
            format!(
                "`spill_to` of `{name}` is {}, not below its `watermark`, which is {}",
                of.spill_to_percent, of.watermark_percent
            )
        })
    };
    config.tenants.keys().filter_map(|name| Some((name.as_str(), judge(name)?))).collect()
}

/// What only all files together can show.
fn across_files(config: &FsConfig, places: &Locations) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut error = |keys: [&str; 2], title: String, help: &str| problems.extend(problem(places, keys, title, help));
    let temporary = &config.temporary;
    if temporary.spill_to_percent >= temporary.watermark_percent {
        let title = format!(
            "`spill_to` is {}, not below `watermark`, which is {}",
            temporary.spill_to_percent, temporary.watermark_percent
        );
        error(
            ["pools.temporary.spill_to", "pools.temporary.watermark"],
            title,
            "lower `spill_to` or raise `watermark`",
        );
    }
    for (name, title) in watermarks_of_tenants(config) {
        let keys = ["spill_to", "watermark"].map(|key| format!("tenants.{name}.{key}"));
        let help =
            "lower `spill_to` or raise `watermark` of the tenant; what it does not say is as in `[pools.temporary]`";
        error([&keys[0], &keys[1]], title, help);
    }
    for (name, _) in config.tenants.iter().filter(|(_, tenant)| tenant.kernel_writes && tenant.spills_when_full) {
        let keys = ["writes", "when_full"].map(|key| format!("tenants.{name}.{key}"));
        error(
            [&keys[0], &keys[1]],
            format!("files of `{name}` cannot go over to the disk while the kernel writes them"),
            "remove `writes = \"kernel\"`, or set `when_full = \"refuse\"`",
        );
    }
    for (keys, title, help) in of_guest(config) {
        error(keys, title, help);
    }
    for (name, key, title, help) in machine::mistakes(&config.tenants) {
        error([&format!("tenants.{name}.{key}"), &format!("tenants.{name}.machine")], title, help);
    }
    let (mount, pool) = (&config.server.mount, &config.stable.path);
    if pool.starts_with(mount) || mount.starts_with(pool) {
        let title = format!("the pool {} and the mounts at {} lie in one another", pool.display(), mount.display());
        error(
            ["pools.stable.path", "server.mount"],
            title,
            "a file system cannot lie in itself: name two separate directories",
        );
    }
    problems
}
