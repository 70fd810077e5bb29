//! Tenants that are virtual machines: who their users are on the host, and how they get their trees (docs/adr/0063).

use super::{FsConfig, FsServerSettings, FsTenantSettings};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How many numbers a machine's users and groups have.
pub const MACHINE_IDS: u32 = 1 << 16;
/// Below are the host's own users.
pub(super) const IDS_MIN: u64 = 1 << 16;
/// All of them have to be numbers that a user can have.
pub(super) const IDS_MAX: u64 = u32::MAX as u64 - MACHINE_IDS as u64;

impl FsServerSettings {
    /// Where QEMU connects for the machine of this tenant.
    pub fn machine_socket(&self, tenant: &str) -> PathBuf {
        self.runtime.join("machines").join(format!("{tenant}.sock"))
    }
}

impl FsConfig {
    /// The tenant that is a machine, by the machine's name or its own.
    pub fn machine(&self, named: &str) -> Option<&str> {
        let mut machines = self.tenants.iter().filter_map(|(name, tenant)| Some((name, tenant.machine.as_deref()?)));
        machines.find(|(name, machine)| *name == named || *machine == named).map(|(name, _)| name.as_str())
    }
}

/// A name as QEMU's `-name` and libvirt have it.
pub(super) fn machine_name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+');
    if !text.is_empty() && text.len() <= 64 && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err("1 to 64 letters, digits, `.`, `_`, `-` and `+` are needed".to_owned())
}

/// Tenant, key, what, and what to do.
type Mistake<'a> = (&'a str, &'static str, String, &'static str);

/// What is wrong with machines among tenants that come from more than one reading of the file, a sentence each. A file that was read has
/// no such mistake.
pub fn machine_mistakes(tenants: &BTreeMap<String, FsTenantSettings>) -> Vec<String> {
    let told = |(name, key, title, _): Mistake<'_>| format!("`tenants.{name}.{key}`: {title}");
    mistakes(tenants).into_iter().map(told).collect()
}

/// What is wrong with machines.
pub(super) fn mistakes(tenants: &BTreeMap<String, FsTenantSettings>) -> Vec<Mistake<'_>> {
    let mut found = Vec::new();
    for (name, tenant) in tenants {
        let mut mistake = |key, title, help| found.push((name.as_str(), key, title, help));
        let Some(machine) = &tenant.machine else {
            if tenant.ids != 0 {
                mistake("ids", format!("`{name}` has `ids` and no machine"), "name its `machine`, or say `user`");
            }
            continue;
        };
        if tenant.ids == 0 {
            mistake(
                "machine",
                format!("whose files those of the machine `{machine}` are on the host is not said"),
                "set `ids` to the first of 65,536 numbers that no user of the host and no other machine has",
            );
        }
        if tenant.user.is_some() || tenant.group.is_some() {
            let key = if tenant.user.is_some() { "user" } else { "group" };
            mistake(
                key,
                format!("`{name}` is a machine, whose root is user {}", tenant.ids),
                "remove `user` and `group`",
            );
        }
        if !tenant.units.is_empty() {
            mistake(
                "units",
                format!("services of the host cannot write to the trees of the machine `{machine}`"),
                "the machine can change them while they do: give the services a tenant of their own",
            );
        }
        found.extend(clashes(tenants, name, tenant));
    }
    found
}

/// What a machine shares with those that are named before it.
fn clashes<'a>(
    tenants: &'a BTreeMap<String, FsTenantSettings>,
    name: &'a str,
    tenant: &FsTenantSettings,
) -> Vec<Mistake<'a>> {
    let mut found = Vec::new();
    let earlier = tenants.iter().take_while(|(other, _)| *other != name);
    for (other_name, other) in earlier.filter(|(_, other)| other.machine.is_some()) {
        if other.machine == tenant.machine {
            let machine = tenant.machine.as_deref().unwrap_or_default();
            let title = format!("`{other_name}` is the machine `{machine}` too");
            found.push((name, "machine", title, "a machine is one tenant"));
        }
        if tenant.ids != 0 && other.ids.abs_diff(tenant.ids) < MACHINE_IDS {
            let title = format!("the machines of `{other_name}` and `{name}` share users");
            found.push((name, "ids", title, "65,536 numbers belong to each: set them further apart"));
        }
    }
    found
}

/// How a machine gets its trees: what serves them, QEMU's arguments, libvirt's XML, and a line for the guest.
pub fn machine_attach_lines(server: &FsServerSettings, tenant: &str) -> String {
    let socket = server.machine_socket(tenant);
    let (socket, memory) = (socket.display(), crate::blk::SHARED_MEMORY_ARGUMENTS);
    let memory_xml = crate::blk::SHARED_MEMORY_XML;
    format!(
        "\
# On the host, before the machine starts; by hand: minerva-fs virtiofs {tenant}
systemctl enable --now minerva-virtiofs@{tenant}.service

# QEMU; 2G is the guest's memory, as with -m.
{memory} \\
-chardev socket,id={tenant}-minerva,path={socket} \\
-device vhost-user-fs-pci,chardev={tenant}-minerva,tag=minerva,queue-size=1024

# libvirt 7.1 or later: the first below <domain>, the second below <devices>.
{memory_xml}
<filesystem type='mount'>
  <driver type='virtiofs' queue='1024'/>
  <source socket='{socket}'/>
  <target dir='minerva'/>
</filesystem>

# In the guest, a line of /etc/fstab; Linux 5.10 or later.
minerva /minerva virtiofs nosuid,nodev,nofail 0 0
"
    )
}
