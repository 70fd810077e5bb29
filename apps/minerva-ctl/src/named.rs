//! `minerva-ctl run` and `attach`: processes as tenants of their own. The daemon does it when it runs; without it this command
//! does it itself, and the daemon that starts later finds the tenant and its weight. A command runs whatever becomes of that.

use crate::daemon::{self, Socket};
use crate::output::{self, CommandStatus};
use crate::place::{self, OperatorFile};
use anyhow::bail;
use minerva_api::client::{self, ConnectError};
use minerva_api::v1;
use minerva_linux_actuate::NamedGroups;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tonic::Code;

/// A daemon that takes longer to answer hangs, and the command that is to run does not wait for it.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Whom to ask, and for what.
#[derive(Debug)]
pub(crate) struct GroupRequest {
    /// Where the daemon listens, if the command line says so.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) file: OperatorFile,
    pub(crate) name: Option<String>,
    pub(crate) weight: Option<u32>,
}

/// Turns into `command`, inside a tenant of its own. Returns only when that fails.
pub(crate) fn run(place: &GroupRequest, command: &[OsString]) -> anyhow::Result<CommandStatus> {
    enter(place, command)?;
    become_command(command)
}

/// Turns into `command` where it is. Returns only when that fails.
pub(crate) fn become_command(command: &[OsString]) -> anyhow::Result<CommandStatus> {
    let [program, arguments @ ..] = command else { bail!("no command given") };
    let error = Command::new(program).args(arguments).exec();
    output::note(&format!("failed to start {}: {error}", output::path(program.as_ref())));
    Ok(CommandStatus::not_started(&error))
}

/// Moves this process, and what it will start, into a tenant for `command`. Where that fails the command runs where it is, and why is said;
/// only a name that no tenant can have is an error.
pub(crate) fn enter(place: &GroupRequest, command: &[OsString]) -> anyhow::Result<()> {
    let pid = std::process::id();
    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let name = place.name.clone().unwrap_or_else(|| derived_name(program, pid));
    NamedGroups::check_name(&name)?;
    if let Err(error) = register(place, &name, pid) {
        let why = daemon::message(&error);
        output::note(&format!("the command stays in the tenant that it is called in: {why}"));
    }
    Ok(())
}

/// Moves a process that runs.
pub(crate) fn attach(place: &GroupRequest, pid: u32, json: bool) -> anyhow::Result<CommandStatus> {
    let name = place.name.clone().unwrap_or_else(|| format!("pid-{pid}"));
    let answer = register(place, &name, pid)?;
    if json {
        output::json(&answer)?;
    } else {
        output::say(&format!("process {pid} is tenant {} now, in {}", answer.name, answer.cgroup));
    }
    Ok(CommandStatus::Well)
}

/// Asks the daemon. Where there is none, or it does not answer as one that is starting, ending or hanging, it is done here.
fn register(place: &GroupRequest, name: &str, pid: u32) -> anyhow::Result<v1::RegisterResponse> {
    let request = v1::RegisterRequest { name: name.to_owned(), pid, weight_percent: place.weight };
    let socket = Socket::find(place.socket.clone(), &place.file)?.path;
    let asked = daemon::block_on(async { Ok(tokio::time::timeout(ANSWER_MAX, ask(&socket, request)).await) })?;
    match asked {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(NotDone::Refused(error))) => Err(error),
        Ok(Err(NotDone::Absent)) => by_itself(place, name, pid, "no daemon runs"),
        Ok(Err(NotDone::Silent)) | Err(_) => by_itself(place, name, pid, "the daemon does not answer"),
    }
}

/// Why the daemon did nothing.
enum NotDone {
    Absent,
    Silent,
    Refused(anyhow::Error),
}

async fn ask(socket: &Path, request: v1::RegisterRequest) -> Result<v1::RegisterResponse, NotDone> {
    let mut client = client::connect(socket).await.map_err(|error| match error {
        ConnectError::Absent { .. } => NotDone::Absent,
        ConnectError::Strange { .. } => NotDone::Silent,
        ConnectError::Forbidden { .. } => NotDone::Refused(error.into()),
    })?;
    client.register(request).await.map(tonic::Response::into_inner).map_err(|status| match status.code() {
        Code::FailedPrecondition | Code::InvalidArgument | Code::PermissionDenied => NotDone::Refused(status.into()),
        // The transport's own errors, and what a daemon that ends says.
        _ => NotDone::Silent,
    })
}

fn by_itself(place: &GroupRequest, name: &str, pid: u32, why: &str) -> anyhow::Result<v1::RegisterResponse> {
    let config = place.file.load()?;
    let settings = place::writer_settings(&config, &place::roots(&config)?);
    let groups = NamedGroups::new(&settings, &config.named.parent);
    let cgroup = groups.place(name, pid, place.weight).map_err(|error| {
        let needs_root = error.is_permission_denied();
        let error = anyhow::Error::new(error);
        if needs_root { error.context(format!("{why}, and without it this needs root")) } else { error }
    })?;
    // Nobody else removes the groups of earlier runs while no daemon runs.
    groups.sweep();
    output::say(&format!("{why}: the tenant is watched and weighed once one does"));
    Ok(v1::RegisterResponse { name: name.to_owned(), cgroup })
}

/// The command's name and process id, as far as it is fit for a directory.
fn derived_name(program: &OsStr, pid: u32) -> String {
    let file_name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let plain: String =
        file_name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(48).collect();
    format!("{plain}-{pid}").trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::derived_name;

    #[test]
    fn a_derived_name_is_fit_for_a_directory() {
        assert_eq!(derived_name("/usr/bin/dd".as_ref(), 7), "dd-7");
        assert_eq!(derived_name("./über script.sh".as_ref(), 7), "berscriptsh-7");
        assert_eq!(derived_name("/".as_ref(), 7), "7");
    }
}
