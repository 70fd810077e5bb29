//! Debian's kernel and a shell for the guest, downloaded once and unpacked beside each other in a cache. Nothing is
//! installed on the host.

use super::error::GuestError;
use super::modules::Modules;
use super::program::run;
use super::vmlinux;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package that depends on the current kernel's.
const META_PACKAGE: &str = "linux-image-amd64";

/// A kernel, its modules and a static busybox, unpacked on the host.
#[derive(Clone, Debug)]
pub struct GuestKernel {
    directory: PathBuf,
    release: String,
}

impl GuestKernel {
    /// Takes the kernel from the cache, or downloads some 70 MB with the host's package manager. `progress` is told what
    /// takes long.
    pub fn obtain(progress: &mut dyn FnMut(&str)) -> Result<Self, GuestError> {
        let cache = cache_directory();
        let _lock = lock_cache(&cache)?;
        let package = match newest_package(&cache) {
            Ok(package) => package,
            // Without an index of packages a kernel that was unpacked before still serves.
            Err(error) => newest_unpacked(&cache).ok_or(error)?,
        };
        let release = package.trim_start_matches("linux-image-").to_owned();
        let directory = cache.join(&package);
        if !directory.is_dir() {
            progress(&format!(
                "downloading {package} and busybox-static for guests, about 70 MB, to {}",
                cache.display()
            ));
            unpack(&cache, &directory, &[&package, "busybox-static"], progress)?;
        }
        let kernel = Self { directory, release };
        if !kernel.vmlinux().is_file() {
            let mut is_slow =
                |why: &str| progress(&format!("guests unpack their kernel, which takes them seconds: {why}"));
            match vmlinux::extract(&kernel.packed(), &kernel.vmlinux()) {
                Ok(true) => {}
                Ok(false) => is_slow("how it is packed or entered is not known here"),
                Err(error) => is_slow(&error.to_string()),
            }
        }
        Ok(kernel)
    }

    /// The kernel's release, as `uname -r` in the guest says.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The kernel's image, unpacked if it could be.
    pub fn image(&self) -> PathBuf {
        Some(self.vmlinux()).filter(|path| path.is_file()).unwrap_or_else(|| self.packed())
    }

    /// As the package has it.
    fn packed(&self) -> PathBuf {
        self.directory.join(format!("boot/vmlinuz-{}", self.release))
    }

    fn vmlinux(&self) -> PathBuf {
        self.directory.join(format!("boot/vmlinux-{}", self.release))
    }

    /// A shell with all its tools in one static program.
    pub(crate) fn busybox(&self) -> PathBuf {
        self.directory.join("bin/busybox")
    }

    /// The kernel's loadable modules.
    pub(crate) fn modules(&self) -> Result<Modules, GuestError> {
        Modules::find(&self.directory.join("lib/modules").join(&self.release), &self.release)
    }
}

/// Makes the cache if need be. Two processes that want the same of it at once must not make it over each other; the lock ends with
/// the file.
pub(super) fn lock_cache(cache: &Path) -> Result<File, GuestError> {
    fs::create_dir_all(cache).map_err(GuestError::at("make", cache))?;
    let path = cache.join("lock");
    let lock = File::create(&path).map_err(GuestError::at("make", &path))?;
    lock.lock().map_err(GuestError::at("lock", &path))?;
    Ok(lock)
}

/// `$XDG_CACHE_HOME/minerva/guest`, `~/.cache/minerva/guest`, or a directory below the temporary one.
pub(super) fn cache_directory() -> PathBuf {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("minerva/guest")
}

/// What the meta package depends on now. Debian's container images tell apt to keep no cache of its index, and reading all of the
/// index for each guest takes it more than a second; so one is kept in `cache`, which apt itself makes anew when the index changes.
fn newest_package(cache: &Path) -> Result<String, GuestError> {
    let missing = |detail: String| GuestError::MissingPackage { package: META_PACKAGE.to_owned(), detail };
    let mut depends = Command::new("apt-cache");
    for name in ["pkgcache", "srcpkgcache"] {
        depends.arg("-o").arg(format!("Dir::Cache::{name}={}", cache.join(name).display()));
    }
    let text = run(depends.args(["depends", META_PACKAGE]), "apt-cache").map_err(|error| match error {
        GuestError::Program { detail, .. } => missing(detail),
        other => other,
    })?;
    let depends = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let mut images = depends.filter(|name| name.starts_with("linux-image-"));
    images.next().map(str::to_owned).ok_or_else(|| missing("it depends on no kernel".to_owned()))
}

/// The package that was unpacked last.
fn newest_unpacked(cache: &Path) -> Option<String> {
    let entries = fs::read_dir(cache).ok()?.filter_map(Result::ok);
    let packages = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("linux-image-"));
    let newest = packages.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok())?;
    newest.file_name().into_string().ok()
}

/// Downloads the packages and unpacks them; `directory` appears only when all of it is there.
fn unpack(cache: &Path, directory: &Path, packages: &[&str], progress: &mut dyn FnMut(&str)) -> Result<(), GuestError> {
    let scratch = tempfile::Builder::new().prefix("unpacking-").tempdir_in(cache);
    let scratch = scratch.map_err(GuestError::at("make a directory in", cache))?;
    let tree = scratch.path().join("tree");
    fs::create_dir(&tree).map_err(GuestError::at("make", &tree))?;
    // As root, apt downloads as another user, who may not write here.
    let mut download = Command::new("apt-get");
    download.args(["download", "-q", "-o", "APT::Sandbox::User=root"]).args(packages).current_dir(&scratch);
    run(&mut download, "apt-get").map_err(|error| match error {
        GuestError::Program { detail, .. } => GuestError::MissingPackage { package: packages.join(", "), detail },
        other => other,
    })?;
    progress("unpacking them");
    let entries = fs::read_dir(&scratch).map_err(GuestError::at("list", scratch.path()))?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(&tree), "dpkg-deb")?;
        }
    }
    fs::rename(&tree, directory).map_err(GuestError::at("move the kernel to", directory))
}
