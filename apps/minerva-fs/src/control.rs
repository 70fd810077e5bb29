//! The socket: who uses how much, and files that are to go elsewhere. A line of JSON asks, a line of JSON answers
//! (`minerva_api::cache`). Root sees everybody, others their own.

use crate::callers::{Callers, Until};
use crate::deferred::{Deferred, Earned, Peer, Wish, find_tenant, judge_machine, tenants_of};
use crate::explain::explain;
use crate::mount::Mount;
use crate::reload::{self, Reloader};
use crate::second_account::{SecondAccount, SecondTold};
use crate::settings::{load, not_there, socket};
use crate::tenant::Tenant;
use crate::user::User;
use anyhow::{Context, bail};
use minerva_api::cache::{Answer, Pool, Request, TenantStatus, TreeStatus, ask};
use minerva_cachefs::UNITS;
use minerva_linux_observe::PeerCredentials;
use minerva_linux_observe::socket_path::remove_left_behind;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

/// A longer request is none.
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// Who has not asked after so long, or takes no answer for so long, is hung up on.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long nobody is let in after that failed.
const NOT_TAKEN: Duration = Duration::from_millis(50);

/// The socket, served.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
}

impl Control {
    pub(crate) fn start(asked: Arc<Reloader>) -> anyhow::Result<Self> {
        let path = socket(&asked.settings.now());
        // The lock says that nobody else serves it.
        let listener = remove_left_behind(&path).and_then(|()| UnixListener::bind(&path));
        let listener = listener.with_context(|| format!("failed to listen at {}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(0o666)).context("failed to let tenants ask")?;
        let work = move || {
            let callers = Arc::new(Callers::default());
            for stream in listener.incoming() {
                match stream {
                    // Whoever is gone already is answered nothing.
                    Ok(stream) => drop(serve_beside(stream, &asked, &callers)),
                    // For want of descriptors, say. Who waits is still there at the next try.
                    Err(_) => thread::sleep(NOT_TAKEN),
                }
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

/// Each in a thread of its own, so that who says nothing keeps nobody else waiting.
fn serve_beside(stream: UnixStream, asked: &Arc<Reloader>, callers: &Arc<Callers>) -> anyhow::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let user = User::from(PeerCredentials::of(&stream)?);
    let caller = match callers.enter(user.uid) {
        Ok(caller) => caller,
        // It fits into the empty buffer of a new connection, and so waits for nobody.
        Err(why) => return tell(&stream, &Answer::Refused { why }),
    };
    let asked = Arc::clone(asked);
    let work = move || {
        let _ = serve(&stream, &user, &asked);
        drop(caller);
    };
    thread::Builder::new().name("answer".to_owned()).spawn(work)?;
    Ok(())
}

fn serve(stream: &UnixStream, user: &User, asked: &Reloader) -> anyhow::Result<()> {
    let mut line = String::new();
    BufReader::new(Until::new(stream, PATIENCE).take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => {
            answer(asked, (user, stream), request).unwrap_or_else(|error| Answer::Refused { why: format!("{error:#}") })
        }
        Err(error) => Answer::Refused { why: format!("not a request: {error}") },
    };
    tell(stream, &answer)
}

fn tell(mut stream: &UnixStream, answer: &Answer) -> anyhow::Result<()> {
    writeln!(stream, "{}", serde_json::to_string(answer)?)?;
    Ok(())
}

fn answer(asked: &Reloader, (user, stream): (&User, &UnixStream), request: Request) -> anyhow::Result<Answer> {
    let deferred = &asked.deferred;
    if let Some(path) = place_of(&request) {
        deferred.follow_directory(user, path);
        deferred.follow_link(user, path);
    }
    Ok(match request {
        Request::Status => {
            let migration = deferred.status(user);
            let tenants = asked.tenants.read().unwrap_or_else(PoisonError::into_inner);
            let seen = tenants_of(&tenants, user).into_iter();
            Answer::Status { tenants: seen.map(|tenant| status(deferred, tenant)).collect(), migration }
        }
        Request::Defer { path, directory, mode, pool, tenant, bytes } => {
            let (cgroup, peer) = (deferred.group_of(stream), Peer::of(stream));
            let wish = Wish { path, directory, mode, pool, tenant, bytes, cgroup, peer };
            let (id, data) = deferred.place(user, &wish)?;
            Answer::Deferring { id, data }
        }
        Request::Deferred { directory } => Answer::Deferred { files: deferred.list(user, directory.as_deref()) },
        Request::Flush { directory } => Answer::Done { files: deferred.flush(user, directory.as_deref())? },
        Request::Explain { path } => Answer::Explained { lines: explain(&asked.tenants, deferred, user, &path)? },
        Request::Drop { id } => {
            deferred.drop_left(user, id)?;
            Answer::Done { files: 1 }
        }
        Request::UnitDirectory { name, pool, tenant, owner, mode } => {
            if user.uid != 0 {
                bail!("only root may make a directory for a unit");
            }
            let path = unit_directory(asked, (tenant.as_deref(), pool), &name, owner, mode)?;
            Answer::UnitDirectory { path }
        }
        Request::Reload => {
            if user.uid != 0 {
                bail!("only root may put the file in force");
            }
            let changes = asked.reload()?;
            reload::tell(&changes);
            Answer::Reloaded { changes }
        }
    })
}

/// The place of which something is asked, which may be a link that was renamed, or a directory.
fn place_of(request: &Request) -> Option<&Path> {
    match request {
        Request::Explain { path } => Some(path),
        Request::Deferred { directory } | Request::Flush { directory } => directory.as_deref(),
        _ => None,
    }
}

fn unit_directory(
    asked: &Reloader,
    (tenant, pool): (Option<&str>, Pool),
    name: &str,
    owner: (u32, u32),
    mode: u32,
) -> anyhow::Result<PathBuf> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        bail!("`{name}` is no name of a directory");
    }
    let tenants = asked.tenants.read().unwrap_or_else(PoisonError::into_inner);
    let tenant = find_tenant(&tenants, &User::root(), tenant)?;
    judge_machine(tenant)?;
    let mount = tenant.mount(pool);
    if tenant.owner.uid != owner.0 {
        // It would not come through the root of the tree.
        bail!("its owner is user {}, and tenant {} belongs to user {}", owner.0, tenant.name, tenant.owner.uid);
    }
    mount
        .tree
        .unit_directory(OsStr::new(name), owner, mode)
        .map_err(io::Error::from)
        .context("the pool did not take it")?;
    Ok(mount.at.join(UNITS).join(name))
}

fn status(deferred: &Deferred, tenant: &Tenant) -> TenantStatus {
    let Earned { micro_credits, why } = deferred.earned(&tenant.name);
    // A guest offers no pool with its operations: it does not know on which disk of the host it lies.
    let left = |mount: &Mount| if mount.tree.is_served_elsewhere() { 0 } else { deferred.left_bytes(mount) };
    let status = |mount, second: &Option<Arc<SecondAccount>>| {
        let SecondTold { by, bytes, difference } = second.as_ref().map(|second| second.told()).unwrap_or_default();
        TreeStatus {
            deferrable_bytes: left(mount),
            second_account: by,
            second_account_bytes: bytes,
            difference,
            ..tree_status(mount)
        }
    };
    TenantStatus {
        name: tenant.name.clone(),
        temporary: status(&tenant.temporary, &tenant.second.temporary),
        stable: TreeStatus { device: deferred.pool_disk(), ..status(&tenant.stable, &tenant.second.stable) },
        leaving: tenant.leaving.clone(),
        earned_micro_credits: micro_credits,
        earned_why: why,
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
        descriptors: mount.tree.descriptors(),
        refused_descriptors: of(&counters.refused_descriptors),
        disk_waits: mount.tree.disk_figures().waited,
        passed_by_bytes_max: mount.tree.disk_figures().passed_by_bytes_max,
        deferrable_bytes: 0,
        device: String::new(),
        second_account: String::new(),
        second_account_bytes: 0,
        difference: String::new(),
    }
}

/// `minerva-fs status`.
pub(crate) fn show_status(config: &Path, json: bool) -> anyhow::Result<()> {
    let socket = socket(&load(config)?);
    let answer = ask(&socket, &Request::Status).with_context(|| not_there(&socket))?;
    let Answer::Status { tenants, .. } = answer else { bail!("refused") };
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
                "{:<20} {kind:<10} {:>10} {:>11} {:>8} {:>8} {:>6} {:>16}{}{}",
                tenant.name,
                mib(tree.bytes),
                mib(tree.bytes_max),
                tree.files,
                tree.files_max,
                tree.open,
                mib(tree.spilled_bytes),
                if tree.is_served { "" } else { "  not served" },
                if tree.refused_descriptors == 0 { "" } else { "  refused files for want of descriptors" }
            );
        }
        for (kind, tree) in [("temporary", &tenant.temporary), ("stable", &tenant.stable)] {
            if !tree.difference.is_empty() {
                println!("{}/{kind} by {}: {}", tenant.name, tree.second_account, tree.difference);
            }
        }
        if !tenant.leaving.is_empty() {
            println!("{} is no longer in the file but is still served: {}", tenant.name, tenant.leaving);
        }
    }
    Ok(())
}
