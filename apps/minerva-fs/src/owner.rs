//! Who owns a tenant's trees.

use anyhow::{Context, bail};
use minerva_config::FsTenantSettings;
use nix::unistd::{Gid, Group, Uid, User};

/// A user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Owner {
    /// By name or number; the group of the user where none is named. A machine's root is a user without a name.
    pub(crate) fn find(tenant: &FsTenantSettings) -> anyhow::Result<Self> {
        if tenant.machine.is_some() {
            return Ok(Self { uid: tenant.ids, gid: tenant.ids });
        }
        let user = match &tenant.user {
            None => None,
            Some(name) => Some(match name.parse() {
                Ok(number) => (Uid::from_raw(number), User::from_uid(Uid::from_raw(number)).ok().flatten()),
                Err(_) => match User::from_name(name).context("failed to look for a user")? {
                    Some(user) => (user.uid, Some(user)),
                    None => bail!("`user`: there is no user `{name}`; make it: useradd --system {name}"),
                },
            }),
        };
        let gid = match &tenant.group {
            Some(name) => match name.parse() {
                Ok(number) => Gid::from_raw(number),
                Err(_) => match Group::from_name(name).context("failed to look for a group")? {
                    Some(group) => group.gid,
                    None => bail!("`group`: there is no group `{name}`; make it: groupadd --system {name}"),
                },
            },
            None => match &user {
                Some((_, Some(user))) => user.gid,
                Some((uid, None)) => Gid::from_raw(uid.as_raw()),
                None => Gid::from_raw(0),
            },
        };
        Ok(Self { uid: user.map_or(0, |(uid, _)| uid.as_raw()), gid: gid.as_raw() })
    }
}
