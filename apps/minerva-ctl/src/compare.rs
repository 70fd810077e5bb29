//! `minerva-ctl doctor --compare`: what each elevator, and Minerva's weights and caps where they bite, would give on this very disk. Two
//! heavy readers go through it while a light one reads at random, once under each arm, in rounds whose order is drawn.
//!
//! The disk is only read. Other elevators, and BFQ with other settings, are tried only if asked for: that changes what everybody on the
//! disk gets for the time of the comparison. The elevator, its settings and the weights that other groups lose with it are journalled and
//! put back.

mod arms;
mod chance;
mod drop_in;
mod page;
mod written;

use self::arms::{Arm, BfqSettings, Treatment, arms};
use self::chance::rounds_needed;
use self::drop_in::DropIn;
use self::page::{line, page};
use crate::output::{self, CommandStatus};
use crate::place::{self, OperatorFile};
use crate::probe_groups::{ProbeGroups, cap, weight, write_group};
use crate::probe_reader::{ReaderJob, Reading};
use anyhow::{Context, ensure};
use minerva_config::Config;
use minerva_linux_actuate::InstanceLock;
use minerva_linux_observe::Roots;
use minerva_model::{Device, DeviceSettings, KnobFile, KnobTarget, KnobWrite, WriteId};
use std::time::Duration;

/// What the heavy readers ask for, and how many of it at once: a copy or a backup with some read-ahead.
const HEAVY_READ_BYTES: usize = 256 * 1024;
const HEAVY_DEPTH: usize = 4;
/// What the light one asks for, one after the other: a database, or a program that starts.
const LIGHT_READ_BYTES: usize = 4096;
/// Caps hold the heavy readers to so much of what they got without.
const CAP_DIVISOR: f64 = 2.0;
/// The kernel deals a cap out in pieces: with a smaller one a short comparison would see none.
const CAP_BYTES_PER_SECOND_MIN: u64 = 256 * 1024;

/// Of two arms that are alike, one is better than the other in all of three rounds by chance once in twenty comparisons, in all of two
/// once in six.
const ROUNDS: u32 = 3;
/// A comparison takes no longer, unless it is told to or would show too little.
const TIME_MAX: Duration = Duration::from_secs(60);
/// What each reading takes beside its own time: processes and groups come and go, the last requests are served, and the elevator changes.
/// So much was seen on a disk of 7200 rpm.
const READING_OVERHEAD: Duration = Duration::from_millis(350);
/// How long a reading takes at most, as more shows little more, and at least: BFQ serves one reader for up to an eighth of a second.
const READING_MAX: Duration = Duration::from_secs(4);
const READING_MIN: Duration = Duration::from_secs(1);

/// What was asked.
pub(crate) struct Request<'a> {
    pub(crate) device: &'a Device,
    pub(crate) change_elevator: bool,
    /// Of each arm in each round; without it all together take a minute at most.
    pub(crate) duration: Option<Duration>,
    pub(crate) rounds: Option<u32>,
    /// The file beside which the lines for the best arm are written, if they are.
    pub(crate) writes_beside: Option<&'a OperatorFile>,
    pub(crate) json: bool,
}

/// What came of one arm in one round.
struct Outcome {
    heavy_bytes_per_second: f64,
    light: Reading,
}

/// Compares. Nothing of it is a finding: which arm is better is the operator's to say.
pub(crate) fn run(config: &Config, roots: &Roots, request: &Request<'_>) -> anyhow::Result<CommandStatus> {
    let device = request.device;
    let in_force = device.facts.elevator.clone();
    let in_force = in_force.with_context(|| format!("{} has no elevator to compare", device.name))?;
    if request.change_elevator {
        refuse_beside_a_daemon(config, roots)?;
    }
    let mut arms = arms(device, &in_force, request.change_elevator);
    let parts = device.facts.size_bytes / 3 / HEAVY_READ_BYTES as u64 * HEAVY_READ_BYTES as u64;
    ensure!(parts > 0, "{} is too small to read from", device.name);
    let rounds = rounds(request, arms.len().saturating_sub(1))?;
    let drop_in = request.writes_beside.map(|file| DropIn::of(&device.name, file.path())).transpose()?;
    let readings = readings(&arms, rounds);
    let duration = request.duration.unwrap_or_else(|| reading_time(readings));
    let scene = Scene { device, config, roots, part_bytes: parts, duration };
    output::say(&format!(
        "{}: {readings} readings of {:.1} s, {:.0} s in all; --seconds and --rounds make it longer",
        device.name,
        duration.as_secs_f64(),
        (duration.as_secs_f64() + READING_OVERHEAD.as_secs_f64()) * f64::from(readings)
    ));
    let mut groups = ProbeGroups::open(config, roots)?;
    let seed = fastrand::u64(..);
    let alone = play(&mut groups, &scene, &mut arms, in_force, (rounds, seed));
    if let Some(number) = groups.signal() {
        groups.close().context("interrupted")?;
        output::note("interrupted; all is as it was");
        return Ok(CommandStatus::Signalled(number));
    }
    let alone = alone?;
    groups.close()?;
    if request.json {
        arms.iter().try_for_each(|arm| output::json(&line(arm, &scene, seed)))?;
    } else {
        output::text(&page(&arms, &scene, &alone))?;
    }
    match request.writes_beside.zip(drop_in) {
        Some((file, drop_in)) => written::write(&arms, (device, &scene.said()), file, &drop_in)?.tell(request.json),
        None => Ok(CommandStatus::Well),
    }
}

/// How many rounds there are: as many as are asked for. What is written is to be no chance.
fn rounds(request: &Request<'_>, others: usize) -> anyhow::Result<u32> {
    let least = if request.writes_beside.is_some() { rounds_needed(others) } else { 1 };
    let rounds = request.rounds.unwrap_or(least.max(ROUNDS));
    ensure!(
        rounds >= least,
        "--write needs --rounds {least} here: in fewer one of {} that are alike is better in all of them too often",
        others + 1
    );
    Ok(rounds)
}

/// How often the readers read: each arm in each round, the light one alone, and where there are caps all without one.
fn readings(arms: &[Arm], rounds: u32) -> u32 {
    let arms_count = u32::try_from(arms.len()).unwrap_or(u32::MAX);
    arms_count.saturating_mul(rounds).saturating_add(1 + u32::from(has_caps(arms)))
}

/// How long each of so many readings may take for all to be done in time.
fn reading_time(readings: u32) -> Duration {
    (TIME_MAX / readings).saturating_sub(READING_OVERHEAD).clamp(READING_MIN, READING_MAX)
}

fn has_caps(arms: &[Arm]) -> bool {
    arms.iter().any(|arm| matches!(arm.treatment, Treatment::Caps(_)))
}

/// A daemon that steers would write weights that are gone with the elevator, and switch it back.
fn refuse_beside_a_daemon(config: &Config, roots: &Roots) -> anyhow::Result<()> {
    let settings = place::writer_settings(config, roots);
    let holder = InstanceLock::holder(&settings.runtime_dir).context("failed to look for a daemon; be root")?;
    ensure!(
        holder.is_none(),
        "minervad runs, and would steer a disk whose elevator changes under it: systemctl stop minervad, compare, and start it again"
    );
    Ok(())
}

/// The disk and its readers.
struct Scene<'a> {
    device: &'a Device,
    config: &'a Config,
    roots: &'a Roots,
    /// Each reader has so much of the disk for itself.
    part_bytes: u64,
    duration: Duration,
}

impl Scene<'_> {
    /// What the operator's file says of the disk.
    fn said(&self) -> DeviceSettings {
        self.config.engine.devices.get(&self.device.name).cloned().unwrap_or_default()
    }

    fn light(&self) -> (&'static str, ReaderJob) {
        let job = ReaderJob { read_bytes: LIGHT_READ_BYTES, depth: 1, random_seed: Some(1), ..self.heavy(2).1 };
        ("light", job)
    }

    fn heavy(&self, index: u64) -> (&'static str, ReaderJob) {
        let job = ReaderJob {
            start: self.part_bytes * index,
            length: self.part_bytes,
            read_bytes: HEAVY_READ_BYTES,
            depth: HEAVY_DEPTH,
            random_seed: None,
            duration_milliseconds: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
        };
        (if index == 0 { "heavy-1" } else { "heavy-2" }, job)
    }

    /// Lets the readers race; `free` is what both heavy ones together read without a cap, in bytes a second.
    fn race(&self, groups: &mut ProbeGroups, treatment: Treatment, free: f64) -> anyhow::Result<Outcome> {
        let fennel = &self.config.engine.fennel;
        let shares = [fennel.share_heavy, fennel.share_heavy, fennel.share_sparing];
        let jobs = [self.heavy(0), self.heavy(1), self.light()];
        let readings = groups.race(self.device, &jobs, &|writer, index, path| {
            let (file, [text, undo]) = match treatment {
                Treatment::Weights(file) => (file, weight(file, shares[index].get())),
                Treatment::Caps(file) if index < 2 => {
                    let most = ((free / 2.0 / CAP_DIVISOR) as u64).max(CAP_BYTES_PER_SECOND_MIN);
                    (file, cap(file, self.device.id, most))
                }
                Treatment::Caps(_) | Treatment::Equal => return Ok(()),
            };
            write_group(writer, file, self.device.id, path, text, undo)
        })?;
        let heavy = readings[..2].iter().map(|reading| reading.bytes).sum::<u64>() as f64;
        Ok(Outcome { heavy_bytes_per_second: heavy / self.duration.as_secs_f64(), light: readings[2] })
    }

    /// Gives the disk what an arm asks for; `elevator` is the one in force.
    fn become_as(&self, arm: &Arm, groups: &mut ProbeGroups, elevator: &mut String) -> anyhow::Result<()> {
        if arm.elevator != *elevator {
            let in_force = self.device.facts.elevator.clone().unwrap_or_default();
            groups.write(&of_disk(self.device, KnobFile::Elevator, [arm.elevator.clone(), in_force]))?;
            elevator.clone_from(&arm.elevator);
        }
        let Some(wanted) = arm.settings else { return Ok(()) };
        let found = BfqSettings::found(self.device);
        let low_latency = (KnobFile::BfqLowLatency, [wanted.low_latency, found.low_latency]);
        let strict = (KnobFile::BfqStrictGuarantees, [wanted.strict_guarantees, found.strict_guarantees]);
        for (file, switch) in [low_latency, strict] {
            let [wanted, found] = switch.map(|on| u8::from(on).to_string());
            // An elevator that comes back comes with the settings that it had when it went.
            if self.switch(file)? != wanted {
                groups.write(&of_disk(self.device, file, [wanted.clone(), found]))?;
            }
            let name = file.file_name();
            ensure!(self.switch(file)? == wanted, "{name} of {} did not become {wanted}", self.device.name);
        }
        Ok(())
    }

    /// What a switch of BFQ reads now.
    fn switch(&self, file: KnobFile) -> anyhow::Result<String> {
        let path = self.roots.sys.join("block").join(&self.device.name).join(file.file_name());
        let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Ok(text.trim().to_owned())
    }
}

/// Plays every arm in every round; what the light reader gets alone.
fn play(
    groups: &mut ProbeGroups,
    scene: &Scene<'_>,
    arms: &mut [Arm],
    mut elevator: String,
    (rounds, seed): (u32, u64),
) -> anyhow::Result<Reading> {
    let (name, found) = (&scene.device.name, BfqSettings::found(scene.device));
    output::say(&format!("{name}: the light reader alone, under {elevator}"));
    let alone = groups.race(scene.device, &[scene.light()], &|_, _, _| Ok(()))?;
    let alone = alone.into_iter().next().context("the light reader told nothing")?;
    let mut free = 0.0;
    if has_caps(arms) {
        output::say(&format!("{name}: all readers without a cap, under {elevator}"));
        free = scene.race(groups, Treatment::Equal, 0.0)?.heavy_bytes_per_second;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 1..=rounds {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let arm = &mut arms[index];
            output::say(&format!("{name}: round {round} of {rounds}: {}", arm.name(found)));
            scene.become_as(arm, groups, &mut elevator)?;
            let outcome = scene.race(groups, arm.treatment, free)?;
            arm.readings.push(outcome);
        }
    }
    Ok(alone)
}

/// A setting of the disk, and what it was.
fn of_disk(device: &Device, file: KnobFile, [text, undo]: [String; 2]) -> KnobWrite {
    let target = KnobTarget::Disk { name: device.name.clone() };
    KnobWrite { id: WriteId(0), target, file, device: device.id, text, undo }
}

#[cfg(test)]
mod tests;
