//! The shared libraries of a program of the host, found as the loader would, so that the program runs in the guest too.

use super::error::GuestError;
use goblin::elf::Elf;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the loader looks, on Debian and elsewhere. A library keeps its place in the guest, so the guest's loader, which is
/// the host's, finds it as well.
const DIRECTORIES: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The loader and every library that `program` needs, directly or not, as paths on the host.
pub(crate) fn libraries_of(program: &Path) -> Result<BTreeSet<PathBuf>, GuestError> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![program.to_owned()];
    while let Some(path) = waiting.pop() {
        let bytes = fs::read(&path).map_err(GuestError::at("read", &path))?;
        let elf = Elf::parse(&bytes).map_err(|source| GuestError::NotElf { path: path.clone(), source })?;
        let loader = elf.interpreter.map(|loader| Ok(PathBuf::from(loader)));
        let needed = elf.libraries.iter().map(|library| find(library, &elf, &path));
        for library in loader.into_iter().chain(needed) {
            let library = library?;
            if found.insert(library.clone()) {
                waiting.push(library);
            }
        }
    }
    Ok(found)
}

fn find(library: &str, elf: &Elf<'_>, program: &Path) -> Result<PathBuf, GuestError> {
    let origin = program.parent().unwrap_or(Path::new("/")).to_string_lossy();
    let own = elf.runpaths.iter().chain(&elf.rpaths).flat_map(|paths| paths.split(':'));
    let own = own.map(|path| path.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin));
    let mut places = own.chain(DIRECTORIES.map(str::to_owned)).map(|directory| Path::new(&directory).join(library));
    let missing = || GuestError::NoSuchLibrary { library: library.to_owned(), program: program.to_owned() };
    places.find(|path| path.is_file()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::libraries_of;

    #[test]
    fn this_program_needs_the_c_library_and_the_loader() {
        let program = std::env::current_exe().expect("this program has a path");
        let libraries = libraries_of(&program).expect("they are found");
        let has = |start: &str| {
            libraries.iter().any(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(start)))
        };
        assert!(has("libc.so") && has("ld-linux"), "{libraries:?}");
    }
}
