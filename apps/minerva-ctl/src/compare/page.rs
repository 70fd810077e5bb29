//! What came of a comparison, for people and for programs.

use super::arms::{Arm, BfqSettings, Treatment};
use super::chance::{chance, is_enough, rounds_needed};
use super::drop_in::{self, table};
use super::{Outcome, Scene};
use crate::figures;
use crate::probe_reader::Reading;
use minerva_model::{CgroupVersion, Device};
use serde::Serialize;

/// One arm, for programs. Lists have an entry a round.
#[derive(Serialize)]
pub(super) struct ArmLine<'a> {
    kind: &'static str,
    disk: &'a str,
    elevator: &'a str,
    /// With weights as Minerva would set them.
    weighed: bool,
    /// `none`, `weights` or `caps`.
    knob: &'static str,
    /// Under BFQ.
    low_latency: Option<bool>,
    strict_guarantees: Option<bool>,
    in_force: bool,
    /// What the operator's file has to say of the disk for this.
    file_lines: Vec<String>,
    /// BFQ's settings that only the operator can give it.
    by_hand: Vec<&'static str>,
    heavy_bytes_per_second: Vec<f64>,
    light_reads_per_second: Vec<f64>,
    light_p50_ns: Vec<u64>,
    light_p99_ns: Vec<u64>,
    seed: u64,
}

pub(super) fn line<'a>(arm: &'a Arm, scene: &Scene<'a>, seed: u64) -> ArmLine<'a> {
    let seconds = scene.duration.as_secs_f64();
    ArmLine {
        kind: "compare",
        disk: &scene.device.name,
        elevator: &arm.elevator,
        weighed: matches!(arm.treatment, Treatment::Weights(_)),
        knob: arm.treatment.word(),
        low_latency: arm.settings.map(|settings| settings.low_latency),
        strict_guarantees: arm.settings.map(|settings| settings.strict_guarantees),
        in_force: arm.is_in_force(scene.device),
        file_lines: shown(&arm.file_lines(scene.device, &scene.said())),
        by_hand: arm.by_hand(scene.device),
        heavy_bytes_per_second: arm.readings.iter().map(|outcome| outcome.heavy_bytes_per_second).collect(),
        light_reads_per_second: arm.readings.iter().map(|outcome| outcome.light.reads as f64 / seconds).collect(),
        light_p50_ns: arm.readings.iter().map(|outcome| outcome.light.p50_ns).collect(),
        light_p99_ns: arm.readings.iter().map(|outcome| outcome.light.p99_ns).collect(),
        seed,
    }
}

pub(super) fn page(arms: &[Arm], scene: &Scene<'_>, alone: &Reading) -> String {
    let seconds = scene.duration.as_secs_f64();
    let found = BfqSettings::found(scene.device);
    let rows: Vec<Vec<String>> = arms
        .iter()
        .map(|arm| {
            let mark = if arm.is_in_force(scene.device) { " *" } else { "" };
            let range = |of: &dyn Fn(&Outcome) -> f64, shown: &dyn Fn(f64) -> String| {
                let values = || arm.readings.iter().map(of);
                let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
                let (least, most) = (shown(least), shown(most));
                if least == most { least } else { format!("{least} to {most}") }
            };
            let time = |ns: f64| figures::span(Some(ns as u64));
            vec![
                format!("{}{mark}", arm.name(found)),
                range(&|outcome| outcome.heavy_bytes_per_second, &|rate| figures::rate(rate as u64)),
                range(&|outcome| outcome.light.reads as f64 / seconds, &|rate| format!("{rate:.0}")),
                range(&|outcome| outcome.light.p50_ns as f64, &time),
                range(&|outcome| outcome.light.p99_ns as f64, &time),
            ]
        })
        .collect();
    let header = ["ELEVATOR", "HEAVY, BOTH", "LIGHT READS/S", "P50", "P99"];
    format!(
        "disk {}: two heavy readers of 256 KiB, four at once, beside a light one of 4 KiB at random; least and most of all rounds\n\n{}\n* in force now. The light reader alone: {:.0} reads/s, p50 {}, p99 {}\n{}{}",
        scene.device.name,
        figures::table(&header, &rows, &[1, 2, 3, 4]),
        alone.reads as f64 / seconds,
        figures::span(Some(alone.p50_ns)),
        figures::span(Some(alone.p99_ns)),
        advice(arms, scene),
        without_iocost(scene.device),
    )
}

/// The arm under which the light reader got most, and what the operator's file has to say for it.
fn advice(arms: &[Arm], scene: &Scene<'_>) -> String {
    let device = scene.device;
    let Some(now) = arms.iter().find(|arm| arm.is_in_force(device)) else { return String::new() };
    let best = best(arms, now);
    if std::ptr::eq(best, now) {
        return "Under none of them did the light reader get more in every round than it gets now.\n".to_owned();
    }
    let heavy = |arm: &Arm| arm.readings.iter().map(|outcome| outcome.heavy_bytes_per_second).sum::<f64>();
    let kept = 100.0 * heavy(best) / heavy(now).max(f64::MIN_POSITIVE);
    let name = best.name(BfqSettings::found(device));
    let lines = shown(&best.file_lines(device, &scene.said()));
    let how = how_to_have_it(&device.name, &best.by_hand(device), &lines);
    let doubt = doubt(arms.len() - 1, now.readings.len());
    format!(
        "The light reader got most under {name}; the heavy ones then got {kept:.0} % of what they get now. {doubt}{how}\n"
    )
}

/// How often one of the `others` would be told to be best without being so, unless that is seldom.
fn doubt(others: usize, rounds: usize) -> String {
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    if is_enough(others, rounds) {
        return String::new();
    }
    format!(
        "If all of these {} were alike, one would still be told in {:.0} of 100 comparisons: --rounds {} tells more. ",
        others + 1,
        100.0 * chance(others, rounds),
        rounds_needed(others)
    )
}

/// Lines as they stand in a file.
pub(super) fn shown(lines: &[drop_in::Line]) -> Vec<String> {
    lines.iter().map(|(key, value)| format!("{key} = {value}")).collect()
}

/// What the operator has to do for an arm: settings of BFQ that Minerva leaves as it finds them, and lines of the file.
pub(super) fn how_to_have_it(disk: &str, by_hand: &[&str], lines: &[String]) -> String {
    let settings = by_hand.join(" and ");
    let by_hand = (!by_hand.is_empty()).then(|| {
        format!(
            "Minerva leaves some settings of BFQ as it finds them: set {settings} in /sys/block/{disk}/queue/iosched, and again at each boot."
        )
    });
    let of_file = (!lines.is_empty()).then(|| {
        format!("For Minerva to do that, put this into its file:\n    {}\n    {}", table(disk), lines.join("\n    "))
    });
    let told: Vec<String> = by_hand.into_iter().chain(of_file).collect();
    if told.is_empty() { "Minerva does that by itself in mode enforce".to_owned() } else { told.join(" ") }
}

/// The best for the light reader. Another takes the place of the one in force, or of one before it, only if it was better in every
/// round: what differs by chance is no reason to change a disk.
pub(super) fn best<'a>(arms: &'a [Arm], now: &'a Arm) -> &'a Arm {
    let reads = |arm: &Arm| {
        let counts = || arm.readings.iter().map(|outcome| outcome.light.reads);
        (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
    };
    arms.iter().fold(now, |best, arm| if reads(arm).0 > reads(best).1 { arm } else { best })
}

/// That iocost is missing in the comparison, and how to have it, where the kernel has it.
pub(super) fn without_iocost(Device { facts, name, .. }: &Device) -> String {
    if facts.cgroup != CgroupVersion::V2 || !facts.iocost_available || facts.iocost_enabled {
        return String::new();
    }
    format!(
        "iocost was not compared, as it is not enabled for this disk. To compare it, enable it: echo \"$(cat /sys/block/{name}/dev) \
         enable=1\" > /sys/fs/cgroup/io.cost.qos; minerva-ctl doctor --device {name} then says how to measure the disk for it, and \
         enable=0 disables it again. With enable_iocost = true under {} Minerva enables it\n",
        table(name)
    )
}
