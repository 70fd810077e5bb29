//! Which tenant a user is, and whether it may defer by it.

use crate::mount::Mount;
use crate::tenant::Tenant;
use crate::user::User;
use anyhow::{Context, bail};
use std::io;

/// The tenants that a user is: by its own name, or, if by none, by a group that may write in the trees. Root is all of them.
pub(crate) fn tenants_of<'a>(tenants: &'a [Tenant], user: &User) -> Vec<&'a Tenant> {
    let is_own = |tenant: &&Tenant| user.uid == 0 || tenant.is_owned_by(user);
    let own: Vec<_> = tenants.iter().filter(is_own).collect();
    if own.is_empty() { tenants.iter().filter(|tenant| tenant.is_for(user)).collect() } else { own }
}

/// Which tenant a user is.
pub(crate) fn find_tenant<'a>(tenants: &'a [Tenant], user: &User, named: Option<&str>) -> anyhow::Result<&'a Tenant> {
    if let Some(name) = named {
        let found = tenants.iter().find(|tenant| tenant.name == name && tenant.is_for(user));
        return found.with_context(|| format!("there is no tenant `{name}` of yours"));
    }
    let mut found = tenants_of(tenants, user);
    if found.iter().any(|tenant| tenant.leaving.is_empty()) {
        // One that was renamed in the operator's file is served under its old name until nobody uses that, and takes nothing new there.
        found.retain(|tenant| tenant.leaving.is_empty());
    }
    match found[..] {
        [] => bail!("user {} has no tree in the pool", user.uid),
        [tenant] => Ok(tenant),
        _ => bail!("you are several tenants: name one"),
    }
}

/// The group of a tenant's user may defer, unless the user has shut the group out of the trees by their roots' modes.
pub(super) fn judge_member(tenant: &Tenant, mount: &Mount, user: &User) -> anyhow::Result<()> {
    if user.uid == 0 || tenant.is_owned_by(user) || mount.tree.is_served_elsewhere() {
        return Ok(());
    }
    let look = || mount.tree.may_write_in_root().map_err(io::Error::from);
    user.act(look).with_context(|| format!("{} is not open to you, as its owner set it", mount.at.display()))
}

/// What a machine can change is nothing to put to a place of the host's, with the owner and mode that it has by then.
pub(crate) fn judge_machine(tenant: &Tenant) -> anyhow::Result<()> {
    if tenant.is_machine {
        bail!("{} is a virtual machine, which defers its own files to its own disks", tenant.name);
    }
    Ok(())
}
