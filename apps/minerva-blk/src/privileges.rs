//! Once everything is open, root is no longer needed.

use anyhow::{Context, bail};
use minerva_config::BlkServerSettings;
use nix::unistd::{Gid, Group, Uid, User, chown, geteuid, setgid, setgroups, setuid};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const STAYS_ROOT: &str = "the server stays root, as `server.user` is not set: it is confined all the same, but can remove files, and \
     read them where the kernel has no Landlock; set `user = \"minerva-blk\"` below `[server]`";

/// Who the server becomes, and who may connect: looked up before anything is opened.
pub(crate) struct Identity {
    user: Option<User>,
    socket_group: Option<Gid>,
    operator_group: Option<Gid>,
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
        let of_qemu = "name that of QEMU's processes";
        let socket_group = group("server.socket_group", settings.socket_group.as_deref(), of_qemu)?;
        let of_operators = "add it, or remove the key for root only";
        let operator_group = group("server.operator_group", settings.operator_group.as_deref(), of_operators)?;
        Ok(Self { user, socket_group, operator_group })
    }

    /// Who the server is after [`Identity::become_user`].
    pub(crate) fn user(&self) -> u32 {
        self.user.as_ref().filter(|_| geteuid().is_root()).map_or(geteuid(), |user| user.uid).as_raw()
    }

    /// Whose members may connect to the sockets of disks.
    pub(crate) fn socket_group(&self) -> Option<u32> {
        self.socket_group.map(Gid::as_raw)
    }

    /// Whose members may change what is served.
    pub(crate) fn operator_group(&self) -> Option<u32> {
        self.operator_group.map(Gid::as_raw)
    }

    /// Lets operators connect to the control socket.
    pub(crate) fn open_to_operators(&self, socket: &Path) -> anyhow::Result<()> {
        let mode = if self.operator_group.is_some() { 0o660 } else { 0o600 };
        let context = || format!("failed to give {} to `server.operator_group`", socket.display());
        if self.operator_group.is_some() {
            chown(socket, None, self.operator_group).with_context(context)?;
        }
        std::fs::set_permissions(socket, Permissions::from_mode(mode)).with_context(context)
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

    /// Becomes the user, for good. What is open stays so. Where the file names none, root stays root, and the log says what that means.
    pub(crate) fn become_user(&self) -> anyhow::Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        let Some(user) = &self.user else {
            eprintln!("minerva-blk: {STAYS_ROOT}");
            return Ok(());
        };
        setgroups(&[user.gid]).context("failed to leave root's groups")?;
        setgid(user.gid).context("failed to leave root's group")?;
        setuid(user.uid).context("failed to leave root")?;
        if setuid(Uid::from_raw(0)).is_ok() {
            bail!("still root after becoming `{}`", user.name);
        }
        Ok(())
    }
}

fn group(key: &str, name: Option<&str>, remedy: &str) -> anyhow::Result<Option<Gid>> {
    let Some(name) = name else { return Ok(None) };
    let found = Group::from_name(name).context("failed to look for a group")?;
    let found = found.with_context(|| format!("`{key}`: there is no group `{name}`; {remedy}"))?;
    Ok(Some(found.gid))
}
