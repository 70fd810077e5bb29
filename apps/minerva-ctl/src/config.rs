//! `minerva-ctl config`: judges or prints the operator's file.

use crate::arguments::ConfigCommand;
use crate::output::{self, Verdict};
use minerva_config::{Config, ConfigError, Problem};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::Path;

/// Works without the daemon and changes nothing.
pub(crate) fn run(command: ConfigCommand, file_default: &Path, json: bool) -> anyhow::Result<Verdict> {
    match command {
        ConfigCommand::Default => {
            output::text(&minerva_config::default_file())?;
            Ok(Verdict::Well)
        }
        ConfigCommand::Check { file } => check(file.as_deref().unwrap_or(file_default), json),
    }
}

/// One problem as JSON.
#[derive(Debug, Serialize)]
struct ProblemLine<'a> {
    file: &'a Path,
    line: usize,
    column: usize,
    title: &'a str,
    help: Option<&'a str>,
}

fn check(file: &Path, json: bool) -> anyhow::Result<Verdict> {
    match minerva_config::load(file) {
        Ok(Config { warnings, .. }) => {
            show(&warnings, json)?;
            if !json {
                eprintln!("{}: good", file.display());
            }
            Ok(Verdict::found_if(!warnings.is_empty()))
        }
        Err(ConfigError::Invalid(errors)) => {
            show(&errors.problems, json)?;
            Ok(Verdict::Found)
        }
        Err(error) => Err(error.into()),
    }
}

/// Problems are what this command is for: they are its data, except in front of a person.
fn show(problems: &[Problem], json: bool) -> anyhow::Result<()> {
    for problem in problems {
        if json {
            let (line, column) = problem.line_column();
            let (title, help) = (problem.title(), problem.help());
            output::json(&ProblemLine { file: problem.path(), line, column, title, help })?;
        } else {
            output::text(&format!("{}\n\n", problem.render(std::io::stdout().is_terminal())))?;
        }
    }
    Ok(())
}
