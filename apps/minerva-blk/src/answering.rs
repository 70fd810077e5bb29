//! Which images' storage answers. A network or FUSE file system whose server has gone holds whoever opens a file in it for ever, and one such
//! image must not keep all other disks from being served. So another process looks at all images first, each in a thread of its own, and is
//! ended after some seconds. A thread of this process would not do: becoming another user waits for every thread (`setuid` of the C library).

use crate::arguments::Action;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long all of them are waited for together. Disks at rest need some seconds to begin turning.
const PATIENCE: Duration = Duration::from_secs(10);

/// Those of these paths whose storage does not answer. Where nobody can look, all are taken to answer.
pub(crate) fn silent<'a>(paths: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let paths: BTreeSet<&Path> = paths.collect();
    silent_of(&paths).unwrap_or_else(|error| {
        eprintln!("minerva-blk: {error:#}; the server starts once the storage of all images has answered");
        BTreeSet::new()
    })
}

fn silent_of(paths: &BTreeSet<&Path>) -> anyhow::Result<BTreeSet<PathBuf>> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let own = std::env::current_exe().context("failed to find this program")?;
    let mut command = Command::new(own);
    command.arg(Action::LOOK_AT_IMAGES).arg("--").args(paths).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("failed to start what looks at images")?;
    let Some(output) = child.stdout.take() else { bail!("what looks at images has no output") };
    let (tell, told) = mpsc::channel();
    std::thread::Builder::new()
        .name("images".to_owned())
        .spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // Who does not wait any more need not hear it.
            lines.filter_map(|line| line.parse::<usize>().ok()).all(|number| tell.send(number).is_ok());
        })
        .context("failed to start a thread")?;
    let until = Instant::now() + PATIENCE;
    let mut silent: Vec<Option<&Path>> = paths.iter().copied().map(Some).collect();
    while silent.iter().any(Option::is_some) {
        let Ok(number) = told.recv_timeout(until.saturating_duration_since(Instant::now())) else { break };
        if let Some(path) = silent.get_mut(number) {
            *path = None;
        }
    }
    let silent: BTreeSet<PathBuf> = silent.into_iter().flatten().map(Path::to_owned).collect();
    // One that waits in the kernel for a dead disk ends when that answers, and is waited for by nobody.
    let _ = child.kill();
    if silent.is_empty() {
        let _ = child.wait();
    }
    Ok(silent)
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
