//! Kachmar and Kaeli 2020: background work that waits for the gaps, and what it does to the foreground.

use super::{Beside, background_plot, print_beside};
use crate::cli::ReproduceArguments;
use crate::experiment::background::{Case, hard, paper};
use crate::output::print_table;
use crate::threads::threads;
use anyhow::Context as _;
use minerva_sim_background::{DAYS, Forecaster, Outcome, Pattern, Policy, from_traces, score, synthetic};
use minerva_sim_world::sweep;

/// SYSTOR '17 was taken in Japan, and its Unix times are universal.
const ZONE_SECONDS: i64 = 9 * 3600;

/// Policies, each with the forecaster that it is given.
const ARMS: [(Policy, Forecaster); 6] = [
    (Policy::Floor, Forecaster::None),
    (Policy::Fixed, Forecaster::None),
    (Policy::Published, Forecaster::DayClusters),
    (Policy::Published, Forecaster::Perfect),
    (Policy::Ours, Forecaster::DayClusters),
    (Policy::Ours, Forecaster::Perfect),
];

pub(super) fn reproduce(arguments: &ReproduceArguments, seed: u64) -> anyhow::Result<()> {
    println!(
        "Kachmar and Kaeli, A Smart Background Scheduler (2020), Fig. 13 and 14: 64 cores, six days of virtual desktops.\n"
    );
    let load = if arguments.traces.is_empty() {
        println!("A synthetic week, seed {seed}. Use --traces for real SYSTOR '17 traces.");
        synthetic(Pattern::Office, seed)
    } else {
        from_traces(&arguments.traces, ZONE_SECONDS, DAYS)?
    };
    anyhow::ensure!(!load.seconds.is_empty(), "the traces do not cover ten whole minutes: give files of some hours");
    let case = paper(load);
    println!(
        "violated: seconds at whose end a request waits. queued: requests that the foreground's cores could not serve at once."
    );
    println!(
        "fullest: the most blocks used or tied up, as a part of the pool. owed: debt after the last second, as a part of the \
         pool. See docs/adr/0017.\n"
    );
    let outcomes = sweep(threads(), &ARMS, |(policy, forecaster)| case.run(*policy, *forecaster));
    policies(&outcomes);
    forecasters(&case);
    if arguments.traces.is_empty() {
        hard_cases(seed);
    }
    print_beside(&besides(&outcomes));
    if let Some(path) = &arguments.plot {
        let shown: Vec<(&str, &Outcome)> = [1, 2, 4].map(|arm| (ARMS[arm].0.as_str(), &outcomes[arm])).to_vec();
        let svg = background_plot::days(&shown)?;
        std::fs::write(path, svg).with_context(|| format!("write {}", path.display()))?;
        println!("Plots of load, background cores and pool: {}", path.display());
    }
    Ok(())
}

fn policies(outcomes: &[Outcome]) {
    let rows: Vec<Vec<String>> = ARMS
        .iter()
        .zip(outcomes)
        .map(|((policy, forecaster), outcome)| {
            let mut row = vec![policy.as_str().to_owned(), forecaster.as_str().to_owned()];
            row.extend([percent(outcome.violation_share), percent(outcome.queued_share)]);
            row.extend([percent(outcome.fill_share_max), outcome.full_seconds.to_string()]);
            row.extend([percent(outcome.debt_share_end), outcome.plans.to_string()]);
            row
        })
        .collect();
    print_table(
        &["policy", "forecast", "violated, %", "queued, %", "fullest, %", "seconds full", "owed, %", "plans"],
        &rows,
    );
    println!();
}

fn forecasters(case: &Case) {
    println!(
        "Forecasters, each given to both policies: error of the day ahead in bins of ten minutes, then violated and queued, %:"
    );
    let rows = sweep(threads(), &Forecaster::ALL, |forecaster| {
        let accuracy = score(&case.load, case.server, *forecaster);
        let error = |value: f64| if accuracy.count() > 0.0 { format!("{value:.1}") } else { "-".to_owned() };
        let mut row =
            vec![forecaster.as_str().to_owned(), error(accuracy.smape_percent()), error(accuracy.mpe_percent())];
        row.extend([Policy::Published, Policy::Ours].map(|policy| both(&case.run(policy, *forecaster))));
        row
    });
    print_table(&["forecaster", "SMAPE, %", "MPE, %", "as published", "Minerva"], &rows);
    println!();
}

fn hard_cases(seed: u64) {
    println!("Harder days: violated and queued, %; in brackets seconds with a full pool, if any:");
    let cases = hard(seed);
    let rows = sweep(threads(), &cases, |case| {
        let cell = |arm: &(Policy, Forecaster)| {
            let outcome = case.run(arm.0, arm.1);
            let full = outcome.full_seconds;
            let told = outcome.first_alarm.map_or(String::new(), |(raised, date)| {
                format!(", told at {:.0} h for {:.0} h", raised / 3600.0, date / 3600.0)
            });
            let full = if full > 0 { format!(" [{full}{told}]") } else { String::new() };
            both(&outcome) + &full
        };
        std::iter::once(case.name.to_owned())
            .chain(ARMS.iter().chain(&[(Policy::Ours, Forecaster::None)]).map(cell))
            .collect::<Vec<_>>()
    });
    let heads =
        ["days", "no work", "fixed", "published", "published, perfect", "Minerva", "Minerva, perfect", "Minerva, none"];
    print_table(&heads, &rows);
    println!();
}

fn besides(outcomes: &[Outcome]) -> Vec<Beside> {
    let [floor, fixed, published, _, ours, perfect] = outcomes else { return Vec::new() };
    let near = |outcome: &Outcome, violated: f64, points: f64| {
        Some((100.0 * outcome.violation_share - violated).abs() <= points)
    };
    vec![
        Beside {
            figure: "Fig. 13, fixed bucket",
            paper: "54.6 % of SLO violations, 21.7 % of I/O queued",
            ours: format!("{} %", both(fixed)),
            agrees: near(fixed, 54.6, 15.0),
            explained: Some(true),
            why: "Each hour's snapshots add their debt all at once, so the bucket exceeds its mark and takes cores in the \
                  busiest hours. How many hours that lasts depends on the level of the load, which the paper does not give.",
        },
        Beside {
            figure: "Fig. 14, dynamic bucket",
            paper: "6.2 % of SLO violations, 2.6 % of I/O queued",
            ours: format!("{} %", both(published)),
            agrees: near(published, 6.2, 5.0),
            explained: Some(true),
            why: "The foreground gets cores for the greater of the current and the forecast rate. A second that brings more \
                  than both has to wait if the plan uses all other cores. We count seconds; the paper may have counted longer \
                  periods.",
        },
        Beside {
            figure: "Minerva on the same load",
            paper: "(our goals: below 3 % and 1 %, within one percentage point of a perfect forecast)",
            ours: format!(
                "{} %, with a perfect forecast {} %, without background work {} %",
                both(ours),
                both(perfect),
                both(floor)
            ),
            agrees: None,
            explained: None,
            why: "Background work takes second by second what the foreground leaves, with a margin that grows when it was too \
                  small. It steals cores only if the work would not fit within six hours. That never happens with this load, \
                  so the forecast decides nothing.",
        },
    ]
}

fn both(outcome: &Outcome) -> String {
    format!("{} / {}", percent(outcome.violation_share), percent(outcome.queued_share))
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}
