//! The modules of one target: its root file and every file that a `mod` line leads to, tests left out.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syn::{Attribute, Item};

/// One file of a target.
pub(super) struct Module {
    /// The module's path from the root of the crate, as in `a::b`; empty for the root.
    pub(super) path: Vec<String>,
    /// The file's path from the root of the repository.
    pub(super) file: String,
    /// What it holds, without modules and functions for tests.
    pub(super) items: Vec<Item>,
}

/// Reads a target from its root file. Errors: a file that cannot be read or is not Rust, by its path.
pub(super) fn modules(root_file: &Path, repository: &Path) -> Result<Vec<Module>> {
    let mut found = Vec::new();
    let folder = root_file.parent().unwrap_or(root_file).to_path_buf();
    let mut waiting = vec![(Vec::new(), root_file.to_path_buf(), folder)];
    let mut seen = BTreeSet::new();
    while let Some((path, file, folder)) = waiting.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("parse {}", file.display()))?;
        let items: Vec<Item> = parsed.items.into_iter().filter(|item| !is_for_tests(attributes(item))).collect();
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if module.content.is_some() {
                continue;
            }
            let name = module.ident.to_string();
            if let Some((file, folder)) = file_of(&folder, &name) {
                let path = path.iter().cloned().chain([name]).collect();
                waiting.push((path, file, folder));
            }
        }
        let file = file.strip_prefix(repository).unwrap_or(&file).to_string_lossy().into_owned();
        found.push(Module { path, file, items });
    }
    found.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(found)
}

/// The file of module `name` declared in a file whose submodules lie in `folder`, and where its own submodules lie.
fn file_of(folder: &Path, name: &str) -> Option<(PathBuf, PathBuf)> {
    let below = folder.join(name);
    let flat = folder.join(format!("{name}.rs"));
    let nested = below.join("mod.rs");
    let file = [flat, nested].into_iter().find(|file| file.is_file())?;
    Some((file, below))
}

/// Whether an item is there only when tests are built.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = attribute.path().is_ident("test");
        let under_test = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"));
        is_test || under_test
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
