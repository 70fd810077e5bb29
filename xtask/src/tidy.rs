//! Tidiness that a machine can see: promises name tests that exist, figures have rows, documents name files that exist, the diagram of
//! the loop names the events, files stay small, and words that were replaced do not come back.

use crate::shell::root;
use crate::source_text::without_tests;
use crate::{documents, words};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A source file longer than this needs a reason in [`LONG_FILES`].
const LINES_MAX: usize = 400;

/// Cells in a row of docs/figures.md.
const FIGURE_CELLS: usize = 5;

/// The document whose diagram names every event of the engine, and where they are defined.
const DIAGRAM: &str = "docs/ARCHITECTURE.md";
const EVENTS: &str = "core/model/src/event.rs";

/// Files that are longer, and why.
const LONG_FILES: &[(&str, &str)] = &[
    ("apps/minerva-lab/src/cli.rs", "one command line: every option of every command"),
    ("apps/minerva-ctl/src/arguments.rs", "one command line: every command; the larger ones have files of their own"),
    ("data/cachefs/src/fuse/adapter.rs", "one trait of the FUSE library: a method a request, each of a few lines"),
    ("api/src/generated/minerva.v1.rs", "generated, and checked by a test to be what the contract says"),
    ("config/tests/messages.rs", "one table: every message and the file that causes it"),
    (
        "core/blocksched/src/catalog/bfq.rs",
        "one scheduler; injection, the peak rate and B-WF2Q+ have files of their own",
    ),
    ("core/blocksched/src/catalog/cfq.rs", "one scheduler, slices and groups bound to each other"),
    ("core/blocksched/src/catalog/htbs/mod.rs", "one scheduler; options, pace and sequence have files of their own"),
    ("core/actuate/src/ledger.rs", "one state machine; the state of a single knob is in entry.rs"),
];

/// Checks everything; whether it is clean. Prints what is not.
pub(crate) fn run() -> Result<bool> {
    let root = root();
    let files = tracked_files(&root)?;
    let mut problems = long_files(&root, &files);
    problems.extend(spec_rows(&root, &files)?);
    problems.extend(figure_rows(&root)?);
    let read = |file: &str| std::fs::read_to_string(root.join(file)).with_context(|| format!("read {file}"));
    problems.extend(events_in_diagram(&read(DIAGRAM)?, &read(EVENTS)?));
    problems.extend(documents::missing_paths(&root, &files));
    problems.extend(documents::missing_names(&root));
    problems.extend(versions_of_their_own(&root, &files));
    problems.extend(words::banned(&root, &files));
    for problem in &problems {
        eprintln!("tidy: {problem}");
    }
    eprintln!("tidy: {} files, {} problems", files.len(), problems.len());
    Ok(problems.is_empty())
}

/// Paths, relative to `root`, of the files that git tracks or would track.
pub(crate) fn tracked_files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .output()
        .context("run git ls-files")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names: BTreeSet<String> = output
        .stdout
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    Ok(names.into_iter().filter(|name| root.join(name).is_file()).collect())
}

fn long_files(root: &Path, files: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        // Tests at the end of a file do not count.
        let lines = without_tests(&text).lines().count();
        if lines > LINES_MAX && !LONG_FILES.iter().any(|(name, _)| name == file) {
            problems.push(format!(
                "{file}: {lines} lines of code, more than {LINES_MAX}; split it or give the reason in xtask/src/tidy.rs"
            ));
        }
    }
    problems
}

/// Dependencies whose versions stand in a package's manifest: each has one place, the workspace's table.
fn versions_of_their_own(root: &Path, files: &[String]) -> Vec<String> {
    let manifests = files.iter().filter(|file| file.ends_with("/Cargo.toml") && !file.starts_with("fuzz/"));
    let problems = manifests.flat_map(|file| {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        versions(&text)
            .map(|line| format!("{file}: `{line}`: its version belongs in the workspace's table"))
            .collect::<Vec<_>>()
    });
    problems.collect()
}

/// Lines of a manifest that give a dependency a version.
fn versions(manifest: &str) -> impl Iterator<Item = &str> {
    let mut is_table = false;
    manifest.lines().filter(move |line| {
        if line.starts_with('[') {
            is_table = line.contains("dependencies");
        }
        let value = line.split_once('=').map_or("", |(_, value)| value.trim_start());
        is_table && (value.starts_with('"') || value.contains("version ="))
    })
}

/// Every row of docs/spec.md, `| id | claim | test |`, names a file and a test function in it, `path::function`.
fn spec_rows(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("docs/spec.md")).context("read docs/spec.md")?;
    let mut problems = Vec::new();
    let mut ids = BTreeSet::new();
    for (number, row) in rows(&text) {
        let [id, claim, test] = row.as_slice() else {
            problems.push(format!("docs/spec.md:{number}: a row has id, claim and test"));
            continue;
        };
        if !ids.insert(id.clone()) {
            problems.push(format!("docs/spec.md:{number}: id {id} stands twice"));
        }
        if claim.is_empty() {
            problems.push(format!("docs/spec.md:{number}: {id} claims nothing"));
        }
        for test in test.split(", ").map(|test| test.trim_matches('`')) {
            problems.extend(missing_test(root, files, test).map(|why| format!("docs/spec.md:{number}: {id}: {why}")));
        }
    }
    if ids.is_empty() {
        problems.push("docs/spec.md: no rows".to_owned());
    }
    Ok(problems)
}

fn missing_test(root: &Path, files: &[String], test: &str) -> Option<String> {
    let Some((file, function)) = test.split_once("::") else { return Some(format!("`{test}` is not path::function")) };
    if !files.iter().any(|name| name == file) {
        return Some(format!("there is no file {file}"));
    }
    let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
    let is_there = text.contains(&format!("fn {function}(")) || text.contains(&format!("def {function}("));
    (!is_there).then(|| format!("{file} has no test {function}"))
}

/// Every figure that `cargo xtask figures` knows has a row in docs/figures.md with nothing left empty, and the reverse.
fn figure_rows(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("docs/figures.md")).context("read docs/figures.md")?;
    let written: BTreeSet<String> =
        rows(&text).filter_map(|(_, row)| row.first().map(|id| id.trim_matches('`').to_owned())).collect();
    let known: BTreeSet<String> = crate::figures::ids().map(str::to_owned).collect();
    let mut problems = empty_cells(&text);
    problems.extend(known.difference(&written).map(|id| format!("docs/figures.md has no row for {id}")));
    problems.extend(written.difference(&known).map(|id| format!("docs/figures.md: nothing measures {id}")));
    Ok(problems)
}

/// Rows of docs/figures.md that are not id, goal, last measured, on what and command.
fn empty_cells(text: &str) -> Vec<String> {
    let is_whole = |row: &[String]| row.len() == FIGURE_CELLS && row.iter().all(|cell| !cell.is_empty());
    rows(text)
        .filter(|(_, row)| !is_whole(row))
        .map(|(number, row)| {
            let id = row.first().map_or("a row", String::as_str);
            format!("docs/figures.md:{number}: {id} has not {FIGURE_CELLS} cells with something in each")
        })
        .collect()
}

/// The diagram of the loop names every event, and nothing else as one.
fn events_in_diagram(document: &str, source: &str) -> Vec<String> {
    let (drawn, defined) = (drawn_events(document), defined_events(source));
    if drawn.is_empty() || defined.is_empty() {
        return vec![format!("{DIAGRAM} has no diagram of events, or {EVENTS} no `enum Event`")];
    }
    let missing = defined.difference(&drawn).map(|event| format!("{DIAGRAM}: the diagram lacks the event {event}"));
    let unknown = drawn.difference(&defined).map(|event| format!("{DIAGRAM}: {EVENTS} has no event {event}"));
    missing.chain(unknown).collect()
}

/// What the diagram names behind `Event:`, up to the empty line at its end.
fn drawn_events(document: &str) -> BTreeSet<&str> {
    let (_, list) = document.split_once("-- Event:").unwrap_or_default();
    let list = list.split("\n\n").next().unwrap_or_default();
    // Lines of the drawing stand between names and behind them.
    list.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// The variants of `enum Event`.
fn defined_events(source: &str) -> BTreeSet<&str> {
    let (_, body) = source.split_once("pub enum Event {\n").unwrap_or_default();
    let lines = body.lines().take_while(|line| *line != "}");
    // Only variants are indented by one level and begin with a capital; fields of a variant are deeper.
    let names = lines.filter_map(|line| line.strip_prefix("    ")).filter(|line| line.starts_with(char::is_uppercase));
    names.filter_map(|line| line.split(|letter: char| !letter.is_ascii_alphanumeric()).next()).collect()
}

/// The body rows of the tables in a Markdown text, with their line numbers.
fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<String>)> + '_ {
    text.lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("| ") && !line.starts_with("| id ") && !line.starts_with("|--"))
        .map(|(index, line)| {
            let cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
            (index + 1, cells)
        })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        assert!(super::run().expect("the tree can be read"), "see the lines above");
    }

    #[test]
    fn a_version_outside_the_table_is_found() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = \"1\"\n\
                        c = { version = \"2\" }\nd = { workspace = true, features = [\"e\"] }\n[lints]\nf = \"1\"\n";
        assert_eq!(super::versions(manifest).collect::<Vec<_>>(), ["b = \"1\"", "c = { version = \"2\" }"]);
    }

    #[test]
    fn a_figure_without_a_value_is_found() {
        let row = |measured: &str| format!("| memory | 150 MiB | {measured} | here | `command` |\n");
        assert_eq!(super::empty_cells(&row("13 MiB")), Vec::<String>::new());
        assert_eq!(super::empty_cells(&row("")).len(), 1);
        assert_eq!(super::empty_cells("| memory | 150 MiB | 13 MiB |\n").len(), 1);
    }

    #[test]
    fn the_diagram_and_the_code_name_the_same_events() {
        let source = "pub enum Event {\n    /// Seen.\n    Seen(Box<Device>),\n    Gone {\n        /// Who.\n        \
                      tenant: TenantId,\n    },\n    #[serde(skip)]\n    Stopping,\n}\npub enum Effect {\n    Found,\n}\n";
        let diagram = |names: &str| {
            format!(
                "    observe --Sample--> decide\n      ^        |\n      +-- Event: Seen, {names}\n\nOthers are Effects.\n"
            )
        };
        let problems = |document: &str| super::events_in_diagram(document, source);
        assert_eq!(problems(&diagram("Gone, ----+\n          Stopping")), Vec::<String>::new());
        assert_eq!(problems(&diagram("Stopping, ----+")), ["docs/ARCHITECTURE.md: the diagram lacks the event Gone"]);
        let unknown = problems(&diagram("Gone, Found, ----+\n          Stopping"));
        assert_eq!(unknown, ["docs/ARCHITECTURE.md: core/model/src/event.rs has no event Found"]);
        assert_eq!(problems("no diagram\n").len(), 1);
    }

    #[test]
    fn table_rows_are_read_without_their_header() {
        let text = "| id | claim | test |\n|---|---|---|\n| A-1 | it works | `a.rs::works` |\n";
        let rows: Vec<_> = super::rows(text).collect();
        assert_eq!(rows, [(3, vec!["A-1".to_owned(), "it works".to_owned(), "`a.rs::works`".to_owned()])]);
    }
}
