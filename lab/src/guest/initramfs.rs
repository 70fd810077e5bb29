//! The guest's first and only file system: a `newc` archive that the kernel unpacks into memory.

use super::debian;
use super::error::GuestError;
use super::kernel::GuestKernel;
use super::libraries::libraries_of;
use cpio::newc::{Builder, trailer};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// What the guest runs first: all by itself, or before Debian's systemd.
const INIT: &str = include_str!("init.sh");
const INIT_DEBIAN: &str = include_str!("init-debian.sh");

/// Loaded in every guest: the disks, the channels to the host and the elevator under test.
const MODULES: [&str; 4] = ["virtio_pci", "virtio_blk", "virtio_console", "bfq"];
/// And in one that boots Debian: its file system, which finds its checksums by name only, and the loop devices of tests.
const MODULES_DEBIAN: [&str; 3] = ["crc32c_generic", "ext4", "loop"];

/// What is put over Debian's files, and what only where Debian has none, lies below these.
const OVER: &str = "minerva/over/";
const LIBRARIES: &str = "minerva/libraries/";

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const PLAIN: u32 = 0o100_644;

/// What one guest gets besides the shell.
pub(crate) struct Contents<'a> {
    /// Programs of the host, to be found under their names in `/usr/bin`, with their libraries.
    pub(crate) binaries: &'a [std::path::PathBuf],
    /// Path in the guest, and contents.
    pub(crate) files: &'a [(String, Vec<u8>)],
    /// Modules beside [`MODULES`], with their parameters.
    pub(crate) modules: &'a [(String, String)],
    /// What to run.
    pub(crate) script: &'a str,
    /// Files are put over Debian's, and systemd runs the script.
    pub(crate) is_debian: bool,
}

/// Writes the archive.
pub(crate) fn write(path: &Path, kernel: &GuestKernel, contents: &Contents<'_>) -> Result<(), GuestError> {
    let file = File::create(path).map_err(GuestError::at("make", path))?;
    let mut archive = Archive { path, out: BufWriter::new(file), made: BTreeSet::new(), number: 0 };
    for directory in ["proc", "sys", "dev", "tmp", "run", "root", "etc", "bin", "usr/bin", "var/lib"] {
        archive.parents(&format!("{directory}/."))?;
    }
    archive.copy(&kernel.busybox(), "bin/busybox")?;
    archive.file("init", PROGRAM, if contents.is_debian { INIT_DEBIAN } else { INIT }.as_bytes())?;
    let (over, below) = if contents.is_debian { (OVER, LIBRARIES) } else { ("", "") };
    archive.file(&format!("{over}minerva/script"), PLAIN, contents.script.as_bytes())?;

    let extra = contents.modules.iter().map(|(name, _)| name.as_str());
    let debian = MODULES_DEBIAN.into_iter().filter(|_| contents.is_debian);
    let names: Vec<&str> = MODULES.into_iter().chain(debian).chain(extra).collect();
    let mut load = String::new();
    for module in kernel.modules()?.with_dependencies(&names)? {
        let given = contents.modules.iter().find(|(name, _)| name.replace('-', "_") == module.name);
        let parameters = given.map_or("", |(_, parameters)| parameters);
        load.push_str(&format!("/minerva/modules/{}.ko {parameters}\n", module.name));
        archive.file(&format!("minerva/modules/{}.ko", module.name), PLAIN, &module.bytes)?;
    }
    archive.file("minerva/load", PLAIN, load.as_bytes())?;

    let mut libraries = BTreeSet::new();
    for binary in contents.binaries {
        let name = binary.file_name().unwrap_or_default().to_string_lossy();
        archive.copy(binary, &format!("{over}usr/bin/{name}"))?;
        libraries.extend(libraries_of(binary)?);
    }
    for library in libraries {
        archive.copy(&library, &format!("{below}{}", library.to_string_lossy().trim_start_matches('/')))?;
    }
    for (path, text) in debian::FILES.iter().filter(|_| contents.is_debian) {
        archive.file(&format!("{over}{path}"), PLAIN, text.as_bytes())?;
    }
    for (path, bytes) in contents.files {
        archive.file(&format!("{over}{}", path.trim_start_matches('/')), PLAIN, bytes)?;
    }
    archive.finish()
}

struct Archive<'a> {
    path: &'a Path,
    out: BufWriter<File>,
    /// Directories that are in the archive already.
    made: BTreeSet<String>,
    number: u32,
}

impl Archive<'_> {
    /// Adds the directories above `name`, which the kernel does not make by itself.
    fn parents(&mut self, name: &str) -> Result<(), GuestError> {
        for (end, _) in name.match_indices('/') {
            let directory = &name[..end];
            if self.made.insert(directory.to_owned()) {
                self.entry(directory, DIRECTORY, &[])?;
            }
        }
        Ok(())
    }

    /// Copies a file of the host, through symbolic links.
    fn copy(&mut self, from: &Path, name: &str) -> Result<(), GuestError> {
        let bytes = fs::read(from).map_err(GuestError::at("read", from))?;
        self.file(name, PROGRAM, &bytes)
    }

    fn file(&mut self, name: &str, mode: u32, bytes: &[u8]) -> Result<(), GuestError> {
        self.parents(name)?;
        self.entry(name, mode, bytes)
    }

    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) -> Result<(), GuestError> {
        let failed = GuestError::at("write", self.path);
        self.number += 1;
        let mut write = || -> io::Result<()> {
            let size = u32::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
            let mut entry = Builder::new(name).ino(self.number).mode(mode).write(&mut self.out, size);
            entry.write_all(bytes)?;
            entry.finish().map(drop)
        };
        write().map_err(failed)
    }

    fn finish(mut self) -> Result<(), GuestError> {
        let failed = GuestError::at("write", self.path);
        trailer(&mut self.out).and_then(|out| out.flush()).map_err(failed)
    }
}
