//! A real QEMU: which disk of the host an image is on that the guest knows by its serial.

use crate::fake_host::{FakeHost, seen};
use minerva_linux_observe::{GuestDisk, Observer, Roots};
use minerva_model::{CgroupVersion, DeviceId, TenantKind};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A loop device, which is a disk of its own, detached at the end.
struct Image {
    _folder: tempfile::TempDir,
    node: PathBuf,
    id: DeviceId,
}

impl Image {
    fn new(mebibytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("image");
        fs::File::create(&file).and_then(|file| file.set_len(mebibytes << 20)).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            println!("skipped: needs losetup and a free loop device");
            return None;
        };
        let node = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        let name = node.file_name().unwrap();
        let id = fs::read_to_string(Path::new("/sys/block").join(name).join("dev")).unwrap().trim().parse().unwrap();
        Some(Self { _folder: folder, node, id })
    }

    fn name(&self) -> String {
        self.node.display().to_string()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _detached = Command::new("losetup").arg("--detach").arg(&self.node).status();
    }
}

/// A guest that was made and does not run.
struct Qemu(Child);

impl Qemu {
    fn start(arguments: &[String]) -> Option<Self> {
        let mut command = Command::new("qemu-system-x86_64");
        command
            .args(["-S", "-nodefaults", "-display", "none", "-machine", "q35,accel=tcg", "-m", "64"])
            .args(arguments);
        match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            Ok(child) => Some(Self(child)),
            Err(error) => {
                println!("skipped: needs qemu-system-x86_64: {error}");
                None
            }
        }
    }

    /// For writing, which QEMU opens a disk for only when the device is made; the link's own permissions tell.
    fn has_open(&self, node: &Path) -> bool {
        let files = fs::read_dir(format!("/proc/{}/fd", self.0.id())).into_iter().flatten().flatten();
        let is_written = |file: &Path| fs::symlink_metadata(file).is_ok_and(|link| link.mode() & 0o200 != 0);
        let mut written = files.map(|file| file.path()).filter(|file| is_written(file));
        written.any(|file| fs::read_link(file).is_ok_and(|target| target == node))
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_disk_of_a_serial_is_found_among_those_of_a_real_guest() {
    let (Some(small), Some(large)) = (Image::new(8), Image::new(16)) else { return };
    let volume = "6b9de3f2-0a5c-4e1d-9c1b-2f4c1a7be8d0";
    // As people write it, and as libvirt does, with the name of a volume that is longer than what a guest is shown.
    let arguments = [
        "-drive".to_owned(),
        format!("if=none,id=first,format=raw,file={}", small.name()),
        "-device".to_owned(),
        "virtio-blk-pci,drive=first,serial=root".to_owned(),
        "-blockdev".to_owned(),
        format!(r#"{{"driver":"host_device","filename":"{}","node-name":"storage"}}"#, large.name()),
        "-blockdev".to_owned(),
        r#"{"driver":"raw","file":"storage","node-name":"format"}"#.to_owned(),
        "-device".to_owned(),
        format!(r#"{{"driver":"virtio-blk-pci","drive":"format","serial":"{volume}"}}"#),
    ];
    let Some(mut qemu) = Qemu::start(&arguments) else { return };
    let begin = Instant::now();
    while !(qemu.has_open(&small.node) && qemu.has_open(&large.node)) {
        assert!(qemu.0.try_wait().unwrap().is_none(), "it does not start");
        assert!(begin.elapsed() < PATIENCE, "it does not open its images");
        std::thread::sleep(Duration::from_millis(20));
    }
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("qemu.slice/100.scope", &format!("{}\n", qemu.0.id()));
    let roots = Roots { proc: PathBuf::from("/proc"), sys: PathBuf::from("/sys"), ..host.roots() };
    let mut observer = Observer::new(roots, &[]).unwrap();
    let tenants = seen(&observer.discover());
    assert_eq!(tenants.iter().map(|tenant| tenant.kind).collect::<Vec<_>>(), [TenantKind::VirtualMachine]);
    let mut on = |size_mib: u64, serial: &str| {
        let disk = GuestDisk { size_bytes: size_mib << 20, serial: serial.to_owned() };
        observer.image_device(tenants[0].id, &disk)
    };
    assert_eq!([on(8, "root"), on(16, "root"), on(8, &volume[..20])], [Some(small.id), Some(small.id), Some(large.id)]);
    assert_eq!(
        [on(8, ""), on(16, ""), on(8, "other"), on(0, "other")].map(Option::unwrap),
        [small.id, large.id, small.id, large.id]
    );
}
