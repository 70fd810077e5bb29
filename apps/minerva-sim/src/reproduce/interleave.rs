//! Malensek et al. 2016, Fig. 3-d against 3-e: two that alternate between the disk and other work.

use super::{Beside, print_beside};
use crate::experiment::arm::Arm;
use crate::experiment::interleave::{Cycle, draw, run, run_alone};
use crate::figure::built_in;
use crate::output::{megabytes, print_table};
use crate::report::Page;
use crate::threads::threads;
use minerva_sim_world::{Report, sweep};
use std::path::Path;

/// Seconds in which phases are learnt, and seconds that are compared.
const LEARNT_S: usize = 600;
const COMPARED_S: usize = 600;
const ARMS: [Arm; 3] = [Arm::Equal, Arm::History, Arm::Forecasts];

pub(super) fn reproduce(seed: u64, runs: u64, report: Option<&Path>) -> anyhow::Result<()> {
    let profile = built_in("sas10k-300g")?;
    println!(
        "Malensek et al., Minerva (2016), Fig. 3-d and 3-e: a VM that reads and computes checksums beside one that processes \
         and writes, on {} under BFQ. {runs} runs with random cycles; the {COMPARED_S} s after the first {LEARNT_S} s are \
         compared.\n",
        profile.name
    );
    let cases: Vec<(Arm, u64)> = (0..runs).flat_map(|index| ARMS.map(|arm| (arm, seed * 1_000 + index))).collect();
    let seconds = (LEARNT_S + COMPARED_S) as u64;
    let reports = sweep(threads(), &cases, |(arm, seed)| run(&profile, *arm, draw(*seed), seconds, *seed));
    let seeds: Vec<u64> = (0..runs).map(|index| seed * 1_000 + index).collect();
    // What is delivered to each that has the disk to itself.
    let bounds = sweep(threads(), &seeds, |seed| {
        let [first, second] = run_alone(&profile, draw(*seed), seconds, *seed);
        [delivered(&first, 0), delivered(&second, 0)]
    });
    let mut rows = Vec::new();
    let mut results = Vec::new();
    for (index, (cases, reports)) in cases.chunks(ARMS.len()).zip(reports.chunks(ARMS.len())).enumerate() {
        let cycle = draw(cases[0].1);
        let of = reports.iter().map(|report| [0, 1].map(|vm| delivered(report, vm))).collect::<Vec<_>>();
        rows.extend(ARMS.iter().zip(&of).map(|(arm, both)| row(index, cycle, arm.name(), both, &of[0])));
        rows.push(row(index, cycle, "each alone", &bounds[index], &of[0]));
        results.push(of);
    }
    print_table(&["run", "cycle", "arm", "VM 1, MB/s", "VM 2, MB/s", "disk, MB/s", "more than equal"], &rows);
    println!();
    print_beside(&[beside(&results, &bounds)]);
    let mut page = Page::new("Temporal discontinuity avoidance");
    for (arm, report) in ARMS.iter().zip(&reports) {
        page.over_time(arm.name(), report, LEARNT_S + COMPARED_S - 120, 120)?;
    }
    report.map_or(Ok(()), |path| page.write(path))
}

/// Bytes a second in the seconds that are compared.
fn delivered(report: &Report, vm: usize) -> f64 {
    let bins = report.processes[vm].bins_bytes.iter().skip(LEARNT_S).take(COMPARED_S);
    bins.sum::<u64>() as f64 / COMPARED_S as f64
}

fn row(index: usize, cycle: Cycle, arm: &str, both: &[f64; 2], equal: &[f64; 2]) -> Vec<String> {
    let total = |both: &[f64; 2]| both.iter().sum::<f64>();
    vec![
        (index + 1).to_string(),
        format!("{:.1} s and {:.1} s, +-{:.0} %", cycle.burst_s, cycle.pause_s, 100.0 * cycle.jitter),
        arm.to_owned(),
        megabytes(both[0]),
        megabytes(both[1]),
        megabytes(total(both)),
        format!("{:+.1} %", 100.0 * (total(both) / total(equal) - 1.0)),
    ]
}

fn beside(results: &[Vec<[f64; 2]>], bounds: &[[f64; 2]]) -> Beside {
    let total = |both: &[f64; 2]| both.iter().sum::<f64>();
    let gains: Vec<f64> = results.iter().map(|of| 100.0 * (total(&of[2]) / total(&of[0]) - 1.0)).collect();
    let most: Vec<f64> =
        results.iter().zip(bounds).map(|(of, alone)| 100.0 * (total(alone) / total(&of[0]) - 1.0)).collect();
    let listed_of = |gains: &[f64]| gains.iter().map(|gain| format!("{gain:+.1} %")).collect::<Vec<_>>().join(", ");
    let worst =
        |vm: usize| results.iter().map(|of| 100.0 * (of[2][vm] / of[0][vm] - 1.0)).fold(f64::INFINITY, f64::min);
    let apart = |arm: usize| {
        let parts = results.iter().map(|of| 100.0 * (2.0 * of[arm][0] / total(&of[arm]) - 1.0).abs());
        parts.fold(0.0, f64::max)
    };
    let (listed, possible) = (listed_of(&gains), listed_of(&most));
    Beside {
        figure: "Fig. 3-e",
        paper: "reads and writes are interleaved, so the disk is seldom idle, and both get equal parts; no figures are \
                published",
        ours: format!(
            "the disk delivers {listed} more than with equal weights, where {possible} would be possible if each VM were \
             alone; in the worst run VM 1 gains {:+.1} % and VM 2 {:+.1} %; their parts differ from equal ones by at most \
             {:.0} % (with equal weights {:.0} %)",
            worst(0),
            worst(1),
            apart(2),
            apart(0),
        ),
        agrees: Some(gains.iter().all(|gain| *gain > 0.0)),
        explained: Some(true),
        why: "Bursts and pauses vary by some percent, so within minutes those of the two VMs separate by themselves. Even \
              with equal weights the disk is then seldom idle, and no more can be gained than what each VM would get done \
              alone. The burst that began first goes first, because a tenant's bursts are alike in bytes, though not in \
              seconds.",
    }
}
