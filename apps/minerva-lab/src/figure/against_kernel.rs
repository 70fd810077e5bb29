//! `minerva-lab figure against-kernel`: Minerva against each elevator as the kernel ships it, in one run, in drawn order.

use super::{Line, SLICE_MS, drawn_seed, in_guest, median};
use crate::arms::{ARMS, ARMS_V2, STEERED, STEERED_V2, UNSTEERED, arm, is_without_elevator};
use crate::cli::AgainstKernelArguments;
use crate::{binaries, output, signals};
use anyhow::Context as _;
use minerva_lab::contest::{CONTESTS, CONTESTS_V2, Contest, Goals, Judgement, calibrate, judge, plot};
use minerva_lab::scene::{IoCostModel, Minervad, RunResult, Stage, run_scene};
use minerva_lab::workload::{WorkerProgram, blkio_version};
use minerva_model::CgroupVersion;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// On cgroup v2 the SSD is one that is slow enough for a guest whose processors are emulated.
const PROFILES: [&str; 2] = ["sata7200-80g", "sata-ssd"];
const PROFILES_V2: [&str; 2] = ["sata7200-80g", "slow-ssd"];
/// What a buffered writer may have waiting in the guest; else its memory takes all that it writes.
const DIRTY_LIMITS: &str =
    "echo 16777216 > /proc/sys/vm/dirty_bytes; echo 4194304 > /proc/sys/vm/dirty_background_bytes";
/// Fewer rounds meet no goal.
const ROUNDS_MIN: u32 = 3;
/// For a guest to boot, and for each run there.
const BOOT: Duration = Duration::from_secs(180);
const RUN: Duration = Duration::from_secs(240);

pub(super) fn run(arguments: &AgainstKernelArguments) -> anyhow::Result<()> {
    anyhow::ensure!(arguments.scale > 0.0, "a scale of {} is not possible: use one above 0", arguments.scale);
    if arguments.guest {
        return measure_in_guest(arguments);
    }
    Cast::of(blkio_version()).measure(arguments)?;
    let all = arguments.arm.is_empty() && arguments.scene.is_empty();
    match blkio_version() {
        CgroupVersion::V1 if all && !arguments.no_guest => measure_in_guest(arguments),
        _ => Ok(()),
    }
}

/// Who plays what on a machine, and what is asked of them.
struct Cast {
    scenes: &'static [&'static str],
    arms: &'static [&'static str],
    profiles: &'static [&'static str],
    /// Minerva's arms that are judged.
    steered: &'static [&'static str],
    /// The arm under which the times alone are taken.
    alone: &'static str,
}

impl Cast {
    fn of(version: CgroupVersion) -> Self {
        match version {
            CgroupVersion::V2 => Self {
                scenes: &CONTESTS_V2,
                arms: &ARMS_V2,
                profiles: &PROFILES_V2,
                steered: &STEERED_V2,
                alone: UNSTEERED,
            },
            _ => Self { scenes: &CONTESTS, arms: &ARMS, profiles: &PROFILES, steered: &[STEERED], alone: "bfq" },
        }
    }

    /// What is asked of Minerva's arms on a disk: each is set against the kernel's best, and on a fast disk without an elevator also against
    /// nobody, as there most hosts have nobody who steers.
    fn asked(&self, profile: &str) -> Vec<(&'static str, Goals)> {
        let beside_nobody = self.steered.iter().filter(|arm| is_without_elevator(arm) && profile.contains("ssd"));
        let beside_nobody = beside_nobody.map(|arm| (*arm, Goals::beside_nobody(UNSTEERED)));
        self.steered.iter().map(|arm| (*arm, Goals::default())).chain(beside_nobody).collect()
    }

    fn measure(&self, arguments: &AgainstKernelArguments) -> anyhow::Result<()> {
        let (scenes, arms) = (chosen(self.scenes, &arguments.scene), chosen(self.arms, &arguments.arm));
        let profiles = match arguments.profile.is_empty() {
            true => self.profiles.iter().map(|name| (*name).to_owned()).collect(),
            false => arguments.profile.clone(),
        };
        let daemon = Minervad::new(binaries::minervad(&arguments.output)?, SLICE_MS);
        let interrupted = signals::interrupt_flag()?;
        let program = WorkerProgram::own()?;
        let random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
        let mut play = Play { cast: self, arguments, arms, daemon, model: None, random, runs: Vec::new() };
        let mut short = Vec::new();
        for profile in &profiles {
            let stage = Stage { program: &program, profile, interrupted: &interrupted };
            if play.arms.iter().any(|arm| arm.ends_with("iocost")) {
                let model = calibrate(&stage)?;
                eprintln!("{profile}: {model:?}");
                play.model = Some(model);
            }
            for scene in &scenes {
                let contest = Contest::of(scene, profile, arguments.scale).context("an unknown scene")?;
                let judged = play.contest(&contest, &stage)?;
                if let Some((_, first)) = judged.first() {
                    eprint!("{profile}, {}", first.table);
                }
                for (steered, judgement) in judged {
                    print_rows(play.can_meet(), arguments, steered, &format!("{profile}, {scene}"), &judgement)?;
                    short.extend(judgement.short.filter(|_| steered == STEERED));
                }
                // After each scene, so that a long run that is interrupted keeps what it has.
                play.write_runs()?;
            }
        }
        if !short.is_empty() {
            let is_whole = scenes.len() == self.scenes.len() && profiles.len() >= self.profiles.len();
            overall(&short, is_whole && play.can_meet()).print(arguments.output.json)?;
        }
        Ok(())
    }
}

/// Those of `all` that are wanted, or all.
fn chosen(all: &[&'static str], wanted: &[String]) -> Vec<&'static str> {
    all.iter().copied().filter(|one| wanted.is_empty() || wanted.iter().any(|name| name == one)).collect()
}

/// The same in a guest, whose kernel has the io controller of cgroup v2.
fn measure_in_guest(arguments: &AgainstKernelArguments) -> anyhow::Result<()> {
    let AgainstKernelArguments { scale, rounds, .. } = arguments;
    let seed = drawn_seed(arguments.seed);
    let mut figure = format!("against-kernel --seed {seed} --scale {scale} --rounds {rounds}");
    for (option, values) in [("scene", &arguments.scene), ("arm", &arguments.arm), ("profile", &arguments.profile)] {
        if !values.is_empty() {
            figure.push_str(&format!(" --{option} {}", values.join(",")));
        }
    }
    let profiles = if arguments.profile.is_empty() { PROFILES_V2.len() } else { arguments.profile.len() };
    let runs = profiles * chosen(&CONTESTS_V2, &arguments.scene).len() * chosen(&ARMS_V2, &arguments.arm).len();
    let patience = BOOT + RUN.mul_f64(runs as f64 * f64::from((*rounds).max(1)) * scale.max(1.0));
    match in_guest::prepared_figure(DIRTY_LIMITS, &figure, &arguments.output, patience)? {
        Ok(lines) => output::line(lines),
        Err(why) => {
            let (goal, detail) = ("through iocost and caps".to_owned(), format!("no guest here: {why}"));
            let unit = "of the baseline";
            Line { id: "against-kernel", value: f64::NAN, unit, goal, met: false, detail }.print(arguments.output.json)
        }
    }
}

/// What all scenes are played with, and what came of them.
struct Play<'a> {
    cast: &'a Cast,
    arguments: &'a AgainstKernelArguments,
    arms: Vec<&'static str>,
    daemon: Minervad,
    /// What iocost is told of the disk.
    model: Option<IoCostModel>,
    random: fastrand::Rng,
    runs: Vec<serde_json::Value>,
}

impl Play<'_> {
    /// Every arm plays, often enough: of fewer the best single one is not known.
    fn can_meet(&self) -> bool {
        self.arguments.rounds >= ROUNDS_MIN && self.arms.len() == self.cast.arms.len()
    }

    /// Every round of one scene, and each kind of its tenants alone.
    fn contest(&mut self, contest: &Contest, stage: &Stage<'_>) -> anyhow::Result<Vec<(&'static str, Judgement)>> {
        let name = &contest.scene.name;
        let mut alone = BTreeMap::new();
        for (index, scene) in contest.alone() {
            eprintln!("{} {name}: {} alone", stage.profile, scene.tenants[0].description);
            alone.insert(index, self.once(&scene, self.cast.alone, 0, stage)?);
        }
        let mut runs: BTreeMap<String, Vec<RunResult>> = BTreeMap::new();
        for round in 1..=self.arguments.rounds {
            let mut order = self.arms.clone();
            self.random.shuffle(&mut order);
            for arm in order {
                let run = self.once(&contest.scene, arm, round, stage)?;
                let ends: Vec<String> =
                    run.tenants.iter().map(|tenant| format!("{:.1}", tenant.completion_s)).collect();
                eprintln!("{} {name}, round {round}, {arm}: done after {} s", stage.profile, ends.join(" "));
                runs.entry(arm.to_owned()).or_default().push(run);
            }
        }
        let asked = self.cast.asked(stage.profile).into_iter();
        let judged = asked.filter_map(|(arm, goals)| Some((arm, judge(contest, &runs, arm, &alone, &goals)?)));
        let judged: Vec<_> = judged.collect();
        if let Some(folder) = self.arguments.plots.as_ref().filter(|_| !judged.is_empty()) {
            write_plot(folder, contest, stage.profile, &runs)?;
        }
        Ok(judged)
    }

    fn once(
        &mut self,
        scene: &minerva_lab::scene::Scene,
        name: &str,
        round: u32,
        stage: &Stage<'_>,
    ) -> anyhow::Result<RunResult> {
        let run = run_scene(scene, &arm(name, &self.daemon, self.model), stage, &mut |_| ())?;
        self.runs.push(serde_json::json!({ "profile": stage.profile, "arm": name, "round": round, "run": run }));
        Ok(run)
    }

    fn write_runs(&self) -> anyhow::Result<()> {
        let Some(path) = &self.arguments.runs else { return Ok(()) };
        let text = serde_json::to_string(&self.runs)?;
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
    }
}

fn print_rows(
    can_meet: bool,
    arguments: &AgainstKernelArguments,
    steered: &str,
    scene: &str,
    judgement: &Judgement,
) -> anyhow::Result<()> {
    for row in &judgement.rows {
        let line = Line {
            id: "against-kernel",
            value: row.value,
            unit: "of the baseline",
            goal: row.goal.clone(),
            met: row.met && can_meet,
            detail: format!(
                "{scene}, {steered}, {}: {} ({} rounds, scale {}{})",
                row.what,
                row.detail,
                arguments.rounds,
                arguments.scale,
                if can_meet { "" } else { "; too few rounds or arms to meet a goal" }
            ),
        };
        line.print(arguments.output.json)?;
    }
    Ok(())
}

/// The goal over all scenes and disks, from each scene's completion of the short as a part of the baseline's and of the time alone.
fn overall(short: &[(f64, f64)], is_whole: bool) -> Line {
    let goals = Goals::default();
    let mean = |of: fn(&(f64, f64)) -> f64| {
        let logarithms: f64 = short.iter().map(|pair| of(pair).ln()).sum();
        (logarithms / short.len() as f64).exp()
    };
    let (baseline, alone) = (mean(|pair| pair.0), mean(|pair| pair.1));
    Line {
        id: "against-kernel",
        value: baseline,
        unit: "of the baseline",
        goal: format!("at most {}, or {} of the time alone", goals.overall_most, goals.alone_most),
        met: is_whole && (baseline <= goals.overall_most || alone <= goals.alone_most),
        detail: format!(
            "completion of the short over {} scenes, geometric mean; {alone:.2} of the time alone{}",
            short.len(),
            if is_whole { "" } else { "; not all scenes, disks, arms and three rounds, so it meets no goal" }
        ),
    }
}

/// The short's completion, or what the lasting got, under each arm.
fn write_plot(
    folder: &Path,
    contest: &Contest,
    profile: &str,
    runs: &BTreeMap<String, Vec<RunResult>>,
) -> anyhow::Result<()> {
    let last = contest.scene.last_arrival().0;
    let has_end = contest.scene.tenants.iter().any(|plan| plan.starts_at.0 > 0 && plan.lasts.is_none());
    let value = |run: &RunResult| {
        let late = contest.scene.tenants.iter().zip(&run.tenants).filter(|(plan, _)| plan.starts_at.0 > 0 || last == 0);
        let values: Vec<f64> =
            late.map(|(_, tenant)| if has_end { tenant.completion_s } else { tenant.mb_per_s }).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let bars: Vec<(String, [f64; 3])> = runs
        .iter()
        .map(|(arm, runs)| {
            let values: Vec<f64> = runs.iter().map(value).collect();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            (arm.clone(), [median(values), least, most])
        })
        .collect();
    let unit = if has_end { "completion of the newcomers, s" } else { "newcomers, MB/s" };
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let path = folder.join(format!("against-kernel-{}-{profile}.svg", contest.scene.name));
    let svg = plot(&format!("{} ({profile})", contest.scene.title), unit, &bars)?;
    std::fs::write(&path, svg).with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::Cast;
    use minerva_model::CgroupVersion;

    #[test]
    fn every_arm_of_minerva_is_set_against_the_kernels_best_and_beside_nobody_where_a_fast_disk_has_no_elevator() {
        let asked = |version, profile| {
            let asked = Cast::of(version).asked(profile);
            asked.into_iter().map(|(arm, goals)| (arm, goals.baseline)).collect::<Vec<_>>()
        };
        let best = [("minerva", None), ("minerva-iocost", None), ("minerva-max", None)];
        let nobody = [("minerva-iocost", Some("none")), ("minerva-max", Some("none"))];
        assert_eq!(asked(CgroupVersion::V2, "slow-ssd"), [&best[..], &nobody].concat());
        assert_eq!(asked(CgroupVersion::V2, "sata7200-80g"), best);
        assert_eq!(asked(CgroupVersion::V1, "sata-ssd"), [("minerva", None)]);
    }
}
