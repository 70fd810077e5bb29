//! A running server hands all that it serves over to the next one, `minerva-blk --take-over`, without an error in a guest.
//!
//! The conversation, over the control socket: the next server greets; the old one offers each disk with its image and socket open; the
//! next one judges and opens all that it needs, and says that it is prepared. Only then does the old one stop listening to front ends. Once
//! the last of their messages is carried out, it stops serving: it waits for what is at the disks, and tells how to go on with each front
//! end. The next one says that it is ready, the old one that it may go on, and
//! ends. Where anything fails before that, the old one goes on.

use crate::host::{Host, Offer};
use crate::suspended::Suspended;
use anyhow::{Context, bail, ensure};
use minerva_blk::frame;
use minerva_blk::{FrontEndState, Image, ReservedSocket};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The line with which the next server greets.
pub(crate) const GREETING: &str = "take-over 1";
/// The next server opens nothing from disk and computes little.
const PREPARE_PATIENCE: Duration = Duration::from_secs(30);
/// Guests are served meanwhile.
const PARK_PATIENCE: Duration = Duration::from_secs(10);
/// Guests wait meanwhile.
const READY_PATIENCE: Duration = Duration::from_secs(3);

/// What the old server begins with; the sockets that it reserved come with it, and behind them the control socket.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    process: u32,
    disks: usize,
    /// Where those are that it reserved for disks that it does not serve yet. Older servers tell of none.
    #[serde(default)]
    reserved: Vec<PathBuf>,
}

/// What the next server says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Said {
    Prepared,
    Ready,
    Refused(String),
}

/// What the old server says once nobody is served.
#[derive(Debug, Serialize, Deserialize)]
struct Left {
    /// Since when, in nanoseconds of `CLOCK_MONOTONIC`.
    suspended_ns: u64,
    /// Why all are served on, and nothing is handed over.
    #[serde(default)]
    refused: Option<String>,
}

/// That the next server may go on.
#[derive(Debug, Serialize, Deserialize)]
struct Go;

/// Each disk that is offered, with its image and its socket.
pub(crate) type Offers = Vec<(Offer, Arc<Image>, UnixListener)>;

/// What the next server has got.
pub(crate) struct Taken {
    pub(crate) suspended: Suspended,
    pub(crate) control: UnixListener,
    connection: UnixStream,
    old: u32,
}

fn send<T: Serialize>(stream: &UnixStream, what: &T, descriptors: &[BorrowedFd<'_>]) -> anyhow::Result<()> {
    let text = serde_json::to_vec(what).context("failed to tell it")?;
    frame::send(stream, &text, descriptors).context("failed to speak to the other server")
}

fn receive<T: DeserializeOwned>(stream: &UnixStream) -> anyhow::Result<(T, Vec<OwnedFd>)> {
    let (text, descriptors) = frame::receive(stream).context("the other server closed the connection")?;
    let told = serde_json::from_slice(&text).context("the other server is of another version")?;
    Ok((told, descriptors))
}

fn expect(stream: &UnixStream, wanted: &Said) -> anyhow::Result<()> {
    match receive(stream)?.0 {
        Said::Refused(why) => bail!("the next server refuses: {why}"),
        said => ensure!(said == *wanted, "the next server said {said:?} and not {wanted:?}"),
    }
    Ok(())
}

/// The instant, for the length of the pause.
fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Hands over, and ends this process; returns where it came to nothing and this server goes on, with the reason.
pub(crate) fn give(stream: &UnixStream, host: &Mutex<Option<Host>>, control: &UnixListener) -> anyhow::Result<()> {
    let mut place = host.lock().unwrap_or_else(PoisonError::into_inner);
    let serving = place.take().context("the server is ending")?;
    if let Err(error) = offer(stream, &serving, control).and_then(|()| park(stream, &serving)) {
        *place = Some(serving);
        return Err(error);
    }
    let suspended_ns = monotonic_ns();
    let suspended = Suspended::of(serving);
    let told = tell(stream, &suspended, suspended_ns).and_then(|()| expect(stream, &Said::Ready));
    match told.and_then(|()| send(stream, &Go, &[])) {
        Ok(()) => {
            let next = rustix::net::sockopt::socket_peercred(stream).map(|peer| peer.pid.as_raw_nonzero().get());
            if let Some(next) = next.ok().and_then(|next| u32::try_from(next).ok()) {
                // Whoever does not listen has no need to know.
                let _ = sd_notify::notify(&[sd_notify::NotifyState::MainPid(next)]);
                eprintln!("minerva-blk: process {next} serves the disks now");
            }
            std::process::exit(0)
        }
        Err(error) => {
            *place = Some(suspended.go_on().unwrap_or_else(|failed| end(&failed, &error)));
            Err(error)
        }
    }
}

/// Ends a process that could not go on: the service manager starts another, which repeats what was under way.
fn end(failed: &anyhow::Error, error: &anyhow::Error) -> ! {
    eprintln!("minerva-blk: nothing was handed over ({error:#}), and this server cannot go on, so it ends: {failed:#}");
    std::process::abort()
}

/// Shows the next server all that is served, and waits until it is prepared. Nobody notices.
fn offer(stream: &UnixStream, serving: &Host, control: &UnixListener) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PREPARE_PATIENCE)).context("failed to set a time limit")?;
    let (offers, reserved) = (serving.offers(), serving.reserved());
    let hello = Hello {
        process: std::process::id(),
        disks: offers.len(),
        reserved: reserved.iter().map(|socket| socket.path().to_owned()).collect(),
    };
    let sockets = reserved.into_iter().map(AsFd::as_fd).chain([control.as_fd()]);
    send(stream, &hello, &sockets.collect::<Vec<_>>())?;
    for (offer, image, listener) in &offers {
        send(stream, offer, &[image.as_fd(), *listener])?;
    }
    expect(stream, &Said::Prepared)?;
    stream.set_read_timeout(Some(READY_PATIENCE)).context("failed to set a time limit")
}

/// From now on no guest is changed. One that stops its disk may take long over it, and the others are not to wait for that.
fn park(stream: &UnixStream, serving: &Host) -> anyhow::Result<()> {
    serving.park(PARK_PATIENCE).inspect_err(|error| {
        // It hears nothing else.
        let _ = send(stream, &Left { suspended_ns: 0, refused: Some(error.to_string()) }, &[]);
    })?;
    Ok(())
}

fn tell(stream: &UnixStream, suspended: &Suspended, suspended_ns: u64) -> anyhow::Result<()> {
    send(stream, &Left { suspended_ns, refused: None }, &[])?;
    for disk in suspended.disks() {
        match disk.front_end() {
            Some((state, descriptors)) => send(stream, &Some(state), &descriptors)?,
            None => send(stream, &None::<FrontEndState>, &[])?,
        }
    }
    Ok(())
}

/// Asks the server that listens at `control` for all that it serves, as far as nobody notices. `prepare` makes of that, and of the sockets that
/// are reserved, what this process serves.
pub(crate) fn take(
    control: &Path,
    prepare: impl FnOnce(Offers, Vec<ReservedSocket>) -> anyhow::Result<Suspended>,
) -> anyhow::Result<Taken> {
    let nobody = || format!("no server runs at {}: start `minerva-blk` without `--take-over`", control.display());
    let connection = UnixStream::connect(control).with_context(nobody)?;
    std::io::Write::write_all(&mut &connection, format!("{GREETING}\n").as_bytes()).context(
        "failed to send the \
                                        greeting",
    )?;
    connection.set_read_timeout(Some(PREPARE_PATIENCE)).context("failed to set a time limit")?;
    let (Hello { process, disks, reserved }, mut descriptors) =
        receive(&connection).context("the server does not hand over: it refuses, or is older than this")?;
    let control = descriptors.pop().context("the server sent no control socket")?;
    let reserved = descriptors.into_iter().zip(reserved).map(|(socket, path)| ReservedSocket::of(socket, path));
    let prepared = offered(&connection, disks).and_then(|offers| prepare(offers, reserved.collect()));
    let suspended = prepared.inspect_err(|error| {
        // It goes on either way.
        let _ = send(&connection, &Said::Refused(format!("{error:#}")), &[]);
    })?;
    Ok(Taken { suspended, control: UnixListener::from(control), connection, old: process })
}

fn offered(connection: &UnixStream, disks: usize) -> anyhow::Result<Offers> {
    let mut offers = Vec::with_capacity(disks);
    for _ in 0..disks {
        let (offer, descriptors): (Offer, _) = receive(connection)?;
        let [image, listener] =
            <[OwnedFd; 2]>::try_from(descriptors).ok().context("the server sent a disk without image or socket")?;
        let image = offer.image(image)?;
        offers.push((offer, Arc::new(image), UnixListener::from(listener)));
    }
    Ok(offers)
}

impl Taken {
    /// Lets the old server stop, and goes on.
    pub(crate) fn go_on(mut self) -> anyhow::Result<(Host, UnixListener, String)> {
        send(&self.connection, &Said::Prepared, &[])?;
        let (Left { suspended_ns, refused }, _) = receive(&self.connection)?;
        if let Some(why) = refused {
            bail!("the other server goes on: {why}");
        }
        for disk in self.suspended.disks_mut() {
            let (state, descriptors): (Option<FrontEndState>, _) = receive(&self.connection)?;
            if let Some(state) = state {
                ensure!(disk.set_front_end(state, descriptors), "descriptors of `{}` are missing", disk.name);
            }
        }
        let new = self.suspended.new_count();
        let resumption = self.suspended.resume().inspect_err(|error| {
            let _ = send(&self.connection, &Said::Refused(format!("{error:#}")), &[]);
        })?;
        send(&self.connection, &Said::Ready, &[])?;
        // Without it the old server may be serving again.
        let (Go, _) = receive(&self.connection)?;
        let host = resumption.go_on()?;
        let pause = Duration::from_nanos(monotonic_ns().saturating_sub(suspended_ns));
        let new = match new {
            0 => String::new(),
            count => format!(", and serves {count} more"),
        };
        let told = format!("took over from process {}{new}; no disk was served for {} ms", self.old, pause.as_millis());
        Ok((host, self.control, told))
    }
}
