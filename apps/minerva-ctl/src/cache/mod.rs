//! `minerva-ctl cache`: the pool, its tenants, and files that wait there for migration. It asks `minerva-fs` itself.

mod arguments;
mod flush;
mod paths;
mod run;
mod settle;
mod text;
mod units;

pub(crate) use arguments::CacheCommand;

use crate::output::{self, CommandStatus};
use anyhow::{Context, bail};
use arguments::PoolArguments;
use minerva_api::cache::{Answer, DeferredFile, MigrationStatus, Pool, Request, TenantStatus, ask};
use minerva_config::{how_to_start, load_fs, machine_attach_lines};
use rustix::fs::Mode;
use rustix::process::umask;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the live view asks, and a flush looks what is left.
const LOOK: Duration = Duration::from_secs(1);
/// How long a name may be.
const NAME_BYTES_MAX: usize = 255;
/// Clears a terminal.
const CLEAR: &str = "\x1b[2J\x1b[H";
/// Permissions of a new file, before the umask.
const MODE: u32 = 0o666;
/// Who makes a file writes to it, whatever its umask says.
const WRITABLE: u32 = 0o200;

/// Does it.
pub(crate) fn run(socket: &Path, command: CacheCommand, json: bool) -> anyhow::Result<CommandStatus> {
    let service = Service(socket);
    match command {
        CacheCommand::Put { file, from, place } => service.put(&file, from.as_deref(), place.pool, place.tenant, json),
        CacheCommand::Deferred { directory } => service.list_deferred(directory.as_deref(), json),
        CacheCommand::Flush { directory, no_wait } => service.flush(directory.as_deref(), !no_wait, json),
        CacheCommand::Status => {
            let (tenants, migration) = service.status()?;
            if json {
                output::json(&serde_json::json!({ "tenants": tenants, "migration": migration }))?;
            } else {
                output::text(&text::status(&tenants, &migration))?;
            }
            Ok(CommandStatus::Well)
        }
        CacheCommand::Top { once } => service.top(once, json),
        CacheCommand::Explain { file } => service.explain(&file, json),
        CacheCommand::Drop { id } => service.drop_file(id, json),
        CacheCommand::Run { directory, place, command } => {
            service.run(&directory, (place.pool, place.tenant), &command)
        }
        CacheCommand::Units { file, systemd, write } => units::units(&file, &systemd, write, json),
        CacheCommand::AttachLine { machine, file } => attach_line(&file, &machine, json),
        CacheCommand::Prepare { directory, name, place } => service.tell_prepared(&directory, name, place, json),
        CacheCommand::Settle { from, to, as_caller: true } => service.settle(&from, &to),
        CacheCommand::Settle { from, to, as_caller: false } => service.tell_settled(&from, &to, json),
    }
}

const UNKNOWN: &str = "minerva-fs gave an answer that this program does not know; is it another version?";

/// The service's own file, by which its unit goes.
const FILE: &str = "/etc/minerva/fs.toml";

struct Service<'a>(&'a Path);

impl Service<'_> {
    fn list_deferred(&self, directory: Option<&Path>, json: bool) -> anyhow::Result<CommandStatus> {
        let files = self.deferred(directory.map(paths::of_place).transpose()?)?;
        if json {
            files.iter().try_for_each(output::json)?
        } else {
            output::text(&text::deferred(&files))?
        }
        Ok(CommandStatus::Well)
    }

    fn explain(&self, file: &Path, json: bool) -> anyhow::Result<CommandStatus> {
        let (path, written) = (paths::of_file(file)?, std::path::absolute(file)?);
        let answer = match self.ask(&Request::Explain { path: path.clone() }) {
            // The service names its trees as the operator's file does, which may be by way of a link.
            Err(_) if path != written => self.ask(&Request::Explain { path: written }),
            answer => answer,
        };
        let Answer::Explained { lines } = answer? else { bail!(UNKNOWN) };
        if json {
            output::json(&serde_json::json!({ "lines": lines }))?;
        } else {
            output::text(&(lines.join("\n") + "\n"))?;
        }
        Ok(CommandStatus::Well)
    }

    fn drop_file(&self, id: u64, json: bool) -> anyhow::Result<CommandStatus> {
        self.ask(&Request::Drop { id })?;
        if json {
            output::json(&serde_json::json!({ "id": id, "dropped": true }))?;
        }
        Ok(CommandStatus::Well)
    }

    fn tell_prepared(
        &self,
        directory: &Path,
        name: String,
        place: PoolArguments,
        json: bool,
    ) -> anyhow::Result<CommandStatus> {
        let path = self.prepare(directory, name, (place.pool, place.tenant))?;
        if json {
            output::json(&serde_json::json!({ "path": path.to_string_lossy() }))?;
        } else {
            output::text(&format!("{}\n", path.display()))?;
        }
        Ok(CommandStatus::Well)
    }

    fn tell_settled(&self, from: &Path, to: &Path, json: bool) -> anyhow::Result<CommandStatus> {
        units::settle_as_owner(self.0, from, to)?;
        if json {
            output::json(&serde_json::json!({ "from": from.to_string_lossy(), "to": to.to_string_lossy() }))?;
        }
        Ok(CommandStatus::Well)
    }

    fn ask(&self, request: &Request) -> anyhow::Result<Answer> {
        let at = self.0.display();
        match ask(self.0, request) {
            Ok(Answer::Refused { why }) => bail!("{why}"),
            Ok(answer) => Ok(answer),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error.into()),
            Err(error) => Err(error).with_context(|| {
                format!("no minerva-fs answers at {at}; {}", how_to_start("minerva-fs", Path::new(FILE)))
            }),
        }
    }

    fn status(&self) -> anyhow::Result<(Vec<TenantStatus>, MigrationStatus)> {
        match self.ask(&Request::Status)? {
            Answer::Status { tenants, migration } => Ok((tenants, migration)),
            _ => bail!(UNKNOWN),
        }
    }

    fn deferred(&self, directory: Option<PathBuf>) -> anyhow::Result<Vec<DeferredFile>> {
        match self.ask(&Request::Deferred { directory })? {
            Answer::Deferred { files } => Ok(files),
            _ => bail!(UNKNOWN),
        }
    }

    fn put(
        &self,
        file: &Path,
        from: Option<&Path>,
        pool: Pool,
        tenant: Option<String>,
        json: bool,
    ) -> anyhow::Result<CommandStatus> {
        // Opened first: where it is not there, nothing is to be replaced.
        let mut source: Box<dyn io::Read> = match from {
            Some(from) => Box::new(File::open(from).with_context(|| format!("failed to open {}", from.display()))?),
            None => Box::new(io::stdin().lock()),
        };
        let bytes = from.and_then(|from| fs::metadata(from).ok()).map_or(0, |shown| shown.len());
        let path = std::path::absolute(file)?;
        let parent = path.parent().unwrap_or(&path);
        let shown = fs::metadata(parent).with_context(|| format!("failed to look at {}", parent.display()))?;
        let mode = MODE & !mask() | WRITABLE;
        let request = Request::Defer { path, directory: (shown.dev(), shown.ino()), mode, pool, tenant, bytes };
        let Answer::Deferring { id, data } = self.ask(&request)? else { bail!(UNKNOWN) };
        let mut to =
            OpenOptions::new().write(true).open(&data).with_context(|| format!("failed to open {}", data.display()))?;
        let written = io::copy(&mut source, &mut to).with_context(|| format!("failed to write {}", data.display()))?;
        if json {
            output::json(&serde_json::json!({ "id": id, "data": data, "bytes": written }))?;
        } else {
            output::text(&format!("{} is there, {written} bytes; deferred file {id}\n", file.display()))?;
        }
        Ok(CommandStatus::Well)
    }

    fn top(&self, once: bool, json: bool) -> anyhow::Result<CommandStatus> {
        loop {
            let (tenants, migration) = self.status()?;
            let files = self.deferred(None)?;
            if json {
                output::json(&serde_json::json!({ "tenants": tenants, "migration": migration, "deferred": files }))?;
            } else {
                if !once {
                    output::styled(CLEAR)?;
                }
                output::text(&format!("{}\n{}", text::status(&tenants, &migration), text::deferred(&files)))?;
            }
            if once {
                return Ok(CommandStatus::Well);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// How a machine gets its trees, by the file alone.
fn attach_line(file: &Path, machine: &str, json: bool) -> anyhow::Result<CommandStatus> {
    let config = load_fs(file).with_context(|| format!("failed to use {}", file.display()))?;
    let tenant = config.machine(machine).with_context(|| {
        format!("{} names no machine `{machine}`: set `machine` and `ids` of its tenant", file.display())
    })?;
    let lines = machine_attach_lines(&config.server, tenant);
    if json {
        output::json(&serde_json::json!({ "lines": lines }))?
    } else {
        output::text(&lines)?
    }
    Ok(CommandStatus::Well)
}

/// Which permissions new files of this process do not have.
fn mask() -> u32 {
    // It is told only by setting another, and no file is made in between.
    let mask = umask(Mode::empty());
    umask(mask);
    mask.bits()
}
