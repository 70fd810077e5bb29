//! Which images' storage answers. A network or FUSE file system whose server has gone holds whoever opens a file in it for ever, and one such
//! image must not keep all other disks from being served. So another process looks at all images first, each in a thread of its own, and is
//! ended after some seconds. A thread of this process would not do: becoming another user waits for every thread (`setuid` of the C library).

use crate::arguments::Action;
use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long all of them are waited for together. Disks at rest need some seconds to begin turning.
const PATIENCE: Duration = Duration::from_secs(10);

/// Those of these paths whose storage does not answer. Where nobody can look, all are taken to answer.
pub(crate) fn silent<'a>(paths: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let paths: Vec<&Path> = paths.collect::<BTreeSet<_>>().into_iter().collect();
    if paths.is_empty() {
        return BTreeSet::new();
    }
    silent_of(&paths).unwrap_or_else(|error| {
        eprintln!("minerva-blk: {error:#}; the server starts once the storage of all images has answered");
        BTreeSet::new()
    })
}

fn silent_of(paths: &[&Path]) -> anyhow::Result<BTreeSet<PathBuf>> {
    let own = std::env::current_exe().context("failed to find this program")?;
    let mut command = Command::new(own);
    command.arg(Action::LOOK_AT_IMAGES).arg("--").args(paths).stdin(Stdio::null()).stdout(Stdio::piped());
    // Held up in the kernel it may outlive this process, and whoever reads what this says would wait for it.
    command.stderr(Stdio::null());
    let mut child = command.spawn().context("failed to start what looks at images")?;
    let Some(output) = child.stdout.take() else { bail!("what looks at images has no output") };
    let said = said_until(Instant::now() + PATIENCE, output, paths.len());
    // One that waits in the kernel for a dead disk ends when that answers, and is waited for by nobody.
    let _ = child.kill();
    let answered = said.context("failed to hear which images' storage answers")?;
    let silent: BTreeSet<PathBuf> =
        (0..paths.len()).filter(|number| !answered.contains(number)).map(|number| paths[number].to_owned()).collect();
    if silent.is_empty() {
        let _ = child.wait();
    }
    Ok(silent)
}

/// The numbers that come line by line, until there are `count` of them or it is too late. An error where the other end goes before that.
fn said_until(until: Instant, mut output: ChildStdout, count: usize) -> anyhow::Result<BTreeSet<usize>> {
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let numbers: BTreeSet<usize> =
            lines.filter_map(|line| std::str::from_utf8(line).ok()?.trim().parse().ok()).collect();
        let patience = until.saturating_duration_since(Instant::now());
        if numbers.len() >= count || patience.is_zero() {
            return Ok(numbers);
        }
        let patience = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
        if poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&patience))? > 0 {
            match output.read(&mut piece)? {
                0 => bail!("it ended before all had answered"),
                length => text.extend_from_slice(&piece[..length]),
            }
        }
    }
}

/// The other process: prints the number of each path once its storage has answered, whatever the answer was.
pub(crate) fn look_at(paths: &[PathBuf]) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        for (number, path) in paths.iter().enumerate() {
            std::thread::Builder::new().spawn_scoped(scope, move || {
                look(path);
                // Who started this may have gone.
                let _ = writeln!(std::io::stdout(), "{number}");
            })?;
        }
        Ok::<(), std::io::Error>(())
    })
    .context("failed to start a thread for each image")
}

/// What opening an image asks of its storage. An error is an answer too, and told when it is opened for good.
fn look(path: &Path) {
    let Ok(kind) = std::fs::metadata(path).map(|metadata| metadata.file_type()) else { return };
    // To open anything else may begin something, as with a tape; it is refused for what it is.
    if !kind.is_file() && !kind.is_block_device() {
        return;
    }
    let Ok(mut file) = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) else { return };
    let _ = file.metadata();
    let _ = file.read(&mut [0; 512]);
}
