//! The operator's tool: sees, explains and undoes what Minerva does. Thin: each command asks the daemon or calls one of the
//! crates, and prints.

mod arguments;
mod config;
mod doctor;
mod explain;
mod figures;
mod generate;
mod moment;
mod named;
mod output;
mod place;
mod probe;
mod record;
mod reload;
mod replay;
mod restore;
mod status;
mod top;

use anyhow::Context;
use arguments::{Arguments, Command};
use clap::Parser;
use minerva_api::client::{self, Operator};
use output::Verdict;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(Verdict::Well) => ExitCode::SUCCESS,
        Ok(Verdict::Found) => ExitCode::from(1),
        Err(error) => {
            eprintln!("minerva-ctl: {}", message(&error));
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<Verdict> {
    let Arguments { json, socket, config, command } = arguments;
    let with_daemon =
        |work: Box<dyn FnOnce(Operator) -> Work>| with_daemon(&socket_path(socket.clone(), &config), work);
    match command {
        Command::Status => with_daemon(Box::new(move |client| Box::pin(status::run(client, json)))),
        Command::Top { once } => with_daemon(Box::new(move |client| Box::pin(top::run(client, once, json)))),
        Command::Explain { tenant, at } => {
            with_daemon(Box::new(move |client| Box::pin(explain::run(client, tenant, at, json))))
        }
        Command::Record { file, duration } => {
            with_daemon(Box::new(move |client| Box::pin(record::run(client, file, duration, json))))
        }
        Command::Reload => with_daemon(Box::new(move |client| Box::pin(reload::run(client, json)))),
        Command::Doctor { probe, device, mount, seconds } => {
            doctor::run(&doctor::Request { config, probe, device, mount, duration: seconds, json })
        }
        Command::Restore { if_daemon_gone } => restore::run(&config, if_daemon_gone, json),
        Command::Replay { file } => replay::run(&file, json),
        Command::Config { command } => config::run(command, &config, json),
        Command::Run { name, weight, command } => {
            named::run(&named::Place { socket: socket_path(socket, &config), config, name, weight }, &command)
        }
        Command::Attach { pid, name, weight } => {
            named::attach(&named::Place { socket: socket_path(socket, &config), config, name, weight }, pid, json)
        }
        Command::ProbeReader { node, start, length, milliseconds } => {
            probe::read(&node, start, length, Duration::from_millis(milliseconds))
        }
        Command::Generate { directory } => generate::run(&directory),
    }
}

/// What is done with the daemon.
type Work = std::pin::Pin<Box<dyn Future<Output = anyhow::Result<Verdict>>>>;

/// Connects, works, ends.
fn with_daemon(socket: &Path, work: Box<dyn FnOnce(Operator) -> Work>) -> anyhow::Result<Verdict> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime to talk to the daemon")?;
    runtime.block_on(async { work(client::connect(socket).await?).await })
}

/// Where the daemon listens: as the command line says, else as the operator's file says, else at the default place. A broken
/// file is not this command's business, unless it is what hides the daemon.
fn socket_path(asked: Option<PathBuf>, config: &Path) -> PathBuf {
    asked.unwrap_or_else(|| match place::config(config) {
        Ok(config) => config.daemon.socket,
        Err(_) => {
            let (file, default) = (config.display(), client::SOCKET_DEFAULT);
            eprintln!("{file} is broken (minerva-ctl config check): trying {default}, use --socket for another place");
            PathBuf::from(default)
        }
    })
}

/// What went wrong, for people. A refusal of the daemon is its own sentence, without the transport's words around it.
fn message(error: &anyhow::Error) -> String {
    match error.downcast_ref::<tonic::Status>() {
        Some(status) if !status.message().is_empty() => status.message().to_owned(),
        _ => format!("{error:#}"),
    }
}
