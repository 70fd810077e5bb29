//! Where a file lies, why, and what happens next.

use crate::deferred::{Deferred, Earned};
use crate::mount::Mount;
use crate::tenant::{Tenant, Tenants};
use crate::user::User;
use anyhow::{Context, bail};
use minerva_api::cache::DeferredFile;
use minerva_cachefs::Whereabouts;
use minerva_model::MicroCredits;
use std::path::Path;
use std::sync::PoisonError;

/// In words, a sentence each.
pub(crate) fn explain(tenants: &Tenants, deferred: &Deferred, user: &User, path: &Path) -> anyhow::Result<Vec<String>> {
    if let Some(file) = deferred.find(user, path) {
        return Ok(told_deferred(deferred, &file));
    }
    let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
    for tenant in tenants.iter().filter(|tenant| tenant.is_for(user)) {
        for mount in [&tenant.temporary, &tenant.stable] {
            if let Ok(inner) = path.strip_prefix(&mount.at) {
                // In a guest the trees are of all its users: nobody is told of what they could not look at themselves.
                let found = user.act(|| mount.tree.whereabouts(inner).map_err(std::io::Error::from));
                let found = found.with_context(|| format!("failed to look at {}", path.display()))?;
                return Ok(told(tenant, mount, path, found));
            }
        }
    }
    bail!("{} is not in a pool of yours, and not a link to a file that waits in one", path.display())
}

fn told_deferred(deferred: &Deferred, file: &DeferredFile) -> Vec<String> {
    let kept = if file.step == "left" { "stays in the pool" } else { "waits in the pool" };
    let mut lines = vec![
        format!(
            "{} {kept} as {}, {} bytes, deferred file {} of {}",
            file.path, file.data, file.bytes, file.id, file.tenant
        ),
        format!("for {} s now; {}: {}", file.waited_seconds, file.step, file.why),
        match file.step.as_str() {
            "left" => {
                format!(
                    "`minerva-ctl cache drop {}` removes it; put the link back where it was and it moves, or, if its directory was \
                     moved elsewhere, name that: `minerva-ctl cache deferred DIRECTORY`",
                    file.id
                )
            }
            _ if deferred.is_of_guest() => {
                "it moves to its destination once the host says, through the agent, that nobody else uses \
                                            the disk there; `minerva-ctl cache flush` moves it without waiting"
                    .to_owned()
            }
            _ => "it moves to its destination while nobody else uses the disk there; `minerva-ctl cache flush` \
                  moves it without waiting"
                .to_owned(),
        },
    ];
    if file.counted_bytes > 0 {
        let Earned { micro_credits, why } = deferred.earned(&file.tenant);
        lines.push(format!(
            "{} bytes of it were moved in gaps and count for the credits of whoever asked for it; files of {} earned {} \
             since the start{}{why}",
            file.counted_bytes,
            file.tenant,
            MicroCredits(micro_credits),
            if why.is_empty() { "" } else { "; at last: " }
        ));
    }
    lines
}

fn told(tenant: &Tenant, mount: &Mount, path: &Path, found: Whereabouts) -> Vec<String> {
    let is_memory = std::ptr::eq(mount, &raw const tenant.temporary);
    if mount.tree.is_served_elsewhere() {
        return told_in_guest(path, is_memory, found);
    }
    let name = &tenant.name;
    let place = match (is_memory, found.is_spilled) {
        (false, _) => format!("on the disk of the pool, in {name}'s `stable`"),
        (true, false) => format!("in memory, in {name}'s `temporary`"),
        (true, true) => {
            format!("on the pool's disk: it was moved there from {name}'s `temporary`, which was short of memory")
        }
    };
    let opened = match found.opens {
        0 => "nobody has it open".to_owned(),
        1 => "it is open once".to_owned(),
        opens => format!("it is open {opens} times"),
    };
    let usage = mount.tree.usage();
    let next = match (is_memory, found.is_spilled) {
        (false, _) => "it stays there until it is removed".to_owned(),
        (true, true) => "it does not come back to memory; a restart of the machine loses it".to_owned(),
        (true, false) if found.opens > 0 => {
            "as long as it is open it stays in memory; a restart of the machine loses it".to_owned()
        }
        (true, false) => format!(
            "{} % of the quota is used; above the watermark, the files that were not used for longest go to disk; a \
             restart of the machine loses it",
            u128::from(usage.bytes) * 100 / u128::from(usage.bytes_max.max(1))
        ),
    };
    vec![format!("{} lies {place}: {} bytes; {opened}", path.display(), found.bytes), next]
}

/// What a machine knows of a file that its host serves: not whether it was moved from memory to disk there, nor who has it open elsewhere.
fn told_in_guest(path: &Path, is_memory: bool, found: Whereabouts) -> Vec<String> {
    let (place, next) = if is_memory {
        ("in the host's memory", "a restart of this machine keeps it; one of the host loses it")
    } else {
        ("on the disk of the host's pool", "it stays there until it is removed")
    };
    vec![format!("{} lies {place}: {} bytes", path.display(), found.bytes), next.to_owned()]
}
