//! `minerva-sim reproduce`: the papers' experiments, each paper's figures beside ours, and why they differ where they do.

mod background;
mod background_plot;
mod fennel;
mod htbs;
mod interleave;
mod makespan;
pub(crate) mod mapreduce;
mod proactive;
mod tag;

use crate::cli::{Experiment, ReproduceArguments};
use crate::given::Given;
use crate::report::judge_path;
use anyhow::bail;

pub(crate) fn run(arguments: &ReproduceArguments, given: &Given) -> anyhow::Result<()> {
    given.judge_experiment(arguments)?;
    if let Some(path) = &arguments.report {
        if !matches!(arguments.experiment, Experiment::Proactive | Experiment::Interleave | Experiment::Mapreduce) {
            bail!("there is a report with plots for proactive, interleave and mapreduce only");
        }
        judge_path(path)?;
    }
    if arguments.experiment != Experiment::Proactive && (arguments.json || arguments.scene.is_some()) {
        bail!("only proactive has `--scene` and `--json`");
    }
    let seed = arguments.seed.unwrap_or(1);
    match arguments.experiment {
        Experiment::Mapreduce => mapreduce::reproduce(arguments.seed, arguments.runs, arguments.report.as_deref()),
        Experiment::Htbs => htbs::reproduce(seed),
        Experiment::Tag => tag::reproduce(seed),
        Experiment::Fennel => fennel::reproduce(seed),
        Experiment::Background => background::reproduce(arguments, seed),
        Experiment::Makespan => makespan::reproduce(seed, arguments.runs),
        Experiment::Proactive => proactive::reproduce(arguments, seed),
        Experiment::Interleave => interleave::reproduce(seed, arguments.runs, arguments.report.as_deref()),
    }
}

/// A figure of a paper beside ours.
struct Beside {
    figure: &'static str,
    paper: &'static str,
    ours: String,
    /// Whether ours shows what the paper's does, as this run has it; `None` where the paper has nothing to compare with.
    agrees: Option<bool>,
    /// What the explanation was written for: what runs show.
    explained: Option<bool>,
    why: &'static str,
}

impl Beside {
    /// The lines below the figure, each with its head.
    fn texts(&self) -> Vec<(&'static str, &str)> {
        let found = match self.agrees {
            Some(true) => "agrees with the paper",
            Some(false) => "DIFFERS from the paper",
            None => "nothing to compare",
        };
        // An explanation beside a result that contradicts it would be worse than none.
        let why =
            if self.agrees == self.explained { self.why } else { "Not explained: other seeds show the contrary." };
        vec![("paper", self.paper), ("ours", &self.ours), ("result", found), ("why", why)]
    }
}

/// Columns of text that a terminal shows without breaking words.
const COLUMNS: usize = 118;

fn print_beside(rows: &[Beside]) {
    println!("Figure by figure\n");
    for beside in rows {
        println!("{}", beside.figure);
        for (head, text) in beside.texts() {
            for (index, line) in lines(text, COLUMNS - 9).iter().enumerate() {
                println!("  {:<7}{line}", if index == 0 { head } else { "" });
            }
        }
        println!();
    }
}

/// `text` in lines of at most `columns`, broken between words.
fn lines(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let index = lines.len() - 1;
        let line = &mut lines[index];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::Beside;

    #[test]
    fn a_result_that_contradicts_the_explanation_is_not_explained_by_it() {
        let beside = |agrees, explained| Beside {
            figure: "Fig. 1",
            paper: "up",
            ours: "down".to_owned(),
            agrees,
            explained,
            why: "The disk is faster.",
        };
        let told = |agrees, explained| {
            beside(agrees, explained).texts()[2..].iter().map(|(_, text)| (*text).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(told(Some(true), Some(true)), ["agrees with the paper", "The disk is faster."]);
        assert_eq!(told(Some(false), Some(false)), ["DIFFERS from the paper", "The disk is faster."]);
        assert_eq!(
            told(Some(false), Some(true)),
            ["DIFFERS from the paper", "Not explained: other seeds show the contrary."]
        );
        assert_eq!(told(None, None)[0], "nothing to compare");
    }
}
