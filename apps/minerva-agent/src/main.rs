//! The agent: in a guest or a container it carries what programs ask to the server on the host, and reports what the host
//! cannot see from outside. It needs no privileges, and nothing is lost with it: what programs hold they hold by streams, which
//! the agent opens again after a break of its server, and programs after a break of the agent; and the level of a process, which
//! no program holds, is written down.

mod arguments;
mod generate;
mod kept;
mod level;
mod listening;
mod message;
mod own_disk;
mod proxy;
mod report;
mod reporting;
mod resume;
mod run;
mod show;
mod upstream;
mod users;

use arguments::{Arguments, Hidden};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.hidden {
        Some(Hidden::Generate { directory }) => generate::run(directory),
        None if arguments.print_report => show::run(arguments.json),
        None => run::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minerva-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}
