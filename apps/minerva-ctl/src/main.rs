//! The operator's tool, which sees, explains and undoes what Minerva does, and the tenant's, which asks it for something. Thin:
//! each command asks the daemon or calls one of the crates, and prints.

#![deny(clippy::print_stderr, reason = "`output` keeps what others chose from giving the terminal orders")]

mod adjust;
mod arguments;
mod asked;
mod audit;
mod background;
mod cache;
mod compare;
mod config;
mod daemon;
mod disk;
mod disk_name;
mod doctor;
mod explain;
mod figures;
mod forecast;
mod generate;
mod jobs;
mod keys;
mod moment;
mod named;
mod output;
mod part;
mod place;
mod probe;
mod probe_groups;
mod probe_reader;
mod progress;
mod quantity;
mod record;
mod reload;
mod replay;
mod restore;
mod rm;
mod run;
mod screen;
mod seen;
mod signals;
mod status;
mod tag;
mod tenant;
mod top;
mod when;
mod words;

use anyhow::bail;
use arguments::{Arguments, Command, ForecastCommand};
use clap::Parser;
use daemon::{Socket, Work, answered, block_on};
use minerva_api::client::Operator;
use output::CommandStatus;
use place::OperatorFile;
use signal_hook::consts::SIGPIPE;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() && std::env::args_os().any(|word| word == "--json") => {
            return failed(error.to_string().trim_end(), true);
        }
        Err(error) => error.exit(),
    };
    let json = arguments.json;
    match run(arguments) {
        Ok(status) => ExitCode::from(status.code()),
        // As of a program that the signal ends, quietly.
        Err(error) if error.is::<output::Closed>() => ExitCode::from(CommandStatus::Signalled(SIGPIPE).code()),
        Err(error) => failed(&daemon::message(&error), json),
    }
}

/// Says why the command failed; to programs too, if one asked.
fn failed(why: &str, json: bool) -> ExitCode {
    if json {
        // It is said to people below, whatever has become of standard output.
        let _ = output::json(&serde_json::json!({ "error": why }));
    }
    output::note(why);
    ExitCode::from(2)
}

fn run(arguments: Arguments) -> anyhow::Result<CommandStatus> {
    let Arguments { json, socket, config, command } = arguments;
    if let Some(why) = socket.as_ref().and_then(|_| asked::why_no_socket(&command)) {
        bail!(why);
    }
    let file = OperatorFile::new(config);
    let with_daemon =
        |work: Box<dyn FnOnce(Operator) -> Work>| daemon::with(&Socket::find(socket.clone(), &file)?, work);
    match command {
        Command::Status => with_daemon(Box::new(move |client| Box::pin(answered(status::run(client, json))))),
        Command::Top { once } => {
            let served = disk::ServedPages::find(&file);
            with_daemon(Box::new(move |client| Box::pin(top::run(client, served, once, json))))
        }
        Command::Explain { tenant, at } => {
            with_daemon(Box::new(move |client| Box::pin(answered(explain::run(client, tenant, at, json)))))
        }
        Command::Forecast { command: Some(ForecastCommand::Evaluate(what)), .. } => forecast::evaluate(&what, json),
        // The command line does not parse without a tenant.
        Command::Forecast { command: None, tenant, horizon: Some(horizon), html } => {
            with_daemon(Box::new(move |client| {
                Box::pin(answered(async move {
                    forecast::days(client, tenant.unwrap_or_default(), &horizon, html.as_deref(), json).await
                }))
            }))
        }
        Command::Forecast { command: None, tenant, horizon: None, html } => with_daemon(Box::new(move |client| {
            Box::pin(answered(forecast::run(client, tenant.unwrap_or_default(), html, json)))
        })),
        Command::Record { file: tape, duration } => {
            with_daemon(Box::new(move |client| Box::pin(record::run(client, tape, duration, json))))
        }
        Command::Audit { tenant, since, entries } => {
            with_daemon(Box::new(move |client| Box::pin(audit::run(client, tenant, since, entries, json))))
        }
        Command::Background { command } => {
            with_daemon(Box::new(move |client| Box::pin(background::run(client, command, json))))
        }
        Command::Jobs { command } => {
            with_daemon(Box::new(move |client| Box::pin(answered(jobs::run(client, command, json)))))
        }
        Command::Reload => with_daemon(Box::new(move |client| Box::pin(answered(reload::run(client, json))))),
        Command::Doctor { probe, compare, change_elevator, write, rounds, device, mount, seconds } => {
            let comparison = doctor::Proof::Compare { change_elevator, rounds, writes: write };
            let proof = doctor::Proof::asked_for(probe, compare, comparison);
            doctor::run(&doctor::Request { file, proof, device, mount, duration: seconds, json })
        }
        Command::Disk { server, command } => disk::run(&file, &server, command, json),
        Command::Cache { server, command } => {
            cache::run(&server.unwrap_or_else(minerva_api::cache::socket), command, json)
        }
        Command::Restore { if_daemon_gone } => restore::run(&file, if_daemon_gone, json),
        Command::Replay { file: tape } => replay::run(&tape, json),
        Command::Config { command } => config::run(command, file, json),
        Command::Run { name, weight, priority, job, bytes, when, bounds, tag, stream, command } => {
            let operation = when.map(|bytes| bounds.operation(bytes));
            let part = run::Part { level: priority, operation, job: job.map(|name| (name, bytes)) };
            tag.map(|tag| tag::set(tag, stream)).transpose()?;
            let place = named::GroupRequest { socket, file, name, weight };
            run_command(&place, part, tag.is_some(), &command)
        }
        Command::Rm { recursive, pace, sla, paths } => {
            let wish = rm::Wish { recursive, pace, sla, paths };
            block_on(rm::run(&file, &Socket::find(socket, &file)?.path, wish, json))
        }
        Command::Attach { pid, name, weight } => {
            named::attach(&named::GroupRequest { socket, file, name, weight }, pid, json)
        }
        Command::Priority { level, duration, until_pid, schedule, no_schedule, time_zone } => {
            let lifetime = tenant::lifetime(duration, until_pid);
            let schedule = (no_schedule || !schedule.is_empty()).then_some(schedule);
            block_on(tenant::priority(&file, tenant::Priority { level, lifetime, schedule, time_zone }, json))
        }
        Command::Credits { command: Some(command), .. } => {
            with_daemon(Box::new(move |client| Box::pin(answered(adjust::run(client, command, json)))))
        }
        Command::Credits { command: None, entries } => block_on(tenant::credits(&file, entries, json)),
        Command::Boost { amount, device, key } => block_on(tenant::boost(&file, amount, device.as_deref(), key, json)),
        Command::When { bytes, bounds, pool, no_wait } => {
            let operation = minerva_client::Operation { pool, ..bounds.operation(bytes) };
            block_on(when::run(&file, operation, !no_wait, json))
        }
        Command::Whoami => block_on(tenant::whoami(&file, json)),
        Command::ProbeReader { node, job } => probe_reader::read(&node, &job),
        Command::Generate { directory } => generate::run(&directory),
    }
}

/// Becomes the command, or, when it shall take part, stays beside it.
fn run_command(
    place: &named::GroupRequest,
    part: run::Part,
    is_tagged: bool,
    command: &[OsString],
) -> anyhow::Result<CommandStatus> {
    let is_named = place.name.is_some() || place.weight.is_some();
    if part.is_nothing() {
        return if is_tagged && !is_named { named::become_command(command) } else { named::run(place, command) };
    }
    if is_named || part.job.is_some() {
        named::enter(place, command)?;
    }
    block_on(run::run(&place.file, part, command))
}
