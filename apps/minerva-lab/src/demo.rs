//! `minerva-lab demo`

use crate::cli::DemoArguments;
use crate::figure::drawn_seed;
use crate::figure::worth::{self, draw_like};
use crate::{binaries, output, signals};
use anyhow::Context as _;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use minerva_lab::scene::{
    Arm, Comparison, Equal, FixedWeights, Hour, Live, Minervad, RunResult, SCALE_DEFAULT, Scene, Stage, Steering,
    TenantPlan, check_machine, in_plain_words, play_hour, render_comparisons, render_run, run_scene, write_report,
};
use minerva_lab::workload::WorkerProgram;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;

/// The scene in which forecasts are what helps.
const FORESEEN: &str = "together";
/// How long these take on the profile of the scenes, at the scale that is the default.
const HOUR_S: f64 = 110.0;
/// Where no terminal shows a bar, a line says so often how many are done.
const SESSIONS_A_LINE: usize = 5;
/// Where no terminal shows bars, a line says so often how far everyone is.
const LINE_EVERY_S: f64 = 5.0;

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    check_machine()?;
    let scale = arguments.scale.unwrap_or(SCALE_DEFAULT);
    anyhow::ensure!(scale > 0.0 && scale <= 1.0, "a scale of {scale} is not possible: use one above 0, up to 1");
    let is_steered = !arguments.equal_only && arguments.weights.is_none();
    let daemon = is_steered.then(|| binaries::minervad(&arguments.output)).transpose()?;
    let interrupted = signals::interrupt_flag()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let program = WorkerProgram::own()?;
    let stage = Stage { program: &program, profile: &arguments.profile, interrupted: &interrupted };

    let seed = drawn_seed(arguments.seed);
    let foreseen = draw_like(Scene::together(scale), seed);
    let mut scenes = vec![Scene::noisy_neighbour(scale), foreseen.scene];
    scenes.retain(|scene| arguments.scene.is_empty() || arguments.scene.contains(&scene.name));
    let counts: Vec<usize> =
        scenes.iter().map(|scene| steerings(scene, arguments, daemon.as_deref(), Path::new("")).len()).collect();
    let estimate = estimate(&scenes, &arguments.profile, &counts, daemon.is_some());
    let count: usize = counts.iter().sum();
    eprintln!("disk {}, work scaled by {scale}, {count} runs{estimate}", arguments.profile);
    let learnt = tempfile::tempdir().context("failed to create a folder for the daemon's models")?;
    let (mut runs, mut random) = (Vec::new(), fastrand::Rng::with_seed(seed));
    for scene in &scenes {
        eprintln!("\n{}", scene.title);
        if let Some(daemon) = daemon.as_deref().filter(|_| scene.name == FORESEEN) {
            learn(&foreseen.hour, daemon, learnt.path(), &stage)?;
        }
        let steerings = steerings(scene, arguments, daemon.as_deref(), learnt.path());
        let played = in_drawn_order(&steerings, &mut random, |steering| {
            play_and_tell(scene, steering.as_ref(), &stage, !arguments.output.json)
        })?;
        if !arguments.output.json {
            let scene = std::slice::from_ref(scene);
            output::line(format_args!("{}\n{}", render_comparisons(&played), in_plain_words(scene, &played)))?;
        }
        runs.extend(played);
    }
    // Before the report, so that one which cannot be written loses nothing.
    if arguments.output.json {
        let comparisons = Comparison::all(&runs);
        output::line(serde_json::json!({ "seed": seed, "runs": runs, "comparisons": comparisons }))?;
    }
    write_report(&arguments.report, &arguments.profile, &scenes, &runs)?;
    eprintln!("report with plots: {}", arguments.report.display());
    Ok(())
}

/// Does each once, in drawn order, so that nothing that changes while a machine runs favours one. What came of them is in the order given.
fn in_drawn_order<Item, Answer, Error>(
    items: &[Item],
    random: &mut fastrand::Rng,
    mut each: impl FnMut(&Item) -> Result<Answer, Error>,
) -> Result<Vec<Answer>, Error> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    random.shuffle(&mut order);
    let mut answers = BTreeMap::new();
    for index in order {
        answers.insert(index, each(&items[index])?);
    }
    Ok(answers.into_values().collect())
}

/// Who steers in a scene: nobody, then what a host does on which nobody changed anything, in the second scene also who only reacts, then
/// Minerva.
fn steerings(scene: &Scene, arguments: &DemoArguments, daemon: Option<&Path>, learnt: &Path) -> Vec<Box<dyn Steering>> {
    let kernel = || -> Box<dyn Steering> {
        let (name, elevator) = ("kernel".to_owned(), "bfq".to_owned());
        Box::new(Arm { name, elevator, low_latency: true, steering: Box::new(Equal) })
    };
    let mut steerings: Vec<Box<dyn Steering>> = vec![Box::new(Equal)];
    match (daemon, &arguments.weights) {
        (None, None) => {}
        (None, Some(weights)) => steerings.extend([kernel(), Box::new(FixedWeights(weights.clone()))]),
        (Some(daemon), _) if scene.name == FORESEEN => {
            steerings.push(kernel());
            steerings.extend([worth::Arm::Fennel, worth::Arm::Forecasts].map(|arm| arm.steering(daemon, Some(learnt))));
        }
        (Some(daemon), _) => {
            steerings.extend([kernel(), Box::new(Minervad::new(daemon.to_owned(), crate::figure::SLICE_MS))]);
        }
    }
    steerings
}

/// The sessions that the daemon sees before the second scene, with a bar or lines.
fn learn(hour: &Hour, daemon: &Path, learnt: &Path, stage: &Stage<'_>) -> anyhow::Result<()> {
    let count = hour.sessions.len();
    eprintln!("  first the daemon sees {count} similar sessions, one or two at a time");
    let bar = ProgressBar::new(count as u64).with_style(ProgressStyle::with_template("  {bar:30} {pos} of {len}")?);
    let mut told = if std::io::stderr().is_terminal() { usize::MAX } else { 0 };
    let mut watch = |done: usize| {
        bar.set_position(done as u64);
        if done >= told.saturating_add(SESSIONS_A_LINE) {
            eprintln!("  {done} of {count}");
            told = done;
        }
    };
    play_hour(hour, &worth::learning(daemon, learnt.to_owned()), stage, &mut watch)?;
    bar.finish_and_clear();
    Ok(())
}

/// How long all runs take together, so many of each scene, where that is known.
fn estimate(scenes: &[Scene], profile: &str, counts: &[usize], learns: bool) -> String {
    let of_scene = |(scene, count): (&Scene, &usize)| Some(scene.estimate_s(profile)? * *count as f64);
    let runs: Option<f64> = scenes.iter().zip(counts).map(of_scene).sum();
    let learnt = scenes.iter().find(|scene| learns && scene.name == FORESEEN);
    let learning_s = learnt.map_or(0.0, |scene| HOUR_S * scene.scale / SCALE_DEFAULT);
    runs.map_or_else(String::new, |seconds| match seconds + learning_s {
        all if all < 90.0 => format!(", about {all:.0} s in all"),
        all => format!(", about {:.0} minutes in all", all / 60.0),
    })
}

/// Plays one run, and at once tells what came of it if it `tells`: nobody has to wait for the other runs.
fn play_and_tell(scene: &Scene, steering: &dyn Steering, stage: &Stage<'_>, tells: bool) -> anyhow::Result<RunResult> {
    let run = play(scene, steering, stage)?;
    if tells {
        output::line(format_args!("\n{}", render_run(&run)))?;
    }
    Ok(run)
}

/// Plays one run with a bar a tenant on standard error, or lines where that is no terminal.
pub(crate) fn play(scene: &Scene, steering: &dyn Steering, stage: &Stage<'_>) -> anyhow::Result<RunResult> {
    let bars = MultiProgress::new();
    let style = ProgressStyle::with_template("  {prefix:15} {bar:30} {bytes:>11} of {total_bytes:>11}  {msg}")?;
    let bars: Vec<ProgressBar> = scene
        .tenants
        .iter()
        .map(|tenant| {
            let bar = bars.add(ProgressBar::new(tenant.bytes).with_style(style.clone()));
            bar.set_prefix(tenant.name.clone());
            bar
        })
        .collect();
    eprintln!("  {}", steering.name());
    let mut ended = vec![None; bars.len()];
    let mut line_at_s = if std::io::stderr().is_terminal() { f64::INFINITY } else { LINE_EVERY_S };
    let mut watch = |live: &Live| {
        if live.elapsed_s >= line_at_s {
            eprintln!("  {}", progress_line(scene, live));
            line_at_s = live.elapsed_s + LINE_EVERY_S;
        }
        for (index, ((done, all), bar)) in live.bytes.iter().zip(&bars).enumerate() {
            bar.set_position(*done);
            if done >= all {
                let end = *ended[index].get_or_insert(live.elapsed_s);
                bar.set_message(format!("done at {end:.1} s"));
            } else {
                bar.set_message(format!("{:.1} s", live.elapsed_s));
            }
        }
    };
    let result = run_scene(scene, steering, stage, &mut watch);
    bars.iter().for_each(ProgressBar::abandon);
    Ok(result?)
}

/// Such as `10.0 s: tenant-1 50 %, tenant-2 12 %`.
fn progress_line(scene: &Scene, live: &Live) -> String {
    let part = |(tenant, (done, all)): (&TenantPlan, &(u64, u64))| {
        format!("{} {} %", tenant.name, done.saturating_mul(100) / (*all).max(1))
    };
    let parts: Vec<String> = scene.tenants.iter().zip(&live.bytes).map(part).collect();
    format!("{:5.1} s: {}", live.elapsed_s, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{estimate, in_drawn_order, progress_line};
    use minerva_lab::scene::{Live, SCALE_DEFAULT, Scene};

    #[test]
    fn without_a_terminal_a_line_says_how_far_everyone_is() {
        let scene = Scene::together(1.0);
        let live = Live { elapsed_s: 5.02, bytes: vec![(50, 100), (0, 100), (100, 100), (1, 3)] };
        assert_eq!(progress_line(&scene, &live), "  5.0 s: tenant-1 50 %, tenant-2 0 %, tenant-3 100 %, tenant-4 33 %");
    }

    #[test]
    fn runs_are_played_in_a_drawn_order_and_shown_in_one_that_stays() {
        let mut firsts = [0; 4];
        for seed in 0..100 {
            let play = || {
                let mut played = Vec::new();
                let shown = in_drawn_order(&[0, 1, 2, 3], &mut fastrand::Rng::with_seed(seed), |number: &usize| {
                    played.push(*number);
                    Ok::<usize, ()>(number * 10)
                });
                (played, shown)
            };
            let (played, shown) = play();
            assert_eq!((&played, shown), (&play().0, Ok(vec![0, 10, 20, 30])), "the seed says all of it");
            firsts[played[0]] += 1;
            assert_eq!(played.iter().sum::<usize>(), 6, "each once: {played:?}");
        }
        assert!(firsts.iter().all(|times| (10..50).contains(times)), "{firsts:?} of 100");
        let failed = in_drawn_order(&[1, 2], &mut fastrand::Rng::with_seed(1), |_| Err::<(), &str>("broken"));
        assert_eq!(failed, Err("broken"));
    }

    #[test]
    fn the_time_it_takes_is_told_where_it_is_known() {
        let scenes = [Scene::noisy_neighbour(SCALE_DEFAULT), Scene::together(SCALE_DEFAULT)];
        assert_eq!(estimate(&scenes, "sata7200-80g", &[2, 2], false), ", about 3 minutes in all");
        assert_eq!(estimate(&scenes, "sata7200-80g", &[3, 4], true), ", about 8 minutes in all");
        assert_eq!(estimate(&scenes[..1], "sata7200-80g", &[1], false), ", about 49 s in all");
        assert_eq!(estimate(&scenes, "sata-ssd", &[2, 2], true), "");
    }
}
