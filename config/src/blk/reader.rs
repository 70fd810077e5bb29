//! Reads `blk.toml` and its drop-ins onto one another.

use super::keys::{DEVICE, DISK, SERVER};
use super::{BlkConfig, VM_DISK_NAME_FORM, VmDiskSettings, is_vm_disk_name};
use crate::forms::check_disk_name;
use crate::judge::{Judge, Locations};
use crate::layered::read_layers;
use crate::problem::{ConfigErrors, Problem};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use toml::Spanned;
use toml::de::DeValue;

const TABLES: [&str; 3] = ["server", "devices", "disks"];

/// Reads files one after the other; later ones win.
pub(super) fn read_all(files: impl IntoIterator<Item = (PathBuf, String)>) -> Result<BlkConfig, ConfigErrors> {
    let (mut config, warnings) = read_layers(files, read_file, across_files)?;
    config.warnings = warnings;
    Ok(config)
}

fn read_file(judge: &mut Judge<'_>, config: &mut BlkConfig) {
    judge.top_level(&TABLES, |judge, name, value| match name {
        "server" => {
            if let Some(table) = judge.table(value, "server") {
                judge.keys("server", table, SERVER, &mut config.server);
            }
        }
        "devices" => judge.blk_devices(value, config),
        _ => judge.blk_disks(value, config),
    });
}

impl Judge<'_> {
    fn blk_devices(&mut self, value: &Spanned<DeValue<'_>>, config: &mut BlkConfig) {
        let Some(table) = self.table(value, "devices") else { return };
        for (name, settings) in table {
            let device = name.get_ref().as_ref();
            if let Err(label) = check_disk_name(device) {
                let help = "write `[devices.sda]`, with the name that `lsblk` shows".to_owned();
                self.error(name.span(), format!("invalid disk name `{device}`"), label, Some(help));
                continue;
            }
            let prefix = format!("devices.{device}");
            if let Some(table) = self.table(settings, &prefix) {
                self.keys(&prefix, table, DEVICE, config.devices.entry(device.to_owned()).or_default());
            }
        }
    }

    fn blk_disks(&mut self, value: &Spanned<DeValue<'_>>, config: &mut BlkConfig) {
        let Some(table) = self.table(value, "disks") else { return };
        for (name, settings) in table {
            let disk = name.get_ref().as_ref();
            if !is_vm_disk_name(disk) {
                self.error(
                    name.span(),
                    format!("`{disk}` cannot be a disk's name"),
                    VM_DISK_NAME_FORM.to_owned(),
                    None,
                );
                continue;
            }
            let prefix = format!("disks.{disk}");
            let Some(table) = self.table(settings, &prefix) else { continue };
            let place = self.place(name.span());
            let into = config.disks.entry(disk.to_owned()).or_default();
            if into.place.is_empty() {
                into.place = place;
            }
            self.keys(&prefix, table, DISK, into);
            self.places.entry(prefix).or_insert_with(|| (Arc::clone(self.source), name.span()));
        }
    }
}

/// What only all files together can show.
fn across_files(config: &BlkConfig, places: &Locations) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut error = |key: &str, title: String, label: &str, help: &str| {
        if let Some((source, span)) = places.get(key) {
            problems.push(Problem {
                source: Arc::clone(source),
                span: span.clone(),
                is_error: true,
                title,
                label: label.to_owned(),
                help: Some(help.to_owned()),
            });
        }
    };
    let (mut images, mut sockets) = (BTreeMap::new(), BTreeMap::new());
    for (name, disk) in &config.disks {
        let key = |key: &str| format!("disks.{name}.{key}");
        if !places.contains_key(&key("image")) {
            let help = "add `image = \"/PATH\"`: a raw image or a block device";
            error(&format!("disks.{name}"), format!("the disk `{name}` has no image"), "nothing to serve", help);
            continue;
        }
        if let Some(other) = images.insert(disk.image.clone(), name)
            && !(disk.read_only && config.disks[other].read_only)
        {
            let title = format!("`{name}` and `{other}` have one image");
            error(&key("image"), title, "the second", "give each its own, or set `read_only = true` for both");
        }
        if let Some(other) = disk.socket.clone().and_then(|socket| sockets.insert(socket, name)) {
            let title = format!("`{name}` and `{other}` have one socket");
            error(&key("socket"), title, "the second", "give each its own");
        }
        for word in ["burst", "delay"] {
            if disk.rate_bytes_per_second.is_none() && places.contains_key(&key(word)) {
                let title = format!("`{word}` without `rate`");
                error(&key(word), title, "no contract", "add `rate`, the bytes a second that are promised");
            }
        }
        if disk.tag_default > disk.tag_max {
            let word = if places.contains_key(&key("tag_default")) { "tag_default" } else { "tag_max" };
            let title = format!("`tag_default` is {}, above `tag_max`, which is {}", disk.tag_default, disk.tag_max);
            error(&key(word), title, "set here", "lower `tag_default` or raise `tag_max`");
        }
        impossible_limit(disk, &key("limit"), &mut error);
    }
    problems
}

fn impossible_limit(disk: &VmDiskSettings, key: &str, error: &mut impl FnMut(&str, String, &str, &str)) {
    if let (Some(limit), Some(rate)) = (disk.limit_bytes_per_second, disk.rate_bytes_per_second)
        && limit < rate
    {
        error(key, "`limit` is below `rate`".to_owned(), "set here", "what is promised must be allowed: raise `limit`");
    }
}
