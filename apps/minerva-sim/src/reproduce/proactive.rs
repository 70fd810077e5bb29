//! Malensek et al. 2016, Fig. 3-a against 3-b: what foreseeing sessions is worth, against history alone, last time's value and an
//! oracle.

use super::{Beside, print_beside};
use crate::cli::ReproduceArguments;
use crate::every;
use crate::experiment::arm::Arm;
use crate::experiment::proactive::{Conditions, Outcome, ROUNDS, Roles, run};
use crate::figure::built_in;
use crate::median::median;
use crate::output::{megabytes, print_table};
use crate::report::Page;
use crate::threads::threads;
use clap::ValueEnum as _;
use minerva_sim_world::sweep;

/// Seconds over which the disk's throughput is compared, at the paper's sizes: all four read in them.
const TOGETHER_S: f64 = 20.0;
const JOBS: usize = 4;

pub(super) fn reproduce(arguments: &ReproduceArguments, seed: u64) -> anyhow::Result<()> {
    let &ReproduceArguments { runs, slice, scale, json, .. } = arguments;
    let profile = built_in("sas10k-300g")?;
    if !json {
        println!(
            "Malensek et al., Minerva (2016), Fig. 3-a and 3-b: four VMs start together after an hour of similar sessions, \
             on {} under BFQ. {runs} runs with random sizes, times and process behaviour; {scale} of the paper's bytes, \
             slices of {}.\n",
            profile.name,
            every::text(slice)
        );
    }
    let mut page = Page::new("Proactive scheduling");
    let seeds: Vec<u64> = (0..runs).map(|index| seed * 1_000 + index).collect();
    for roles in Roles::ALL.into_iter().filter(|roles| arguments.scene.is_none_or(|scene| scene == *roles)) {
        let conditions = Conditions { roles, rounds: ROUNDS, slice, scale };
        let cases: Vec<(Arm, u64)> = seeds.iter().flat_map(|seed| roles.arms().map(|arm| (arm, *seed))).collect();
        let outcomes = sweep(threads(), &cases, |(arm, seed)| run(&profile, *arm, conditions, *seed));
        let of = |arm: Arm| -> Vec<&Outcome> {
            cases.iter().zip(&outcomes).filter(|((of, _), _)| *of == arm).map(|(_, outcome)| outcome).collect()
        };
        if json {
            roles.arms().iter().for_each(|arm| println!("{}", line(conditions, *arm, &seeds, &of)));
        } else {
            println!("{}\n", title(roles));
            table(roles, &of, scale);
            print_beside(&besides(conditions, &of));
        }
        page.heading(title(roles));
        for arm in roles.arms() {
            page.over_time(
                arm.name(),
                &of(arm)[0].report,
                of(arm)[0].from_s as usize,
                (240.0 * scale).ceil() as usize,
            )?;
        }
    }
    arguments.report.as_deref().map_or(Ok(()), |path| page.write(path))
}

const fn title(roles: Roles) -> &'static str {
    match roles {
        Roles::Drawn => {
            "Jobs are assigned to the VMs at random in each round, so names say nothing, but the behaviour of processes does"
        }
        Roles::Fixed => "Each VM always runs the same job, so its last session predicts the next",
        Roles::Newcomers => "Each session is a new container, named after its job, so there is no history",
        Roles::OneName => {
            "Each session is a new container, and all have one name; the file that a session opens goes with its size, and \
             nothing else does"
        }
    }
}

/// How much sooner a job is done than in another arm, run by run: median, least and most.
fn sooner(arm: &[&Outcome], other: &[&Outcome], job: usize) -> (f64, f64, f64) {
    let gains = || arm.iter().zip(other).map(|(arm, other)| 100.0 * (1.0 - arm.seconds[job] / other.seconds[job]));
    (median(gains()), gains().fold(f64::INFINITY, f64::min), gains().fold(f64::NEG_INFINITY, f64::max))
}

/// Seconds of all but the longest, together.
fn first_three(outcome: &Outcome) -> f64 {
    outcome.seconds[..JOBS - 1].iter().sum()
}

fn against_last_value(gains: &str, ours: &[&Outcome], last: &[&Outcome]) -> String {
    let sooner = ours.iter().zip(last).filter(|(ours, last)| first_three(ours) < first_three(last)).count();
    format!(
        "last value gains {gains}; with forecasts the first three together are done sooner than with it in {sooner} of {} runs",
        ours.len()
    )
}

/// What the disk delivered while all four were there.
fn throughput(outcome: &Outcome, scale: f64) -> f64 {
    let together = (TOGETHER_S * scale).ceil() as usize;
    let from = outcome.from_s as usize;
    let bins = outcome.report.processes.iter().flat_map(|process| process.bins_bytes.iter().skip(from).take(together));
    bins.sum::<u64>() as f64 / together as f64
}

/// One arm of a scene for scripts: what each run took, by job, and what that is against equal weights in the same run.
fn line<'a>(
    Conditions { roles, slice, scale, .. }: Conditions,
    arm: Arm,
    seeds: &[u64],
    of: &dyn Fn(Arm) -> Vec<&'a Outcome>,
) -> serde_json::Value {
    let (equal, outcomes) = (of(Arm::Equal), of(arm));
    let job = |(job, name): (usize, &str)| {
        let (median, least, most) = sooner(&outcomes, &equal, job);
        let seconds: Vec<f64> = outcomes.iter().map(|outcome| outcome.seconds[job]).collect();
        let sooner_percent = serde_json::json!({ "median": median, "least": least, "most": most });
        serde_json::json!({ "job": name, "seconds": seconds, "sooner_percent": sooner_percent })
    };
    let jobs: Vec<serde_json::Value> = roles.job_names().into_iter().enumerate().map(job).collect();
    let rates: Vec<f64> = outcomes.iter().map(|outcome| throughput(outcome, scale)).collect();
    let scene = roles.to_possible_value().map(|value| value.get_name().to_owned());
    serde_json::json!({
        "experiment": "proactive", "scene": scene, "arm": arm.name(), "scale": scale, "slice_ns": slice.0,
        "seeds": seeds, "jobs": jobs, "disk_bytes_per_second": rates,
    })
}

fn table<'a>(roles: Roles, of: &dyn Fn(Arm) -> Vec<&'a Outcome>, scale: f64) {
    let equal = of(Arm::Equal);
    let rows: Vec<Vec<String>> = roles
        .arms()
        .into_iter()
        .map(|arm| {
            let outcomes = of(arm);
            let cells = (0..JOBS).map(|job| {
                let seconds = median(outcomes.iter().map(|outcome| outcome.seconds[job]));
                let (middle, least, most) = sooner(&outcomes, &equal, job);
                match arm {
                    Arm::Equal => format!("{seconds:.1} s"),
                    _ => format!("{seconds:.1} s, {middle:+.0} % ({least:+.0} to {most:+.0})"),
                }
            });
            let rate = megabytes(median(outcomes.iter().map(|outcome| throughput(outcome, scale))));
            std::iter::once(arm.name().to_owned()).chain(cells).chain([rate]).collect()
        })
        .collect();
    let names = roles.job_names();
    let heads = [&["arm"], &names[..], &["disk, MB/s"]].concat();
    print_table(&heads, &rows);
    println!("\nMedian time, and how much sooner than with equal weights (median and range over the runs).\n");
}

fn why_last_value_gains(roles: Roles) -> &'static str {
    match roles {
        Roles::Drawn => {
            "Here a VM's last session says nothing about its next one, so it earns no trust and changes nothing."
        }
        Roles::Fixed => {
            "If a VM always does the same, the last session's value is nearly as good as a model. Forecasts pay off where \
             that changes."
        }
        Roles::Newcomers => {
            "Each container is new, so the last session of its name is taken. If a name always does the same, that may be as \
             good as a model."
        }
        Roles::OneName => {
            "All have one name, so the last session of the name is the same for each and orders nothing. The file that a \
             session has open does."
        }
    }
}

fn besides<'a>(Conditions { roles, scale, .. }: Conditions, of: &dyn Fn(Arm) -> Vec<&'a Outcome>) -> Vec<Beside> {
    let [equal, fennel, off, last, ours, oracle] = roles.arms().map(of);
    let gain = |arm: &[&Outcome], against: &[&Outcome], job| sooner(arm, against, job).0;
    let told = |arm: &[&Outcome], against: &[&Outcome]| {
        (0..JOBS).map(|job| format!("{:+.0} %", gain(arm, against, job))).collect::<Vec<_>>().join(", ")
    };
    let short = |arm: &[&Outcome]| gain(arm, &equal, 0) + gain(arm, &equal, 1);
    let of_oracle = 100.0 * short(&ours) / short(&oracle);
    let disk =
        100.0 * median(ours.iter().zip(&equal).map(|(ours, equal)| throughput(ours, scale) / throughput(equal, scale)));
    vec![
        Beside {
            figure: "Fig. 3-b",
            paper: "with forecasts VMs 1 and 2 start ahead and finish first; no times are published",
            ours: format!(
                "sooner than with equal weights by {}, than under Fennel by {}, and than without forecasts by {}; the disk \
                 delivers {disk:.0} % of what it delivers with equal weights",
                told(&ours, &equal),
                told(&ours, &fennel),
                told(&ours, &off)
            ),
            agrees: Some(gain(&ours, &equal, 0) >= 40.0 && gain(&ours, &equal, 1) >= 40.0),
            explained: Some(true),
            why: "Within the first second the processes of two of the four show that their sessions will be short. Those two \
                  go ahead as far as the skill of the forecasts warrants.",
        },
        Beside {
            figure: "Against an oracle",
            paper: "(no such arm)",
            ours: format!(
                "the two short ones gain {of_oracle:.0} % of what they would gain if all sizes were known (the oracle); by \
                 job the oracle gains {}",
                told(&oracle, &equal)
            ),
            agrees: None,
            explained: None,
            why: "The oracle is trusted fully. Forecasts are trusted only as far as they were better than the best naive \
                  forecast. That limits what they can gain, and also what they can cost.",
        },
        Beside {
            figure: "Against last time's value",
            paper: "(no such arm)",
            ours: against_last_value(&told(&last, &equal), &ours, &last),
            agrees: None,
            explained: None,
            why: why_last_value_gains(roles),
        },
    ]
}
