//! Debian's packages, by the host's package manager; nothing is installed. For other processors than the host's, apt is given an index of
//! its own in the cache, so that the host's stays as it is.

use super::architecture::Architecture;
use super::error::GuestError;
use super::program::{NETWORK_OPTIONS, run, with_network};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where packages for some processors come from.
pub(super) struct Archive<'a> {
    /// The cache of what guests are made of.
    pub(super) cache: &'a Path,
    pub(super) architecture: Architecture,
}

impl Archive<'_> {
    /// What the meta package of kernels depends on now.
    pub(super) fn newest_kernel(&self, progress: &mut dyn FnMut(&str)) -> Result<String, GuestError> {
        let meta = format!("linux-image-{}", self.architecture.name());
        self.make_index(progress)?;
        let text = self.run(self.apt("apt-cache").args(["depends", &meta]), "apt-cache", &meta)?;
        let depends = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        let mut images = depends.filter(|name| name.starts_with("linux-image-"));
        let missing = || GuestError::MissingPackage { package: meta, detail: "it depends on no kernel".to_owned() };
        images.next().map(str::to_owned).ok_or_else(missing)
    }

    /// Downloads the packages and unpacks them; `directory` appears only when all of it is there.
    pub(super) fn unpack(
        &self,
        directory: &Path,
        packages: &[&str],
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), GuestError> {
        let scratch = tempfile::Builder::new().prefix("unpacking-").tempdir_in(self.cache);
        let scratch = scratch.map_err(GuestError::at("make a directory in", self.cache))?;
        let tree = scratch.path().join("tree");
        fs::create_dir(&tree).map_err(GuestError::at("make", &tree))?;
        let mut download = self.apt("apt-get");
        download.args(["download", "-q"]).args(packages).current_dir(&scratch);
        self.run(&mut download, "apt-get", &packages.join(", "))?;
        progress("unpacking them");
        let entries = fs::read_dir(&scratch).map_err(GuestError::at("list", scratch.path()))?;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "deb") {
                run(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(&tree), "dpkg-deb")?;
            }
        }
        fs::rename(&tree, directory).map_err(GuestError::at("move the packages to", directory))
    }

    /// Fetches the index of packages for other processors; the host's own is its administrator's.
    fn make_index(&self, progress: &mut dyn FnMut(&str)) -> Result<(), GuestError> {
        if self.architecture == Architecture::HOST {
            return Ok(());
        }
        let name = self.architecture.name();
        progress(&format!("fetching Debian's index of packages for {name}, about 14 MB"));
        let lists = self.cache.join(format!("lists-{name}/partial"));
        fs::create_dir_all(&lists).map_err(GuestError::at("make", &lists))?;
        let meta = format!("linux-image-{name}");
        self.run(self.apt("apt-get").args(["update", "-q"]), "apt-get", &meta).map(drop)
    }

    /// One of apt's programs. Debian's container images tell apt to keep no cache of its index, and reading all of the index for each guest
    /// takes it more than a second; so one is kept, which apt itself makes anew when the index changes.
    fn apt(&self, program: &str) -> Command {
        let name = self.architecture.name();
        let mut command = with_network(program);
        let mut set = |name: &str, value: &str| {
            command.arg("-o").arg(format!("{name}={value}"));
        };
        let own = |file: &str| self.cache.join(file).display().to_string();
        NETWORK_OPTIONS.into_iter().for_each(|(name, value)| set(name, value));
        // As root, apt downloads as another user, who may not write here.
        set("APT::Sandbox::User", "root");
        set("Dir::Cache::pkgcache", &own(&format!("pkgcache-{name}")));
        set("Dir::Cache::srcpkgcache", &own(&format!("srcpkgcache-{name}")));
        if self.architecture != Architecture::HOST {
            set("APT::Architecture", name);
            set("APT::Architectures::", name);
            set("Dir::State::lists", &own(&format!("lists-{name}")));
            // What is installed here is for other processors.
            set("Dir::State::status", "/dev/null");
        }
        command
    }

    /// Runs one of apt's programs, whose failure means that `package` cannot be had.
    fn run(&self, command: &mut Command, program: &'static str, package: &str) -> Result<String, GuestError> {
        run(command, program).map_err(|error| match error {
            GuestError::Program { detail, .. } => GuestError::MissingPackage { package: package.to_owned(), detail },
            other => other,
        })
    }
}
