//! Malensek et al. 2016, Fig. 3-a: weights from history, with the engine in the loop.

use super::{Beside, print_beside};
use crate::experiment::fennel;
use crate::figure::built_in;
use crate::output::{megabytes, print_table};
use crate::threads::threads;
use minerva_model::EngineConfig;
use minerva_sim_world::{Report, ReportedProcess, sweep};

/// Seconds that the table over time shows.
const INSTANTS: [usize; 11] = [1, 5, 10, 20, 30, 45, 60, 90, 120, 180, 240];
/// The weight of a group for which nothing was set.
const WEIGHT: u32 = 100;

pub(super) fn reproduce(seed: u64) -> anyhow::Result<()> {
    let profile = built_in("sas10k-300g")?;
    println!(
        "Malensek et al., Minerva (2016), Fig. 3-a: weights from history (Fennel), on {}, BFQ below.\n",
        profile.name
    );
    let arms = [None, Some(EngineConfig::default())];
    let reports = sweep(threads(), &arms, |engine| fennel::run(&profile, engine.clone(), seed));
    let [equal, steered] = &reports[..] else { return Ok(()) };
    times(equal, steered);
    over_time(steered);
    print_beside(&besides(equal, steered));
    Ok(())
}

fn times(equal: &Report, steered: &Report) {
    let rows: Vec<Vec<String>> = equal
        .processes
        .iter()
        .zip(&steered.processes)
        .map(|(equal, steered)| {
            let seconds = |process: &ReportedProcess| process.finished_s.map_or("-".to_owned(), |s| format!("{s:.1}"));
            vec![equal.name.clone(), seconds(equal), seconds(steered), shorter(equal, steered)]
        })
        .collect();
    print_table(&["job", "equal weights, s", "Fennel, s", "shorter by"], &rows);
    let rate = |report: &Report| megabytes(report.bytes_per_second);
    println!("disk: {} MB/s with equal weights, {} MB/s under Fennel\n", rate(equal), rate(steered));
}

fn shorter(equal: &ReportedProcess, steered: &ReportedProcess) -> String {
    let gain = equal.finished_s.zip(steered.finished_s).map_or(0.0, |(before, after)| 100.0 * (1.0 - after / before));
    // No sign before a zero.
    if gain.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{gain:+.1} %") }
}

fn over_time(steered: &Report) {
    println!("Read speed by VM in MB/s under Fennel, and the weights in force:");
    let rows: Vec<Vec<String>> = INSTANTS
        .iter()
        .map(|second| {
            let speed =
                |process: &ReportedProcess| megabytes(process.bins_bytes.get(*second).copied().unwrap_or(0) as f64);
            let weights = (0..steered.tenants.len()).map(|vm| weight(steered, vm, *second as f64).to_string());
            let speeds = steered.processes.iter().map(speed);
            [format!("{second} s")].into_iter().chain(speeds).chain(weights).collect()
        })
        .collect();
    let vms = ["VM 1", "VM 2", "VM 3", "VM 4"];
    print_table(&[&["after"], &vms[..], &["weight 1", "2", "3", "4"]].concat(), &rows);
    println!();
}

/// A VM's weight at an instant.
fn weight(report: &Report, vm: usize, second: f64) -> u32 {
    let set = report.weights.iter().rfind(|(at, name, _)| *at <= second && *name == report.tenants[vm].name);
    set.map_or(WEIGHT, |(_, _, weight)| *weight)
}

fn besides(equal: &Report, steered: &Report) -> Vec<Beside> {
    let weights = |vm: usize| INSTANTS.map(|second| weight(steered, vm, second as f64));
    let ended = |vm: usize| steered.processes[vm].finished_s.unwrap_or(f64::INFINITY);
    let both_read = |second: &&usize| (**second as f64) < ended(2).min(ended(3));
    let later_weights: Vec<[u32; 2]> = INSTANTS
        .iter()
        .filter(both_read)
        .filter(|second| **second >= 20)
        .map(|second| [3, 2].map(|vm| weight(steered, vm, *second as f64)))
        .collect();
    let later: Vec<String> = later_weights.iter().map(|[fourth, third]| format!("{fourth}:{third}")).collect();
    let gains: Vec<String> = equal.processes.iter().zip(&steered.processes).map(|(a, b)| shorter(a, b)).collect();
    let [second, third] = [1, 2].map(weights);
    let favoured = later_weights.iter().any(|[fourth, third]| fourth > third);
    vec![
        Beside {
            figure: "At first",
            paper: "the reactive approach cannot tell VM 2 from VM 3, as all start together",
            ours: format!(
                "after 1, 5 and 10 s VM 2 weighs {} and VM 3 {}",
                second[..3].iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
                third[..3].iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
            ),
            agrees: Some(second[2] == third[2]),
            explained: Some(true),
            why: "The differences of some seconds are chance. The jobs differ in what they will read, and history knows only \
                  what they have read. All four read as fast as they can, so all of them fall to the least weight together.",
        },
        Beside {
            figure: "Later",
            paper: "VM 4 is favoured over VM 3, though both are heavy",
            ours: format!("while both read, the weights of VM 4 and VM 3 are {}", later.join(", ")),
            agrees: Some(favoured),
            explained: Some(false),
            why: "Ours compares what a VM has used with what the disk can deliver. Both VMs have long been at the least \
                  weight, so neither can be favoured. The paper does not publish its weighting; favouring VM 4 needs a \
                  history that still tells two heavy users apart. We do not imitate that: to the paper it is a fault.",
        },
        Beside {
            figure: "What it does to the jobs",
            paper: "(the figure's point is the comparison with forecasts, Fig. 3-b)",
            ours: format!("shorter by {}", gains.join(", ")),
            agrees: None,
            explained: None,
            why: "Four jobs that start together have equal histories, so they get equal weights, as they would without \
                  Fennel. History helps a newcomer beside a heavy reader; `minerva-lab` shows that on a real kernel \
                  (noisy-neighbour).",
        },
    ]
}
