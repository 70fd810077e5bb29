//! What a cgroup is, told from its path alone: who made it, what people call it, and whether what lies below belongs to it.
//!
//! The tenant is the *unit*: the smallest thing that somebody started as one. A virtual machine, a container, a service, a
//! scope and an operator's named group are units, and whatever groups they make inside (libvirt's `emulator` and `vcpu0`, the
//! init system of a container, a delegated service's workers) belong to them and are counted with them. Of a Kubernetes pod
//! the containers are the units; the pod itself is one only while it has none, or where the `io` controller ends at the pod.
//! Slices and directories only hold others. Any other group is a tenant when it is a leaf, or on v1 when processes of its own
//! are in it.

use minerva_model::TenantKind;

/// What is thought of one cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// What it is if it is a tenant.
    pub(crate) kind: TenantKind,
    /// What people call it.
    pub(crate) name: String,
    /// What its place in the hierarchy means.
    pub(crate) part: Part,
}

/// What a cgroup's place in the hierarchy means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// One thing with all that is below it.
    Unit,
    /// Holds others; a tenant itself only if it is a leaf or has processes of its own.
    Holder,
    /// A systemd unit without processes, such as a mount.
    Nobody,
}

/// Services that make groups for others: their own processes are a tenant beside those.
const HOLDING_SERVICES: [&str; 2] = ["user@", "containerd.service"];
/// systemd gives these units groups, in which nothing runs.
const UNITS_WITHOUT_PROCESSES: [&str; 6] = [".mount", ".automount", ".swap", ".socket", ".device", ".target"];
/// Hex digits of a container's id that people use, as `docker ps` prints them.
const ID_DIGITS: usize = 12;

/// Where the operator's named groups are unless told otherwise.
pub(crate) const NAMED_PARENTS_DEFAULT: [&str; 1] = ["minerva"];

/// Judges the group at `path`, which has no leading slash and is not the root. The groups right below `named_parents` are those
/// that the operator named, be it for processes or for background work.
pub(crate) fn classify(path: &str, named_parents: &[impl AsRef<str>]) -> Class {
    let (parent, leaf) = path.rsplit_once('/').unwrap_or(("", path));
    let parent_leaf = parent.rsplit('/').next().unwrap_or(parent);
    named_group(parent, leaf, named_parents)
        .or_else(|| container(parent, parent_leaf, leaf))
        .or_else(|| virtual_machine(parent_leaf, leaf))
        .or_else(|| linux_container(parent_leaf, leaf))
        .or_else(|| pod(leaf))
        .unwrap_or_else(|| systemd_unit(path, leaf))
}

fn unit(kind: TenantKind, name: impl Into<String>) -> Option<Class> {
    Some(Class { kind, name: name.into(), part: Part::Unit })
}

/// `minerva/<name>`, which `minerva-ctl run` and `attach` make, and `minerva-background/<name>`.
fn named_group(parent: &str, name: &str, named_parents: &[impl AsRef<str>]) -> Option<Class> {
    if named_parents.iter().any(|known| known.as_ref() == parent) { unit(TenantKind::Named, name) } else { None }
}

/// Containers by their ids: as systemd scopes (`docker-<id>.scope`, `cri-containerd-<id>.scope`, `crio-<id>.scope`,
/// `libpod-<id>.scope`), as directories (`docker/<id>`, `pod<uid>/<id>`), and as containerd writes it when the driver of
/// the kubelet and its own differ (`...slice:cri-containerd:<id>`).
fn container(parent: &str, parent_leaf: &str, leaf: &str) -> Option<Class> {
    let pod = pod_uid(parent_leaf);
    let named = |id: &str| {
        let short = &id[..ID_DIGITS];
        match &pod {
            Some(uid) => format!("pod-{}/{short}", cut(uid, 8)),
            None => short.to_owned(),
        }
    };
    if let Some(id) = leaf.rsplit(':').next().filter(|_| leaf.contains(':')).filter(|id| is_container_id(id)) {
        let uid = leaf.split(':').next().and_then(pod_uid);
        let name = uid.map_or_else(|| named(id), |uid| format!("pod-{}/{}", cut(&uid, 8), &id[..ID_DIGITS]));
        return unit(TenantKind::Container, name);
    }
    if let Some((runtime, id)) = leaf.strip_suffix(".scope").and_then(|stem| stem.rsplit_once('-')) {
        // The monitor that stands beside a container is not the container.
        return if is_container_id(id) && !runtime.ends_with("-conmon") {
            unit(TenantKind::Container, named(id))
        } else {
            None
        };
    }
    let in_runtime =
        pod.is_some() || matches!(parent_leaf, "docker" | "libpod_parent" | "buildkit" | "default" | "moby");
    let id = leaf.rsplit('-').next().unwrap_or(leaf);
    let is_monitor = leaf.contains("conmon");
    (in_runtime && is_container_id(id) && !is_monitor && !parent.is_empty())
        .then(|| unit(TenantKind::Container, named(id)))
        .flatten()
}

/// 64 hex digits; some runtimes write as few as 32.
fn is_container_id(text: &str) -> bool {
    (32..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// libvirt (`machine-qemu\x2d1\x2dweb.scope`, `qemu-1-web.libvirt-qemu`) and Proxmox (`qemu.slice/100.scope`).
fn virtual_machine(parent_leaf: &str, leaf: &str) -> Option<Class> {
    if let Some(stem) = leaf.strip_prefix("machine-").and_then(|rest| rest.strip_suffix(".scope")) {
        let stem = unescape(stem);
        if let Some(numbered) = stem.strip_prefix("lxc-") {
            return unit(TenantKind::Lxc, without_number(numbered));
        }
        let numbered = stem.strip_prefix("qemu-")?;
        return unit(TenantKind::VirtualMachine, without_number(numbered));
    }
    if let Some(numbered) = leaf.strip_suffix(".libvirt-qemu") {
        return unit(TenantKind::VirtualMachine, without_number(numbered.trim_start_matches("qemu-")));
    }
    if let Some(numbered) = leaf.strip_suffix(".libvirt-lxc") {
        return unit(TenantKind::Lxc, without_number(numbered.trim_start_matches("lxc-")));
    }
    let name = leaf.strip_suffix(".scope").filter(|_| parent_leaf == "qemu.slice")?;
    unit(TenantKind::VirtualMachine, name)
}

/// `lxc.payload.NAME`, and `lxc/NAME` of older ones.
fn linux_container(parent_leaf: &str, leaf: &str) -> Option<Class> {
    let name = leaf.strip_prefix("lxc.payload.").or_else(|| (parent_leaf == "lxc").then_some(leaf))?;
    unit(TenantKind::Lxc, name)
}

/// `pod<uid>` of the cgroupfs driver, `kubepods-burstable-pod<uid>.slice` of the systemd driver.
fn pod(leaf: &str) -> Option<Class> {
    let uid = pod_uid(leaf)?;
    Some(Class { kind: TenantKind::Pod, name: format!("pod-{}", cut(&uid, 8)), part: Part::Holder })
}

fn pod_uid(leaf: &str) -> Option<String> {
    let uid = match leaf.strip_suffix(".slice") {
        Some(stem) => stem.starts_with("kubepods").then(|| stem.rsplit_once("-pod")).flatten()?.1,
        None => leaf.strip_prefix("pod")?,
    };
    // A static pod's uid is a hash without dashes.
    let is_uid = uid.len() >= 32 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-' || b == b'_');
    is_uid.then(|| uid.replace('_', "-"))
}

/// What systemd makes, and what nobody else claims.
fn systemd_unit(path: &str, leaf: &str) -> Class {
    let class = |kind, name: &str, part| Class { kind, name: name.to_owned(), part };
    if UNITS_WITHOUT_PROCESSES.iter().any(|suffix| leaf.ends_with(suffix)) {
        return class(TenantKind::Service, leaf, Part::Nobody);
    }
    if leaf.ends_with(".service") {
        let holds = HOLDING_SERVICES.iter().any(|prefix| leaf.starts_with(prefix));
        return class(TenantKind::Service, &unescape(leaf), if holds { Part::Holder } else { Part::Unit });
    }
    if leaf.ends_with(".scope") {
        return class(TenantKind::Scope, &unescape(leaf), Part::Unit);
    }
    if leaf.ends_with(".slice") {
        return class(TenantKind::Service, &unescape(leaf), Part::Holder);
    }
    class(TenantKind::Cgroup, path, Part::Holder)
}

/// libvirt puts the domain's number before its name: `1-web`.
fn without_number(text: &str) -> &str {
    match text.split_once('-') {
        Some((number, name)) if !name.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => text,
    }
}

/// systemd writes characters that mean something to it as `\x2d`.
fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find("\\x") {
        let code = rest.get(position + 2..position + 4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (keep, skip) = match code.filter(u8::is_ascii_graphic) {
            Some(code) => {
                result.push_str(&rest[..position]);
                result.push(char::from(code));
                (position, position + 4)
            }
            None => {
                result.push_str(&rest[..position + 2]);
                (position, position + 2)
            }
        };
        debug_assert!(keep < skip, "every turn takes something off the text");
        rest = &rest[skip..];
    }
    result.push_str(rest);
    result
}

fn cut(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::{NAMED_PARENTS_DEFAULT, Part, classify};
    use minerva_model::TenantKind::{self, Cgroup, Container, Lxc, Named, Pod, Scope, Service, VirtualMachine};

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "7f0c7b1e_1111_2222_3333_444455556666";

    #[test]
    fn every_kind() {
        let uid_dashed = UID.replace('_', "-");
        let table: &[(String, TenantKind, &str, Part)] = &[
            ("system.slice/nginx.service".into(), Service, "nginx.service", Part::Unit),
            ("system.slice".into(), Service, "system.slice", Part::Holder),
            ("system.slice/dev-hugepages.mount".into(), Service, "dev-hugepages.mount", Part::Nobody),
            ("user.slice/user-1000.slice/session-3.scope".into(), Scope, "session-3.scope", Part::Unit),
            ("user.slice/user-1000.slice/user@1000.service".into(), Service, "user@1000.service", Part::Holder),
            ("init.scope".into(), Scope, "init.scope", Part::Unit),
            (r"machine.slice/machine-qemu\x2d1\x2dweb\x2dfront.scope".into(), VirtualMachine, "web-front", Part::Unit),
            ("machine/qemu-12-db.libvirt-qemu".into(), VirtualMachine, "db", Part::Unit),
            ("qemu.slice/100.scope".into(), VirtualMachine, "100", Part::Unit),
            (r"machine.slice/machine-lxc\x2d9\x2dci.scope".into(), Lxc, "ci", Part::Unit),
            ("machine/lxc-9-ci.libvirt-lxc".into(), Lxc, "ci", Part::Unit),
            (
                format!(
                    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID}.slice/cri-containerd-{ID}.scope"
                ),
                Container,
                "pod-7f0c7b1e/0123456789ab",
                Part::Unit,
            ),
            (
                format!("kubepods.slice/kubepods-pod{UID}.slice/crio-{ID}.scope"),
                Container,
                "pod-7f0c7b1e/0123456789ab",
                Part::Unit,
            ),
            (format!("kubepods.slice/kubepods-pod{UID}.slice"), Pod, "pod-7f0c7b1e", Part::Holder),
            (format!("kubepods/burstable/pod{uid_dashed}"), Pod, "pod-7f0c7b1e", Part::Holder),
            (format!("kubepods/burstable/pod{uid_dashed}/{ID}"), Container, "pod-7f0c7b1e/0123456789ab", Part::Unit),
            (
                format!("kubepods/besteffort/pod{uid_dashed}/crio-{ID}"),
                Container,
                "pod-7f0c7b1e/0123456789ab",
                Part::Unit,
            ),
            (
                format!("system.slice/containerd.service/kubepods-burstable-pod{UID}.slice:cri-containerd:{ID}"),
                Container,
                "pod-7f0c7b1e/0123456789ab",
                Part::Unit,
            ),
            ("kubepods/burstable".into(), Cgroup, "kubepods/burstable", Part::Holder),
            (format!("docker/{ID}"), Container, "0123456789ab", Part::Unit),
            (format!("system.slice/docker-{ID}.scope"), Container, "0123456789ab", Part::Unit),
            (format!("machine.slice/libpod-{ID}.scope"), Container, "0123456789ab", Part::Unit),
            ("lxc.payload.web".into(), Lxc, "web", Part::Unit),
            ("lxc/web".into(), Lxc, "web", Part::Unit),
            ("minerva/backup".into(), Named, "backup", Part::Unit),
            ("minerva".into(), Cgroup, "minerva", Part::Holder),
            ("batch/night".into(), Cgroup, "batch/night", Part::Holder),
        ];
        for (path, kind, name, part) in table {
            let class = classify(path, &NAMED_PARENTS_DEFAULT);
            assert_eq!((class.kind, class.name.as_str(), class.part), (*kind, *name, *part), "{path}");
        }
    }

    #[test]
    fn named_groups_are_where_the_operator_wants_them() {
        let parents = ["batch.slice/jobs", "batch.slice/jobs-background"];
        for (path, name) in [("batch.slice/jobs/backup", "backup"), ("batch.slice/jobs-background/b1", "b1")] {
            let class = classify(path, &parents);
            assert_eq!((class.kind, class.name.as_str(), class.part), (Named, name, Part::Unit));
        }
        for path in ["batch.slice/jobsother", "batch.slice/jobs/backup/inner", "batch.slice/jobs", "minerva/backup"] {
            assert_eq!(classify(path, &parents).kind, Cgroup, "{path}");
        }
    }

    #[test]
    fn a_monitor_is_not_its_container() {
        assert_eq!(classify(&format!("machine.slice/libpod-conmon-{ID}.scope"), &NAMED_PARENTS_DEFAULT).kind, Scope);
        assert_eq!(classify(&format!("libpod_parent/libpod-conmon-{ID}"), &NAMED_PARENTS_DEFAULT).kind, Cgroup);
    }

    proptest::proptest! {
        #[test]
        fn any_path_has_a_class(path in "(\\PC|/|\\\\x|pod|-|:|[0-9a-f]{8}){1,40}") {
            classify(&path, &NAMED_PARENTS_DEFAULT);
        }
    }
}
