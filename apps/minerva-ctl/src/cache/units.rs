//! Files of units and commands that go to the pool (docs/adr/0047): a directory of the pool is bound over the one that they write, and
//! what lies there after a run goes to its place as deferred files do.

use super::{Service, UNKNOWN};
use crate::output::{self, CommandStatus};
use anyhow::{Context, bail, ensure};
use minerva_api::cache::{Answer, Pool, Request};
use minerva_config::{FsServerSettings, PoolUnit, load_fs};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Our drop-in of a unit.
const DROP_IN: &str = "50-minerva-pool.conf";
/// What the first line of one says.
const MARK: &str = "# Written by `minerva-ctl cache units --write` from";
/// Where this program is in a drop-in.
const PROGRAM: &str = "/usr/bin/minerva-ctl";

impl Service<'_> {
    /// The directory of the pool that stands for `directory` of a unit or a command.
    pub(super) fn prepare(
        &self,
        directory: &Path,
        name: String,
        (pool, tenant): (Pool, Option<String>),
    ) -> anyhow::Result<PathBuf> {
        let shown = fs::metadata(directory).with_context(|| format!("failed to look at {}", directory.display()))?;
        if !shown.is_dir() {
            bail!("{} is no directory", directory.display());
        }
        let request = Request::UnitDirectory {
            name,
            pool,
            tenant,
            owner: (shown.uid(), shown.gid()),
            mode: shown.mode() & 0o7777,
        };
        let Answer::UnitDirectory { path } = self.ask(&request)? else { bail!(UNKNOWN) };
        // What an earlier run left comes to its place before another begins.
        settle_as_owner(self.0, &path, directory)?;
        Ok(path)
    }
}

/// Puts what lies in a directory of the pool to its place, in the name of who owns that directory: what a user may do with another's
/// files by a link is no more than what it could do itself.
pub(super) fn settle_as_owner(socket: &Path, from: &Path, directory: &Path) -> anyhow::Result<()> {
    let Some(mut settling) = settling(socket, from, directory)? else { return Ok(()) };
    judge(settling.status().context("failed to start this program again")?, from, directory)
}

/// The command that does it; none where there is no such directory.
pub(super) fn settling(socket: &Path, from: &Path, directory: &Path) -> anyhow::Result<Option<Command>> {
    let shown = match fs::symlink_metadata(from) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        shown => shown.with_context(|| format!("failed to look at {}", from.display()))?,
    };
    let own = std::env::current_exe().context("failed to find this program")?;
    let mut command = Command::new(own);
    command.args(["cache", "--server"]).arg(socket).args(["settle", "--as-caller"]).arg(from).arg(directory);
    if rustix::process::geteuid().is_root() && shown.uid() != 0 {
        command.gid(shown.gid()).uid(shown.uid());
    }
    Ok(Some(command))
}

/// What its end says.
pub(super) fn judge(status: ExitStatus, from: &Path, directory: &Path) -> anyhow::Result<()> {
    let (from, directory) = (from.display(), directory.display());
    ensure!(
        status.success(),
        "not everything in {from} went to {directory}: `minerva-ctl cache settle {from} {directory}` puts the rest there"
    );
    Ok(())
}

/// A drop-in.
struct DropIn {
    unit: String,
    text: String,
}

/// The drop-ins that a file asks for, printed or written.
pub(super) fn units(file: &Path, systemd: &Path, writes: bool, json: bool) -> anyhow::Result<CommandStatus> {
    let config = load_fs(file).with_context(|| format!("failed to use {}", file.display()))?;
    let mut wanted: Vec<DropIn> = Vec::new();
    for (tenant, settings) in &config.tenants {
        for unit in &settings.units {
            let lines = lines(&config.server, tenant, unit)?;
            match wanted.iter_mut().find(|one| one.unit == unit.unit) {
                Some(one) => one.text.push_str(&lines),
                None => wanted.push(DropIn { unit: unit.unit.clone(), text: head(file) + &lines }),
            }
        }
    }
    if !writes {
        for DropIn { unit, text } in &wanted {
            let path = systemd.join(format!("{unit}.d")).join(DROP_IN);
            if json {
                output::json(&serde_json::json!({ "unit": unit, "path": path.to_string_lossy(), "text": text }))?;
            } else {
                output::text(&format!("# {}\n{text}\n", path.display()))?;
            }
        }
        return Ok(CommandStatus::Well);
    }
    let (units, changed) = (wanted.len(), write_all(&wanted, systemd)?);
    if changed > 0 {
        let _ = Command::new("systemctl").arg("daemon-reload").status();
    }
    if json {
        output::json(&serde_json::json!({ "units": units, "changed": changed }))?;
    } else {
        output::text(&format!("{units} units write to the pool; {changed} drop-ins changed\n"))?;
    }
    Ok(CommandStatus::Well)
}

fn head(file: &Path) -> String {
    format!(
        "{MARK} {}.\n# Without the pool the unit runs all the same, and writes to the directory itself.\n[Unit]\nWants=minerva-fs.service\n\
         After=minerva-fs.service\n[Service]\n",
        file.display()
    )
}

/// The lines of one directory of a unit.
fn lines(server: &FsServerSettings, tenant: &str, unit: &PoolUnit) -> anyhow::Result<String> {
    let pool = if unit.is_temporary { Pool::Temporary } else { Pool::Stable };
    let directory = unit.directory.display();
    // One component, and another for each directory of each unit.
    let name = format!("{}{}", unit.unit, unit.directory.display().to_string().replace('-', "--").replace('/', "-"));
    if name.len() > 255 || unit.unit.contains('\\') {
        bail!("{} with {directory} has too long or too odd a name for a directory of the pool", unit.unit);
    }
    let from = server.mount.join(tenant).join(pool.as_str()).join(".units").join(&name);
    let from = from.display();
    let cache = if server.runtime == FsServerSettings::default().runtime {
        format!("{PROGRAM} cache")
    } else {
        format!("{PROGRAM} cache --server {}", server.runtime.join("control.sock").display())
    };
    let mut text = String::new();
    // Writing to a string cannot fail. `+`: as root, and in the host's namespace, where the pool and the place both are.
    let _ = writeln!(
        text,
        "ExecStartPre=-+{cache} prepare --tenant {tenant} --pool {} --name {name} {directory}",
        pool.as_str()
    );
    let _ = writeln!(text, "BindPaths=-{from}:{directory}");
    let _ = writeln!(text, "ExecStopPost=-+{cache} settle {from} {directory}");
    Ok(text)
}

/// Writes those that are wanted and removes ours of units that are not; how many changed. Errors: one that is wanted is there, and is
/// somebody else's; then nothing is changed.
fn write_all(wanted: &[DropIn], systemd: &Path) -> anyhow::Result<usize> {
    let mut changed = 0;
    let place = |one: &DropIn| systemd.join(format!("{}.d", one.unit)).join(DROP_IN);
    for path in wanted.iter().map(place) {
        let is_others = path.symlink_metadata().is_ok() && !is_ours(&path);
        ensure!(!is_others, "{} was not written by this command, and is left alone: move it away", path.display());
    }
    for one in wanted {
        let directory = systemd.join(format!("{}.d", one.unit));
        let path = place(one);
        if fs::read_to_string(&path).is_ok_and(|text| text == one.text) {
            continue;
        }
        fs::create_dir_all(&directory).with_context(|| format!("failed to make {}", directory.display()))?;
        let new = directory.join(format!(".{DROP_IN}.new"));
        fs::write(&new, &one.text)
            .and_then(|()| fs::rename(&new, &path))
            .with_context(|| format!("failed to write {}", path.display()))?;
        changed += 1;
    }
    for entry in fs::read_dir(systemd).into_iter().flatten().flatten() {
        let path = entry.path().join(DROP_IN);
        let unit = entry.file_name().to_string_lossy().trim_end_matches(".d").to_owned();
        if is_ours(&path) && wanted.iter().all(|one| one.unit != unit) {
            fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
            let _ = fs::remove_dir(entry.path());
            changed += 1;
        }
    }
    Ok(changed)
}

fn is_ours(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK))
}

#[cfg(test)]
mod tests {
    use super::{DROP_IN, units};
    use std::fs;

    #[test]
    fn drop_ins_are_written_for_the_units_of_the_file_and_removed_with_them() {
        let folder = tempfile::tempdir().expect("a directory");
        let (file, systemd) = (folder.path().join("fs.toml"), folder.path().join("systemd"));
        let write = |units: &str| {
            fs::write(&file, format!("[server]\nmount = \"/minerva\"\n[tenants.web]\n{units}\n")).expect("written");
            super::units(&file, &systemd, true, false).expect("written");
        };
        write("units = [\"dump.service:/srv/dump\", \"dump.service:/srv/log:temporary\", \"b@1.service:/b\"]");
        let text = fs::read_to_string(systemd.join("dump.service.d").join(DROP_IN)).expect("a drop-in");
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "[Unit]",
                "Wants=minerva-fs.service",
                "After=minerva-fs.service",
                "[Service]",
                "ExecStartPre=-+/usr/bin/minerva-ctl cache prepare --tenant web --pool stable --name dump.service-srv-dump /srv/dump",
                "BindPaths=-/minerva/web/stable/.units/dump.service-srv-dump:/srv/dump",
                "ExecStopPost=-+/usr/bin/minerva-ctl cache settle /minerva/web/stable/.units/dump.service-srv-dump /srv/dump",
                "ExecStartPre=-+/usr/bin/minerva-ctl cache prepare --tenant web --pool temporary --name dump.service-srv-log /srv/log",
                "BindPaths=-/minerva/web/temporary/.units/dump.service-srv-log:/srv/log",
                "ExecStopPost=-+/usr/bin/minerva-ctl cache settle /minerva/web/temporary/.units/dump.service-srv-log /srv/log",
            ]
        );
        // Another's drop-in of that name is left alone.
        fs::create_dir_all(systemd.join("other.service.d")).expect("a directory");
        fs::write(systemd.join("other.service.d").join(DROP_IN), "[Service]\n").expect("written");
        write("units = [\"b@1.service:/b\"]");
        assert!(!systemd.join("dump.service.d").exists());
        assert!(systemd.join("b@1.service.d").join(DROP_IN).exists());
        let other = systemd.join("other.service.d").join(DROP_IN);
        assert!(other.exists());
        // Also where the file asks for one in its place; nothing else is changed then either.
        fs::write(
            &file,
            "[server]\nmount = \"/minerva\"\n[tenants.web]\nunits = [\"a.service:/a\", \"other.service:/b\"]\n",
        )
        .expect("written");
        let why = units(&file, &systemd, true, false).expect_err("it is another's").to_string();
        assert!(why.contains("other.service.d") && why.contains("is left alone"), "{why}");
        assert_eq!(fs::read_to_string(&other).expect("a drop-in"), "[Service]\n");
        assert!(!systemd.join("a.service.d").exists() && systemd.join("b@1.service.d").join(DROP_IN).exists());
        write("units = [\"b@1.service:/b\"]");
        units(&file, &systemd, false, false).expect("printed");
    }

    #[test]
    fn a_drop_in_names_the_socket_where_the_service_has_another_runtime_directory() {
        let folder = tempfile::tempdir().expect("a directory");
        let (file, systemd) = (folder.path().join("fs.toml"), folder.path().join("systemd"));
        let commands = |server: &str| {
            fs::write(&file, format!("[server]\n{server}\n[tenants.web]\nunits = [\"a.service:/a\"]\n"))
                .expect("written");
            units(&file, &systemd, true, false).expect("written");
            let text = fs::read_to_string(systemd.join("a.service.d").join(DROP_IN)).expect("a drop-in");
            text.lines()
                .filter(|line| line.contains("minerva-ctl cache ") && line.starts_with("Exec"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            commands("runtime = \"/run/pool\""),
            [
                "ExecStartPre=-+/usr/bin/minerva-ctl cache --server /run/pool/control.sock prepare --tenant web --pool stable --name a.service-a /a",
                "ExecStopPost=-+/usr/bin/minerva-ctl cache --server /run/pool/control.sock settle /minerva/web/stable/.units/a.service-a /a",
            ]
        );
        let usual = commands("");
        assert!(usual.len() == 2 && usual.iter().all(|line| !line.contains("--server")), "{usual:?}");
    }
}
