//! `minerva-ctl doctor --compare`: what each elevator, and Minerva's weights where they bite, would give on this very disk. Two heavy
//! readers go through it while a light one reads at random, once under each arm, in rounds whose order is drawn.
//!
//! The disk is only read. Other elevators are tried only if asked for: that changes what everybody on the disk gets for the time of the
//! comparison. The elevator, its settings and the weights that other groups lose with it are journalled and put back.

use crate::figures;
use crate::output::{self, CommandStatus};
use crate::place;
use crate::probe_groups::{ProbeGroups, weight, write_group};
use crate::probe_reader::{ReaderJob, Reading};
use anyhow::{Context, ensure};
use minerva_config::Config;
use minerva_linux_actuate::InstanceLock;
use minerva_linux_observe::Roots;
use minerva_model::{CgroupVersion, Device, KnobFile, KnobTarget, KnobWrite, WriteId};
use serde::Serialize;
use std::time::Duration;

/// What the heavy readers ask for, and how many of it at once: a copy or a backup with some read-ahead.
const HEAVY_READ_BYTES: usize = 256 * 1024;
const HEAVY_DEPTH: usize = 4;
/// What the light one asks for, one after the other: a database, or a program that starts.
const LIGHT_READ_BYTES: usize = 4096;
const BFQ: &str = "bfq";

/// What was asked.
pub(crate) struct Request<'a> {
    pub(crate) device: &'a Device,
    pub(crate) change_elevator: bool,
    /// Of each arm in each round.
    pub(crate) duration: Duration,
    pub(crate) rounds: u32,
    pub(crate) json: bool,
}

/// One of the ways to treat the readers.
struct Arm {
    elevator: String,
    /// The weights' file, where the readers are weighed as Minerva weighs sparing and heavy tenants at most.
    weights: Option<KnobFile>,
    readings: Vec<Outcome>,
}

/// What came of one arm in one round.
struct Outcome {
    heavy_bytes_per_second: f64,
    light: Reading,
}

/// One arm, for programs. Lists have an entry a round.
#[derive(Serialize)]
struct ArmLine<'a> {
    kind: &'static str,
    disk: &'a str,
    elevator: &'a str,
    /// With weights as Minerva would set them.
    weighed: bool,
    in_force: bool,
    heavy_bytes_per_second: Vec<f64>,
    light_reads_per_second: Vec<f64>,
    light_p50_ns: Vec<u64>,
    light_p99_ns: Vec<u64>,
    seed: u64,
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
    let scene = Scene { device, config, part_bytes: parts, duration: request.duration };
    let mut groups = ProbeGroups::open(config, roots)?;
    let seed = fastrand::u64(..);
    let alone = play(&mut groups, &scene, &mut arms, &in_force, (request.rounds, seed));
    if let Some(number) = groups.signal() {
        drop(groups);
        eprintln!("minerva-ctl: interrupted; all is as it was");
        return Ok(CommandStatus::Signalled(number));
    }
    let alone = alone?;
    groups.close()?;
    if request.json {
        arms.iter().try_for_each(|arm| output::json(&line(arm, &scene, &in_force, seed)))?;
    } else {
        output::text(&page(&arms, &scene, &in_force, &alone))?;
    }
    Ok(CommandStatus::Well)
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

fn arms(device: &Device, in_force: &str, change_elevator: bool) -> Vec<Arm> {
    let weights = match device.facts.cgroup {
        CgroupVersion::V1 => Some(KnobFile::BfqV1Weight),
        CgroupVersion::V2 => Some(KnobFile::BfqWeight),
        CgroupVersion::Absent => None,
    };
    let all = &device.facts.elevators_available;
    let tried = all.iter().filter(|elevator| change_elevator || elevator.as_str() == in_force);
    let arms = tried.flat_map(|elevator| {
        let weighed = (elevator == BFQ && weights.is_some()).then_some(weights);
        [None].into_iter().chain(weighed).map(|weights| Arm {
            elevator: elevator.clone(),
            weights,
            readings: Vec::new(),
        })
    });
    arms.collect()
}

/// The disk and its readers.
struct Scene<'a> {
    device: &'a Device,
    config: &'a Config,
    /// Each reader has so much of the disk for itself.
    part_bytes: u64,
    duration: Duration,
}

impl Scene<'_> {
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

    fn race(&self, groups: &mut ProbeGroups, arm: &Arm) -> anyhow::Result<Outcome> {
        let fennel = &self.config.engine.fennel;
        let shares = [fennel.share_heavy, fennel.share_heavy, fennel.share_sparing];
        let jobs = [self.heavy(0), self.heavy(1), self.light()];
        let readings = groups.race(self.device, &jobs, &|writer, index, path| {
            let Some(file) = arm.weights else { return Ok(()) };
            let [text, undo] = weight(file, shares[index].get());
            write_group(writer, file, self.device.id, path, text, undo)
        })?;
        let heavy = readings[..2].iter().map(|reading| reading.bytes).sum::<u64>() as f64;
        Ok(Outcome { heavy_bytes_per_second: heavy / self.duration.as_secs_f64(), light: readings[2] })
    }
}

/// Plays every arm in every round; what the light reader gets alone.
fn play(
    groups: &mut ProbeGroups,
    scene: &Scene<'_>,
    arms: &mut [Arm],
    in_force: &str,
    (rounds, seed): (u32, u64),
) -> anyhow::Result<Reading> {
    eprintln!("{}: the light reader alone, under {in_force}", scene.device.name);
    let alone = groups.race(scene.device, &[scene.light()], &|_, _, _| Ok(()))?;
    let alone = alone.into_iter().next().context("the light reader told nothing")?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut current = in_force.to_owned();
    for round in 1..=rounds {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let arm = &mut arms[index];
            eprintln!("{}: round {round} of {rounds}: {}", scene.device.name, name(arm));
            if arm.elevator != current {
                groups.write(&change(scene.device, &arm.elevator, in_force))?;
                current.clone_from(&arm.elevator);
            }
            let outcome = scene.race(groups, arm)?;
            arm.readings.push(outcome);
        }
    }
    Ok(alone)
}

fn change(device: &Device, elevator: &str, in_force: &str) -> KnobWrite {
    KnobWrite {
        id: WriteId(0),
        target: KnobTarget::Disk { name: device.name.clone() },
        file: KnobFile::Elevator,
        device: device.id,
        text: elevator.to_owned(),
        undo: in_force.to_owned(),
    }
}

fn name(arm: &Arm) -> String {
    let weights = if arm.weights.is_some() { ", weighed as Minerva does" } else { "" };
    format!("{}{weights}", arm.elevator)
}

fn line<'a>(arm: &'a Arm, scene: &Scene<'a>, in_force: &str, seed: u64) -> ArmLine<'a> {
    let seconds = scene.duration.as_secs_f64();
    ArmLine {
        kind: "compare",
        disk: &scene.device.name,
        elevator: &arm.elevator,
        weighed: arm.weights.is_some(),
        in_force: arm.elevator == in_force && arm.weights.is_none(),
        heavy_bytes_per_second: arm.readings.iter().map(|outcome| outcome.heavy_bytes_per_second).collect(),
        light_reads_per_second: arm.readings.iter().map(|outcome| outcome.light.reads as f64 / seconds).collect(),
        light_p50_ns: arm.readings.iter().map(|outcome| outcome.light.p50_ns).collect(),
        light_p99_ns: arm.readings.iter().map(|outcome| outcome.light.p99_ns).collect(),
        seed,
    }
}

fn page(arms: &[Arm], scene: &Scene<'_>, in_force: &str, alone: &Reading) -> String {
    let seconds = scene.duration.as_secs_f64();
    let rows: Vec<Vec<String>> = arms
        .iter()
        .map(|arm| {
            let mark = if arm.elevator == in_force && arm.weights.is_none() { " *" } else { "" };
            let range = |of: &dyn Fn(&Outcome) -> f64, shown: &dyn Fn(f64) -> String| {
                let values = || arm.readings.iter().map(of);
                let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
                let (least, most) = (shown(least), shown(most));
                if least == most { least } else { format!("{least} to {most}") }
            };
            let time = |ns: f64| figures::span(Some(ns as u64));
            vec![
                format!("{}{mark}", name(arm)),
                range(&|outcome| outcome.heavy_bytes_per_second, &|rate| figures::rate(rate as u64)),
                range(&|outcome| outcome.light.reads as f64 / seconds, &|rate| format!("{rate:.0}")),
                range(&|outcome| outcome.light.p50_ns as f64, &time),
                range(&|outcome| outcome.light.p99_ns as f64, &time),
            ]
        })
        .collect();
    let header = ["ELEVATOR", "HEAVY, BOTH", "LIGHT READS/S", "P50", "P99"];
    let mut text = format!(
        "disk {}: two heavy readers of 256 KiB, four at once, beside a light one of 4 KiB at random; least and most of all rounds\n\n{}\n* in force now. The light reader alone: {:.0} reads/s, p50 {}, p99 {}\n",
        scene.device.name,
        figures::table(&header, &rows, &[1, 2, 3, 4]),
        alone.reads as f64 / seconds,
        figures::span(Some(alone.p50_ns)),
        figures::span(Some(alone.p99_ns)),
    );
    let light = |arm: &&Arm| arm.readings.iter().map(|outcome| outcome.light.reads).sum::<u64>();
    if let Some(best) = arms.iter().max_by_key(light).filter(|best| best.elevator != in_force) {
        text.push_str(&format!(
            "The light reader got most under {}. To have it while Minerva runs: elevator = \"{}\" under [devices.{}]\n",
            name(best),
            best.elevator,
            scene.device.name
        ));
    }
    text
}
