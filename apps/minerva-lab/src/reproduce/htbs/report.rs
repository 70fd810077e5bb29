//! The paper's figures, the simulator's and the guests', as a table and as a page with plots.

use super::plays::{GuestPlay, Play, Plays, READER_ARMS};
use crate::reproduce::beside::{Beside, By};
use crate::vm::plot::{Series, bars, head, over_time};
use minerva_model::Nanos;
use std::fmt::Write as _;

/// In numbers.
pub(super) fn table(all: &Plays<'_>, think: Nanos) -> String {
    let mut text = String::from(
        "Four synchronous jobs: KB/s on average and in the worst second, and seconds below the \
                                 contract\n",
    );
    for play in all.0.iter().filter(|play| play.is_four_jobs) {
        let by = play.by.told();
        // Writing into a string cannot fail; so everywhere below.
        let _ = write!(text, "  {:<11} {by:<10}", play.arm);
        for guest in &play.guests {
            let mean = guest.seconds_kb.iter().sum::<f64>() / guest.seconds_kb.len().max(1) as f64;
            let least = guest.seconds_kb.iter().copied().fold(f64::INFINITY, f64::min);
            let _ = write!(text, " {:>5}: {mean:>6.0} {least:>6.0} {:>3}", guest.promised_kb, guest.seconds_missed);
        }
        let _ = writeln!(text, "  {:5.1} MB/s", play.mb_per_second);
    }
    for count in all.counts() {
        let _ = write!(text, "{count} equal readers, MB/s (guests / simulator):");
        for arm in READER_ARMS {
            let shown = |by| all.throughput(arm, by, count).map_or("-".to_owned(), |rate| format!("{rate:.1}"));
            let _ = write!(text, "  {arm} {} / {}", shown(By::Guests), shown(By::Simulator));
        }
        text.push('\n');
    }
    let waited = all.0.iter().map(|play| play.waited).fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "Guests took {} us to send the next request (the simulator uses the same time), and waited for a processor at most \
         {:.1} % of the time.",
        think.0 / 1000,
        waited * 100.0
    );
    text
}

/// Figure by figure.
pub(super) fn besides(all: &Plays<'_>) -> Vec<Beside> {
    vec![throughput(all), four_jobs(all, "pclock"), four_jobs(all, "htbs")]
}

fn throughput(all: &Plays<'_>) -> Beside {
    let ratios = |of: &str, to: &str, by| -> Vec<f64> {
        let ratio = |count| Some(all.throughput(of, by, count)? / all.throughput(to, by, count)?);
        all.counts().into_iter().filter_map(ratio).collect()
    };
    let shown = |by| {
        let text = |ratios: &[f64]| ratios.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>().join(", ");
        let (pclock, bfq) = (ratios("htbs", "pclock", by), ratios("htbs", "kernel-bfq", by));
        let counts = all.counts();
        let told = || format!("{} times pClock's at {counts:?} readers, {} of BFQ's", text(&pclock), text(&bfq));
        (!pclock.is_empty()).then(told)
    };
    // A single reader has the disk to itself whoever orders; a run differs from the next by some percent.
    let gains = ratios("htbs", "pclock", By::Guests);
    let is_above = gains.iter().all(|ratio| *ratio > 0.95) && gains.iter().any(|ratio| *ratio > 1.05);
    Beside {
        figure: "Aggregate bandwidth of pClock and HTBS, fio (slide without numbers)",
        paper: "HTBS increases throughput: its curve lies above pClock's",
        simulator: shown(By::Simulator),
        guests: shown(By::Guests),
        agrees: (!gains.is_empty()).then_some(is_above),
        remark: "This is `htbs` with Minerva's corrections; `minerva-sim reproduce htbs` also shows the published one.",
    }
}

/// What became of the four jobs' guarantees.
fn four_jobs(all: &Plays<'_>, arm: &str) -> Beside {
    let missed = |by| {
        let text = |play: &&Play| {
            let seconds = play.guests.iter().map(|guest| guest.seconds).max().unwrap_or_default();
            format!("missed in {:?} of {seconds} seconds", play.missed())
        };
        let plays: Vec<String> = all.four_jobs(arm, by).iter().map(text).collect();
        (!plays.is_empty()).then(|| plays.join("; "))
    };
    let played = all.four_jobs(arm, By::Guests);
    let sum: u64 = played.iter().flat_map(|play| play.missed()).sum();
    let (figure, paper, agrees, remark) = match arm {
        "pclock" => (
            "pClock, four synchronous jobs (slide without numbers)",
            "guarantees are missed",
            sum > 0,
            "After each request a job has nothing queued, so the disk seeks to another one.",
        ),
        _ => (
            "HTBS, four synchronous jobs (slide without numbers)",
            "guarantees are met",
            sum == 0,
            "The slides give no delays and bursts. Here a contract has the rate (rate + a request) / (1 - 200 ms), because a \
             rate with a delay promises nothing for the beginning of a second.",
        ),
    };
    let agrees = (!played.is_empty()).then_some(agrees);
    Beside { figure, paper, simulator: missed(By::Simulator), guests: missed(By::Guests), agrees, remark }
}

/// With plots.
pub(super) fn page(all: &Plays<'_>, profile: &str, text: &str) -> String {
    let mut page = head("HTBS through real guests");
    let _ = write!(
        page,
        "<p>Stock Debian guests in QEMU on an emulated disk, profile <b>{profile}</b>, and the same readers in the simulator. \
         Solid lines: KB in each second. Dashed lines: the contract.</p>"
    );
    let four = || all.0.iter().filter(|play| play.is_four_jobs);
    let most = four().flat_map(|play| &play.guests).flat_map(|guest| &guest.seconds_kb).copied().fold(1.0, f64::max);
    for play in four() {
        let by = play.by.told();
        let line = |(place, guest): (usize, &GuestPlay)| Series {
            name: format!("vm{place}: {} KB/s", guest.promised_kb),
            values: guest.seconds_kb.clone(),
            level: Some(f64::from(guest.promised_kb)),
        };
        let series: Vec<Series> = play.guests.iter().enumerate().map(line).collect();
        let _ = write!(page, "<h2>Four jobs under {}, {by}</h2>{}", play.arm, over_time(&series, most * 1.05));
    }
    let counts = all.counts();
    if !counts.is_empty() {
        let names: Vec<String> = counts.iter().map(|count| format!("{count} readers")).collect();
        let series = [By::Guests, By::Simulator].into_iter().flat_map(|by| {
            let name = by.told();
            let values = move |arm: &str| counts_throughput(all, arm, by);
            READER_ARMS.map(|arm| (format!("{arm}, {name}"), values(arm)))
        });
        let series: Vec<(String, Vec<f64>)> = series.collect();
        let _ = write!(page, "<h2>Equal sequential readers, total MB/s</h2>{}", bars(&names, &series));
    }
    let _ = write!(page, "<pre>{text}</pre></body></html>");
    page
}

fn counts_throughput(all: &Plays<'_>, arm: &str, by: By) -> Vec<f64> {
    all.counts().into_iter().map(|count| all.throughput(arm, by, count).unwrap_or_default()).collect()
}
