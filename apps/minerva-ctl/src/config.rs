//! `minerva-ctl config`: judges or prints the operator's file.

use crate::arguments::ConfigCommand;
use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use minerva_config::{Config, ConfigError, Problem};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::Path;

/// Works without the daemon and changes nothing.
pub(crate) fn run(command: ConfigCommand, file_default: OperatorFile, json: bool) -> anyhow::Result<CommandStatus> {
    match command {
        ConfigCommand::Default => {
            let text = minerva_config::default_file();
            if json {
                output::json(&serde_json::json!({ "default": text }))?
            } else {
                output::text(&text)?
            }
            Ok(CommandStatus::Well)
        }
        ConfigCommand::Check { file } => check(&file.map_or(file_default, OperatorFile::Named), json),
    }
}

/// One problem as JSON.
#[derive(Debug, Serialize)]
struct ProblemLine<'a> {
    kind: &'static str,
    file: &'a Path,
    line: usize,
    column: usize,
    title: &'a str,
    help: Option<&'a str>,
}

/// The last line of a judgement as JSON.
#[derive(Debug, Serialize)]
struct ResultLine<'a> {
    kind: &'static str,
    file: &'a Path,
    /// The file can be used, whatever it is warned about.
    good: bool,
    problems: usize,
}

fn check(file: &OperatorFile, json: bool) -> anyhow::Result<CommandStatus> {
    match file.judge() {
        Ok(Config { warnings, .. }) => {
            show(file.path(), &warnings, true, json)?;
            Ok(CommandStatus::found_if(!warnings.is_empty()))
        }
        Err(ConfigError::Invalid(errors)) => {
            show(file.path(), &errors.problems, false, json)?;
            Ok(CommandStatus::Found)
        }
        Err(error) => Err(error.into()),
    }
}

/// Problems are what this command is for: they are its data, except in front of a person.
fn show(file: &Path, problems: &[Problem], good: bool, json: bool) -> anyhow::Result<()> {
    for problem in problems {
        if json {
            let (line, column) = problem.line_column();
            let (title, help) = (problem.title(), problem.help());
            output::json(&ProblemLine { kind: "problem", file: problem.path(), line, column, title, help })?;
        } else {
            output::styled(&format!("{}\n\n", problem.render(std::io::stdout().is_terminal())))?;
        }
    }
    if json {
        output::json(&ResultLine { kind: "result", file, good, problems: problems.len() })?;
    } else if good {
        let absence = if file.exists() { "" } else { " (absent: the defaults hold, and its drop-ins)" };
        output::say(&format!("{}: good{absence}", output::path(file)));
    }
    Ok(())
}
