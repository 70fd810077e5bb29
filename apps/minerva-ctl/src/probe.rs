//! `minerva-ctl doctor --probe`: proves on the disk itself that a weight bites. Two tenants of the probe's own read from the disk
//! with weights 800 and 100, and what each got is compared. Nothing is written to the disk; the tenants and their weights are
//! gone afterwards, also after SIGINT, SIGTERM and SIGHUP. If the probe is killed its readers end by themselves, and the next probe,
//! restore or start of the daemon removes the rest.

use crate::output::{self, Verdict};
use crate::place;
use anyhow::{Context, bail};
use minerva_actuate::verdict;
use minerva_config::Config;
use minerva_linux_actuate::{InstanceLock, NamedGroups, Writer, WriterSettings, probe_place, sweep_probes};
use minerva_linux_observe::Roots;
use minerva_model::{BackEnd, CgroupRef, Device, DeviceId, KnobFile, KnobTarget, KnobWrite, Outcome, WriteId};
use rustix::fs::OFlags;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Weights of the two readers: 8:1, as in the figure `weights-bite`.
const WEIGHTS: [u32; 2] = [800, 100];
/// Of the asked ratio this part must be reached. A busy disk and a short probe cost some; a knob that does nothing gives 1:1.
const PART_NEEDED: f64 = 0.6;
/// How often it is looked whether the readers have ended or a signal has come.
const BEAT: Duration = Duration::from_millis(20);
/// What one read asks for.
const READ_BYTES: usize = 64 * 1024;
/// Direct reads want buffers at addresses of whole blocks, which are never longer than this.
const ALIGNMENT: usize = 4096;

/// What came of it.
#[derive(Debug, Serialize)]
struct Probed {
    kind: &'static str,
    disk: String,
    back_end: &'static str,
    asked_ratio: f64,
    got_ratio: f64,
    bytes: [u64; 2],
    seconds: f64,
    bites: bool,
}

/// Proves it on one disk. That it does not bite is a finding.
pub(crate) fn run(
    config: &Config,
    roots: &Roots,
    device: &Device,
    duration: Duration,
    json: bool,
) -> anyhow::Result<Verdict> {
    let back_end = verdict(&device.facts, config.engine.devices.get(&device.name)).back_end;
    let file = match (back_end, device.facts.cgroup) {
        (BackEnd::Bfq, _) => KnobFile::BfqWeight,
        (BackEnd::BfqV1, _) => KnobFile::BfqV1Weight,
        (BackEnd::IoCost, _) => KnobFile::IoWeight,
        (BackEnd::Max | BackEnd::ThrottleV1, _) => bail!("{} is steered by caps, which need no proof", device.name),
        (BackEnd::Observe, _) => {
            bail!("there is nothing to prove on {}: no weight bites there, as said above", device.name)
        }
    };
    let region = device.facts.size_bytes / 2 / READ_BYTES as u64 * READ_BYTES as u64;
    if region == 0 {
        bail!("{} is too small to read from", device.name);
    }
    let signal = signal_that_came()?;
    eprintln!("two readers at 8:1 on {} for {} s", device.name, duration.as_secs_f64());
    let raced = Scratch::new(config, roots).race(device, file, region, duration, &signal);
    if let number @ 1.. = signal.load(Ordering::Relaxed) {
        eprintln!("minerva-ctl: interrupted; the probe's tenants and weights are removed");
        return Ok(Verdict::Signalled(i32::try_from(number).unwrap_or_default()));
    }
    let bytes = raced?;
    let got_ratio = bytes[0] as f64 / (bytes[1].max(1)) as f64;
    let asked_ratio = f64::from(WEIGHTS[0]) / f64::from(WEIGHTS[1]);
    let bites = got_ratio >= asked_ratio * PART_NEEDED;
    let seconds = duration.as_secs_f64();
    let (disk, back_end) = (device.name.clone(), back_end.as_str());
    let probed = Probed { kind: "probe", disk, back_end, asked_ratio, got_ratio, bytes, seconds, bites };
    if json {
        output::json(&probed)?;
    } else {
        output::text(&page(&probed))?;
    }
    Ok(Verdict::found_if(!bites))
}

/// The number of the signal that came; 0 until one has.
fn signal_that_came() -> anyhow::Result<Arc<AtomicUsize>> {
    let came = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let number = usize::try_from(signal).context("signals have numbers")?;
        signal_hook::flag::register_usize(signal, Arc::clone(&came), number).context("failed to catch signals")?;
    }
    Ok(came)
}

fn page(probed: &Probed) -> String {
    let rate = |bytes: u64| crate::figures::rate((bytes as f64 / probed.seconds) as u64);
    let answer = if probed.bites { "proven: the weight bites" } else { "the weight does not bite as it should" };
    format!(
        "disk {}: {answer}\n    asked {:.1}:1, got {:.1}:1 ({} and {})\n",
        probed.disk,
        probed.asked_ratio,
        probed.got_ratio,
        rate(probed.bytes[0]),
        rate(probed.bytes[1])
    )
}

/// The probe's own tenants; dropping it removes them, with all they hold.
struct Scratch {
    groups: NamedGroups,
    settings: WriterSettings,
    readers: Vec<Child>,
}

impl Scratch {
    fn new(config: &Config, roots: &Roots) -> Self {
        let daemons = place::writer_settings(config, roots);
        sweep_probes(&daemons);
        let (settings, groups) = probe_place(&daemons);
        Self { groups, settings, readers: Vec::new() }
    }

    /// Lets the two race, and tells what each read; ends early when `signal` is no longer 0.
    fn race(
        mut self,
        device: &Device,
        file: KnobFile,
        region: u64,
        duration: Duration,
        signal: &AtomicUsize,
    ) -> anyhow::Result<[u64; 2]> {
        let lock = InstanceLock::acquire(&self.settings.runtime_dir).context("failed to prepare; be root")?;
        let (mut writer, _) = Writer::open(&self.settings, &lock).context("failed to prepare")?;
        for (index, weight) in WEIGHTS.into_iter().enumerate() {
            let start = region * index as u64;
            let reader = reader(device, start, region, duration)?;
            let pid = reader.id();
            self.readers.push(reader);
            let path = self.groups.place(&format!("reader-{weight}"), pid, None).context("failed to make a tenant")?;
            weigh(&mut writer, file, device.id, path, weight)?;
        }
        for reader in &mut self.readers {
            let mut start = reader.stdin.take().context("a reader has no standard input")?;
            start.write_all(b"go\n").context("a reader ended early")?;
        }
        while self.readers.iter_mut().any(|reader| matches!(reader.try_wait(), Ok(None))) {
            if signal.load(Ordering::Relaxed) != 0 {
                bail!("interrupted");
            }
            std::thread::sleep(BEAT);
        }
        let mut bytes = [0; 2];
        for (slot, reader) in bytes.iter_mut().zip(&mut self.readers) {
            let mut text = String::new();
            let out = reader.stdout.as_mut().context("a reader has no standard output")?;
            out.read_to_string(&mut text).context("failed to hear from a reader")?;
            *slot = text.trim().parse().with_context(|| format!("failed to read from {}", device.name))?;
        }
        writer.close_clean().context("failed to put the weights back")?;
        Ok(bytes)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for reader in &mut self.readers {
            // It has ended, or does now.
            let _ = reader.kill();
            let _ = reader.wait();
        }
        // A zombie's group counts as empty only some moments after the wait.
        let patience = Instant::now() + Duration::from_secs(2);
        while !self.groups.dissolve() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = std::fs::remove_dir_all(&self.settings.runtime_dir);
    }
}

fn weigh(writer: &mut Writer, file: KnobFile, device: DeviceId, path: String, weight: u32) -> anyhow::Result<()> {
    let prefix = if file == KnobFile::BfqV1Weight { "" } else { "default " };
    let write = KnobWrite {
        id: WriteId(0),
        // The group was made a moment ago by this process: whichever stands there is the one.
        target: KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path, inode: 0 } },
        file,
        device,
        text: format!("{prefix}{weight}"),
        undo: format!("{prefix}100"),
    };
    match writer.write(&write) {
        Outcome::Text(_) => Ok(()),
        Outcome::Vanished => bail!("the probe's tenant vanished"),
        Outcome::Refused { detail, .. } => bail!("the weight was refused: {detail}"),
    }
}

/// A process that waits for a line and then reads.
fn reader(device: &Device, start: u64, length: u64, duration: Duration) -> anyhow::Result<Child> {
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
