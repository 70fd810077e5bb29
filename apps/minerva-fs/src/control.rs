//! The socket: who uses how much. A line of JSON asks, a line of JSON answers. Root sees everybody, others their own.

use crate::settings::load;
use crate::tenant::{Mount, Tenant, Tenants};
use anyhow::{Context, bail};
use minerva_config::FsConfig;
use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A longer request is none.
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// Who says nothing for so long is hung up on.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Request {
    /// Who uses how much.
    Status,
}

/// What is answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// Who uses how much.
    Status {
        /// Everybody whom the asker may see.
        tenants: Vec<TenantStatus>,
    },
    /// It could not be done.
    Refused {
        /// Why, and what to do.
        why: String,
    },
}

/// One tenant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TenantStatus {
    /// Its name.
    pub name: String,
    /// In memory.
    pub temporary: TreeStatus,
    /// On the disk.
    pub stable: TreeStatus,
}

/// One tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TreeStatus {
    /// Where it is mounted.
    pub path: PathBuf,
    /// Whether it is.
    pub is_served: bool,
    /// Whether the kernel reads files by itself.
    pub has_passthrough: bool,
    /// Bytes used.
    pub bytes: u64,
    /// Bytes allowed.
    pub bytes_max: u64,
    /// Files and directories.
    pub files: u64,
    /// How many are allowed.
    pub files_max: u64,
    /// Files that somebody has open.
    pub open: u64,
    /// Files that went from memory to the disk since the start.
    pub spilled_files: u64,
    /// Their bytes.
    pub spilled_bytes: u64,
    /// Bytes written through the service since the start.
    pub bytes_written: u64,
    /// Bytes read through it, in place of by the kernel.
    pub bytes_read: u64,
    /// What the quota refused since the start.
    pub refused: u64,
}

/// The socket, served.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
}

/// Where the socket is.
fn socket(config: &FsConfig) -> PathBuf {
    config.server.runtime.join("control.sock")
}

impl Control {
    pub(crate) fn start(tenants: Tenants, config: &FsConfig) -> anyhow::Result<Self> {
        let path = socket(config);
        // The lock says that nobody else serves it.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).with_context(|| format!("failed to listen at {}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(0o666)).context("failed to let tenants ask")?;
        let work = move || {
            for stream in listener.incoming().flatten() {
                // One after the other: an answer takes microseconds, and who is silent is hung up on.
                let _ = serve(&stream, &tenants);
            }
        };
        thread::Builder::new().name("control".to_owned()).spawn(work).context("failed to start a thread")?;
        Ok(Self { path })
    }

    /// Nobody is answered any more.
    pub(crate) fn stop(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn serve(stream: &UnixStream, tenants: &Tenants) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let uid = socket_peercred(stream)?.uid.as_raw();
    let mut line = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(Request::Status) => {
            let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
            let seen = tenants.iter().filter(|tenant| uid == 0 || tenant.owner.uid == uid);
            Answer::Status { tenants: seen.map(status).collect() }
        }
        Err(error) => Answer::Refused { why: format!("not a request: {error}") },
    };
    let mut stream = stream;
    writeln!(stream, "{}", serde_json::to_string(&answer)?)?;
    Ok(())
}

fn status(tenant: &Tenant) -> TenantStatus {
    TenantStatus {
        name: tenant.name.clone(),
        temporary: tree_status(&tenant.temporary),
        stable: tree_status(&tenant.stable),
    }
}

fn tree_status(mount: &Mount) -> TreeStatus {
    let (usage, counters) = (mount.tree.usage(), mount.tree.counters());
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    TreeStatus {
        path: mount.at.clone(),
        is_served: mount.is_served(),
        has_passthrough: mount.has_passthrough(),
        bytes: usage.bytes,
        bytes_max: usage.bytes_max,
        files: usage.files,
        files_max: usage.files_max,
        open: mount.tree.known().1 as u64,
        spilled_files: of(&counters.spilled_files),
        spilled_bytes: of(&counters.spilled_bytes),
        bytes_written: of(&counters.bytes_written),
        bytes_read: of(&counters.bytes_read),
        refused: of(&counters.refused),
    }
}

/// Asks a service that runs.
pub fn ask(socket: &Path, request: &Request) -> anyhow::Result<Answer> {
    let help = || format!("no minerva-fs answers at {}; start it: systemctl start minerva-fs", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(help)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{}", serde_json::to_string(request)?).with_context(help)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).with_context(help)?;
    serde_json::from_str(&line)
        .context("minerva-fs gave an answer that this program does not know; is it another version?")
}

/// `minerva-fs status`.
pub(crate) fn show_status(config: &Path, json: bool) -> anyhow::Result<()> {
    let answer = ask(&socket(&load(config)?), &Request::Status)?;
    let Answer::Status { tenants } = answer else { bail!("refused") };
    if json {
        println!("{}", serde_json::to_string(&tenants)?);
        return Ok(());
    }
    println!(
        "{:<20} {:<10} {:>22} {:>17} {:>6} {:>16}",
        "TENANT", "TREE", "MiB USED OF", "FILES OF", "OPEN", "SPILLED MiB"
    );
    let mib = |bytes: u64| bytes >> 20;
    for tenant in &tenants {
        for (kind, tree) in [("temporary", &tenant.temporary), ("stable", &tenant.stable)] {
            println!(
                "{:<20} {kind:<10} {:>10} {:>11} {:>8} {:>8} {:>6} {:>16}{}",
                tenant.name,
                mib(tree.bytes),
                mib(tree.bytes_max),
                tree.files,
                tree.files_max,
                tree.open,
                mib(tree.spilled_bytes),
                if tree.is_served { "" } else { "  not served" }
            );
        }
    }
    Ok(())
}
