//! The simulator's command line.

mod admit;
mod cells;
mod cli;
mod drives;
mod every;
mod experiment;
mod figure;
mod figure_background;
mod fit;
mod generate;
mod given;
mod median;
mod output;
mod progress;
mod replay;
mod report;
mod reproduce;
mod run;
mod scene;
mod scheduler;
mod text;
mod threads;
mod trace;
mod trace_cli;
mod trace_memory;
mod unread;

use clap::{CommandFactory, FromArgMatches};
use cli::{Cli, Command};
use given::Given;
use std::process::ExitCode;

fn main() -> ExitCode {
    unread::end_without_a_panic();
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match dispatch(cli, &Given::of(&matches)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minerva-sim: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(cli: Cli, given: &Given) -> anyhow::Result<()> {
    match cli.command {
        Command::Run(arguments) => run::run(&arguments, given),
        Command::Compare(arguments) => run::compare(&arguments, given),
        Command::Admit(arguments) => admit::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments, given),
        Command::Figure(arguments) => figure::run(&arguments),
        Command::Fit(arguments) => fit::run(&arguments),
        Command::Trace(command) => trace::run(&command),
        Command::Generate { directory } => generate::write(&directory),
    }
}
