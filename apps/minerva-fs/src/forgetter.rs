//! A file that the kernel knows is a descriptor here, also long after anybody had it open. When descriptors become few the kernel is
//! asked to forget such files, of the trees that have more than their part.

use crate::looker::Looker;
use crate::tenant::Tenants;
use minerva_cachefs::Descriptors;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(50);
/// Between two rounds while they are few.
const AGAIN: Duration = Duration::from_millis(1);
/// Names of a tree that are forgotten in a round.
const NAMES_MAX: usize = 1000;

/// Looks twenty times a second.
pub(crate) fn start(tenants: Tenants, descriptors: Arc<Descriptors>) -> anyhow::Result<Looker> {
    Looker::start("forgetter", move |stop| {
        let mut pause = LOOK;
        while !stop.comes_within(pause) {
            // Where all that is known is in use there is no hurry.
            let is_done = !descriptors.is_short() || forget(&tenants) == 0;
            pause = if is_done { LOOK } else { AGAIN };
        }
    })
}

/// One round; how many names were forgotten.
fn forget(tenants: &Tenants) -> usize {
    let found: Vec<_> = {
        let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
        let mounts = tenants.iter().flat_map(|tenant| [&tenant.temporary, &tenant.stable]);
        let beyond = mounts.filter(|mount| mount.tree.descriptors_beyond() > 0);
        beyond.filter_map(|mount| Some((mount.forgetting()?, mount.tree.idle_names(NAMES_MAX)))).collect()
    };
    let mut forgotten = 0;
    for (kernel, names) in found {
        for (directory, name) in names {
            forgotten += usize::from(kernel.forget(directory, &name).is_ok());
        }
    }
    forgotten
}
