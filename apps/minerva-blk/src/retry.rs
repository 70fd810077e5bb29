//! Disks whose images another process has locked are tried again until the lock is free, and their device's thread answers. It may be that of
//! a killed server whose last request its disk still has. Each is tried on a thread of its own: one whose storage does not answer keeps no
//! other waiting.

use crate::host::Host;
use crate::refused::{Refused, WaitingDisk};
use anyhow::Context;
use minerva_blk::{Image, ImageError};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whoever hands over has no disks meanwhile.
const HAND_OVER_STEP: Duration = Duration::from_millis(100);
/// How soon it is known what a try came to, and when the next one is.
const RUNNING_STEP: Duration = Duration::from_secs(1);

/// What comes next.
enum Next {
    Nothing,
    Wait(Duration),
    Try(Box<WaitingDisk>),
}

fn next(host: &mut Host) -> Next {
    let (now, refused) = (Instant::now(), host.refused_mut());
    if let Some(waiting) = refused.iter_mut().find_map(|disk| disk.take(now)) {
        return Next::Try(Box::new(waiting));
    }
    let at = refused.iter().filter_map(Refused::next).min().map(|at| at.saturating_duration_since(now));
    match (at, refused.iter().any(Refused::is_running)) {
        (None, false) => Next::Nothing,
        (at, false) => Next::Wait(at.unwrap_or_default()),
        (at, true) => Next::Wait(at.unwrap_or(RUNNING_STEP).min(RUNNING_STEP)),
    }
}

/// Tries, as long as there is something to try.
pub(crate) fn start(host: Arc<Mutex<Option<Host>>>) -> anyhow::Result<()> {
    let run = move || {
        loop {
            match with(&host, next) {
                Next::Nothing => return,
                Next::Wait(time) => std::thread::sleep(time),
                Next::Try(disk) => try_aside(&host, disk),
            }
        }
    };
    std::thread::Builder::new().name("retry".to_owned()).spawn(run).context("failed to start a thread")?;
    Ok(())
}

/// Tries one on a thread of its own; where none can be started, here.
fn try_aside(host: &Arc<Mutex<Option<Host>>>, disk: Box<WaitingDisk>) {
    let (give, given) = channel::<Box<WaitingDisk>>();
    let aside = Arc::clone(host);
    let run = move || given.iter().for_each(|disk| try_one(&aside, *disk));
    match std::thread::Builder::new().name("retry".to_owned()).spawn(run) {
        // It waits for this and nothing else.
        Ok(_) => drop(give.send(disk)),
        Err(_) => try_one(host, *disk),
    }
}

/// Nobody waits for it but whoever is told to: its storage may take its time.
fn try_one(host: &Mutex<Option<Host>>, disk: WaitingDisk) {
    let image = disk.image.lock(Instant::now());
    with(host, |host| tried(host, disk, image));
}

fn tried(host: &mut Host, waiting: WaitingDisk, image: Result<Image, ImageError>) {
    let name = waiting.settings.name.clone();
    let is_held_up = image.as_ref().is_ok_and(|image| host.is_held_up(image));
    // Operators may have added it meanwhile, or removed it.
    let Some(refused) = host.refused_mut().iter_mut().find(|disk| disk.name == name) else { return };
    let served = match image {
        Err(ImageError::Locked { .. }) => return refused.wait_longer(waiting),
        Err(error) => Err(error.into()),
        // Before its socket is taken, which only root could make again.
        Ok(_) if is_held_up => return refused.held_up(waiting),
        Ok(image) => host.serve_waiting(waiting, image),
    };
    match served {
        Ok(()) => eprintln!("minerva-blk: disk `{name}`: its image is not locked any more, and it is served now"),
        Err(error) => {
            eprintln!("minerva-blk: disk `{name}`: {error:#}");
            host.refused_mut().iter_mut().filter(|disk| disk.name == name).for_each(|disk| disk.give_up(&error));
        }
    }
}

/// Waits while the host is being handed over: the process ends then, or it comes back.
fn with<T>(host: &Mutex<Option<Host>>, then: impl FnOnce(&mut Host) -> T) -> T {
    loop {
        if let Some(host) = host.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            return then(host);
        }
        std::thread::sleep(HAND_OVER_STEP);
    }
}
