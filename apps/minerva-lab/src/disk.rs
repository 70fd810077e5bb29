//! `minerva-lab disk …`

use crate::cli::{CreateArguments, DiskCommand};
use crate::{output, signals};
use anyhow::Context as _;
use minerva_lab::disk::{self, Disk, DiskSpec, DiskStatus, RUNTIME_DIRECTORY};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;

pub(crate) fn run(command: DiskCommand) -> anyhow::Result<()> {
    match command {
        DiskCommand::Create(arguments) if arguments.foreground => own(&arguments),
        DiskCommand::Create(_) => start(),
        DiskCommand::List { json } => list(json),
        DiskCommand::Stats { name, json } => stats(&name, json),
        DiskCommand::Destroy { name, all, json } => destroy(name, all, json),
        DiskCommand::Profiles { json } => profiles(json),
    }
}

/// Owns the disk until a signal comes.
fn own(arguments: &CreateArguments) -> anyhow::Result<()> {
    let signals = signals::listen()?;
    let disk = Disk::create(&DiskSpec {
        name: arguments.name.clone(),
        profile: arguments.profile.clone(),
        size_bytes: arguments.size,
        elevator: arguments.elevator.clone(),
        backing: arguments.backing.clone(),
        queue_depth: arguments.queue_depth,
        has_partitions: false,
        seed: arguments.seed,
    })?;
    if arguments.json {
        output::line(format_args!("{}", serde_json::to_string(disk.info())?))?;
    } else {
        output::line(format_args!("{}", disk.device().display()))?;
    }
    std::io::stdout().flush()?;
    signals::wait_for_end(signals);
    Ok(())
}

/// Starts this program once more as the disk's owner, in a session of its own, and waits until the disk is ready.
fn start() -> anyhow::Result<()> {
    disk::check_machine()?;
    std::fs::create_dir_all(RUNTIME_DIRECTORY).with_context(|| format!("failed to create {RUNTIME_DIRECTORY}"))?;
    let log = PathBuf::from(RUNTIME_DIRECTORY).join(format!("start-{}.log", std::process::id()));
    let errors = File::create(&log).with_context(|| format!("failed to create {}", log.display()))?;
    let mut command = std::process::Command::new(std::env::current_exe().context("failed to find this program")?);
    command.args(["disk", "create", "--foreground"]).args(std::env::args_os().skip(3));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
    // The log stays open in the owner, but its name goes at once in either case.
    // SAFETY: setsid is async-signal-safe and touches no memory.
    unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into)) };
    let started = command.spawn().context("failed to start the disk's process");
    let said = started.and_then(|mut owner| {
        let mut line = String::new();
        let output = owner.stdout.take().context("the disk's process has no output")?;
        BufReader::new(output).read_line(&mut line).context("failed to read the output of the disk's process")?;
        if line.is_empty() {
            owner.wait().context("failed to wait for the disk's process")?;
        }
        Ok(line)
    });
    let message = std::fs::read_to_string(&log).unwrap_or_default();
    std::fs::remove_file(&log).with_context(|| format!("failed to remove {}", log.display()))?;
    let line = said?;
    if line.is_empty() {
        anyhow::bail!("{}", message.trim().trim_start_matches("minerva-lab: "));
    }
    output::line(line.trim_end())
}

fn list(json: bool) -> anyhow::Result<()> {
    let disks = disk::list();
    if json {
        for status in &disks {
            output::line(format_args!("{}", serde_json::to_string(status)?))?;
        }
        return Ok(());
    }
    output::line(format_args!(
        "{:<20} {:<12} {:<14} {:>9} {:<12} {:>8}",
        "NAME", "DEVICE", "PROFILE", "SIZE", "ELEVATOR", "OWNER"
    ))?;
    for DiskStatus { disk, .. } in &disks {
        let (device, size) = (disk.device.display().to_string(), format!("{:.1} GB", disk.size_bytes as f64 / 1e9));
        output::line(format_args!(
            "{:<20} {device:<12} {:<14} {size:>9} {:<12} {:>8}",
            disk.name, disk.profile, disk.elevator, disk.owner_pid
        ))?;
    }
    Ok(())
}

fn stats(name: &str, json: bool) -> anyhow::Result<()> {
    let status = disk::status(name)?;
    if json {
        output::line(format_args!("{}", serde_json::to_string(&status)?))?;
        return Ok(());
    }
    let (disk, of) = (&status.disk, &status.statistics);
    let model = &of.model;
    let mean = of.lateness_total.as_secs_f64() * 1e6 / of.replies.max(1) as f64;
    output::line(format_args!(
        "{} on {}, profile {}, elevator {}",
        disk.name,
        disk.device.display(),
        disk.profile,
        disk.elevator
    ))?;
    output::line(format_args!(
        "reads     {:>12}  {:>10.1} MB  {} from the disk's cache",
        model.reads,
        model.read_bytes as f64 / 1e6,
        model.cache_hits
    ))?;
    output::line(format_args!("writes    {:>12}  {:>10.1} MB", model.writes, model.write_bytes as f64 / 1e6))?;
    output::line(format_args!("seeks     {:>12}  {:>10}", model.seeks, model.seek_time.to_string()))?;
    output::line(format_args!("rotation  {:>24}", model.rotation_time.to_string()))?;
    output::line(format_args!("transfer  {:>24}", model.transfer_time.to_string()))?;
    output::line(format_args!("busy      {:>24}", model.busy_time.to_string()))?;
    output::line(format_args!(
        "pending   {:>12}  at most {}, {} waited for a free slot",
        of.requests_pending, of.requests_pending_max, of.requests_queued
    ))?;
    output::line(format_args!("lateness  {mean:>9.0} us  mean, at most {}", of.lateness_max))?;
    Ok(())
}

fn destroy(name: Option<String>, all: bool, json: bool) -> anyhow::Result<()> {
    let names =
        if all { disk::list().into_iter().map(|status| status.disk.name).collect() } else { Vec::from_iter(name) };
    for name in &names {
        disk::destroy(name)?;
        if json {
            output::line(format_args!("{}", serde_json::json!({ "destroyed": name })))?;
        } else {
            output::line(format_args!("destroyed {name}"))?;
        }
    }
    if all {
        // What dead owners left has no socket to be listed by.
        minerva_lab::sweep::sweep("minerva-")?;
    }
    Ok(())
}

fn profiles(json: bool) -> anyhow::Result<()> {
    for profile in disk::profiles() {
        if json {
            output::line(format_args!("{}", serde_json::to_string(&profile)?))?;
        } else {
            let size = profile.capacity_bytes as f64 / 1e9;
            output::line(format_args!(
                "{:<16} {size:>7.1} GB, queue depth {:>3}  {}",
                profile.name, profile.queue_depth, profile.source
            ))?;
        }
    }
    Ok(())
}
