//! `minerva-sim reproduce`: the seeds' experiments, each paper's figures beside ours, and why they differ where they do.

mod fennel;
mod htbs;
mod tag;

use crate::cli::{Experiment, ReproduceArguments};

pub(crate) fn run(arguments: &ReproduceArguments) -> anyhow::Result<()> {
    match arguments.experiment {
        Experiment::Htbs => htbs::reproduce(arguments.seed),
        Experiment::Tag => tag::reproduce(arguments.seed),
        Experiment::Fennel => fennel::reproduce(arguments.seed),
    }
}

/// A figure of a paper beside ours.
struct Beside {
    figure: &'static str,
    paper: &'static str,
    ours: String,
    why: &'static str,
}

/// Columns of text that a terminal shows without breaking words.
const COLUMNS: usize = 118;

fn print_beside(rows: &[Beside]) {
    println!("Figure by figure\n");
    for Beside { figure, paper, ours, why } in rows {
        println!("{figure}");
        for (head, text) in [("paper", *paper), ("ours", ours), ("why", why)] {
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
