//! The laboratory's command line.

mod arms;
mod binaries;
mod cache_cli;
mod callers;
mod cli;
mod demo;
mod demo_cache;
mod demo_data_path;
mod disk;
mod figure;
mod generate;
mod options;
mod output;
mod participant;
mod reproduce;
mod signals;
mod vm;
mod vm_cli;
mod worth_cli;

use anyhow::Context as _;
use clap::Parser;
use cli::{Cli, Command, DemoName, ReproduceCommand};
use std::process::ExitCode;

const SIGPIPE: u8 = 13;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // As of a program that the signal ends, quietly.
        Err(error) if error.is::<output::Closed>() => ExitCode::from(128 + SIGPIPE),
        Err(error) => {
            eprintln!("minerva-lab: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Disk(command) => disk::run(command),
        Command::Demo(arguments) if arguments.what == Some(DemoName::DataPath) => demo_data_path::run(&arguments),
        Command::Demo(arguments) if arguments.what == Some(DemoName::Cache) => demo_cache::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Figure(command) => figure::run(command),
        Command::Reproduce(ReproduceCommand::Endogenic(arguments)) => reproduce::endogenic(&arguments),
        Command::Reproduce(ReproduceCommand::Proactive(arguments)) => figure::worth::reproduce_proactive(&arguments),
        Command::Reproduce(ReproduceCommand::Interleave(arguments)) => figure::worth::reproduce_interleave(&arguments),
        Command::Reproduce(ReproduceCommand::Htbs(arguments)) => reproduce::htbs::run(&arguments),
        Command::Reproduce(ReproduceCommand::Tag(arguments)) => reproduce::tag::run(&arguments),
        Command::Reproduce(ReproduceCommand::Table(arguments)) => reproduce::table::run(&arguments),
        Command::Reproduce(ReproduceCommand::Makespan(arguments)) => reproduce::makespan(&arguments),
        Command::Reproduce(ReproduceCommand::Characterise(arguments)) => reproduce::characterise::run(&arguments),
        Command::Sweep { prefix, json } => sweep(&prefix, json),
        Command::Worker { spec, cgroup_processes } => {
            let spec = serde_json::from_str(&spec).context("failed to understand the job in --spec")?;
            Ok(minerva_lab::workload::worker_main(&spec, cgroup_processes.as_deref(), &participant::begin)?)
        }
        Command::Callers { spec } => {
            callers::run(&serde_json::from_str(&spec).context("failed to understand the clients in --spec")?)
        }
        Command::Hostile { act, directory } => {
            let act = serde_json::from_value(act.into()).context("failed to understand --act")?;
            Ok(minerva_lab::figure::hostile_main(act, &directory)?)
        }
        Command::Generate { directory } => generate::write(&directory),
    }
}

fn sweep(prefix: &str, json: bool) -> anyhow::Result<()> {
    let swept = minerva_lab::sweep::sweep(prefix)?;
    if json {
        return output::line(serde_json::to_string(&swept)?);
    }
    output::line(format_args!("removed {} disks and {} groups of tenants", swept.disks.len(), swept.cgroups))?;
    swept.disks.iter().try_for_each(|name| output::line(format_args!("  disk {name}")))
}
