//! Which modules a guest must load, and in which order. The package has no `modules.dep`, as that is made on installation;
//! but each module names what it needs in its `.modinfo` section.

use super::error::GuestError;
use super::program::run;
use goblin::elf::Elf;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All modules of a kernel, by the name that the kernel uses.
pub(crate) struct Modules {
    release: String,
    files: BTreeMap<String, PathBuf>,
    /// Names of what is built in, which needs no loading.
    built_in: Vec<String>,
}

/// A module, decompressed.
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Modules {
    /// Finds the modules below `directory`.
    pub(crate) fn find(directory: &Path, release: &str) -> Result<Self, GuestError> {
        let mut files = BTreeMap::new();
        let mut directories = vec![directory.join("kernel")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).map_err(GuestError::at("list", &directory))? {
                let path = entry.map_err(GuestError::at("list", &directory))?.path();
                if path.is_dir() {
                    directories.push(path);
                } else if let Some(name) = module_name(&path) {
                    files.insert(name, path);
                }
            }
        }
        let list = directory.join("modules.builtin");
        let text = fs::read_to_string(&list).map_err(GuestError::at("read", &list))?;
        let built_in = text.lines().filter_map(|line| module_name(Path::new(line))).collect();
        Ok(Self { release: release.to_owned(), files, built_in })
    }

    /// The modules of these names and all that they need, each after what it needs.
    pub(crate) fn with_dependencies(&self, names: &[&str]) -> Result<Vec<Module>, GuestError> {
        let mut ordered = Vec::new();
        for name in names {
            self.add(name, &mut ordered)?;
        }
        Ok(ordered)
    }

    fn add(&self, name: &str, ordered: &mut Vec<Module>) -> Result<(), GuestError> {
        let name = name.replace('-', "_");
        if self.built_in.contains(&name) || ordered.iter().any(|module| module.name == name) {
            return Ok(());
        }
        let missing = || GuestError::NoSuchModule { kernel: self.release.clone(), module: name.clone() };
        let path = self.files.get(&name).ok_or_else(missing)?;
        let bytes = read(path)?;
        // Modules do not depend on each other in circles, or the kernel could not load them.
        for dependency in dependencies(path, &bytes)? {
            self.add(&dependency, ordered)?;
        }
        ordered.push(Module { name, bytes });
        Ok(())
    }
}

/// The kernel's name of a module file, which has `_` where the file may have `-`.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let (stem, rest) = file.split_once(".ko")?;
    matches!(rest, "" | ".xz" | ".zst" | ".gz").then(|| stem.replace('-', "_"))
}

fn read(path: &Path) -> Result<Vec<u8>, GuestError> {
    let program = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(path).map_err(GuestError::at("read", path)),
    };
    let scratch = tempfile::NamedTempFile::new().map_err(GuestError::at("make", std::env::temp_dir()))?;
    let out = scratch.reopen().map_err(GuestError::at("open", scratch.path()))?;
    run(Command::new(program).arg("--decompress").arg("--stdout").arg(path).stdout(out), program)?;
    fs::read(scratch.path()).map_err(GuestError::at("read", scratch.path()))
}

/// What `.modinfo` names under `depends=`.
fn dependencies(path: &Path, bytes: &[u8]) -> Result<Vec<String>, GuestError> {
    let elf = Elf::parse(bytes).map_err(|source| GuestError::NotElf { path: path.to_owned(), source })?;
    let section = elf.section_headers.iter().find(|header| elf.shdr_strtab.get_at(header.sh_name) == Some(".modinfo"));
    let range = section.and_then(|header| header.file_range()).unwrap_or_default();
    let fields = bytes.get(range).unwrap_or_default().split(|byte| *byte == 0);
    let depends = fields.filter_map(|field| field.strip_prefix(b"depends=")).map(String::from_utf8_lossy);
    Ok(depends
        .flat_map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>())
        .filter(|n| !n.is_empty())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::module_name;
    use std::path::Path;

    #[test]
    fn modules_are_named_as_the_kernel_does() {
        let name = |path: &str| module_name(Path::new(path));
        assert_eq!(name("kernel/drivers/md/dm-mod.ko").as_deref(), Some("dm_mod"));
        assert_eq!(name("kernel/block/bfq.ko.xz").as_deref(), Some("bfq"));
        assert_eq!(name("kernel/modules.order"), None);
    }
}
