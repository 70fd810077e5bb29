//! Man pages and completions, from the programs' own definitions. They are committed, and a difference fails the tests.

use crate::limited;
use crate::shell::{cargo, must, root};
use crate::workspace::target;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Each folder in it is a program that can write its own documents.
const APPS: &str = "apps";
/// Where manual pages are kept.
const PAGES: &str = "docs/man";
/// Where completions are kept.
const COMPLETIONS: &str = "packaging/completions";
/// A program writes its documents in a fraction of a second.
const LIMIT: Duration = Duration::from_secs(120);

/// Writes docs/man and packaging/completions.
pub(crate) fn run() -> Result<bool> {
    let names = programs()?;
    let programs = names.iter().flat_map(|program| ["--bin", program]);
    must(cargo().args(["build", "--quiet", "--workspace"]).args(programs))?;
    let documents = documents()?;
    for folder in [PAGES, COMPLETIONS] {
        let folder = root().join(folder);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("empty {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    }
    for (path, text) in &documents {
        std::fs::write(root().join(path), text).with_context(|| format!("write {}", path.display()))?;
    }
    eprintln!("generate: {} documents", documents.len());
    Ok(true)
}

/// Whether what is committed is what the programs, as they were built last, would write now. Prints what is not.
pub(crate) fn check() -> Result<bool> {
    let documents = documents()?;
    let mut clean = true;
    for (path, text) in &documents {
        if std::fs::read_to_string(root().join(path)).ok().as_deref() != Some(text) {
            eprintln!("generate: {} is out of date; run `cargo xtask generate`", path.display());
            clean = false;
        }
    }
    Ok(clean)
}

/// The names of all programs.
fn programs() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join(APPS)).with_context(|| format!("list {APPS}"))? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Every document by its path in the repository.
fn documents() -> Result<BTreeMap<PathBuf, String>> {
    let target = target()?;
    let scratch = target.join("generated");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch).with_context(|| format!("empty {}", scratch.display()))?;
    }
    for program in programs()? {
        limited::must(Command::new(target.join("debug").join(program)).arg("generate").arg(&scratch), LIMIT)?;
    }
    let mut documents = BTreeMap::new();
    for entry in std::fs::read_dir(&scratch).with_context(|| format!("list {}", scratch.display()))? {
        let path = entry?.path();
        let is_page = path.extension().is_some_and(|extension| extension.len() == 1);
        let folder = if is_page { PAGES } else { COMPLETIONS };
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let name = path.file_name().map(Path::new).unwrap_or(&path).to_path_buf();
        documents.insert(Path::new(folder).join(name), text);
    }
    Ok(documents)
}
