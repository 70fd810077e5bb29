//! The daemon: who uses each disk, and what the kernel is told about it, once a slice.
//!
//! Threads: `main` runs the slice loop; `clients` serves tools and metrics; `tenants` serves tenants; `store` writes to the disk;
//! `background` lets background work run in the gaps; `signals` waits for signals. Between them are bounded queues, and the loop
//! waits for none of the others. A second process, the guard, puts everything back if this one dies.

mod arguments;
mod background;
mod clock;
mod command;
mod commands;
mod daemon;
mod effects;
mod findings;
mod free_space;
mod generate;
mod guard;
mod jobs;
mod knobs;
mod logging;
mod metrics;
mod named_tenants;
mod notify;
mod operator;
mod operator_file;
mod overwriters;
mod progress;
mod recording;
mod scope;
mod servers;
mod signals;
mod slice_loop;
mod start;
mod tenants;
mod watch;

use arguments::{Arguments, Hidden};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.hidden {
        Some(Hidden::Guard { runtime_dir, cgroup_root }) => guard::run(runtime_dir, cgroup_root.clone()),
        Some(Hidden::Background { runtime }) => background::work(runtime),
        Some(Hidden::EndBackground { runtime_dir }) => background::end_all(runtime_dir),
        Some(Hidden::Generate { directory }) => generate::run(directory),
        None if arguments.check => start::check(&arguments),
        None => start::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minervad: {error:#}");
            ExitCode::FAILURE
        }
    }
}
