//! The server for VM disks: reads its file, opens what it names, and serves it until it is told to end.

mod admission;
mod answering;
mod arguments;
mod attach;
mod confinement;
mod control;
mod descriptors;
mod detach;
mod devices;
mod disk;
mod edits;
mod generate;
mod hand_over;
mod host;
mod listening_host;
mod physical;
mod placement;
mod plan;
mod privileges;
mod protection;
mod reading;
mod refused;
mod retry;
mod run;
mod suspended;

use arguments::{Action, Arguments};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.action {
        Some(Action::Generate { directory }) => generate::run(directory),
        Some(Action::AttachLine { disk }) => attach::run(&arguments.config, disk),
        Some(Action::LookAtImages { paths }) => answering::look_at(paths),
        None if arguments.check => run::check(&arguments.config),
        None if arguments.detach => detach::run(),
        None if arguments.take_over => run::take_over(&arguments.config),
        None => run::serve(&arguments.config, arguments.log_requests.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minerva-blk: {error:#}");
            ExitCode::FAILURE
        }
    }
}
