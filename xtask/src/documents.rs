//! Documents name files that exist: paths in code spans, and links. What the steps for extending Minerva call by name is in the files that
//! they name.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// What was true when it was written, and stays as it is.
const HISTORY: &[&str] = &["CHANGELOG.md", "docs/adr/"];
/// Steps that say what to add where.
const STEPS: &str = "docs/extending.md";

/// What documents among `files` name that is not there, with the place.
pub(crate) fn missing_paths(root: &Path, files: &[String]) -> Vec<String> {
    let tree = Tree::new(files);
    let is_read = |file: &&String| file.ends_with(".md") && !HISTORY.iter().any(|prefix| file.starts_with(prefix));
    let mut problems = Vec::new();
    for file in files.iter().filter(is_read) {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let spans = code_spans(line).flat_map(alternatives).filter(|span| tree.lacks(span));
            let links = links(line).filter(|link| tree.lacks_link(file, link)).map(str::to_owned);
            problems.extend(spans.chain(links).map(|name| format!("{file}:{}: there is no {name}", index + 1)));
        }
    }
    problems
}

/// Names of code in the sections of [`STEPS`] that are in no file which the section names.
pub(crate) fn missing_names(root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join(STEPS)).unwrap_or_default();
    let mut problems = Vec::new();
    for section in text.split("\n## ").skip(1) {
        let title = section.lines().next().unwrap_or_default();
        let files = section.lines().flat_map(code_spans).map(|span| root.join(span)).filter(|path| path.is_file());
        let code: String = files.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
        let lacking = names_lacking(section, &code).into_iter();
        problems.extend(lacking.map(|name| format!("{STEPS}: {title}: no file that it names has {name}")));
    }
    problems
}

/// Identifiers in code spans of the section that the code does not have.
fn names_lacking<'a>(section: &'a str, code: &str) -> Vec<&'a str> {
    let words: BTreeSet<&str> = code.split(|letter: char| !is_in_name(letter)).collect();
    let names = section.lines().flat_map(code_spans).map(|span| span.trim_end_matches('!'));
    // `NAME` stands for what is added.
    let is_name = |name: &&str| !name.is_empty() && *name != "NAME" && name.chars().all(is_in_name);
    names.filter(is_name).filter(|name| !words.contains(name)).collect()
}

fn is_in_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// What is in the repository.
struct Tree<'a> {
    /// Files and folders.
    paths: BTreeSet<&'a Path>,
    /// Names of files without their folders.
    names: BTreeSet<&'a str>,
}

impl<'a> Tree<'a> {
    fn new(files: &'a [String]) -> Self {
        let paths = files.iter().flat_map(|file| Path::new(file).ancestors()).collect();
        let names = files.iter().filter_map(|file| file.rsplit('/').next()).collect();
        Self { paths, names }
    }

    /// The span is a path in the repository, or a name of a Rust file, and is not there.
    fn lacks(&self, span: &str) -> bool {
        let is_plain = span.chars().all(|letter| letter.is_ascii_alphanumeric() || "/_-.".contains(letter));
        // Words in capitals stand for a name.
        let is_pattern =
            span.split(['/', '.']).any(|part| part.len() > 1 && part == part.to_uppercase() && part != "README");
        let Some(first) = span.split('/').next().filter(|_| is_plain && !is_pattern) else { return false };
        if !span.contains('/') {
            return span.ends_with(".rs") && !self.names.contains(span);
        }
        let is_ours = self.paths.contains(Path::new(first)) && !first.is_empty() && !first.starts_with('.');
        is_ours && !self.paths.contains(Path::new(span.trim_end_matches('/')))
    }

    /// The link leads to a file of the repository that is not there.
    fn lacks_link(&self, from: &str, link: &str) -> bool {
        let target = link.split('#').next().unwrap_or_default();
        if target.is_empty() || target.contains("://") {
            return false;
        }
        let mut path = Path::new(from).parent().unwrap_or(Path::new("")).to_path_buf();
        for part in Path::new(target).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::Normal(name) => path.push(name),
                _ => {}
            }
        }
        path != PathBuf::new() && !self.paths.contains(path.as_path())
    }
}

/// What stands between backticks in a line.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// `a/{b,c}.rs` names two files.
fn alternatives(span: &str) -> Vec<String> {
    let parts = span.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match parts {
        Some((before, (words, after))) => words.split(',').map(|word| format!("{before}{word}{after}")).collect(),
        None => vec![span.to_owned()],
    }
}

/// Where the links of a line lead.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    use super::{Tree, alternatives, code_spans, links, names_lacking};

    #[test]
    fn what_is_not_there_is_found_and_what_is_no_path_is_left_alone() {
        let files = ["core/decide/src/lib.rs", "docs/spec.md", "docs/adr/README.md"].map(str::to_owned);
        let tree = Tree::new(&files);
        for there in ["core/decide/src/lib.rs", "core/decide/", "lib.rs", "docs/NAME.md", "core/decide/src/NAME.rs"] {
            assert!(!tree.lacks(there), "{there}");
        }
        for other in ["read/write", "cargo test", "/proc/stat", "io.max", "a_function", "docs/*.md", "v1.2/x"] {
            assert!(!tree.lacks(other), "{other}");
        }
        for missing in ["core/decide/src/turns.rs", "turns.rs", "docs/other.md", "core/decides"] {
            assert!(tree.lacks(missing), "{missing}");
        }
        assert!(!tree.lacks_link("docs/spec.md", "adr/README.md#top"));
        assert!(!tree.lacks_link("docs/adr/README.md", "../spec.md"));
        assert!(!tree.lacks_link("docs/spec.md", "https://example.org/x"));
        assert!(tree.lacks_link("docs/spec.md", "other.md"));
    }

    #[test]
    fn names_that_no_file_of_a_section_has_are_found() {
        let section = "A policy\n\nWrite `Rule` for `SharePolicy` in `core/NAME.rs`, enter `NAME` in `policies!`, see `mod NAME;`.";
        let lacking = |code: &str| names_lacking(section, code);
        assert!(lacking("trait SharePolicy {} struct Rule; policies! {}").is_empty());
        assert_eq!(lacking("trait SharePolicy {} struct Rules;"), ["Rule", "policies"]);
    }

    #[test]
    fn spans_and_links_are_found_in_a_line() {
        let line = "See `a/{b,c}.rs` and [this](x.md), `d`.";
        assert_eq!(code_spans(line).flat_map(alternatives).collect::<Vec<_>>(), ["a/b.rs", "a/c.rs", "d"]);
        assert_eq!(links(line).collect::<Vec<_>>(), ["x.md"]);
    }
}
