//! Trees in a virtual machine (docs/adr/0063): one `virtiofsd` serves both of a tenant. It runs in a user namespace whose root is the
//! machine's, so that it may do on the host what that tenant's user may, and no more, whatever the guest makes of it.

use crate::settings::load;
use anyhow::{Context, bail};
use minerva_config::{FsConfig, FsTenantSettings, MACHINE_IDS};
use minerva_linux_observe::socket_path::remove_left_behind;
use nix::unistd::{Gid, Group};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{self, File, Permissions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where distributions have it, the newer one, in Rust, first.
const PROGRAMS: [&str; 4] =
    ["/usr/libexec/virtiofsd", "/usr/lib/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/bin/virtiofsd"];
/// Far more than a process takes to enter a namespace.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// Becomes the server of a machine's trees; returns only where it cannot.
pub(crate) fn run(path: &Path, named: &str, program: Option<PathBuf>) -> anyhow::Result<()> {
    let config = load(path)?;
    let (tenant, settings) = find(&config, named)?;
    let trees = config.server.mount.join(tenant);
    if !trees.is_dir() {
        bail!("there is no {}; start the cache first: systemctl start minerva-fs", trees.display());
    }
    if !is_shared(&trees) {
        eprintln!(
            "minerva-fs: {} is not on a shared mount, so after a restart of minerva-fs the machine loses its trees until this is started \
             again with it; mount --make-shared the file system that it lies on",
            trees.display()
        );
    }
    let ids = served_ids(&trees, tenant)?;
    if ids != settings.ids {
        eprintln!("minerva-fs: {tenant} has the numbers from {ids} on until minerva-fs is started again");
    }
    let program = find_program(program)?;
    let listener = listen(&config, tenant)?;
    let namespace = namespace_of(ids)?;
    for descriptor in [listener.as_fd(), namespace.as_fd()] {
        fcntl_setfd(descriptor, FdFlags::empty()).context("failed to hand over a descriptor")?;
    }
    let mut command = Command::new("nsenter");
    // Its mounts follow the host's, so that trees that are mounted anew are seen.
    command.arg(format!("--user=/proc/self/fd/{}", namespace.as_raw_fd())).args(["--setuid=0", "--setgid=0", "--"]);
    command.args(["unshare", "--mount", "--propagation=slave", "--"]).arg(program);
    command.arg(format!("--fd={}", listener.as_raw_fd())).arg("-f").arg("-o").arg(options(&trees)?);
    Err(command.exec()).context("failed to start nsenter(1); install util-linux")
}

/// `cache=auto`: the guest asks again after a second, and so finds trees that were mounted anew. `announce_submounts`: each tree is a
/// file system of its own in the guest, with its own room and numbers.
fn options(trees: &Path) -> anyhow::Result<String> {
    let shown = trees.to_str().filter(|text| !text.contains([',', '\\'])).context("`server.mount` has a comma")?;
    Ok(format!("source={shown},cache=auto,xattr,announce_submounts,sandbox=namespace"))
}

fn find<'a>(config: &'a FsConfig, named: &'a str) -> anyhow::Result<(&'a str, &'a FsTenantSettings)> {
    let found = config.machine(named).and_then(|name| Some((name, config.tenants.get(name)?)));
    found.with_context(|| {
        let machines = config.tenants.iter().filter(|(_, settings)| settings.machine.is_some());
        let names: Vec<&str> = machines.map(|(name, _)| name.as_str()).collect();
        format!("no tenant has `machine = \"{named}\"`; those that are machines: {}", names.join(", "))
    })
}

/// The first number of the machine whose trees these are. The file may have another one, which takes a restart of the cache; and nobody but
/// the host's root can change the directory.
fn served_ids(trees: &Path, tenant: &str) -> anyhow::Result<u32> {
    let ids = fs::metadata(trees).with_context(|| format!("failed to look at {}", trees.display()))?.gid();
    if ids < MACHINE_IDS {
        bail!("`{tenant}` is not served as a machine yet: systemctl restart minerva-fs");
    }
    Ok(ids)
}

fn find_program(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    match named {
        Some(program) => Ok(program),
        None => PROGRAMS.iter().map(PathBuf::from).find(|path| path.exists()).context(
            "there is no virtiofsd: install `virtiofsd`, or `qemu-system-common` where that has it, or name it with --program",
        ),
    }
}

/// The socket, where QEMU connects.
fn listen(config: &FsConfig, tenant: &str) -> anyhow::Result<UnixListener> {
    let path = config.server.machine_socket(tenant);
    let folder = path.parent().unwrap_or(&path);
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    fs::set_permissions(folder, Permissions::from_mode(0o711))
        .with_context(|| format!("failed to let QEMU through {}", folder.display()))?;
    let listener = remove_left_behind(&path).and_then(|()| UnixListener::bind(&path));
    let listener = listener.with_context(|| format!("failed to listen at {}", path.display()))?;
    let group = config.server.socket_group.as_deref().map(find_group).transpose()?;
    chown(&path, None, group)
        .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(if group.is_some() { 0o660 } else { 0o600 })))
        .context("failed to let QEMU connect")?;
    Ok(listener)
}

fn find_group(name: &str) -> anyhow::Result<u32> {
    match name.parse() {
        Ok(number) => Ok(number),
        Err(_) => Group::from_name(name)
            .context("failed to look for a group")?
            .map(|group| Gid::as_raw(group.gid))
            .with_context(|| format!("`server.socket_group`: there is no group `{name}`")),
    }
}

/// A user namespace whose users are the machine's, held open. The kernel has maps written from outside, by somebody who may.
fn namespace_of(ids: u32) -> anyhow::Result<File> {
    let mut command = Command::new("unshare");
    command.args(["--user", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut holder = Holder(command.spawn().context("failed to start unshare(1); install util-linux")?);
    let own = fs::read_link("/proc/self/ns/user").context("failed to read the own namespace")?;
    let of_holder = PathBuf::from(format!("/proc/{}", holder.0.id()));
    let begun = Instant::now();
    while fs::read_link(of_holder.join("ns/user")).is_ok_and(|namespace| namespace == own) {
        if holder.0.try_wait().context("failed to wait for unshare(1)")?.is_some() || begun.elapsed() > PATIENCE {
            bail!("the kernel gives no user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone)");
        }
        std::thread::sleep(LOOK);
    }
    for map in ["uid_map", "gid_map"] {
        fs::write(of_holder.join(map), format!("0 {ids} {MACHINE_IDS}\n"))
            .with_context(|| format!("failed to write {map} of a user namespace; do you run as root?"))?;
    }
    File::open(of_holder.join("ns/user")).context("failed to open a user namespace")
}

/// Keeps the namespace until somebody else has it open.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether what is mounted below a directory later is mounted in other namespaces too.
fn is_shared(at: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let place = |line: &str| line.split(' ').nth(4).map(PathBuf::from);
    let above = mounts.lines().filter(|line| place(line).is_some_and(|place| at.starts_with(place)));
    above.max_by_key(|line| place(line).map_or(0, |place| place.as_os_str().len())).is_some_and(|line| {
        // Optional fields end with a dash.
        line.split(' ').skip(6).take_while(|field| *field != "-").any(|field| field.starts_with("shared:"))
    })
}

#[cfg(test)]
mod tests {
    use super::{find, options, served_ids};
    use std::os::unix::fs::chown;
    use std::path::Path;

    #[test]
    fn a_machine_is_found_by_its_own_name_and_by_its_tenants() {
        let text = "[tenants.a]\nmachine = \"vm-a\"\nids = 1000000\n[tenants.web]\n";
        let config = minerva_config::parse_fs(text, Path::new("fs.toml")).unwrap();
        assert_eq!(find(&config, "vm-a").unwrap().0, "a");
        assert_eq!(find(&config, "a").unwrap().0, "a");
        assert!(find(&config, "web").unwrap_err().to_string().contains("are machines: a"));
        assert!(options(Path::new("/a,b")).is_err(), "it would be another option");
    }

    #[test]
    fn a_machine_keeps_the_numbers_with_which_its_trees_are_served() {
        let trees = tempfile::tempdir().unwrap();
        if chown(trees.path(), None, Some(1_800_000)).is_err() {
            return eprintln!("skipped: only root gives a directory away");
        }
        assert_eq!(served_ids(trees.path(), "web").unwrap(), 1_800_000);
        chown(trees.path(), None, Some(0)).unwrap();
        let said = served_ids(trees.path(), "web").unwrap_err().to_string();
        assert!(said.contains("is not served as a machine yet: systemctl restart"), "{said}");
    }
}
