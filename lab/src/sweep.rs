//! Removes what killed runs left behind: disks (loop device, mount, name), cgroups and the processes in them.
//! Whatever has a living owner is left alone, so runs can sweep while others work.

use crate::disk::{leftover_names, remove_leftover, source_name};
use crate::error::Result;
use crate::workload::remove_leftover_cgroups;
use serde::Serialize;

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Names of disks.
    pub disks: Vec<String>,
    /// How many parents of tenants' cgroups.
    pub cgroups: usize,
}

/// Removes the leftovers whose name starts with `prefix`, such as `minerva-test-` or `minerva-lab-`.
pub fn sweep(prefix: &str) -> Result<Swept> {
    let mut swept = Swept { disks: Vec::new(), cgroups: remove_leftover_cgroups(prefix) };
    for name in leftover_names() {
        if source_name(&name).starts_with(prefix) && remove_leftover(&name)? {
            swept.disks.push(name);
        }
    }
    Ok(swept)
}
