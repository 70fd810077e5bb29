//! Guests: Debian's kernel in QEMU, for what this host's kernel does not offer, above all the io controller of the unified
//! cgroup hierarchy. A guest boots in some seconds from memory, runs one script, and ends; nothing of it remains.
//!
//! ```no_run
//! # use minerva_lab::guest::Guest;
//! # use std::time::Duration;
//! let output = Guest::builder().disk_mib(64).run("cat /sys/fs/cgroup/io.cost.qos", Duration::from_secs(60))?;
//! assert_eq!(output.status, 0);
//! # Ok::<(), minerva_lab::guest::GuestError>(())
//! ```
//!
//! In the guest: a busybox shell, `/sys/fs/cgroup` with `io`, `memory`, `cpu` and `pids` enabled for child groups, the disks
//! as `/dev/vda`, `/dev/vdb`, ..., the given programs in `/usr/bin` with their libraries, BFQ loaded. There is no network unless it is asked for.
//! [`GuestBuilder::debian`] boots Debian instead, with systemd as process 1, whose service the script then is.
//!
//! A Rust test can send itself: `.with_binary(std::env::current_exe()?)`.
//!
//! Emulation is in software (`-accel tcg`), so times within the guest mean little; ratios within one run do.

mod architecture;
mod arguments;
mod debian;
mod error;
mod folder;
mod initramfs;
mod kernel;
mod libraries;
mod lossy_disk;
mod machine;
mod modules;
mod packages;
mod program;
mod vmlinux;
mod vsock;

pub use architecture::Architecture;
pub use arguments::HostDisk;
pub use error::GuestError;
pub use folder::guest_directory;
pub use kernel::GuestKernel;
pub use lossy_disk::{LossyDisk, PowerCut};

use folder::{GuestFolder, tail};
use machine::{Ended, Machine};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The status of a script that was cut.
const STATUS_OF_CUT: i32 = -1;

/// What the script reads from the host, where there is a [`GuestBuilder::input`].
pub const INPUT: &str = "/dev/vport0p4";

/// A virtual machine.
pub struct Guest;

/// What came out of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestOutput {
    /// The script's standard output.
    pub stdout: String,
    /// The script's standard error.
    pub stderr: String,
    /// The script's exit status.
    pub status: i32,
    /// What the kernel and init said.
    pub console: String,
}

/// How a guest is made.
pub struct GuestBuilder<'a> {
    architecture: Architecture,
    memory_mib: u32,
    cpus: u32,
    binaries: Vec<PathBuf>,
    files: Vec<(String, Vec<u8>)>,
    modules: Vec<(String, String)>,
    disks_mib: Vec<u64>,
    lossy_disks: Vec<PathBuf>,
    vhost_user_disks: Vec<PathBuf>,
    host_disks: Vec<HostDisk>,
    shared_directories: Vec<(String, PathBuf)>,
    vsock: Option<PathBuf>,
    input: Option<PathBuf>,
    is_networked: bool,
    is_debian: bool,
    cgroup: Option<PathBuf>,
    name: Option<String>,
    progress: Box<dyn FnMut(&str) + 'a>,
}

impl Guest {
    /// A guest with 512 MiB, one processor like this host's and no disk.
    pub fn builder<'a>() -> GuestBuilder<'a> {
        GuestBuilder {
            architecture: Architecture::HOST,
            memory_mib: 512,
            cpus: 1,
            binaries: Vec::new(),
            files: Vec::new(),
            modules: Vec::new(),
            disks_mib: Vec::new(),
            lossy_disks: Vec::new(),
            vhost_user_disks: Vec::new(),
            host_disks: Vec::new(),
            shared_directories: Vec::new(),
            vsock: None,
            input: None,
            is_networked: false,
            is_debian: false,
            cgroup: None,
            name: None,
            progress: Box::new(|_| ()),
        }
    }
}

impl<'a> GuestBuilder<'a> {
    /// Processors of this kind. Where they are not like this host's, the guest has busybox and no program of the host, and boots no
    /// Debian.
    pub fn architecture(mut self, architecture: Architecture) -> Self {
        self.architecture = architecture;
        self
    }

    /// Memory. The given programs and files live in it too.
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    /// Processors.
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// A program of the host, with its shared libraries; the guest finds it by its name.
    pub fn with_binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binaries.push(path.into());
        self
    }

    /// A file at `path` in the guest.
    pub fn with_file(mut self, path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), contents.into()));
        self
    }

    /// A kernel module that is to be loaded, with its dependencies and with parameters such as `nr_devices=2`.
    pub fn with_module(mut self, name: impl Into<String>, parameters: impl Into<String>) -> Self {
        self.modules.push((name.into(), parameters.into()));
        self
    }

    /// An empty virtio disk; the first is `/dev/vda`. It is a sparse file of the host.
    pub fn disk_mib(mut self, size_mib: u64) -> Self {
        self.disks_mib.push(size_mib);
        self
    }

    /// A disk that forgets what was not flushed when its power is cut; it comes after those of [`GuestBuilder::disk_mib`].
    pub fn lossy_disk(mut self, disk: &LossyDisk) -> Self {
        self.lossy_disks.push(disk.socket().to_owned());
        self
    }

    /// A disk that a vhost-user-blk server serves at this socket, which has to listen already; it comes after all others.
    pub fn vhost_user_disk(mut self, socket: impl Into<PathBuf>) -> Self {
        self.vhost_user_disks.push(socket.into());
        self
    }

    /// A block device of the host; it comes after those of [`GuestBuilder::lossy_disk`].
    pub fn host_disk(mut self, disk: HostDisk) -> Self {
        self.host_disks.push(disk);
        self
    }

    /// A directory of the host, by this tag, that a virtiofsd serves at a socket, which has to listen already.
    pub fn virtiofs(mut self, tag: impl Into<String>, socket: impl Into<PathBuf>) -> Self {
        self.shared_directories.push((tag.into(), socket.into()));
        self.with_module("virtiofs", "")
    }

    /// A vsock to the host, whose other end is in user space: when the guest connects to port P of CID 2, its host, the
    /// connection arrives at the Unix socket `path` with `_P` behind it.
    pub fn vsock(mut self, path: impl Into<PathBuf>) -> Self {
        self.vsock = Some(path.into());
        self.with_module("vmw_vsock_virtio_transport", "")
    }

    /// What the script reads from [`INPUT`] comes from the connection that QEMU makes to the Unix socket `path`, at which somebody has to
    /// listen already. What is written before the script has opened it is lost.
    pub fn input(mut self, path: impl Into<PathBuf>) -> Self {
        self.input = Some(path.into());
        self
    }

    /// A network card, `eth0`, in a network of QEMU's own: the guest is 10.0.2.15/24, and at 10.0.2.2 it finds what listens on
    /// the host's loopback. The script has to give it its address.
    pub fn network(mut self) -> Self {
        self.is_networked = true;
        self.with_module("virtio_net", "")
    }

    /// Boots Debian, from a root file system of its own whose changes end with the guest. The script is a service of systemd's; the
    /// disks are `/dev/vda` and so on as in any guest; what programs and files there are besides, Debian's win over the host's
    /// libraries, and the given programs and files over Debian's.
    pub fn debian(mut self) -> Self {
        self.is_debian = true;
        self
    }

    /// Runs the guest in this cgroup, a directory with a `cgroup.procs`.
    pub fn cgroup(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cgroup = Some(directory.into());
        self
    }

    /// What QEMU is told to call it, and whoever looks at QEMU's command line calls it too.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Told in a line, every two seconds, what is going on.
    pub fn progress(mut self, progress: impl FnMut(&str) + 'a) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Boots, runs the script with `sh`, and returns what it printed and its status. The guest is killed at `timeout`, and
    /// when the calling thread ends.
    pub fn run(self, script: &str, timeout: Duration) -> Result<GuestOutput, GuestError> {
        match self.boot(script, timeout, None)? {
            (Ended::ByItself, output) => Ok(output),
            (Ended::ByCut, output) => Err(GuestError::Died { console: tail(&output.console) }),
        }
    }

    /// The same, but the guest is to be killed, as by a power cut, at the moment when `is_time` says so of what the script has
    /// printed by then; that is returned. A guest that ends before is an error.
    pub fn run_until_cut(
        self,
        script: &str,
        timeout: Duration,
        mut is_time: impl FnMut(&str) -> bool,
    ) -> Result<GuestOutput, GuestError> {
        match self.boot(script, timeout, Some(&mut is_time))? {
            (Ended::ByCut, output) => Ok(output),
            (Ended::ByItself, output) => {
                let console = format!("{}\n{}\n{}", output.stdout, output.stderr, tail(&output.console));
                Err(GuestError::Died { console })
            }
        }
    }

    fn boot(
        mut self,
        script: &str,
        timeout: Duration,
        cut: Option<&mut dyn FnMut(&str) -> bool>,
    ) -> Result<(Ended, GuestOutput), GuestError> {
        let architecture = self.architecture;
        if architecture != Architecture::HOST && (self.is_debian || !self.binaries.is_empty()) {
            return Err(GuestError::OtherArchitecture { architecture: architecture.name() });
        }
        let kernel = GuestKernel::obtain(architecture, &mut self.progress)?;
        let debian = if self.is_debian { Some(debian::obtain(&mut self.progress)?) } else { None };
        let directory = guest_directory()?;
        let place = GuestFolder(directory.path());
        let Self { binaries, files, modules, is_debian, .. } = &self;
        let contents = initramfs::Contents { binaries, files, modules, script, is_debian: *is_debian };
        initramfs::write(&place.at("initramfs"), &kernel, &contents)?;
        // Dropped after the machine that it serves.
        let _vsock = self.vsock.as_deref().map(|path| vsock::start(&place, path)).transpose()?;
        let mut machine = Machine::start(&mut self.command(&kernel, debian.as_deref(), &place)?, architecture)?;
        if let Some(cgroup) = &self.cgroup {
            let file = cgroup.join("cgroup.procs");
            fs::write(&file, machine.id().to_string()).map_err(GuestError::at("write", &file))?;
        }
        let ended = machine.wait(&place, timeout, cut, &mut self.progress)?;
        drop(machine);
        let console = place.text("console");
        let Some(ended) = ended else {
            let [stdout, stderr] = ["stdout", "stderr"].map(|name| tail(&place.text(name)));
            return Err(GuestError::TimedOut { after: timeout, stdout, stderr, console: tail(&console) });
        };
        let status = match (&ended, place.text("status").trim().parse()) {
            (_, Ok(status)) => status,
            (Ended::ByCut, Err(_)) => STATUS_OF_CUT,
            (Ended::ByItself, Err(_)) => {
                let console = format!("{}\n{}", tail(&console), tail(&place.text("qemu")));
                return Err(GuestError::Died { console });
            }
        };
        let output = GuestOutput { stdout: place.text("stdout"), stderr: place.text("stderr"), status, console };
        Ok((ended, output))
    }

    fn command(
        &self,
        kernel: &GuestKernel,
        debian: Option<&Path>,
        place: &GuestFolder<'_>,
    ) -> Result<Command, GuestError> {
        let architecture = self.architecture;
        let mut command = Command::new(architecture.qemu().0);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        command.args(["-machine", architecture.machine()]);
        arguments::add_processors(&mut command, architecture, self.cpus);
        command.args(["-m", &self.memory_mib.to_string()]);
        command.arg("-kernel").arg(kernel.image()).arg("-initrd").arg(place.at("initramfs"));
        // What guards a real machine costs an emulated one a second of boot. A panic ends the guest at once.
        let arguments = "quiet panic=-1 nokaslr mitigations=off random.trust_cpu=on";
        let more = if self.is_debian { debian::KERNEL_ARGUMENTS } else { "" };
        command.arg("-append").arg(format!("console={} {arguments} {more}", architecture.console()));
        arguments::add_outputs(&mut command, place);
        if let Some(socket) = &self.input {
            arguments::add_input(&mut command, socket);
        }
        self.add_disks(&mut command, place)?;
        arguments::add_host_disks(&mut command, &self.host_disks);
        if let Some(image) = debian {
            arguments::add_debian(&mut command, image);
        }
        if let Some(name) = &self.name {
            command.args(["-name", &format!("guest={name}")]);
        }
        if self.vsock.is_some() || !self.vhost_user_disks.is_empty() || !self.shared_directories.is_empty() {
            arguments::share_memory(&mut command, self.memory_mib);
        }
        arguments::add_vhost_user_disks(&mut command, &self.vhost_user_disks);
        arguments::add_shared_directories(&mut command, &self.shared_directories);
        if self.vsock.is_some() {
            command.arg("-chardev").arg(format!("socket,id=vsock,path={}", place.show(vsock::CONTROL)));
            command.args(["-device", "vhost-user-vsock-pci,chardev=vsock"]);
        }
        if self.is_networked {
            // Nobody boots from it, so it needs no ROM, which comes in a package of its own.
            command.args(["-netdev", "user,id=network", "-device", "virtio-net-pci,netdev=network,romfile="]);
        }
        let errors = place.at("qemu");
        let errors = File::create(&errors).map_err(GuestError::at("make", &errors))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        crate::lifetime::die_with_this_thread(&mut command);
        Ok(command)
    }

    /// The disks that were asked for, then those that lose what was not flushed.
    fn add_disks(&self, command: &mut Command, place: &GuestFolder<'_>) -> Result<(), GuestError> {
        for (number, size_mib) in self.disks_mib.iter().enumerate() {
            let path = place.at(&format!("disk{number}"));
            let disk = File::create(&path).and_then(|file| file.set_len(size_mib << 20));
            disk.map_err(GuestError::at("make", &path))?;
            let file = path.display();
            command.arg("-drive").arg(format!("if=none,id=disk{number},format=raw,cache=unsafe,file={file}"));
            command.arg("-device").arg(format!("virtio-blk-pci,drive=disk{number}"));
        }
        for (number, socket) in self.lossy_disks.iter().enumerate() {
            let socket = socket.to_string_lossy().replace(',', ",,");
            let drive = format!("if=none,id=lossy{number},format=raw,cache=writeback,file.driver=nbd");
            command.arg("-drive").arg(format!("{drive},file.server.type=unix,file.server.path={socket}"));
            command.arg("-device").arg(format!("virtio-blk-pci,drive=lossy{number},write-cache=on"));
        }
        Ok(())
    }
}
