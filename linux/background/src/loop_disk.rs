//! For tests: a file system in a file, mounted through a loop device.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Unmounted and gone when it is dropped.
pub(crate) struct LoopDisk {
    folder: TempDir,
    pub(crate) mounted: PathBuf,
}

impl LoopDisk {
    /// Made by a program with its arguments, and mounted; nothing where that cannot be, with the reason printed.
    pub(crate) fn new(make: &[&str]) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("minerva-test-").tempdir().unwrap();
        let disk = Self { mounted: folder.path().join("mounted"), folder };
        File::create(disk.image()).unwrap().set_len(512 << 20).unwrap();
        fs::create_dir(&disk.mounted).unwrap();
        let made = Command::new(make[0]).args(&make[1..]).arg(disk.image()).output();
        if !made.is_ok_and(|output| output.status.success()) {
            println!("skipped: needs {}", make[0]);
            return None;
        }
        if !disk.try_mount() {
            println!("skipped: needs root and loop devices");
            return None;
        }
        Some(disk)
    }

    /// A btrfs that has everything on two disks.
    pub(crate) fn mirrored() -> Option<Self> {
        Self::on_two(false)
    }

    /// The same, of which the second disk is gone.
    pub(crate) fn degraded() -> Option<Self> {
        Self::on_two(true)
    }

    fn on_two(is_degraded: bool) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("minerva-test-").tempdir().unwrap();
        let disk = Self { mounted: folder.path().join("mounted"), folder };
        fs::create_dir(&disk.mounted).unwrap();
        let nodes: Vec<String> = ["first", "second"].iter().filter_map(|name| disk.node(name)).collect();
        let [first, second] = nodes.as_slice() else {
            println!("skipped: needs root and loop devices");
            return None;
        };
        let succeeds = |program: &str, arguments: &[&str]| {
            Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
        };
        let is_made = succeeds("mkfs.btrfs", &["-q", "-f", "-d", "raid1", "-m", "raid1", first, second]);
        let mut options = format!("device={second}");
        if is_degraded {
            "degraded".clone_into(&mut options);
            // mkfs.btrfs has told the kernel of both.
            succeeds("btrfs", &["device", "scan", "--forget", second]);
            succeeds("losetup", &["-d", second]);
        }
        let is_mounted = is_made && succeeds("mount", &["-o", &options, first, disk.mounted.to_str()?]);
        // Once nobody uses them they go.
        let attached = nodes.iter().filter(|node| !is_degraded || *node != second).map(String::as_str);
        succeeds("losetup", &["-d"].into_iter().chain(attached).collect::<Vec<_>>());
        if !is_mounted {
            println!("skipped: needs mkfs.btrfs and loop devices");
        }
        is_mounted.then_some(disk)
    }

    /// A loop device with a file of this name.
    pub(crate) fn node(&self, name: &str) -> Option<String> {
        let image = self.folder.path().join(name);
        File::create(&image).unwrap().set_len(512 << 20).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn try_mount(&self) -> bool {
        let mount = Command::new("mount").args(["-o", "loop"]).args([&self.image(), &self.mounted]).output();
        mount.is_ok_and(|output| output.status.success())
    }

    pub(crate) fn mount(&self) {
        assert!(self.try_mount());
    }

    pub(crate) fn unmount(&self) {
        run("umount", &[], &self.mounted);
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.mounted).output();
    }
}

/// A program that succeeds; what it prints.
pub(crate) fn run(program: &str, arguments: &[&str], path: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(path).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
