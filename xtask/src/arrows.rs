//! The arrow check: `docs/ARCHITECTURE.md`, section 2, as code. A crate may use only what stands here, core uses nothing
//! that could make it impure, and only `linux/` and the laboratory name kernel paths.

use crate::shell::root;
use crate::source_text::without_tests;
use crate::workspace;
use anyhow::Result;
use cargo_metadata::DependencyKind;
use std::path::Path;

/// Which folders a folder's crates may depend on. `core/engine` stands for itself and so on; the first prefix that fits
/// wins, so put the longer first.
const ALLOWED: &[(&str, &[&str])] = &[
    ("core/model", &[]),
    ("core/observe", &["core/model"]),
    ("core/forecast", &["core/model"]),
    ("core/decide", &["core/model"]),
    ("core/background", &["core/model"]),
    ("core/actuate", &["core/model"]),
    ("core/blocksched", &["core/model"]),
    ("core/engine", &["core/model", "core/observe", "core/forecast", "core/decide", "core/actuate", "core/background"]),
    ("linux/background", &["core/model", "core/background"]),
    ("linux/", &["core/model"]),
    ("sim/device", &["core/"]),
    ("sim/", &["core/", "sim/"]),
    ("lab", &["core/model", "linux/", "sim/device"]),
    ("data/", &["core/model", "core/blocksched"]),
    ("store", &["core/model"]),
    ("config", &["core/model", "core/blocksched", "quantity"]),
    ("quantity", &[]),
    ("documents", &[]),
    ("clock", &["core/model"]),
    ("api/client", &["api"]),
    ("api", &[]),
    ("tenant-server", &["core/model", "linux/observe", "config", "api", "clock"]),
    ("daemon/served-disks", &["core/model", "linux/actuate"]),
    ("daemon/store-thread", &["core/model", "core/forecast", "store"]),
    (
        "daemon/operator-server",
        &[
            "core/model",
            "linux/observe",
            "config",
            "api",
            "clock",
            "store",
            "tenant-server",
            "daemon/metrics-server",
            "daemon/store-thread",
        ],
    ),
    ("daemon/metrics-server", &[]),
    (
        "daemon/background-queues",
        &["core/model", "core/background", "linux/background", "linux/observe", "api", "clock", "store"],
    ),
    (
        "apps/",
        &[
            "core/",
            "linux/",
            "sim/",
            "lab",
            "data/",
            "store",
            "config",
            "quantity",
            "documents",
            "clock",
            "api",
            "api/client",
            "tenant-server",
            "daemon/",
        ],
    ),
    ("sdk/", &["api", "api/client"]),
    ("tests/", &["core/", "sim/", "lab", "linux/", "tests/vhost-client"]),
    ("xtask", &[]),
];

/// Third-party crates that core may use: each is pure.
const CORE_THIRD_PARTY: &[&str] = &["serde", "libm", "ciborium", "thiserror"];

/// Modules of the standard library that core may not name, and types by which they are often used: each lets the machine in.
const IMPURE: &[&str] = &["env", "fs", "io", "net", "os", "process", "thread", "time"];
const IMPURE_NAMES: &[&str] = &["OpenOptions", "thread_local!", "static mut"];

/// Folders whose sources may name kernel paths.
// The client reads the mounts of its own process, to say which disk a path lies on; the cache opens its own descriptors anew.
const KERNEL_PATHS_ALLOWED: &[&str] = &[
    "linux/",
    "lab/",
    "apps/",
    "xtask/",
    "fuzz/",
    "api/client/src/working_device.rs",
    "data/cachefs/src/reopen.rs",
    "data/blk/src/session/rings.rs",
];

/// Checks the whole workspace; whether it is clean. Prints what is not.
pub(crate) fn run() -> Result<bool> {
    let metadata = workspace::metadata(&root())?;
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
    breaches.extend(impurities(workspace)?);
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

/// Tests and benchmarks may name what they like: the rules are about what the programs do.
fn is_test(file: &str) -> bool {
    file.ends_with("tests.rs") || file.contains("/tests/") || file.contains("/benches/")
}

/// Sources outside the allowed folders whose code names a kernel path.
fn kernel_paths(workspace: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for file in crate::tidy::tracked_files(workspace)? {
        if !file.ends_with(".rs")
            || is_test(&file)
            || KERNEL_PATHS_ALLOWED.iter().any(|prefix| file.starts_with(prefix))
        {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(workspace.join(&file)) else { continue };
        for (number, line) in without_tests(&text).lines().enumerate() {
            if names_kernel_path(line) && !line.trim_start().starts_with("//") {
                breaches.push(format!("{file}:{}: names a kernel path; only linux/ may open one", number + 1));
            }
        }
    }
    Ok(breaches)
}

/// Sources of core whose code reaches for the machine. The list of methods in `core/clippy.toml` has the reasons; this has no
/// holes.
fn impurities(workspace: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for file in crate::tidy::tracked_files(workspace)? {
        let is_code = file.starts_with("core/") && file.contains("/src/") && file.ends_with(".rs");
        if !is_code || is_test(&file) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(workspace.join(&file)) else { continue };
        breaches.extend(impure(&text).map(|what| format!("{file}: names {what}; core is pure, see core/clippy.toml")));
    }
    Ok(breaches)
}

/// What of the machine a source text names outside its tests and comments.
fn impure(text: &str) -> Option<String> {
    let lines = without_tests(text).lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join(" ");
    let name = IMPURE_NAMES.iter().find(|name| code.contains(**name)).map(|name| (*name).to_owned());
    let module = |root: &str| {
        let mut uses = code.match_indices(root).filter(|(at, _)| !code[..*at].ends_with(is_word));
        uses.find_map(|(at, _)| first_impure(&code[at + root.len()..])).map(|module| format!("{root}{module}"))
    };
    name.or_else(|| module("std::"))
}

/// The first module that core may not name in what follows `std::`: a path, or several in braces.
fn first_impure(path: &str) -> Option<&str> {
    let module = |path: &str| IMPURE.iter().find(|module| word(path.trim_start()) == **module).copied();
    match path.strip_prefix('{') {
        // What deeper braces hold is taken as a module too, which is at worst too strict.
        Some(list) => list.split(';').next()?.split([',', '{', '}']).find_map(module),
        None => module(path),
    }
}

fn word(text: &str) -> &str {
    text.split(|character| !is_word(character)).next().unwrap_or_default()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
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
    use super::{breach, impure, is_test, names_kernel_path};

    #[test]
    fn core_names_nothing_of_the_machine() {
        for code in [
            "use std::fs;",
            "use std::{collections::BTreeMap, io};",
            "use std::{\n    collections::{BTreeMap, BTreeSet},\n    thread,\n};",
            "let file = std::fs::OpenOptions::new();",
            "fn wait() { ::std::thread::park() }",
            "let now = std::time::Instant::now();",
            "#[cfg(test)]\nmod tests;\nuse std::env;",
            "thread_local! { }",
        ] {
            assert!(impure(code).is_some(), "{code}");
        }
        for code in [
            "use std::{collections::BTreeMap, fmt};",
            "use std::format;",
            "// std::fs is not for core",
            "#[cfg(test)]\nmod tests {\n    use std::fs;\n}",
            "use crate::io;",
        ] {
            assert_eq!(impure(code), None, "{code}");
        }
    }

    #[test]
    fn a_kernel_path_in_code_is_found_and_one_in_an_example_is_not() {
        assert!(names_kernel_path(r#"    open("/sys/block")"#));
        assert!(!names_kernel_path(r#"    example: "\"/sys/fs/cgroup\"","#));
    }

    #[test]
    fn tests_in_files_of_their_own_are_tests() {
        for file in [
            "core/actuate/src/suitability/tests.rs",
            "core/actuate/src/caps/peak_tests.rs",
            "sim/device/tests/cases.rs",
        ] {
            assert!(is_test(file), "{file}");
        }
        assert!(!is_test("core/actuate/src/suitability.rs"));
    }

    #[test]
    fn stages_do_not_see_their_neighbours() {
        assert!(breach("core/decide", "minerva-observe", Some("core/observe")).is_some());
        assert!(breach("core/decide", "minerva-linux-observe", Some("linux/observe")).is_some());
        assert!(breach("linux/actuate", "minerva-engine", Some("core/engine")).is_some());
        assert!(breach("core/decide", "minerva-model", Some("core/model")).is_none());
        assert!(breach("core/engine", "minerva-decide", Some("core/decide")).is_none());
        assert!(breach("tenant-server", "minerva-store", Some("store")).is_some());
        assert!(breach("tenant-server", "minerva-engine", Some("core/engine")).is_some());
        assert!(breach("tenant-server", "minerva-linux-observe", Some("linux/observe")).is_none());
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
