//! Serving, from the first look at the file to the last unmount.

use crate::control::Control;
use crate::deferred::{Deferred, Mover};
use crate::descriptors;
use crate::forgetter::Forgetter;
use crate::owner::Owner;
use crate::pool::{self, PoolLock};
use crate::settings::load;
use crate::spiller::Spiller;
use crate::tenant::{Tenant, Tenants};
use anyhow::Context;
use minerva_cachefs::Descriptors;
use minerva_config::FsConfig;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// How long programs may take to close what they have open once the service ends.
const DRAIN: Duration = Duration::from_secs(10);
const DRAIN_LOOK: Duration = Duration::from_millis(50);
/// After so long it says what it waits for.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// Judges the file, and who it names.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let config = load(path)?;
    for (name, tenant) in &config.tenants {
        let owner = Owner::find(tenant).with_context(|| format!("{}: tenant `{name}`", tenant.place))?;
        println!(
            "{name}: {} bytes temporary, {} stable, for user {} and group {}",
            tenant.temporary_bytes, tenant.stable_bytes, owner.uid, owner.gid
        );
    }
    println!("{}: {} tenants can be served", path.display(), config.tenants.len());
    Ok(())
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn serve(path: &Path) -> anyhow::Result<()> {
    // A tree with a thread missing would leave programs without an answer: better all end, and the service manager starts them anew.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("failed to listen for signals")?;
    let config = load(path)?;
    map_large_buffers();
    let descriptors = Arc::new(descriptors::share_out(&config));
    // Memory that this process asks for is not to wait for pages that only it can write. Where that is not allowed, it does without.
    let _ = rustix::process::configure_io_flusher_behavior(true);
    let lock = PoolLock::take(&config)?;
    let tenants = start_all(&config, &descriptors)?;
    let spiller = Spiller::start(Arc::clone(&tenants), &config)?;
    let forgetter = Forgetter::start(Arc::clone(&tenants), descriptors)?;
    let deferred = Arc::new(Deferred::open(&config, Arc::clone(&tenants))?);
    let mover = Mover::start(Arc::clone(&deferred))?;
    let control = Control::start(Arc::clone(&tenants), Arc::clone(&deferred), &config)?;
    let status = format!("{} tenants are served at {}", config.tenants.len(), config.server.mount.display());
    eprintln!("minerva-fs: {status}");
    // Whoever does not listen has no need to know.
    let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
    signals.forever().next();
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    control.stop();
    mover.stop();
    deferred.close();
    spiller.stop();
    forgetter.stop();
    let done = stop_all(&tenants, &mut signals);
    for name in config.tenants.keys() {
        pool::give_back(&config, name);
    }
    drop(lock);
    done
}

/// Every thread of every tree has a buffer of 16 MiB, of which it uses a page or a mebibyte. The allocator would take the next ones from
/// what was given back and clear them, so that all of it is in memory; mapped ones are there as far as they are used.
fn map_large_buffers() {
    const MAPPED_FROM: libc::c_int = 4 << 20;
    // SAFETY: the call takes two numbers, and nothing else allocates yet.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM) };
}

/// Mounts all; if one fails, none stays.
fn start_all(config: &FsConfig, descriptors: &Arc<Descriptors>) -> anyhow::Result<Tenants> {
    let (mut started, begun, mut told) = (Vec::new(), Instant::now(), Instant::now());
    for (number, (name, settings)) in config.tenants.iter().enumerate() {
        if begun.elapsed() > TELL_AFTER && told.elapsed() > TELL_AFTER {
            eprintln!("minerva-fs: {number} of {} tenants are mounted", config.tenants.len());
            told = Instant::now();
        }
        match Tenant::start(config, name, settings, descriptors) {
            Ok(tenant) => started.push(tenant),
            Err(error) => {
                for tenant in &mut started {
                    let _ = tenant.temporary.unmount();
                    let _ = tenant.stable.unmount();
                }
                return Err(error).with_context(|| format!("{}: tenant `{name}`", settings.place));
            }
        }
    }
    Ok(Arc::new(RwLock::new(started)))
}

/// Waits for programs to close what they have open, a while; then, or at a second signal, trees go out of their sight.
fn stop_all(tenants: &Tenants, signals: &mut Signals) -> anyhow::Result<()> {
    let mut tenants = tenants.write().unwrap_or_else(PoisonError::into_inner);
    let begun = Instant::now();
    let mut is_told = false;
    loop {
        let mut busy = Vec::new();
        for tenant in tenants.iter_mut() {
            for mount in [&mut tenant.temporary, &mut tenant.stable] {
                if !mount.unmount()? {
                    busy.push(mount);
                }
            }
        }
        if busy.is_empty() {
            // Memory is given back only once nothing of it is open.
            tenants.clear();
            return Ok(());
        }
        if begun.elapsed() > DRAIN || signals.pending().next().is_some() {
            for mount in busy {
                eprintln!(
                    "minerva-fs: {} is still in use (`fuser -vm {0}` shows by whom) and was detached; nothing that \
                     was written is lost",
                    mount.at.display()
                );
                mount.detach()?;
            }
            return Ok(());
        }
        if begun.elapsed() > TELL_AFTER && !is_told {
            is_told = true;
            for mount in &busy {
                eprintln!("minerva-fs: waiting up to {} s for the users of {}", DRAIN.as_secs(), mount.at.display());
            }
        }
        thread::sleep(DRAIN_LOOK);
    }
}
