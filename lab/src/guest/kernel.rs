//! Debian's kernel and a shell for the guest, downloaded once and unpacked beside each other in a cache. Nothing is
//! installed on the host.

use super::architecture::Architecture;
use super::error::GuestError;
use super::modules::Modules;
use super::packages::Archive;
use super::vmlinux;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A kernel, its modules and a static busybox, unpacked on the host.
#[derive(Clone, Debug)]
pub struct GuestKernel {
    directory: PathBuf,
    release: String,
}

impl GuestKernel {
    /// Takes the kernel for these processors from the cache, or downloads some 70 MB with the host's package manager. `progress` is told
    /// what takes long.
    pub fn obtain(architecture: Architecture, progress: &mut dyn FnMut(&str)) -> Result<Self, GuestError> {
        let cache = cache_directory();
        let _lock = lock_cache(&cache)?;
        let archive = Archive { cache: &cache, architecture };
        // A kernel that was unpacked before serves where there is no index of packages, and where one would have to be fetched.
        let package = match newest_unpacked(&cache, architecture) {
            Some(package) if architecture != Architecture::HOST => package,
            unpacked => archive.newest_kernel(progress).or_else(|error| unpacked.ok_or(error))?,
        };
        let release = package.trim_start_matches("linux-image-").to_owned();
        let directory = cache.join(&package);
        if !directory.is_dir() {
            progress(&format!(
                "downloading {package} and busybox-static for guests, about 70 MB, to {}",
                cache.display()
            ));
            archive.unpack(&directory, &[&package, "busybox-static"], progress)?;
        }
        let kernel = Self { directory, release };
        if architecture == Architecture::Amd64 && !kernel.vmlinux().is_file() {
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

/// The package for these processors that was unpacked last.
fn newest_unpacked(cache: &Path, architecture: Architecture) -> Option<String> {
    let is_one = |name: &str| name.starts_with("linux-image-") && name.ends_with(&format!("-{}", architecture.name()));
    let entries = fs::read_dir(cache).ok()?.filter_map(Result::ok);
    let packages = entries.filter(|entry| is_one(&entry.file_name().to_string_lossy()));
    let newest = packages.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok())?;
    newest.file_name().into_string().ok()
}
