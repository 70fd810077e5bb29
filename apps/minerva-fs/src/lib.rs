//! The cache as a service: from the operator's file to mounted trees, and back.
//!
//! | file | question |
//! |---|---|
//! | `arguments` | what may the command line say? |
//! | `run` | from the start to the last unmount |
//! | `pool` | the memory of a tenant, the disk of all, and who else uses them |
//! | `pool_disk` | is the directory the pool, or is its disk absent? |
//! | `mount` | a tree where it is mounted, and how does it go? |
//! | `mount_point` | a directory where something is mounted, or was |
//! | `settings` | the operator's file |
//! | `owner` | who owns a tenant's trees? |
//! | `tenant` | one tenant's two trees |
//! | `leaving` | and when the file says otherwise while it is served |
//! | `unnamed` | and when a start finds files of one that the file does not name? |
//! | `reload` | the file, read again |
//! | `spiller` | when memory is short |
//! | `descriptors` | how many files may the kernel know of each tenant? |
//! | `explain` | where does a file lie, why, and what happens next? |
//! | `flusher` | does the kernel let it have memory while it waits for it to write? |
//! | `forgetter` | when the kernel knows more files than there are descriptors |
//! | `projects` | by which project does the kernel count a tenant's files? |
//! | `second_account` | does somebody else count the same as we do? |
//! | `auditor` | and when is that looked at? |
//! | `looker` | what is a thread that looks again and again, and how does it end? |
//! | `control` | what tenants and the operator's tool ask |
//! | `callers` | who is answered there at the same time? |
//! | `metrics` | what Prometheus reads |
//! | `deferred` | files that are at their place as a link, and are moved there later |
//! | `doctor` | what an operator should know before it is started |
//! | `finding` | one thing that it tells |
//! | `machine` | how does a virtual machine get its trees? |
//! | `guest` | and inside of it? |
//! | `guest_doctor` | and what should an operator know there? |
//! | `leftovers` | the same of what earlier runs left |

mod arguments;
mod auditor;
mod callers;
mod control;
mod deferred;
mod descriptors;
mod doctor;
mod explain;
mod finding;
mod flusher;
mod forgetter;
mod generate;
mod guest;
mod guest_doctor;
mod leaving;
mod leftovers;
mod looker;
mod machine;
mod metrics;
mod mount;
mod mount_point;
mod owner;
mod pool;
mod pool_disk;
mod projects;
mod reload;
mod run;
mod second_account;
mod settings;
mod spiller;
mod tenant;
mod unnamed;
mod user;

use arguments::{Action, Arguments};
use clap::Parser;
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    let Arguments { config, check, action } = Arguments::parse();
    let done = match action {
        Some(Action::Doctor { json }) => doctor::run(&config, json),
        Some(Action::Reload) => reload::run(&config),
        Some(Action::Status { json }) => control::show_status(&config, json),
        Some(Action::Virtiofs { machine, program }) => machine::run(&config, &machine, program),
        Some(Action::Generate { directory }) => generate::run(&directory),
        None if check => run::check(&config),
        None => run::serve(&config),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minerva-fs: {error:#}");
            ExitCode::FAILURE
        }
    }
}
