//! `minerva-ctl doctor --probe`: proves on the disk itself that a weight or a cap bites. Two tenants of the probe's own read from the
//! disk. Where weights bite they have 800 and 100, and what each got is compared; where caps do, both read freely at first, then one
//! of them under a cap of a quarter of what it got, and its two rates are compared. Nothing is written to the disk; the tenants and their weights are
//! gone afterwards, also after SIGINT, SIGTERM and SIGHUP. If the probe is killed its readers end by themselves, and the next probe,
//! restore or start of the daemon removes the rest.

use crate::output::{self, Verdict};
use crate::place;
use crate::probe_reader::{READ_BYTES, reader};
use anyhow::{Context, bail};
use minerva_actuate::verdict;
use minerva_config::Config;
use minerva_linux_actuate::{InstanceLock, NamedGroups, Writer, WriterSettings, probe_place, sweep_probes};
use minerva_linux_observe::Roots;
use minerva_model::{BackEnd, CgroupRef, Device, DeviceId, KnobFile, KnobTarget, KnobWrite, Outcome, WriteId};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{Read, Write};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Weights of the two readers: 8:1, as in the figure `weights-bite`.
const WEIGHTS: [u32; 2] = [800, 100];
/// Of the asked ratio this part must be reached. A busy disk and a short probe cost some; a knob that does nothing gives 1:1.
const PART_NEEDED: f64 = 0.6;
/// One reader is capped at what it got without a cap through this.
const CAP_DIVISOR: u64 = 4;
/// The kernel deals a cap out in pieces: with a smaller one a short probe would see none.
const CAP_BYTES_PER_SECOND_MIN: u64 = 256 * 1024;
/// How often it is looked whether the readers have ended or a signal has come.
const BEAT: Duration = Duration::from_millis(20);

/// What came of it.
#[derive(Debug, Serialize)]
struct Probed {
    kind: &'static str,
    /// `weight`: the bytes are those of two readers. `cap`: of one, without and with the cap.
    knob: &'static str,
    disk: String,
    back_end: &'static str,
    asked_ratio: f64,
    got_ratio: f64,
    bytes: [u64; 2],
    seconds: f64,
    bites: bool,
}

/// What is to be proved.
#[derive(Clone, Copy)]
enum Knob {
    Weight(KnobFile),
    Cap(KnobFile),
}

impl Knob {
    const fn name(self) -> &'static str {
        match self {
            Self::Weight(_) => "weight",
            Self::Cap(_) => "cap",
        }
    }
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
    let knob = match back_end {
        BackEnd::Bfq => Knob::Weight(KnobFile::BfqWeight),
        BackEnd::BfqV1 => Knob::Weight(KnobFile::BfqV1Weight),
        BackEnd::IoCost => Knob::Weight(KnobFile::IoWeight),
        BackEnd::Max => Knob::Cap(KnobFile::IoMax),
        BackEnd::ThrottleV1 => Knob::Cap(KnobFile::ThrottleReadBps),
        BackEnd::Observe => bail!("there is nothing to prove on {}: no weight bites there, as said above", device.name),
    };
    let region = device.facts.size_bytes / 2 / READ_BYTES as u64 * READ_BYTES as u64;
    if region == 0 {
        bail!("{} is too small to read from", device.name);
    }
    let signal = signal_that_came()?;
    let raced =
        prove(knob, device, duration, &|set| Scratch::new(config, roots).race(device, region, duration, &signal, set));
    if let number @ 1.. = signal.load(Ordering::Relaxed) {
        eprintln!("minerva-ctl: interrupted; the probe's tenants and weights are removed");
        return Ok(Verdict::Signalled(i32::try_from(number).unwrap_or_default()));
    }
    let (asked_ratio, bytes) = raced?;
    let got_ratio = bytes[0] as f64 / (bytes[1].max(1)) as f64;
    // A disk slower than the least cap would pass whatever the knob does.
    anyhow::ensure!(asked_ratio > 1.0 / PART_NEEDED, "{} is too slow or too busy for a proof; try again", device.name);
    let bites = got_ratio >= asked_ratio * PART_NEEDED;
    let seconds = duration.as_secs_f64();
    let (disk, back_end) = (device.name.clone(), back_end.as_str());
    let knob = knob.name();
    let probed = Probed { kind: "probe", knob, disk, back_end, asked_ratio, got_ratio, bytes, seconds, bites };
    if json {
        output::json(&probed)?;
    } else {
        output::text(&page(&probed))?;
    }
    Ok(Verdict::found_if(!bites))
}

/// Writes the knob of a reader's group, given by its number and path.
type Set<'a> = &'a dyn Fn(&mut Writer, usize, String) -> anyhow::Result<()>;

/// Lets the readers race as the knob asks; the ratio that it is to bring about, and the bytes whose ratio it did.
fn prove(
    knob: Knob,
    device: &Device,
    duration: Duration,
    run: &dyn Fn(Set<'_>) -> anyhow::Result<[u64; 2]>,
) -> anyhow::Result<(f64, [u64; 2])> {
    let race = |set: &dyn Fn(usize) -> Option<[String; 2]>, file| {
        run(&|writer, index, path| match set(index) {
            Some([text, undo]) => write(writer, file, device.id, path, text, undo),
            None => Ok(()),
        })
    };
    match knob {
        Knob::Weight(file) => {
            eprintln!("two readers at 8:1 on {} for {} s", device.name, duration.as_secs_f64());
            let asked_ratio = f64::from(WEIGHTS[0]) / f64::from(WEIGHTS[1]);
            race(&|index| Some(weight(file, WEIGHTS[index])), file).map(|bytes| (asked_ratio, bytes))
        }
        Knob::Cap(file) => {
            eprintln!("two readers on {}, for {} s freely and then with a cap", device.name, duration.as_secs_f64());
            race(&|_| None, file).and_then(|free| {
                let rate = (free[1] as f64 / duration.as_secs_f64()) as u64;
                let cap = (rate / CAP_DIVISOR).max(CAP_BYTES_PER_SECOND_MIN);
                let capped = race(&|index| (index == 1).then(|| self::cap(file, device.id, cap)), file)?;
                Ok((rate as f64 / cap as f64, [free[1], capped[1]]))
            })
        }
    }
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
    let knob = probed.knob;
    let answer = if probed.bites {
        format!("proven: the {knob} bites")
    } else {
        format!("the {knob} does not bite as it should")
    };
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

    /// Lets the two race, and tells what each read; ends early when `signal` is no longer 0. `set` writes the knob of a reader's
    /// group.
    fn race(
        mut self,
        device: &Device,
        region: u64,
        duration: Duration,
        signal: &AtomicUsize,
        set: Set<'_>,
    ) -> anyhow::Result<[u64; 2]> {
        let lock = InstanceLock::acquire(&self.settings.runtime_dir).context("failed to prepare; be root")?;
        let (mut writer, _) = Writer::open(&self.settings, &lock).context("failed to prepare")?;
        for (index, weight) in WEIGHTS.into_iter().enumerate() {
            let start = region * index as u64;
            let reader = reader(device, start, region, duration)?;
            let pid = reader.id();
            self.readers.push(reader);
            let path = self.groups.place(&format!("reader-{weight}"), pid, None).context("failed to make a tenant")?;
            set(&mut writer, index, path)?;
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
        writer.close_clean().context("failed to put the knobs back")?;
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

/// The text that sets a weight in a group of the probe's own, and the one that undoes it.
fn weight(file: KnobFile, weight: u32) -> [String; 2] {
    let prefix = if file == KnobFile::BfqV1Weight { "" } else { "default " };
    [format!("{prefix}{weight}"), format!("{prefix}100")]
}

/// The same for a cap on reads.
fn cap(file: KnobFile, device: DeviceId, bytes_per_second: u64) -> [String; 2] {
    match file {
        KnobFile::IoMax => [format!("{device} rbps={bytes_per_second}"), format!("{device} rbps=max")],
        _ => [format!("{device} {bytes_per_second}"), format!("{device} 0")],
    }
}

fn write(
    writer: &mut Writer,
    file: KnobFile,
    device: DeviceId,
    path: String,
    text: String,
    undo: String,
) -> anyhow::Result<()> {
    let write = KnobWrite {
        id: WriteId(0),
        // The group was made a moment ago by this process: whichever stands there is the one.
        target: KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path, inode: 0 } },
        file,
        device,
        text,
        undo,
    };
    match writer.write(&write) {
        Outcome::Text(_) => Ok(()),
        Outcome::Vanished => bail!("the probe's tenant vanished"),
        Outcome::Refused { detail, .. } => bail!("the knob was refused: {detail}"),
    }
}
