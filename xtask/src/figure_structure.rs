//! The figure `structure`: what a sample policy and a sample scheduler touch, how large the daemon is, circles of modules, and how
//! long a cold build takes beside that of the tree before the workspace was divided.

use crate::figure_line::Line;
use crate::shell::{cargo, root, succeeds};
use crate::{structure, workspace};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const ID: &str = "structure";
/// The last commit before the server for tenants left the daemon: what the cold build is compared with.
const BUILD_REFERENCE: &str = "90f8791^";
const COLD_BUILD_PERCENT_MAX: u32 = 60;
const FILES_TOUCHED_MAX: usize = 2;
const DAEMON_LINES_MAX: usize = 6_000;

/// Every line of the figure. Errors: what cannot be read or built.
pub(crate) fn lines() -> Result<Vec<Line>> {
    let touched = |what: &str, module: &str, source: &str| -> Result<Line> {
        let files = files_naming(module, &root().join(source))?;
        let detail = format!("files that {what} touches, tests aside: {}", files.join(", "));
        Ok(line("files", files.len(), FILES_TOUCHED_MAX, detail))
    };
    let daemon = lines_in(&root().join("apps/minervad/src"))?;
    let detail = "lines of apps/minervad/src, unit tests included".to_owned();
    let mut lines = vec![
        line("circles", structure::circles()?, 0, "modules that import each other in a circle".to_owned()),
        touched("a policy", "sample_policy", "core")?,
        touched("a scheduler", "anticipatory", "core")?,
        line("lines", daemon, DAEMON_LINES_MAX, detail),
    ];
    lines.extend(cold_builds().unwrap_or_else(|error| vec![Line::not_measured(ID, &format!("{error:#}"))]));
    Ok(lines)
}

fn line(unit: &str, value: usize, most: usize, detail: String) -> Line {
    Line {
        id: ID.to_owned(),
        value: value.into(),
        unit: unit.to_owned(),
        goal: most.into(),
        met: value <= most,
        detail,
    }
}

/// The files of Rust below `folder` that hold a module of this name or refer to it in code.
fn files_naming(module: &str, folder: &Path) -> Result<Vec<String>> {
    let (declared, used) = (format!("mod {module}"), format!("{module}::"));
    let names = |path: &PathBuf| -> Result<bool> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = code.into_iter().any(|line| line.contains(&declared) || line.contains(&used));
        Ok(named || path.file_stem().is_some_and(|stem| stem == module))
    };
    let mut found = Vec::new();
    for path in rust_files(folder)? {
        if !path.components().any(|part| part.as_os_str() == "tests") && names(&path)? {
            found.push(path.strip_prefix(root()).unwrap_or(&path).display().to_string());
        }
    }
    ensure!(!found.is_empty(), "there is no module `{module}` below {}", folder.display());
    found.sort();
    Ok(found)
}

fn lines_in(folder: &Path) -> Result<usize> {
    let read = |path: &PathBuf| std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()));
    rust_files(folder)?.iter().map(|path| Ok(read(path)?.lines().count())).sum()
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut waiting) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
            let path = entry.with_context(|| format!("read {}", folder.display()))?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// Builds everything from nothing, as it was and as it is, one after the other: the packages that there were then, and all.
fn cold_builds() -> Result<Vec<Line>> {
    let folder = tempfile::tempdir().context("make a directory for the builds")?;
    let before = folder.path().join("before");
    let mut checkout = Command::new("git");
    checkout.current_dir(root()).args(["worktree", "add", "--quiet", "--detach"]).arg(&before).arg(BUILD_REFERENCE);
    if !succeeds(&mut checkout)? {
        bail!("the clone has no commit {BUILD_REFERENCE}: fetch the whole history");
    }
    let seconds = build(&before, &[vec!["--workspace".to_owned()]]).and_then(|seconds| {
        let there = packages(&root())?;
        let same = packages(&before)?.into_iter().filter(|name| there.contains(name));
        let same = same.flat_map(|name| ["--package".to_owned(), name]).collect();
        Ok((seconds[0], build(&root(), &[same, vec!["--workspace".to_owned()]])?))
    });
    let mut remove = Command::new("git");
    remove.current_dir(root()).args(["worktree", "remove", "--force"]).arg(&before);
    succeeds(&mut remove)?;
    let (before, now) = seconds?;
    let compared = |what: &str, now: f64| {
        let percent = (100.0 * now / before).round() as u32;
        let detail =
            format!("cold release build of {what}: {now:.0} s now, {before:.0} s for everything at {BUILD_REFERENCE}");
        let unit = "% of the time before".to_owned();
        let met = percent <= COLD_BUILD_PERCENT_MAX;
        Line { id: ID.to_owned(), value: percent.into(), unit, goal: COLD_BUILD_PERCENT_MAX.into(), met, detail }
    };
    let same = "the packages of that time, and what they use";
    Ok(vec![compared(same, now[0]), compared("everything, with the data paths that came since", now.iter().sum())])
}

/// The names of a workspace's packages.
fn packages(tree: &Path) -> Result<Vec<String>> {
    let metadata = workspace::metadata(tree)?;
    Ok(metadata.packages.iter().map(|package| package.name.to_string()).collect())
}

/// Seconds that `cargo build --release` takes in a tree for each choice of packages, one upon the other, from an empty directory.
/// Fetching is not counted.
fn build(tree: &Path, choices: &[Vec<String>]) -> Result<Vec<f64>> {
    let target = tempfile::tempdir().context("make a directory for a build")?;
    eprintln!("building {} from nothing, which takes minutes", tree.display());
    ensure!(succeeds(cargo().current_dir(tree).args(["fetch", "--quiet", "--locked"]))?, "cargo fetch failed");
    let seconds = |packages: &Vec<String>| {
        let begun = Instant::now();
        let mut build = cargo();
        build.current_dir(tree).args(["build", "--quiet", "--release", "--locked"]).args(packages);
        ensure!(succeeds(build.env("CARGO_TARGET_DIR", target.path()))?, "cargo build failed");
        Ok(begun.elapsed().as_secs_f64())
    };
    choices.iter().map(seconds).collect()
}
