//! A root file system with Debian and systemd on it, made once with the host's package manager and kept in the cache. A guest
//! that boots from it sees its users' world: systemd as process 1, the unified hierarchy as systemd lays it out, dpkg.

use super::error::GuestError;
use super::kernel::{cache_directory, lock_cache};
use super::program::{NETWORK_OPTIONS, run, with_network};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's release; the kernel comes from the host's, which may be another.
const SUITE: &str = "bookworm";
/// Beside what is essential: process 1, and the programs that tests and package scripts call.
const PACKAGES: &str = "systemd,systemd-sysv,mount,procps,libgcc-s1";
/// To be raised when anything here changes, so that no guest boots from what an earlier version made.
const RECIPE: u32 = 3;
/// What dpkg leaves out: what is never read in a guest, a third of the whole; and the generators, each of which systemd runs
/// whenever it reads its units, but the one that reads what the kernel is told.
const LEFT_OUT: [&str; 6] = [
    "path-exclude=/usr/share/doc/*",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/i18n/*",
    "path-exclude=/lib/systemd/system-generators/*",
    "path-include=/lib/systemd/system-generators/systemd-debug-generator",
];
/// The image's size. It is a sparse file, of which the guest's writes never arrive.
const SIZE: &str = "1G";

/// What the kernel is told beside what every guest's is. Nobody logs in, so nothing waits for that.
pub(super) const KERNEL_ARGUMENTS: &str = "systemd.wants=minerva-script.service systemd.getty_auto=no \
    systemd.show_status=yes systemd.firstboot=no systemd.mask=getty-static.service systemd.mask=systemd-logind.service \
    systemd.mask=systemd-networkd.service systemd.mask=systemd-timesyncd.service systemd.mask=systemd-pstore.service \
    systemd.mask=apt-daily.timer systemd.mask=apt-daily-upgrade.timer systemd.mask=dpkg-db-backup.timer \
    systemd.mask=e2scrub_all.timer systemd.mask=fstrim.timer";

/// By which a guest's first init knows the disk.
pub(super) const SERIAL: &str = "debian";

/// Files that are put over every image, by path: a name for the machine, and the script's unit.
pub(super) const FILES: [(&str, &str); 3] = [
    ("etc/machine-id", "6d696e65727661746573740000000000\n"),
    ("etc/hostname", "guest\n"),
    ("etc/systemd/system/minerva-script.service", include_str!("script.service")),
];

/// The image, from the cache or made now: some 60 MB of packages, and a minute.
pub(super) fn obtain(progress: &mut dyn FnMut(&str)) -> Result<PathBuf, GuestError> {
    let cache = cache_directory();
    let _lock = lock_cache(&cache)?;
    let image = cache.join(format!("debian-{SUITE}-{RECIPE}.ext4"));
    if !image.is_file() {
        progress(&format!(
            "making a root file system with Debian {SUITE} for guests, some 60 MB, in {}",
            cache.display()
        ));
        make(&cache, &image)?;
    }
    Ok(image)
}

/// Installs into a directory, and makes an image of it that appears only when it is whole.
fn make(cache: &Path, image: &Path) -> Result<(), GuestError> {
    let scratch = tempfile::Builder::new().prefix("making-").tempdir_in(cache);
    let scratch = scratch.map_err(GuestError::at("make a directory in", cache))?;
    let tree = scratch.path().join("tree");
    let mut install = with_network("mmdebstrap");
    install.args(["--quiet", "--variant=essential", "--format=directory", "--include", PACKAGES]);
    install.args(LEFT_OUT.map(|option| format!("--dpkgopt={option}")));
    install.args(NETWORK_OPTIONS.map(|(name, value)| format!("--aptopt={name} \"{value}\"")));
    // Those are for this host: the image is as it would be without.
    install.arg("--customize-hook=rm \"$1/etc/apt/apt.conf.d/99mmdebstrap\"");
    run(install.arg(SUITE).arg(&tree), "mmdebstrap").map_err(|error| match error {
        GuestError::Program { detail, .. } => GuestError::MissingPackage { package: PACKAGES.to_owned(), detail },
        other => other,
    })?;
    let new = scratch.path().join("image");
    let mut format = Command::new("mke2fs");
    // Initialised now, so that the guest's kernel does not do it in the background of what is measured.
    format.args(["-q", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d"]);
    run(format.arg(&tree).arg(&new).arg(SIZE), "mke2fs")?;
    fs::rename(&new, image).map_err(GuestError::at("move the image to", image))
}
