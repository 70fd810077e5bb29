//! `minerva-blk attach-line DISK`: how a guest gets the disk.

use anyhow::{Context, bail};
use minerva_config::{attach_lines, load_blk};
use std::path::Path;

/// Prints QEMU's arguments and libvirt's XML.
pub(crate) fn run(config: &Path, disk: &str) -> anyhow::Result<()> {
    let settings = load_blk(config).with_context(|| format!("failed to use {}", config.display()))?;
    let Some(found) = settings.disks.get(disk) else {
        let known: Vec<&str> = settings.disks.keys().map(String::as_str).collect();
        bail!("{} has no disk `{disk}`; it has: {}", config.display(), known.join(", "));
    };
    print!("{}", attach_lines(disk, &found.socket_path(disk), found.queues));
    Ok(())
}
