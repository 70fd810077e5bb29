//! Serving, from the first look at the file to the last answer.

use crate::answering;
use crate::confinement;
use crate::control::Control;
use crate::descriptors;
use crate::detach;
use crate::devices::Devices;
use crate::edits;
use crate::hand_over;
use crate::host::{About, Host};
use crate::listening_host::ListeningHost;
use crate::plan::{self, Plan};
use crate::privileges::Identity;
use crate::reading;
use crate::retry;
use crate::suspended::Suspended;
use anyhow::{Context, bail};
use minerva_blk::LOCK_PATIENCE;
use minerva_config::{BlkConfig, load_blk};
use minerva_linux_actuate::ask_server;
use minerva_linux_threads::shorten_time_slice;
use minerva_model::{ControlRequest, ServerAnswer, ServerReport};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sockets are for their owner and the group that the file names.
const SOCKET_MASK: u32 = 0o117;
/// A server that does not answer by then is taken for none.
const CHECK_PATIENCE: Duration = Duration::from_secs(2);

/// Judges the file, and opens what it names.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let config = load(path)?;
    Identity::find(&config.server)?;
    let (devices, silent) = (Devices::new(config.devices.clone(), None), silent(&config));
    let served = served_now(&config.server.control);
    for name in config.disks.keys().filter(|name| served.contains(*name)) {
        println!(
            "{name}: served now, so its image is not looked at; `minerva-ctl disk set` judges what it is promised"
        );
    }
    let disks = config.disks.iter().filter(|(name, _)| !served.contains(*name));
    let plan = plan::open(devices, disks, &silent, locks_until(), &[]);
    for plan::Planned { disk, .. } in &plan.disks {
        let (geometry, physical) = (disk.image.geometry(), &plan.devices.devices[disk.physical].physical);
        let bytes = geometry.sectors * minerva_blk::request::SECTOR_BYTES;
        println!("{}: {bytes} bytes on {}, ordered by {}", disk.name, physical.name, physical.scheduler);
    }
    println!("{}: {} disks can be served", path.display(), plan.disks.len());
    match plan.refused.len() {
        0 => Ok(()),
        count => bail!("{count} of {} disks cannot be served", config.disks.len()),
    }
}

/// The disks that the server of this file serves, if it runs: it has their images locked.
fn served_now(control: &Path) -> BTreeSet<String> {
    let Ok(ServerAnswer::Holds(text)) = ask_server(control, &ControlRequest::List, &[], CHECK_PATIENCE) else {
        return BTreeSet::new();
    };
    let report = serde_json::from_str::<ServerReport>(&text);
    report.map(|report| report.disks.into_iter().map(|disk| disk.settings.name).collect()).unwrap_or_default()
}

fn load(path: &Path) -> anyhow::Result<BlkConfig> {
    let config = load_blk(path).with_context(|| format!("failed to use {}", path.display()))?;
    for warning in &config.warnings {
        eprintln!("{warning}\n");
    }
    Ok(config)
}

/// Serves until SIGTERM or SIGINT. Requests are logged in the folder `request_logs`, where one is given.
pub(crate) fn serve(path: &Path, request_logs: Option<&Path>) -> anyhow::Result<()> {
    let mut signals = begin()?;
    let config = load(path)?;
    let identity = Identity::find(&config.server)?;
    let devices = Devices::new(config.devices.clone(), request_logs.map(Path::to_owned));
    let silent = silent(&config);
    let mut plan = plan::open(devices, config.disks.iter(), &silent, locks_until(), &[]);
    plan.has_disks()?;
    let control = Control::open(&config.server.control, &identity)?;
    let (listeners, sockets) = listen(&mut plan);
    plan.has_disks()?;
    let status = match plan.refused.len() {
        0 => format!("{} disks are served", plan.disks.len()),
        refused => format!("{} disks are served, {refused} are refused", plan.disks.len()),
    };
    limit_reading(&config)?;
    let listening = ListeningHost::new(plan, listeners, About::of(path, &identity))?;
    identity.own(&sockets)?;
    identity.become_user()?;
    let host = Arc::new(Mutex::new(Some(listening.serve()?)));
    control.start(Arc::clone(&host))?;
    retry::start(Arc::clone(&host))?;
    confinement::confine()?;
    serve_until_told(&host, &status, &mut signals);
    Ok(())
}

/// Goes on with what a running server serves, and then serves until SIGTERM or SIGINT.
pub(crate) fn take_over(path: &Path) -> anyhow::Result<()> {
    let mut signals = begin()?;
    let config = load(path)?;
    let identity = Identity::find(&config.server)?;
    let (about, devices) = (About::of(path, &identity), Devices::new(config.devices.clone(), None));
    // Before anybody waits for this server.
    let silent = silent(&config);
    let mut sockets = Vec::new();
    let taken = hand_over::take(&config.server.control, |offers, reserved| {
        for line in edits::untaken(&config, offers.iter().map(|(offer, ..)| &offer.settings)) {
            eprintln!("minerva-blk: {line}");
        }
        let names: BTreeSet<String> = offers.iter().map(|(offer, ..)| offer.settings.name.clone()).collect();
        let new = config.disks.iter().filter(|(name, _)| !names.contains(*name));
        Ok(Suspended::offered(offers, devices, about)?.take_new(|devices, served| {
            // Nobody waits for a lock: what is locked is tried again.
            let mut plan = plan::open(devices, new, &silent, Instant::now(), served);
            prepare_folders(&mut plan);
            let reserved = plan.reserve(reserved);
            sockets = plan.sockets();
            (plan, reserved)
        }))
    })?;
    identity.own(&sockets)?;
    if let Err(error) = identity.open_to_operators(&config.server.control) {
        eprintln!("minerva-blk: {error:#}; who may ask this server stays as it was");
    }
    // Everything is open: what takes time is done before guests wait.
    limit_reading(&config)?;
    identity.become_user()?;
    confinement::confine()?;
    let (host, control, told) = taken.go_on()?;
    let host = Arc::new(Mutex::new(Some(host)));
    Control::taken(control, &identity).start(Arc::clone(&host))?;
    retry::start(Arc::clone(&host))?;
    detach::tell_ready();
    serve_until_told(&host, &told, &mut signals);
    Ok(())
}

/// From here on no file is opened but those that serving needs, where the kernel has Landlock.
fn limit_reading(config: &BlkConfig) -> anyhow::Result<()> {
    let models = config.devices.values().filter_map(|device| device.model.as_deref());
    // A kernel without it is no reason not to serve.
    reading::limit(models).map(drop)
}

/// Images whose storage does not answer.
fn silent(config: &BlkConfig) -> BTreeSet<PathBuf> {
    answering::silent(config.disks.values().map(|disk| disk.image.as_path()))
}

/// Until when locks of images are waited for.
fn locks_until() -> Instant {
    Instant::now() + LOCK_PATIENCE
}

/// Listens for the front end of each disk that can be served; refuses those whose socket cannot be had. All sockets that were made.
fn listen(plan: &mut Plan) -> (Vec<UnixListener>, Vec<PathBuf>) {
    prepare_folders(plan);
    let listeners = plan.listen();
    (listeners, plan.sockets())
}

/// What comes before sockets are made.
fn prepare_folders(plan: &mut Plan) {
    plan.check_each(|disk| plan::make_folder(&disk.socket));
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(SOCKET_MASK));
}

/// What the process does first of all; the signals that end it.
fn begin() -> anyhow::Result<Signals> {
    // One worker that fails would leave its guests without an answer: better all end, and the service manager starts them anew,
    // which repeats what was under way.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
    rustix::thread::set_no_new_privs(true).context("failed to do without new privileges")?;
    descriptors::raise_limit();
    // Before any other thread starts, so that all have it.
    if let Err(error) = shorten_time_slice() {
        eprintln!(
            "minerva-blk: its threads have slices of the usual length, so programs that compute delay it longer: {error}"
        );
    }
    Signals::new([SIGTERM, SIGINT]).context("failed to listen for signals")
}

fn serve_until_told(host: &Mutex<Option<Host>>, status: &str, signals: &mut Signals) {
    eprintln!("minerva-blk: {status}");
    // Whoever does not listen has no need to know.
    let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(status)]);
    signals.forever().next();
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    let host = host.lock().unwrap_or_else(PoisonError::into_inner).take();
    for line in host.map(Host::stop).unwrap_or_default() {
        eprintln!("minerva-blk: {line}");
    }
}
