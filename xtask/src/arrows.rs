//! The arrow check: `docs/ARCHITECTURE.md`, section 2, as code. A crate may use only what stands here, core uses nothing
//! that could make it impure, and only `linux/` and the laboratory name kernel paths.

use crate::shell::root;
use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::path::Path;

/// Which folders a folder's crates may depend on. `core/engine` stands for itself and so on; the first prefix that fits
/// wins, so put the longer first.
const ALLOWED: &[(&str, &[&str])] = &[
    ("core/model", &[]),
    ("core/observe", &["core/model"]),
    ("core/forecast", &["core/model"]),
    ("core/decide", &["core/model"]),
    ("core/actuate", &["core/model"]),
    ("core/blocksched", &["core/model"]),
    ("core/engine", &["core/model", "core/observe", "core/forecast", "core/decide", "core/actuate"]),
    ("linux/", &["core/model"]),
    ("sim/device", &["core/"]),
    ("sim/", &["core/", "sim/"]),
    ("lab", &["core/model", "linux/", "sim/device"]),
    ("data/", &["core/model", "core/blocksched"]),
    ("store", &["core/model"]),
    ("config", &["core/model"]),
    ("api/client", &["api"]),
    ("api", &[]),
    ("apps/", &["core/", "linux/", "sim/", "lab", "data/", "store", "config", "api", "api/client"]),
    ("sdk/", &["api", "api/client"]),
    ("tests/", &["core/", "sim/", "lab", "linux/"]),
    ("xtask", &[]),
];

/// Third-party crates that core may use: each is pure.
const CORE_THIRD_PARTY: &[&str] = &["serde", "libm"];

/// Folders whose sources may name kernel paths.
const KERNEL_PATHS_ALLOWED: &[&str] = &["linux/", "lab/", "apps/", "xtask/", "fuzz/"];

/// Checks the whole workspace; whether it is clean. Prints what is not.
pub(crate) fn run() -> Result<bool> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().context("run cargo metadata")?;
    let workspace = metadata.workspace_root.as_std_path();
    let folder_of = |manifest: &Path| {
        let folder = manifest.parent().unwrap_or(manifest);
        folder.strip_prefix(workspace).unwrap_or(folder).to_string_lossy().into_owned()
    };
    let mut breaches = Vec::new();
    for package in &metadata.packages {
        let from = folder_of(package.manifest_path.as_std_path());
        for dependency in &package.dependencies {
            if dependency.kind != DependencyKind::Normal {
                continue;
            }
            let to = dependency.path.as_ref().map(|path| {
                let path = path.as_std_path();
                path.strip_prefix(workspace).unwrap_or(path).to_string_lossy().into_owned()
            });
            breaches.extend(breach(&from, &dependency.name, to.as_deref()));
        }
    }
    breaches.extend(kernel_paths(workspace)?);
    for breach in &breaches {
        eprintln!("arrows: {breach}");
    }
    eprintln!("arrows: {} packages, {} breaches", metadata.packages.len(), breaches.len());
    Ok(breaches.is_empty())
}

/// What is wrong with the crate in folder `from` depending on `name`, which lies in folder `to` if it is ours.
fn breach(from: &str, name: &str, to: Option<&str>) -> Option<String> {
    let Some(to) = to else {
        let foreign_in_core = from.starts_with("core/") && !CORE_THIRD_PARTY.contains(&name);
        return foreign_in_core
            .then(|| format!("{from} uses {name}: core is pure and may use only {}", CORE_THIRD_PARTY.join(", ")));
    };
    let Some((_, allowed)) = ALLOWED.iter().find(|(prefix, _)| from.starts_with(prefix)) else {
        return Some(format!("{from} is a folder that docs/ARCHITECTURE.md does not know"));
    };
    let fits = |prefix: &str| to == prefix || (prefix.ends_with('/') && to.starts_with(prefix));
    (!allowed.iter().any(|prefix| fits(prefix)))
        .then(|| format!("{from} uses {to}, which the table in docs/ARCHITECTURE.md does not allow"))
}

/// Sources outside the allowed folders whose code names a kernel path.
fn kernel_paths(workspace: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for file in crate::tidy::tracked_files(workspace)? {
        if !file.ends_with(".rs") || KERNEL_PATHS_ALLOWED.iter().any(|prefix| file.starts_with(prefix)) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(workspace.join(&file)) else { continue };
        // Tests and documents may name what they like: the rule is about what the code opens.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            if names_kernel_path(line) && !line.trim_start().starts_with("//") && !file.contains("/tests/") {
                breaches.push(format!("{file}:{}: names a kernel path; only linux/ may open one", number + 1));
            }
        }
    }
    Ok(breaches)
}

/// Whether a line has a string literal that is a kernel path; a quote inside a literal, as in an example for people, is
/// none.
fn names_kernel_path(line: &str) -> bool {
    ["\"/sys", "\"/proc"]
        .iter()
        .any(|path| line.match_indices(path).any(|(at, _)| at == 0 || line.as_bytes()[at - 1] != b'\\'))
}

#[cfg(test)]
mod tests {
    use super::{breach, names_kernel_path};

    #[test]
    fn a_kernel_path_in_code_is_found_and_one_in_an_example_is_not() {
        assert!(names_kernel_path(r#"    open("/sys/block")"#));
        assert!(!names_kernel_path(r#"    example: "\"/sys/fs/cgroup\"","#));
    }

    #[test]
    fn stages_do_not_see_their_neighbours() {
        assert!(breach("core/decide", "minerva-observe", Some("core/observe")).is_some());
        assert!(breach("core/decide", "minerva-linux-observe", Some("linux/observe")).is_some());
        assert!(breach("linux/actuate", "minerva-engine", Some("core/engine")).is_some());
        assert!(breach("core/decide", "minerva-model", Some("core/model")).is_none());
        assert!(breach("core/engine", "minerva-decide", Some("core/decide")).is_none());
    }

    #[test]
    fn core_takes_no_impure_crate() {
        assert!(breach("core/observe", "rand", None).is_some());
        assert!(breach("core/model", "serde", None).is_none());
        assert!(breach("store", "rusqlite", None).is_none());
    }

    #[test]
    fn an_unknown_folder_is_a_breach() {
        assert!(breach("misc/helpers", "minerva-model", Some("core/model")).is_some());
    }
}
