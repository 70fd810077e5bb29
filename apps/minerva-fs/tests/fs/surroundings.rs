//! What the machine around the service does or lacks: memory that is short, no FUSE, no passthrough, containers.

use crate::deferred::PATIENCE;
use crate::pool_folder::{PoolFolder, Service, is_mounted};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A second tenant.
const OTHER: &str = "[tenants.other]";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn under_pressure_of_memory_each_tenant_gives_a_part_and_keeps_the_rest_once_it_is_over() {
    let place = PoolFolder::new("temporary = \"100MiB\"");
    let pressure = place.folder.path().join("pressure");
    let set = |percent: u32| fs::write(&pressure, format!("some avg10={percent}.00 avg60=0.00 total=1\n")).unwrap();
    set(0);
    let bind = format!("mount --bind '{}' /proc/pressure/memory", pressure.display());
    let service = place.wait_for(place.in_namespace(&bind, &[]));
    // Its mounts are in the namespace only.
    let tree = Path::new("/proc").join(service.0.id().to_string()).join("root");
    let tree = tree.join(place.temporary().strip_prefix("/").unwrap());
    for number in 0..16_u8 {
        fs::write(tree.join(number.to_string()), vec![number; 1 << 20]).unwrap();
    }
    place.let_it_look();
    assert_eq!(place.status().temporary.spilled_files, 0, "far below the watermark");
    set(50);
    place.until("a part is given", |status| status.temporary.spilled_files >= 2);
    set(0);
    place.let_it_look();
    let given = place.status().temporary.spilled_files;
    place.let_it_look();
    assert_eq!(place.status().temporary.spilled_files, given, "it is over");
    assert!(given < 16, "not all of it");
    for number in 0..16_u8 {
        assert!(fs::read(tree.join(number.to_string())).unwrap() == vec![number; 1 << 20], "{number}");
    }
    assert!(service.terminate());
}

#[test]
fn without_fuse_the_start_and_the_doctor_say_so_and_leave_no_mount() {
    let place = PoolFolder::new("");
    let hide = "mount --bind /dev/null /dev/fuse";
    let output = place.in_namespace(hide, &[]).output().unwrap();
    assert!(!output.status.success());
    assert!(said(&output).contains("does /dev/fuse exist, and do you run as root?"), "{}", said(&output));
    let output = place.in_namespace(hide, &["doctor"]).output().unwrap();
    assert!(!output.status.success());
    assert!(said(&output).contains("BAD  fuse:") && said(&output).contains("modprobe fuse"), "{}", said(&output));
    let _service = place.serve();
    fs::write(place.stable().join("file"), "text").unwrap();
}

/// Commands that put the pool on overlayfs.
pub(crate) fn pool_on_overlayfs(place: &PoolFolder) -> String {
    let folder = place.folder.path().display();
    for name in ["lower", "disk", "pool"] {
        fs::create_dir(place.folder.path().join(name)).unwrap();
    }
    // A tmpfs as the upper layer, in case this directory is on overlayfs itself.
    format!(
        "mount -t tmpfs minerva-test {folder}/disk; mkdir {folder}/disk/upper {folder}/disk/work; mount -t overlay minerva-test \
         -o lowerdir={folder}/lower,upperdir={folder}/disk/upper,workdir={folder}/disk/work {folder}/pool"
    )
}

#[test]
fn on_overlayfs_the_service_reads_by_itself_and_says_why() {
    let place = PoolFolder::new("");
    let overlay = pool_on_overlayfs(&place);
    let output = place.in_namespace(&overlay, &["doctor"]).output().unwrap();
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("not available: it needs Linux 6.9 or later and a pool that is not on overlayfs"), "{told}");
    let log = place.folder.path().join("log");
    let service = place.wait_with_log(place.in_namespace(&overlay, &[]), &log);
    let tree = PathBuf::from(format!("/proc/{}/root{}", service.0.id(), place.stable().display()));
    fs::write(tree.join("file"), "text").unwrap();
    assert_eq!(fs::read(tree.join("file")).unwrap(), b"text");
    assert!(!place.status().stable.has_passthrough);
    assert!(service.terminate());
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("the kernel reads no file of this tree by itself") || log.contains("no passthrough"), "{log}");
}

/// Whether this process may do what `CAP_SYS_RESOURCE` is for.
fn may_use_resources() -> bool {
    const SYS_RESOURCE: u64 = 1 << 24;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(capabilities.trim(), 16).unwrap() & SYS_RESOURCE != 0
}

/// Its threads in `/proc`, but for the one that listens for signals: it starts first, and serves nobody.
fn serving_threads(service: &Service) -> Vec<PathBuf> {
    let threads = fs::read_dir(format!("/proc/{}/task", service.0.id())).unwrap();
    let threads = threads.map(|thread| thread.unwrap().path());
    threads.filter(|thread| fs::read_to_string(thread.join("comm")).unwrap().trim() != "signals").collect()
}

#[test]
fn every_thread_has_a_short_time_slice() {
    let place = PoolFolder::new("");
    let service = place.serve();
    let threads = serving_threads(&service);
    assert!(threads.len() > 4, "{threads:?}");
    for thread in threads {
        // Kernels that tell it (built with CONFIG_SCHED_DEBUG) give such slices too: it came after them.
        let told = fs::read_to_string(thread.join("sched")).unwrap_or_default();
        let Some(slice) = told.lines().find(|line| line.starts_with("se.slice")) else {
            println!("skipped: needs Linux 6.12, which gives ordinary threads slices of their own");
            return;
        };
        assert_eq!(slice.split(':').nth(1).unwrap().trim(), "100000", "{}", thread.display());
    }
}

#[test]
fn every_thread_may_have_memory_while_pages_of_the_trees_are_written_and_who_may_not_says_so() {
    const NO_IO: u64 = 0x0008_0000;
    let place = PoolFolder::new("");
    if may_use_resources() {
        let service = place.serve();
        let mut serving = 0;
        for thread in serving_threads(&service) {
            let stat = fs::read_to_string(thread.join("stat")).unwrap();
            let flags: u64 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(6).unwrap().parse().unwrap();
            assert_eq!(flags & NO_IO, NO_IO, "{stat}");
            serving += 1;
        }
        assert!(serving > 4, "{serving} threads");
        let told = said(&place.run(&["doctor"]));
        assert!(told.contains("memory: the service has memory while pages of its trees are written"), "{told}");
    }
    let log = place.folder.path().join("log");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]).arg(env!("CARGO_BIN_EXE_minerva-fs"));
    command.arg("--config").arg(place.config());
    let _service = place.wait_with_log(command, &log);
    let told = fs::read_to_string(log).unwrap() + &said(&place.run(&["doctor"]));
    assert_eq!(told.matches("it is no IO_FLUSHER").count(), 2, "{told}");
}

/// A process in a namespace of mounts as a container's, in which `at` is the tenant's directory; ended when dropped.
struct Container(Child);

impl Container {
    fn start(directory: &Path, at: &Path, propagation: &str) -> Self {
        let script = "mount --rbind \"$0\" \"$1\" && mount \"--make-r$2\" \"$1\" && echo ready && exec sleep 600";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "slave", "sh", "-c", script]);
        command.arg(directory).arg(at).arg(propagation).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    /// A path as it has it.
    fn inside(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.0.id(), path.display()))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory that passes its mounts on to containers, as the whole of a host does under systemd; unmounted when dropped.
struct Shared(PathBuf);

impl Shared {
    fn make(at: &Path) -> Self {
        fs::create_dir_all(at).unwrap();
        for arguments in [&["--bind", at.to_str().unwrap()][..], &["--make-shared"]] {
            assert!(Command::new("mount").args(arguments).arg(at).status().unwrap().success());
        }
        Self(at.to_owned())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_container_that_is_a_slave_of_the_hosts_mounts_has_its_trees_again_after_a_kill() {
    let place = PoolFolder::new("");
    let _shared = Shared::make(&place.folder.path().join("mount"));
    let mut service = place.serve();
    let directory = place.temporary().parent().unwrap().to_owned();
    let at = place.folder.path().join("minerva");
    fs::create_dir(&at).unwrap();
    let [slave, private] = ["slave", "private"].map(|propagation| Container::start(&directory, &at, propagation));
    for kind in ["temporary", "stable"] {
        let file = slave.inside(&at).join(kind).join("file");
        fs::write(&file, kind).unwrap();
        assert_eq!(fs::read(place.temporary().with_file_name(kind).join("file")).unwrap(), kind.as_bytes());
    }
    service.kill();
    let _service = place.serve();
    for kind in ["temporary", "stable"] {
        let path = |container: &Container| container.inside(&at).join(kind).join("file");
        assert_eq!(fs::read(path(&slave)).unwrap(), kind.as_bytes());
        fs::write(path(&slave), "written after it").unwrap();
        let error = fs::read(path(&private)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN), "a private mount stays the dead one: {error}");
    }
}

/// A pool with a second tenant, whose trees only a container still has: they were unmounted where the service is.
fn only_in_a_container() -> (PoolFolder, Service, Container) {
    let place = PoolFolder::with("", OTHER);
    let service = place.serve();
    let at = place.folder.path().join("minerva");
    fs::create_dir(&at).unwrap();
    let other = place.folder.path().join("mount/other");
    let container = Container::start(&other, &at, "private");
    place.write("", "");
    assert!(place.run(&["reload"]).status.success());
    place.until_status("it is said who has it", |tenants| {
        tenants.iter().any(|tenant| tenant.leaving.contains("stable is unmounted, but another mount namespace"))
    });
    assert!(!is_mounted(&other.join("stable")));
    fs::write(container.inside(&at).join("stable/file"), "still served").unwrap();
    (place, service, container)
}

#[test]
fn a_tree_that_only_a_container_still_has_holds_nothing_up_and_leaves_with_the_container() {
    let (place, service, container) = only_in_a_container();
    // Others are served, and nothing waits for it.
    fs::write(place.stable().join("file"), "text").unwrap();
    place.write("stable = \"8MiB\"", "");
    assert!(place.run(&["reload"]).status.success());
    place.write("", OTHER);
    let told = said(&place.run(&["reload"]));
    assert!(told.contains("nothing was changed") && told.contains("end its processes, then reload again"), "{told}");
    place.write("", "");
    assert!(place.run(&["reload"]).status.success());
    drop(container);
    place.until_status("it has left", |tenants| tenants.len() == 1);
    place.write("", OTHER);
    assert!(place.run(&["reload"]).status.success());
    let other = place.folder.path().join("mount/other/stable/file");
    assert_eq!(fs::read(other).unwrap(), b"still served");
    assert!(service.terminate());
}

#[test]
fn the_service_ends_though_a_container_still_has_a_tree() {
    let (place, mut service, container) = only_in_a_container();
    kill_process(service.pid(), Signal::TERM).unwrap();
    let begun = Instant::now();
    let ended = loop {
        if let Some(ended) = service.0.try_wait().unwrap() {
            break ended;
        }
        if !place.socket().exists() {
            // Whoever asks again does not wait for programs.
            kill_process(service.pid(), Signal::TERM).unwrap();
        }
        assert!(begun.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(ended.success());
    let file = container.inside(&place.folder.path().join("minerva/stable/file"));
    assert_eq!(fs::read(file).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
    assert!(!is_mounted(&place.stable()) && !is_mounted(&place.temporary()));
}
