//! `minerva-ctl disk`: the disks that `minerva-blk` serves, changed while guests run.

mod arguments;
mod drop_in;
mod opened;
mod refused;
mod served;
mod text;
mod top;

pub(crate) use arguments::DiskCommand;
pub(crate) use served::{ServedAside, ServedPages};

use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use anyhow::{Context, bail};
use arguments::Promise;
use minerva_config::{Config, VM_DISK_NAME_FORM, VmDiskSettings, attach_lines, how_to_start, is_vm_disk_name};
use minerva_linux_actuate::{ask_server, server_names, server_socket};
use minerva_model::{
    ControlRequest, DiskChange, DiskReport, DiskSettings, DiskTerms, ServerAnswer, ServerReport, is_served_name,
};
use opened::Opened;
use refused::Refused;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server answers at once, but for the lock of an image, which a killed server's last requests may hold.
const PATIENCE: Duration = Duration::from_secs(20);
/// The server's own file, by which its unit goes.
const FILE: &str = "/etc/minerva/blk.toml";
const NO_DISK: &str = "it serves no disk";

/// Which server, and how it is talked to.
struct Link {
    socket: PathBuf,
    name: String,
    patience: Duration,
}

/// Does it, and says what stands then.
pub(crate) fn run(
    file: &OperatorFile,
    server: &str,
    command: DiskCommand,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let link = Link::find(file, server)?;
    refused::is_a_finding(asked(link, command, json), json)
}

fn asked(link: Link, command: DiskCommand, json: bool) -> anyhow::Result<CommandStatus> {
    match command {
        DiskCommand::List => {
            let report: ServerReport = link.ask(&ControlRequest::List, None)?;
            if json {
                output::json(&report)?
            } else {
                output::text(&text::list(&report))?
            }
            Ok(CommandStatus::Well)
        }
        DiskCommand::Top { once } => top::run(move || link.ask(&ControlRequest::List, None), once, json),
        DiskCommand::Add { name, image, socket, read_only, no_direct, queues, promise, runtime } => {
            if !is_vm_disk_name(&name) {
                bail!("`{name}` cannot be a disk's name: {VM_DISK_NAME_FORM}");
            }
            promise.check_alone()?;
            let usual = VmDiskSettings { socket, ..VmDiskSettings::default() };
            let disk = DiskSettings {
                image: absolute(&image)?,
                socket: absolute(&usual.socket_path(&name))?,
                read_only,
                direct: !no_direct,
                queues,
                terms: promise.change().applied_to(usual_terms(&usual)),
                name,
            };
            link.add(disk, runtime, json)
        }
        DiskCommand::Set { name, promise, no_contract, no_limit, runtime } => {
            let change = changed(&promise, no_contract, no_limit)?;
            let report: DiskReport = link.ask(&ControlRequest::Set { name, change }, None)?;
            link.changed(&report, (!runtime).then_some(Kept::Change(&change)), json)
        }
        DiskCommand::Remove { name, force, runtime } => link.remove(name, force, runtime, json),
        DiskCommand::Resize { name, size } => {
            let report: DiskReport = link.ask(&ControlRequest::Resize { name, bytes: size }, None)?;
            told(&report, json, &format!("{} bytes long", report.length_bytes))?;
            Ok(CommandStatus::Well)
        }
        DiskCommand::AttachLine { name } => link.attach_line(&name, json),
    }
}

impl Link {
    fn remove(&self, name: String, force: bool, runtime: bool, json: bool) -> anyhow::Result<CommandStatus> {
        let before: ServerReport = self.ask(&ControlRequest::List, None)?;
        let report: Option<DiskReport> = self.ask(&ControlRequest::Remove { name: name.clone(), force }, None)?;
        let Some(report) = report else { return Self::left(&before, &name, runtime, json) };
        // The server is no longer allowed to.
        let _ = std::fs::remove_file(&report.settings.socket);
        let status = forgotten(&before, &report.settings.name, runtime);
        told(&report, json, "served no more")?;
        Ok(status)
    }

    /// A disk that could not be served is not tried again.
    fn left(before: &ServerReport, name: &str, runtime: bool, json: bool) -> anyhow::Result<CommandStatus> {
        let status = forgotten(before, name, runtime);
        if json {
            output::json(&serde_json::json!({ "name": name, "served": false }))?
        } else {
            output::text(&format!("{name}: was not served, and is not tried any more\n"))?
        }
        Ok(status)
    }

    fn attach_line(&self, name: &str, json: bool) -> anyhow::Result<CommandStatus> {
        let report: ServerReport = self.ask(&ControlRequest::List, None)?;
        let Some(disk) = report.disks.iter().find(|disk| disk.settings.name == name) else {
            bail!("{NO_DISK} `{name}`; `minerva-ctl disk list` shows those that there are");
        };
        let lines = attach_lines(name, Path::new(&disk.settings.socket), disk.settings.queues);
        if json {
            output::json(&serde_json::json!({ "lines": lines }))?
        } else {
            output::text(&lines)?
        }
        Ok(CommandStatus::Well)
    }

    fn find(file: &OperatorFile, server: &str) -> anyhow::Result<Self> {
        if !is_served_name(server) {
            bail!("`{server}` is no name of a server");
        }
        let runtime_dir = &config_of(file)?.daemon.runtime_dir;
        let socket = server_socket(runtime_dir, server);
        if !socket.exists() {
            let names = server_names(runtime_dir);
            let others = if names.is_empty() { String::new() } else { format!("; there are: {}", names.join(", ")) };
            bail!(
                "no server `{server}` listens at {}: {}; or name another with --server{others}",
                socket.display(),
                how_to_start("minerva-blk", Path::new(FILE))
            );
        }
        Ok(Self { socket, name: server.to_owned(), patience: PATIENCE })
    }

    fn ask<T: DeserializeOwned>(&self, request: &ControlRequest, opened: Option<&Opened>) -> anyhow::Result<T> {
        let shown = self.socket.display();
        let descriptors = opened.map(|opened| [opened.image.as_fd(), opened.listener.as_fd()]);
        let descriptors = descriptors.as_ref().map_or(&[][..], |both| &both[..]);
        let answer =
            ask_server(&self.socket, request, descriptors, self.patience).map_err(|error| match error.kind() {
                ErrorKind::PermissionDenied => {
                    anyhow::anyhow!("{shown} is for root and the members of `server.operator_group`: be one of them")
                }
                ErrorKind::ConnectionRefused => {
                    let remedy = how_to_start("minerva-blk", Path::new(FILE));
                    anyhow::anyhow!("the server `{}` has ended; {remedy}", self.name)
                }
                ErrorKind::WouldBlock | ErrorKind::TimedOut => anyhow::anyhow!(
                    "the server `{}` did not answer within {} s; its log may say why: journalctl -u minerva-blk",
                    self.name,
                    self.patience.as_secs()
                ),
                _ => anyhow::Error::new(error).context(format!("failed to ask the server at {shown}")),
            })?;
        match answer {
            ServerAnswer::Holds(text) => {
                serde_json::from_str(&text).context("the server is of another release; use its own minerva-ctl")
            }
            ServerAnswer::Gone => bail!("{NO_DISK} of this name; `minerva-ctl disk list` shows those that there are"),
            ServerAnswer::Refused(why) => Err(Refused(why).into()),
        }
    }

    fn add(&self, disk: DiskSettings, runtime: bool, json: bool) -> anyhow::Result<CommandStatus> {
        let server: ServerReport = self.ask(&ControlRequest::List, None)?;
        if server.disks.iter().any(|there| there.settings.name == disk.name) {
            bail!("there is a disk `{}` already; `minerva-ctl disk set` changes it", disk.name);
        }
        let opened = Opened::open(&disk, server.user, server.socket_group)?;
        let report: DiskReport = self.ask(&ControlRequest::Add { disk }, Some(&opened))?;
        opened.leave_to_server();
        self.changed(&report, (!runtime).then_some(Kept::Whole), json)
    }

    /// Has what stands now kept for the next start, whether or not anybody reads what is said of it, and says it.
    fn changed(&self, report: &DiskReport, what: Option<Kept<'_>>, json: bool) -> anyhow::Result<CommandStatus> {
        let status = what.map_or(CommandStatus::Well, |what| kept(self.keep(report, what)));
        told(report, json, &text::promise(&report.settings.terms))?;
        Ok(status)
    }

    fn keep(&self, report: &DiskReport, what: Kept<'_>) -> anyhow::Result<()> {
        let server: ServerReport = self.ask(&ControlRequest::List, None)?;
        let config = Path::new(&server.config);
        match what {
            Kept::Whole => drop_in::keep(config, &report.settings),
            Kept::Change(change) => drop_in::keep_change(config, &report.settings, change),
        }
    }
}

/// What is kept for the next start.
#[derive(Clone, Copy, Debug)]
enum Kept<'a> {
    /// All of a disk.
    Whole,
    /// What was changed of it.
    Change(&'a DiskChange),
}

/// A disk that is served no more is not served at the next start either.
fn forgotten(before: &ServerReport, name: &str, runtime: bool) -> CommandStatus {
    if runtime { CommandStatus::Well } else { kept(drop_in::forget(Path::new(&before.config), name)) }
}

/// The daemon's file; where the usual one cannot be read, what stands in none.
fn config_of(file: &OperatorFile) -> anyhow::Result<Config> {
    match (file.load(), file) {
        (Ok(config), _) => Ok(config),
        (Err(error), OperatorFile::Named(_)) => Err(error),
        (Err(_), OperatorFile::Default) => Ok(Config::default()),
    }
}

fn told(report: &DiskReport, json: bool, what: &str) -> anyhow::Result<()> {
    if json { output::json(report) } else { output::text(&format!("{}: {what}\n", report.settings.name)) }
}

/// What was done is done; that it will be forgotten is a finding.
fn kept(result: anyhow::Result<()>) -> CommandStatus {
    if let Err(error) = &result {
        output::note(&format!("done, but only until the server ends: {error:#}"));
    }
    CommandStatus::found_if(result.is_err())
}

fn changed(promise: &Promise, no_contract: bool, no_limit: bool) -> anyhow::Result<DiskChange> {
    let mut change = promise.change();
    if no_contract {
        change.rate_bytes_per_second = Some(0);
        // A contract that comes later is judged.
        change.force = Some(false);
    }
    if no_limit {
        change.limit_bytes_per_second = Some(0);
    }
    if change == DiskChange::default() {
        bail!("nothing to change: name --weight, --rate, --tag-max or another (minerva-ctl disk set --help)");
    }
    Ok(change)
}

/// What a disk has of which nothing is said.
fn usual_terms(usual: &VmDiskSettings) -> DiskTerms {
    DiskTerms {
        weight: usual.weight,
        rate_bytes_per_second: None,
        burst_bytes: usual.burst_bytes,
        delay: usual.delay,
        limit_bytes_per_second: None,
        tag_default: usual.tag_default,
        tag_max: usual.tag_max,
        is_random: usual.is_random,
        request_bytes: usual.request_bytes,
        force: usual.force,
    }
}

fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).with_context(|| format!("{} cannot be a path", path.display()))?;
    path.into_os_string().into_string().map_err(|path| anyhow::anyhow!("{} is no text", path.display()))
}
