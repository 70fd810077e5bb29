//! Who uses the disk.

use crate::{ForecastMode, JobSettings, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One incarnation of a tenant, numbered by the driver and never used again while the driver runs.
///
/// A cgroup that is removed and made again under the same name gets a new number: it is a new tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantId(pub u64);

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// A cgroup directory, as the io (v2) or blkio (v1) hierarchy names it, and the identity that tells it from a later
/// directory of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CgroupRef {
    /// Path below the root of the hierarchy, without a leading slash; empty for the root.
    pub path: String,
    /// Inode number of the directory. On a 64-bit kernel kernfs never gives one out twice within a boot.
    /// 0 accepts whatever directory stands there: used only for the root and for groups above tenants, whose numbers
    /// `core/actuate` is never told.
    pub inode: u64,
}

impl CgroupRef {
    /// A key that no other directory has, within one boot.
    fn key(&self) -> String {
        format!("cgroup:{}#{}", self.path, self.inode)
    }

    /// The key of the history that this directory's tenants share: that of the operator's `group` if there is one, else its own.
    pub fn history_key(&self, group: Option<&str>) -> String {
        group.map_or_else(|| self.key(), |group| format!("group:{group}"))
    }

    /// The slice of the login user whose it is, of whichever incarnation: all that the user has, however often it logs in.
    pub fn login_user(&self) -> Option<Self> {
        user_slice(&self.path).map(|slice| Self { path: slice.to_owned(), inode: 0 })
    }
}

/// What sort of thing a tenant is, and so who made its cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TenantKind {
    /// A systemd service or slice that no other kind fits.
    Service,
    /// A systemd scope, such as a login session.
    Scope,
    /// A virtual machine: libvirt, or a plain QEMU process in a cgroup of its own.
    VirtualMachine,
    /// A container of containerd, CRI-O or Docker.
    Container,
    /// A Kubernetes pod.
    Pod,
    /// An LXC or Incus container.
    Lxc,
    /// A group of processes that the operator named (`minerva-ctl run`, `minerva-ctl attach`).
    Named,
    /// Any other cgroup.
    Cgroup,
}

impl TenantKind {
    /// The word people see, the same as in a recording.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Scope => "scope",
            Self::VirtualMachine => "virtual-machine",
            Self::Container => "container",
            Self::Pod => "pod",
            Self::Lxc => "lxc",
            Self::Named => "named",
            Self::Cgroup => "cgroup",
        }
    }

    /// Who is likely to write this tenant's knobs besides Minerva.
    pub const fn manager(self) -> &'static str {
        match self {
            Self::Service | Self::Scope => "systemd",
            Self::VirtualMachine => "libvirt",
            Self::Container => "the container runtime",
            Self::Pod => "the kubelet",
            Self::Lxc => "LXC",
            Self::Named | Self::Cgroup => "another program",
        }
    }
}

impl fmt::Display for TenantKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A tenant: a cgroup on the host whose I/O is watched, and unless the operator says otherwise steered, as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// This incarnation.
    pub id: TenantId,
    /// The name people use: the operator's if a rule gives one, else derived from the cgroup.
    pub name: String,
    /// What it is.
    pub kind: TenantKind,
    /// Where its knobs are.
    pub cgroup: CgroupRef,
    /// The operator's group; tenants of one group share one usage history (Fennel, Malensek et al. 2016, section 2.1).
    pub group: Option<String>,
    /// The operator's factor on the share, in percent; 100 changes nothing.
    pub weight_percent: u32,
    /// Watched but never steered, because a rule excludes it.
    pub excluded: bool,
    /// The batch job that it is, because a rule says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobSettings>,
    /// On what terms it takes part.
    #[serde(flatten)]
    pub terms: Terms,
    /// What of it the tenant itself can choose.
    #[serde(default, skip_serializing_if = "Origin::is_plain")]
    pub origin: Origin,
}

/// What of a tenant is its own choice: whatever is, names it for people and gives it nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The topmost group above the tenant's that somebody besides root may make groups in. All tenants below it are of its
    /// owner's making, as many as it likes, and so share one account.
    #[serde(default)]
    pub delegated_from: Option<CgroupRef>,
    /// All that its login user has shares one account. Recordings of earlier versions do not say so, and of them each session has one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_login_users: bool,
    /// What its process calls itself, such as `qemu-4242`. For display only: whoever starts a process chooses it.
    #[serde(default)]
    pub guest_name: Option<String>,
    /// What its group alone says that it is, where [`Tenant::kind`] is something else because of what its process calls itself. Recordings
    /// of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_kind: Option<TenantKind>,
}

impl Origin {
    /// Nothing of it is the tenant's choice.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// On what terms a tenant takes part and is forecast, as the operator's rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// What it may ask for.
    #[serde(default)]
    pub role: Role,
    /// What a boosted slice costs it, in percent of the price for all.
    #[serde(default = "whole")]
    pub price_percent: u32,
    /// How many credits its account may hold and how many slices it may buy at once, in percent of what all may.
    #[serde(default = "whole")]
    pub quota_percent: u32,
    /// How long credits last that its account earns from now on; absent: as long as everyone's.
    #[serde(default)]
    pub credits_expiry: Option<Nanos>,
    /// What becomes of its forecasts; absent: what becomes of everyone's.
    #[serde(default)]
    pub forecast: Option<ForecastMode>,
}

const fn whole() -> u32 {
    100
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            role: Role::default(),
            price_percent: whole(),
            quota_percent: whole(),
            credits_expiry: None,
            forecast: None,
        }
    }
}

/// What a tenant may ask for, as the operator's rules say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything.
    #[default]
    Participant,
    /// Everything but buying: it may step back and coordinate, and earns nothing.
    Guest,
    /// Nothing. It is steered as everyone.
    Silent,
}

impl Role {
    /// Every role, from the widest to the narrowest.
    pub const ALL: [Self; 3] = [Self::Participant, Self::Guest, Self::Silent];

    /// The word of the operator's file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Participant => "participant",
            Self::Guest => "guest",
            Self::Silent => "silent",
        }
    }
}

impl Tenant {
    /// The key under which usage history and credits are kept: the operator's group if there is one, else the login user, else the group
    /// that was delegated to whoever made this one, else this incarnation of the cgroup. So nobody gets an account, or a clean history, by
    /// making a cgroup or by logging in again. The caller's store adds the boot to it, as an inode number is unique only within one.
    pub fn history_key(&self) -> String {
        let user = self.cgroup.login_user().filter(|_| self.origin.is_login_users && self.group.is_none());
        if let Some(user) = user {
            return user.key();
        }
        self.origin.delegated_from.as_ref().unwrap_or(&self.cgroup).history_key(self.group.as_deref())
    }

    /// Whose it is: the operator's group's, the login user's, that of what was delegated, or its cgroup's own. As [`Self::history_key`], but the
    /// same after a restart and a reboot.
    pub fn owner(&self) -> String {
        self.group.as_ref().map_or_else(|| format!("cgroup:{}", self.maker()), |group| format!("group:{group}"))
    }

    /// The group of whoever runs what is in it: the login user's, what was delegated, or its own. As [`Self::owner`], but whatever group the
    /// operator counts it to: others of that group answer for nothing that its processes do.
    pub fn maker(&self) -> &str {
        let path = &self.origin.delegated_from.as_ref().unwrap_or(&self.cgroup).path;
        user_slice(path).unwrap_or(path)
    }

    /// What it is by its group alone, which whoever starts a process does not choose.
    pub fn kind_by_group(&self) -> TenantKind {
        self.origin.group_kind.unwrap_or(self.kind)
    }

    /// The key under which what the tenant declared is kept: always this incarnation of the cgroup.
    pub fn declaration_key(&self) -> String {
        self.cgroup.key()
    }
}

/// The part of a path that is a user's slice (systemd.special(7)), which holds all login sessions of that user, at once and one after the other.
fn user_slice(path: &str) -> Option<&str> {
    let slice = path.strip_prefix("user.slice/")?.split('/').next()?;
    let uid = slice.strip_prefix("user-")?.strip_suffix(".slice")?;
    let is_user = !uid.is_empty() && uid.bytes().all(|byte| byte.is_ascii_digit());
    is_user.then(|| &path[.."user.slice/".len() + slice.len()])
}

/// One of the operator's rules. Every rule whose pattern matches a cgroup applies, in the order of the file; what a later
/// one says replaces what an earlier one said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantRule {
    /// Glob over the cgroup's path, which has no leading slash: `*` and `?` stay within one component, `**` does not.
    pub pattern: String,
    /// The name people see instead of the derived one.
    pub name: Option<String>,
    /// Tenants of one group share one usage history.
    pub group: Option<String>,
    /// Watched but never steered.
    pub exclude: bool,
    /// Factor on the share, in percent; 100 changes nothing.
    pub weight_percent: Option<u32>,
    /// What the tenant may ask for.
    #[serde(default)]
    pub role: Option<Role>,
    /// [`Terms::price_percent`].
    #[serde(default)]
    pub price_percent: Option<u32>,
    /// [`Terms::quota_percent`].
    #[serde(default)]
    pub quota_percent: Option<u32>,
    /// [`Terms::credits_expiry`].
    #[serde(default)]
    pub credits_expiry: Option<Nanos>,
    /// [`Terms::forecast`].
    #[serde(default)]
    pub forecast: Option<ForecastMode>,
    /// [`Tenant::job`].
    #[serde(default)]
    pub job: Option<JobSettings>,
}

#[cfg(test)]
mod tests {
    use super::{CgroupRef, Origin, Tenant, TenantId, TenantKind, Terms};

    fn tenant(path: &str, delegated_from: Option<&str>) -> Tenant {
        let cgroup = |path: &str| CgroupRef { path: path.to_owned(), inode: path.len() as u64 };
        Tenant {
            id: TenantId(1),
            name: path.to_owned(),
            kind: TenantKind::Cgroup,
            cgroup: cgroup(path),
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: Terms::default(),
            origin: Origin { delegated_from: delegated_from.map(cgroup), ..Origin::default() },
        }
    }

    #[test]
    fn groups_that_a_user_makes_share_the_account_of_what_was_delegated_to_it() {
        let (one, other) = (tenant("user/a", Some("user")), tenant("user/bb", Some("user")));
        assert_eq!([one.history_key(), other.history_key()], ["cgroup:user#4", "cgroup:user#4"]);
        assert_eq!(tenant("user", None).history_key(), "cgroup:user#4", "and so does what runs right in it");
        assert_ne!(one.declaration_key(), other.declaration_key(), "each declares for itself");
        assert_eq!(Tenant { group: Some("web".to_owned()), ..one }.history_key(), "group:web");
    }

    #[test]
    fn all_that_a_user_has_is_one_owners_over_all_sessions_and_reboots() {
        let user = "user.slice/user-1000.slice";
        let manager = format!("{user}/user@1000.service");
        let own = [
            tenant(&format!("{user}/session-3.scope"), None),
            tenant(&format!("{user}/session-14.scope"), None),
            tenant(&format!("{manager}/a"), Some(&manager)),
        ];
        assert_eq!(own[0].history_key(), format!("cgroup:{user}/session-3.scope#{}", own[0].cgroup.inode), "as it was");
        let own = own.map(|tenant| Tenant { origin: Origin { is_login_users: true, ..tenant.origin }, ..tenant });
        assert_eq!(own.each_ref().map(Tenant::history_key), [(); 3].map(|()| format!("cgroup:{user}#0")));
        assert_eq!(own.map(|tenant| tenant.owner()), [(); 3].map(|()| format!("cgroup:{user}")));
        for path in ["user.slice/user-.slice/a", "user.slice/user-x.slice/a", "a/user-1000.slice/b", "user.slice"] {
            assert_eq!(tenant(path, None).owner(), format!("cgroup:{path}"));
        }
        assert_eq!(tenant("pods/a", Some("pods")).owner(), "cgroup:pods");
        let grouped = Tenant { group: Some("web".to_owned()), ..tenant(&format!("{user}/session-3.scope"), None) };
        assert_eq!((grouped.owner().as_str(), grouped.maker()), ("group:web", user));
    }
}
