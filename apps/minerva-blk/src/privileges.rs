//! Once everything is open, root is no longer needed.

use anyhow::{Context, bail};
use minerva_config::BlkServerSettings;
use nix::unistd::{Gid, Group, Uid, User, chown, geteuid, setgid, setgroups, setuid};
use std::path::PathBuf;

/// Who the server becomes, and who may connect: looked up before anything is opened.
pub(crate) struct Identity {
    user: Option<User>,
    socket_group: Option<Gid>,
}

impl Identity {
    /// Finds user and group.
    pub(crate) fn find(settings: &BlkServerSettings) -> anyhow::Result<Self> {
        let user = match &settings.user {
            Some(name) => {
                let found = User::from_name(name).context("failed to look for a user")?;
                let help = || format!("`server.user`: there is no user `{name}`; make it: useradd --system {name}");
                Some(found.with_context(help)?)
            }
            None => None,
        };
        let socket_group = match &settings.socket_group {
            Some(name) => {
                let found = Group::from_name(name).context("failed to look for a group")?;
                let help =
                    || format!("`server.socket_group`: there is no group `{name}`; name that of QEMU's processes");
                Some(found.with_context(help)?.gid)
            }
            None => None,
        };
        Ok(Self { user, socket_group })
    }

    /// Lets the group connect, and gives the sockets to who the server will be.
    pub(crate) fn own(&self, sockets: &[PathBuf]) -> anyhow::Result<()> {
        let user = self.user.as_ref().map(|user| user.uid);
        if user.is_none() && self.socket_group.is_none() {
            return Ok(());
        }
        for socket in sockets {
            let owner = user.filter(|_| geteuid().is_root());
            chown(socket, owner, self.socket_group)
                .with_context(|| format!("failed to give {} to its user and group", socket.display()))?;
        }
        Ok(())
    }

    /// Becomes the user, for good. What is open stays so.
    pub(crate) fn become_user(&self) -> anyhow::Result<()> {
        let Some(user) = self.user.as_ref().filter(|_| geteuid().is_root()) else { return Ok(()) };
        setgroups(&[user.gid]).context("failed to leave root's groups")?;
        setgid(user.gid).context("failed to leave root's group")?;
        setuid(user.uid).context("failed to leave root")?;
        if setuid(Uid::from_raw(0)).is_ok() {
            bail!("still root after becoming `{}`", user.name);
        }
        Ok(())
    }
}
