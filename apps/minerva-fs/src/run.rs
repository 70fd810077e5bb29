//! Serving, from the first look at the file to the last unmount.

use crate::auditor;
use crate::control::Control;
use crate::deferred::{Deferred, start_moving};
use crate::descriptors;
use crate::doctor;
use crate::flusher;
use crate::forgetter;
use crate::guest;
use crate::looker::Looker;
use crate::metrics;
use crate::owner::Owner;
use crate::pool::{self, PoolLock};
use crate::pool_disk;
use crate::projects;
use crate::reload::{self, Reloader};
use crate::settings::{Settings, load};
use crate::spiller;
use crate::tenant::{Shared, Tenant, Tenants};
use crate::unnamed;
use anyhow::Context;
use minerva_cachefs::DiskQueue;
use minerva_config::{FsConfig, SecondAccount};
use minerva_linux_threads::shorten_time_slice;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGIO, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// How long programs may take to close what they have open once the service ends.
const DRAIN: Duration = Duration::from_secs(10);
const DRAIN_LOOK: Duration = Duration::from_millis(50);
/// So often it looks whether a tenant that the file does not name any more can go.
const LEAVING_LOOK: Duration = Duration::from_secs(1);
/// After so long it says what it waits for.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// Judges the file, and who it names.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let config = load(path)?;
    pool_disk::judge(&config)?;
    for (name, tenant) in &config.tenants {
        let owner = Owner::find(tenant).with_context(|| format!("{}: tenant `{name}`", tenant.place))?;
        println!(
            "{name}: {} bytes temporary, {} stable, for user {} and group {}",
            tenant.temporary_bytes, tenant.stable_bytes, owner.uid, owner.gid
        );
    }
    if config.stable.second_account == SecondAccount::Kernel
        && let Err(why) = projects::is_offered(&config.stable.path)
    {
        println!("{}: `second_account`: {why}; walks compare instead", path.display());
    }
    println!("{}: {} tenants can be served", path.display(), config.tenants.len());
    Ok(())
}

/// Serves until SIGTERM or SIGINT; at SIGHUP the file is read again.
pub(crate) fn serve(path: &Path) -> anyhow::Result<()> {
    abort_at_a_panic();
    map_large_buffers();
    let signals = listen()?;
    let config = load(path)?;
    let shared = Shared {
        descriptors: Arc::new(descriptors::share_out(&config)),
        queue: config.stable.is_scheduled.then(|| DiskQueue::new(config.stable.depth)),
    };
    flusher::tell_kernel();
    ask_for_short_slices();
    let lock = PoolLock::take(&config)?;
    let scrapes = metrics::listen(&config.server.metrics)?;
    let is_guest = config.server.is_guest;
    projects::undo_unwanted(&config).iter().for_each(|told| eprintln!("minerva-fs: {told}"));
    let tenants = if is_guest { guest::tenants(&config)? } else { start_all(&config, &shared)? };
    let status = status(&config);
    let settings = Arc::new(Settings::new(config));
    let seeing = if is_guest { None } else { Some(see_to_room(&tenants, &settings, &shared)?) };
    let deferred = Arc::new(Deferred::open(Arc::clone(&settings), Arc::clone(&tenants))?);
    if !is_guest {
        unnamed::serve(&settings.now(), &shared, &tenants, &deferred);
    }
    deferred.tell_unserved();
    let mover = start_moving(Arc::clone(&deferred))?;
    let serve_metrics = |scrapes| metrics::serve(scrapes, Arc::clone(&tenants), Arc::clone(&deferred));
    scrapes.map_or(Ok(()), serve_metrics)?;
    let reloader = Arc::new(Reloader {
        path: path.to_owned(),
        settings: Arc::clone(&settings),
        tenants: Arc::clone(&tenants),
        shared,
        deferred: Arc::clone(&deferred),
        changing: Mutex::default(),
    });
    let control = Control::start(Arc::clone(&reloader))?;
    eprintln!("minerva-fs: {status}");
    // Whoever does not listen has no need to know.
    let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
    until_stopped(&signals, &reloader);
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    // From here on nobody changes which tenants there are.
    let changing = reloader.changing.lock().unwrap_or_else(PoisonError::into_inner);
    control.stop();
    mover.stop();
    deferred.close();
    let done = seeing.map_or(Ok(()), |seeing| end_serving(seeing, &tenants, &signals, &settings.now()));
    drop((lock, changing));
    done
}

/// What the service manager shows.
fn status(config: &FsConfig) -> String {
    let at = config.server.mount.display();
    match config.tenants.len() {
        _ if config.server.is_guest => format!("files are moved from the host's trees at {at}"),
        count => format!("{count} tenants are served at {at}"),
    }
}

/// Whose the trees are sees to it that memory and descriptors last.
fn see_to_room(tenants: &Tenants, settings: &Arc<Settings>, shared: &Shared) -> anyhow::Result<Vec<Looker>> {
    let mut seeing = vec![
        spiller::start(Arc::clone(tenants), Arc::clone(settings))?,
        forgetter::start(Arc::clone(tenants), Arc::clone(&shared.descriptors))?,
    ];
    if settings.now().stable.second_account != SecondAccount::None {
        seeing.push(auditor::start(Arc::clone(tenants))?);
    }
    Ok(seeing)
}

/// Whose the trees are lets go of them.
fn end_serving(
    seeing: Vec<Looker>,
    tenants: &Tenants,
    signals: &Receiver<i32>,
    config: &FsConfig,
) -> anyhow::Result<()> {
    seeing.into_iter().for_each(Looker::stop);
    stop_all(tenants, signals, config)
}

/// A tree with a thread missing would leave programs without an answer: better all end, and the service manager starts them anew.
fn abort_at_a_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
}

/// Signals, as they come.
fn listen() -> anyhow::Result<Receiver<i32>> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).context("failed to listen for signals")?;
    // Somebody comes to a file that is leased: it is looked at again soon. By itself the signal would end the process.
    signal_hook::flag::register(SIGIO, Arc::default()).context("failed to listen for signals")?;
    let (sender, receiver) = channel();
    let work = move || {
        for signal in signals.forever() {
            if sender.send(signal).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(work).context("failed to start a thread")?;
    Ok(receiver)
}

/// Until a signal ends it, sees to the file and to tenants that it does not name any more.
fn until_stopped(signals: &Receiver<i32>, reloader: &Reloader) {
    loop {
        match signals.recv_timeout(LEAVING_LOOK) {
            Ok(SIGHUP) => match reloader.reload() {
                Ok(changes) => reload::tell(&changes),
                Err(error) => eprintln!("minerva-fs: nothing was changed: {error:#}"),
            },
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) if reloader.settings.now().server.is_guest => {
                guest::look_again(&reloader.tenants)
            }
            Err(RecvTimeoutError::Timeout) => reloader.look_after_leaving(),
        }
    }
}

/// For this thread and all that start from here on.
fn ask_for_short_slices() {
    if let Err(error) = shorten_time_slice() {
        eprintln!(
            "minerva-fs: its threads have slices of the usual length, so programs that compute delay it longer: {error}"
        );
    }
}

/// Every thread of every tree has a buffer of 16 MiB, of which it uses a page or a mebibyte. The allocator would take the next ones from
/// what was given back and clear them, so that all of it is in memory; mapped ones are there as far as they are used.
fn map_large_buffers() {
    const MAPPED_FROM: libc::c_int = 4 << 20;
    // SAFETY: the call takes two numbers, and there is no other thread yet.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM) };
}

/// Mounts all; if one fails, none stays.
fn start_all(config: &FsConfig, shared: &Shared) -> anyhow::Result<Tenants> {
    doctor::remove_interrupted(&config.stable.path);
    let (mut started, begun, mut told) = (Vec::new(), Instant::now(), Instant::now());
    for (number, (name, settings)) in config.tenants.iter().enumerate() {
        if begun.elapsed() > TELL_AFTER && told.elapsed() > TELL_AFTER {
            eprintln!("minerva-fs: {number} of {} tenants are mounted", config.tenants.len());
            told = Instant::now();
        }
        match Tenant::start(config, name, settings, shared) {
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
fn stop_all(tenants: &Tenants, signals: &Receiver<i32>, config: &FsConfig) -> anyhow::Result<()> {
    let mut tenants = tenants.write().unwrap_or_else(PoisonError::into_inner);
    let names: Vec<String> = tenants.iter().map(|tenant| tenant.name.clone()).collect();
    let done = unmount_all(&mut tenants, signals);
    for name in &names {
        pool::give_back(config, name);
    }
    done
}

fn unmount_all(tenants: &mut Vec<Tenant>, signals: &Receiver<i32>) -> anyhow::Result<()> {
    let begun = Instant::now();
    let (mut is_told, mut is_hurried) = (false, false);
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
        if begun.elapsed() > DRAIN || is_hurried {
            for mount in busy {
                eprintln!(
                    "minerva-fs: {}; who has it open meets ENOTCONN, and nothing that was written is lost",
                    mount.why_in_use()
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
        // Nothing tells when the last user of a mount is gone; whoever asks again to stop waits no longer.
        is_hurried = signals.recv_timeout(DRAIN_LOOK).is_ok_and(|signal| signal != SIGHUP);
    }
}
