//! One of the two readers of `minerva-ctl doctor --probe`: a process of its own, so that it can be in a group of its own.

use crate::output::{self, Verdict};
use anyhow::Context;
use minerva_model::Device;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What one read asks for.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// Direct reads want buffers at addresses of whole blocks, which are never longer than this.
const ALIGNMENT: usize = 4096;

/// A process that waits for a line and then reads.
pub(crate) fn reader(device: &Device, start: u64, length: u64, duration: Duration) -> anyhow::Result<Child> {
    // The kernel writes a slash in a name as an exclamation mark.
    let node = PathBuf::from("/dev").join(device.name.replace('!', "/"));
    let numbers = [start, length, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)].map(|n| n.to_string());
    Command::new("/proc/self/exe")
        .arg("probe-reader")
        .arg(node)
        .args(numbers)
        // What a terminal sends is for the probe, which then ends them.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start a reader")
}

/// What such a process does: reads round and round in its part of the disk, past the page cache, and prints how much it got. Ends
/// at once when whoever started it is gone.
pub(crate) fn read(node: &Path, start: u64, length: u64, duration: Duration) -> anyhow::Result<Verdict> {
    // Of one that is gone before this the standard input ends, below.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .context("failed to ask for an end with the probe")?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(node)
        .with_context(|| format!("failed to open {}", node.display()))?;
    let mut memory = vec![0; READ_BYTES + ALIGNMENT];
    let skip = memory.as_ptr().align_offset(ALIGNMENT);
    let buffer = memory.get_mut(skip..skip + READ_BYTES).context("no aligned memory")?;
    let mut word = [0; 3];
    if std::io::stdin().read_exact(&mut word).is_err() {
        return Ok(Verdict::Well);
    }
    let (begin, mut offset, mut bytes) = (Instant::now(), 0, 0_u64);
    while begin.elapsed() < duration {
        let count =
            file.read_at(buffer, start + offset).with_context(|| format!("failed to read {}", node.display()))?;
        bytes += count as u64;
        offset += count as u64;
        if count == 0 || offset + READ_BYTES as u64 > length {
            offset = 0;
        }
    }
    output::text(&format!("{bytes}\n"))?;
    Ok(Verdict::Well)
}
