//! Matteussi and Geyer 2018: what jobs gain when the shortest goes first.

use super::{Beside, print_beside};
use crate::experiment::makespan::{Arm, HETEROGENEOUS, HOMOGENEOUS, Job, SHORT, alone, drawn, optimum, run};
use crate::figure::built_in;
use crate::median::median;
use crate::output::print_table;
use crate::threads::threads;
use minerva_sim_device::Profile;
use minerva_sim_world::sweep;

pub(super) fn reproduce(seed: u64, runs: u64) -> anyhow::Result<()> {
    let profile = built_in("sas10k-300g")?;
    println!("Matteussi and Geyer (2018): jobs that share a disk, on {} under BFQ.", profile.name);
    println!(
        "Each job is one reader, without Hadoop's phases. optimum: one job after the other, the shortest first.\n"
    );
    println!("Different programs (the paper's real-world scenario), seconds:");
    let different = scene(&profile, &HETEROGENEOUS, seed);
    println!("One program, four sizes, seconds:");
    let alike = scene(&profile, &HOMOGENEOUS, seed);
    println!("The same, far smaller, so that each takes a few slices, seconds:");
    scene(&profile, &SHORT, seed);
    println!("Drawn mixes, seconds:");
    drawn_mixes(&profile, seed, runs);
    print_beside(&besides(&different, &alike));
    Ok(())
}

/// Completion times of each arm, in the order of [`Arm::ALL`], then alone and the optimum.
struct Scene {
    arms: Vec<Vec<f64>>,
    optimum: Vec<f64>,
}

impl Scene {
    fn arm(&self, arm: Arm) -> &[f64] {
        &self.arms[Arm::ALL.iter().position(|known| *known == arm).unwrap_or(0)]
    }

    /// What part of the optimum's gain in mean completion over equal weights an arm has, in percent.
    fn gain_percent(&self, arm: Arm) -> f64 {
        let equal = mean(self.arm(Arm::Equal));
        100.0 * (equal - mean(self.arm(arm))) / (equal - mean(&self.optimum))
    }
}

fn scene(profile: &Profile, jobs: &[Job], seed: u64) -> Scene {
    let arms = sweep(threads(), &Arm::ALL, |arm| run(profile, jobs, *arm, seed));
    let alone = alone(profile, jobs, seed);
    let scene = Scene { arms, optimum: optimum(&alone) };
    let row = |name: &str, times: &[f64]| {
        let slowdowns: Vec<f64> = times.iter().zip(&alone).map(|(time, alone)| time / alone).collect();
        let mut row = vec![name.to_owned()];
        // Jobs of seconds differ by less than one.
        let digits = usize::from(last(&scene.optimum) < 100.0);
        row.extend(times.iter().map(|time| format!("{time:.digits$}")));
        row.extend([mean(times), last(times)].map(|time| format!("{time:.digits$}")));
        row.push(format!("{:.2}", mean(&slowdowns)));
        row
    };
    let mut rows: Vec<Vec<String>> =
        Arm::ALL.iter().zip(&scene.arms).map(|(arm, times)| row(arm.as_str(), times)).collect();
    rows.push(row("optimum", &scene.optimum));
    rows.push(row("each alone", &alone));
    let names: Vec<&str> = jobs.iter().map(|job| job.name).collect();
    print_table(&[&[""], &names[..], &["mean", "makespan", "mean slowdown"]].concat(), &rows);
    let gains = [Arm::Sizes, Arm::NoSizes].map(|arm| format!("{:.0} % {}", scene.gain_percent(arm), arm.as_str()));
    println!("gain in mean completion over equal weights, as a part of what the optimum gains: {}\n", gains.join(", "));
    scene
}

/// What the shortest first gains with sizes in mixes that are drawn, run by run.
fn drawn_mixes(profile: &Profile, seed: u64, runs: u64) {
    let seeds: Vec<u64> = (0..runs).map(|index| seed * 1_000 + index).collect();
    let mixes = sweep(threads(), &seeds, |seed| {
        let jobs = drawn(*seed);
        let [equal, ours] = [Arm::Equal, Arm::Sizes].map(|arm| run(profile, &jobs, arm, *seed));
        let optimum = optimum(&alone(profile, &jobs, *seed));
        (jobs, equal, ours, optimum)
    });
    let mut gains = Vec::new();
    let rows: Vec<Vec<String>> = seeds
        .iter()
        .zip(&mixes)
        .map(|(seed, (jobs, equal, ours, optimum))| {
            let gain = 100.0 * (mean(equal) - mean(ours)) / (mean(equal) - mean(optimum));
            gains.push(gain);
            let sizes: Vec<String> = jobs.iter().map(|job| format!("{:.1}", job.bytes as f64 / 1e9)).collect();
            let later = |ours: f64, equal: f64| 100.0 * (ours / equal - 1.0);
            let worst = ours.iter().zip(equal).map(|(ours, equal)| later(*ours, *equal)).fold(f64::MIN, f64::max);
            let means = [equal, ours, optimum].map(|times| format!("{:.1}", mean(times)));
            let changes = [later(last(ours), last(equal)), worst].map(|percent| format!("{percent:+.1} %"));
            let head = [seed.to_string(), sizes.join(" ")];
            head.into_iter().chain(means).chain([format!("{gain:.0} %")]).chain(changes).collect()
        })
        .collect();
    print_table(
        &["seed", "jobs, GB", "mean, equal weights", "with sizes", "optimum", "gain", "makespan", "latest job"],
        &rows,
    );
    println!(
        "median gain {:.0} % of what the optimum gains; latest job: how much later a job is done than with equal weights\n",
        median(gains)
    );
}

fn besides(different: &Scene, alike: &Scene) -> Vec<Beside> {
    let shorter =
        |scene: &Scene, of: fn(&[f64]) -> f64| 100.0 * (1.0 - of(scene.arm(Arm::Sizes)) / of(scene.arm(Arm::Equal)));
    let (makespan, mean_alike) = (shorter(different, last), shorter(alike, mean));
    let jobs: Vec<f64> = different
        .arm(Arm::Sizes)
        .iter()
        .zip(different.arm(Arm::Equal))
        .map(|(ours, equal)| 100.0 * (1.0 - ours / equal))
        .collect();
    vec![
        Beside {
            figure: "Homogeneous: makespan improvement by scheduler",
            paper: "19.6 % under CFQ, 24.8 under deadline, 30.6 under noop",
            ours: format!("mean completion {mean_alike:.0} % shorter, makespan {:.0} %", shorter(alike, last)),
            agrees: Some(mean_alike > 0.0 && shorter(alike, last) > -1.0),
            explained: Some(true),
            why: "In the paper makespan means an application's completion time. BFQ already serves sequential readers in long \
                  turns, so few seeks can be saved, and all jobs together are done only a little sooner.",
        },
        Beside {
            figure: "Heterogeneous: gain per application (CFQ)",
            paper: "K-means 15.9 %, Sort 31.3 %, Terasort -1.6 %",
            ours: format!(
                "K-means {:.1} %, Sort {:.1} %, Terasort {:.1} %; makespan {makespan:.1} %",
                jobs[2], jobs[1], jobs[0]
            ),
            agrees: Some(jobs[1] > 0.0 && jobs[2] > 0.0 && jobs[0] > -20.0),
            explained: Some(true),
            why: "The short jobs gain, and the longest ends when it would have ended anyway, since it is served after the \
                  others are gone. The paper's jobs pause to compute and to exchange data; ours hardly do.",
        },
        Beside {
            figure: "A wrong size",
            paper: "(not studied)",
            ours: format!(
                "Terasort declares a size of one byte: mean {:.0} s, with true sizes {:.0} s, with equal weights {:.0} s",
                mean(different.arm(Arm::Lie)),
                mean(different.arm(Arm::Sizes)),
                mean(different.arm(Arm::Equal))
            ),
            agrees: None,
            explained: None,
            why: "A job that exceeds its declared size is treated as one of unknown size, and goes behind whoever has had \
                  less.",
        },
    ]
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn last(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}
