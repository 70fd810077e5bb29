//! Where the readers of `minerva-ctl doctor --probe` and `--compare` are: groups, knobs and a runtime directory of the probe's own, beside
//! the daemon's. They are gone afterwards, and every knob is as it was, also after SIGINT, SIGTERM and SIGHUP. If the probe is
//! killed its readers end by themselves, and the next probe, restore or start of the daemon puts back and removes the rest.

use crate::output;
use crate::place;
use crate::probe_reader::{ReaderJob, Reading, reader};
use anyhow::{Context, bail, ensure};
use minerva_config::Config;
use minerva_linux_actuate::{InstanceLock, NamedGroups, Writer, WriterSettings, probe_settings, sweep_probes};
use minerva_linux_observe::Roots;
use minerva_model::{CgroupRef, DeviceId, KnobFile, KnobTarget, KnobWrite, Outcome, WriteId};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{Read, Write};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often it is looked whether the readers have ended or a signal has come.
const BEAT: Duration = Duration::from_millis(20);
/// A zombie's group counts as empty only some moments after the wait.
const DISSOLVE_PATIENCE: Duration = Duration::from_secs(2);
/// The kernel tells nobody when a group is empty on v1, so it is looked at this often.
const DISSOLVE_BEAT: Duration = Duration::from_millis(5);

/// Writes the knobs of a reader's group, given by the reader's number and the group's path.
pub(crate) type Set<'a> = &'a dyn Fn(&mut Writer, usize, String) -> anyhow::Result<()>;

/// Everything that a probe makes. Dropping it removes it.
pub(crate) struct ProbeGroups {
    groups: NamedGroups,
    settings: WriterSettings,
    _alone: InstanceLock,
    /// Taken when it is closed.
    writer: Option<Writer>,
    readers: Vec<Child>,
    signal: Arc<AtomicUsize>,
}

impl ProbeGroups {
    /// Removes what killed probes left, makes the directory and catches signals.
    pub(crate) fn open(config: &Config, roots: &Roots) -> anyhow::Result<Self> {
        let daemons = place::writer_settings(config, roots);
        for left in sweep_probes(&daemons).left {
            let path = output::path(&left.path);
            output::note(&format!("of the killed probe of {path} not all could be put back: {}", left.error));
        }
        let (settings, groups) = probe_settings(&daemons).context("failed to prepare; be root")?;
        let signal = signal_that_came()?;
        let alone = InstanceLock::acquire(&settings.runtime_dir).context("failed to prepare; be root")?;
        let (writer, _) = Writer::open(&settings, &alone).context("failed to prepare")?;
        Ok(Self { groups, settings, _alone: alone, writer: Some(writer), readers: Vec::new(), signal })
    }

    /// The number of the signal that came, after which nothing more is begun.
    pub(crate) fn signal(&self) -> Option<i32> {
        let number = self.signal.load(Ordering::Relaxed);
        i32::try_from(number).ok().filter(|number| *number != 0)
    }

    /// Writes a knob.
    pub(crate) fn write(&mut self, write: &KnobWrite) -> anyhow::Result<()> {
        perform(self.writer.as_mut().context("the probe is at its end")?, write)
    }

    /// Lets the readers race, each in a group of its own, and tells what each got.
    pub(crate) fn race(
        &mut self,
        device: &minerva_model::Device,
        jobs: &[(&str, ReaderJob)],
        set: Set<'_>,
    ) -> anyhow::Result<Vec<Reading>> {
        let writer = self.writer.as_mut().context("the probe is at its end")?;
        for (index, (name, job)) in jobs.iter().enumerate() {
            let reader = reader(device, job)?;
            let pid = reader.id();
            self.readers.push(reader);
            set(writer, index, self.groups.place(name, pid, None).context("failed to make a tenant")?)?;
        }
        for reader in &mut self.readers {
            let mut start = reader.stdin.take().context("a reader has no standard input")?;
            start.write_all(b"go\n").context("a reader ended early")?;
        }
        while self.readers.iter_mut().any(|reader| matches!(reader.try_wait(), Ok(None))) {
            ensure!(self.signal().is_none(), "interrupted");
            std::thread::sleep(BEAT);
        }
        let mut readings = Vec::new();
        for reader in &mut self.readers {
            let mut text = String::new();
            let out = reader.stdout.as_mut().context("a reader has no standard output")?;
            out.read_to_string(&mut text).context("failed to hear from a reader")?;
            readings.push(
                serde_json::from_str(text.trim()).with_context(|| format!("failed to read from {}", device.name))?,
            );
        }
        self.clear();
        Ok(readings)
    }

    /// Puts every knob back and removes the rest.
    pub(crate) fn close(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn clear(&mut self) {
        for mut reader in self.readers.drain(..) {
            // It has ended, or does now.
            let _ = reader.kill();
            let _ = reader.wait();
        }
        let patience = Instant::now() + DISSOLVE_PATIENCE;
        while !self.groups.dissolve() && Instant::now() < patience {
            std::thread::sleep(DISSOLVE_BEAT);
        }
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.clear();
        let report = writer.close_clean().context("failed to put the knobs back")?;
        // What could not be put back stays journalled there, for the next restore.
        ensure!(report.is_complete(), "some knobs could not be put back; minerva-ctl restore tries again:\n{report}");
        std::fs::remove_dir_all(&self.settings.runtime_dir).context("failed to remove the probe's runtime directory")
    }
}

impl Drop for ProbeGroups {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            output::note(&format!("{error:#}"));
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

/// Writes a knob of a group that was made a moment ago by this process: whichever stands there is the one.
pub(crate) fn write_group(
    writer: &mut Writer,
    file: KnobFile,
    device: DeviceId,
    path: String,
    text: String,
    undo: String,
) -> anyhow::Result<()> {
    let target = KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path, inode: 0 } };
    perform(writer, &KnobWrite { id: WriteId(0), target, file, device, text, undo })
}

/// The text that sets a weight in a group of the probe's own, and the one that undoes it.
pub(crate) fn weight(file: KnobFile, weight: u32) -> [String; 2] {
    let prefix = if file == KnobFile::BfqV1Weight { "" } else { "default " };
    [format!("{prefix}{weight}"), format!("{prefix}100")]
}

/// The text that caps reads in a group of the probe's own, and the one that undoes it.
pub(crate) fn cap(file: KnobFile, device: DeviceId, bytes_per_second: u64) -> [String; 2] {
    match file {
        KnobFile::IoMax => [format!("{device} rbps={bytes_per_second}"), format!("{device} rbps=max")],
        _ => [format!("{device} {bytes_per_second}"), format!("{device} 0")],
    }
}

fn perform(writer: &mut Writer, write: &KnobWrite) -> anyhow::Result<()> {
    match writer.write(write) {
        Outcome::Text(_) => Ok(()),
        Outcome::Vanished => bail!("the group or disk vanished"),
        Outcome::Refused { detail, .. } => bail!("the knob was refused: {detail}"),
        Outcome::Busy => bail!("everything is being put back at this moment"),
    }
}
