//! The shape of the code: modules that import each other in a circle, long functions and long files.
//!
//! How many there are stands in `xtask/structure.json`, and the numbers may only fall.

mod circles;
mod imports;
mod lengths;
mod source;

use crate::shell::root;
use crate::workspace;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What was reached so far, from the root of the repository.
const REACHED: &str = "xtask/structure.json";

/// What to print.
#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// One JSON object with every circle, long function and long file.
    #[arg(long)]
    json: bool,
}

/// How much of each there is.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    circles: usize,
    functions_over_50_lines: usize,
    files_over_300_lines: usize,
}

/// What was found in the whole workspace. Lengths leave tests out; circles leave out unit tests only.
#[derive(Serialize)]
struct Report {
    /// Groups of modules that import each other, each as sorted paths of files.
    circles: Vec<Vec<String>>,
    /// Long functions as `file::function`, with their lines.
    functions: BTreeMap<String, usize>,
    /// Long files, with their lines.
    files: BTreeMap<String, usize>,
}

/// Checks the whole workspace; whether nothing became worse. Prints what did.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let report = measure()?;
    if options.json {
        println!("{}", serde_json::to_string(&report).context("write the report as JSON")?);
    }
    let text = std::fs::read_to_string(root().join(REACHED)).with_context(|| format!("read {REACHED}"))?;
    let reached: Counts = serde_json::from_str(&text).with_context(|| format!("read {REACHED}"))?;
    let problems = report.problems(reached);
    problems.iter().for_each(|problem| eprintln!("structure: {problem}"));
    let now = report.counts();
    eprintln!(
        "structure: {} circles of modules, {} functions over {} lines, {} files over {}",
        now.circles,
        now.functions_over_50_lines,
        lengths::FUNCTION_LINES,
        now.files_over_300_lines,
        lengths::FILE_LINES
    );
    Ok(problems.is_empty())
}

/// How many circles of modules there are.
pub(crate) fn circles() -> Result<usize> {
    Ok(measure()?.circles.len())
}

fn measure() -> Result<Report> {
    let root = root();
    let metadata = workspace::metadata(&root)?;
    let mut report = Report { circles: Vec::new(), functions: BTreeMap::new(), files: BTreeMap::new() };
    for package in &metadata.packages {
        for target in package.targets.iter().filter(|target| !target.is_custom_build()) {
            let modules = source::modules(target.src_path.as_std_path(), &root)?;
            report.circles.extend(circles::find(&modules));
            if target.is_lib() || target.is_bin() {
                report.functions.extend(lengths::long_functions(&modules));
                report.files.extend(lengths::long_files(&modules));
            }
        }
    }
    report.circles.sort();
    report.circles.dedup();
    Ok(report)
}

impl Report {
    fn counts(&self) -> Counts {
        Counts {
            circles: self.circles.len(),
            functions_over_50_lines: self.functions.len(),
            files_over_300_lines: self.files.len(),
        }
    }

    /// What has become worse, each with everything that it counts; and what became better without being written down.
    fn problems(&self, reached: Counts) -> Vec<String> {
        let now = self.counts();
        let circles = self.circles.iter().map(|circle| circle.join(", ")).collect();
        let long = |all: &BTreeMap<String, usize>| all.iter().map(|(name, lines)| format!("{lines} {name}")).collect();
        let judged = [
            judge("circles of modules", now.circles, reached.circles, circles),
            judge(
                "long functions",
                now.functions_over_50_lines,
                reached.functions_over_50_lines,
                long(&self.functions),
            ),
            judge("long files", now.files_over_300_lines, reached.files_over_300_lines, long(&self.files)),
        ];
        judged.into_iter().flatten().collect()
    }
}

fn judge(what: &str, now: usize, reached: usize, all: Vec<String>) -> Option<String> {
    match now.cmp(&reached) {
        Ordering::Greater => Some(format!("{now} {what}, where there were {reached}:\n  {}", all.join("\n  "))),
        Ordering::Less => Some(format!("{now} {what}, where there were {reached}: write {now} into {REACHED}")),
        Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{circles, judge, source};

    #[test]
    fn a_circle_between_files_of_a_program_is_found() {
        let folder = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("main.rs", "mod one;\nmod other;\nfn main() {}");
        write("one.rs", "use crate::other::Other;\npub(crate) struct One(Other);");
        write("other.rs", "pub(crate) struct Other;");
        let found = || {
            let modules = source::modules(&folder.path().join("main.rs"), folder.path()).expect("the files are Rust");
            circles::find(&modules)
        };
        assert!(found().is_empty());
        write("other.rs", "use crate::one::One;\npub(crate) struct Other(Box<One>);");
        assert_eq!(found(), [["one.rs", "other.rs"]]);
    }

    #[test]
    fn counts_may_only_fall_and_a_fall_is_written_down() {
        let judge = |now| judge("long files", now, 2, vec!["301 a.rs".to_owned()]);
        assert!(judge(3).is_some_and(|problem| problem.contains("301 a.rs")));
        assert!(judge(1).is_some_and(|problem| problem.contains("write 1")));
        assert_eq!(judge(2), None);
    }
}
