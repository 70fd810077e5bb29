//! `minerva-lab demo data-path`: four guests with contracts on one disk, without anybody who keeps them and with `minerva-blk`.

use crate::cli::DemoArguments;
use crate::figure::vm_contracts::{self, RATES_KB};
use crate::{output, signals};
use minerva_lab::figure::{VmKept, VmRun};
use minerva_model::Nanos;
use std::fmt::Write as _;
use std::path::Path;

/// Seconds measured with each, after the first.
const SECONDS: u64 = 20;
const BLOCK: u32 = 256 << 10;
/// Who orders, and what a reader of the report is told of it.
const ARMS: [(&str, &str); 2] = [("noop", "in the order in which they come"), ("htbs", "by contract (htbs)")];
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 260.0;

/// What came of one of them.
struct Shown {
    told: &'static str,
    kept: [VmKept; 4],
    /// By guest: KB in each second.
    seconds_kb: [Vec<f64>; 4],
}

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let interrupted = signals::interrupt_flag()?;
    let bed = vm_contracts::Bed::prepare(&arguments.output)?;
    let mut shown = Vec::new();
    for (arm, told) in ARMS {
        eprintln!("requests {told}: four guests boot, then read for {SECONDS} s");
        let run = bed.run(arm, (&arguments.profile, SECONDS, BLOCK), None, &interrupted)?;
        shown.push(Shown { told, kept: vm_contracts::judge(&run, BLOCK), seconds_kb: seconds(&run) });
    }
    if arguments.output.json {
        let one = |shown: &Shown| serde_json::json!({ "order": shown.told, "promised_kb": RATES_KB, "seconds_kb": shown.seconds_kb });
        output::line(serde_json::json!({ "runs": shown.iter().map(one).collect::<Vec<_>>() }))?;
    } else {
        output::line(table(&shown))?;
    }
    std::fs::write(&arguments.report, page(&shown, &arguments.profile)).map_err(|error| {
        anyhow::anyhow!("failed to write {}: {error}; give another place with --report", arguments.report.display())
    })?;
    eprintln!("report with plots: {}", Path::display(&arguments.report));
    Ok(())
}

/// What each guest had in each second, by the server's log.
fn seconds(run: &VmRun) -> [Vec<f64>; 4] {
    std::array::from_fn(|place| {
        let name = format!("vm{place}");
        let mut bins = vec![0.0; SECONDS as usize];
        for record in run.records.iter().filter(|record| record.disk == name && record.done >= run.begin) {
            if let Some(bin) = bins.get_mut((record.done.since(run.begin).0 / Nanos::SECOND.0) as usize) {
                *bin += record.bytes as f64 / 1e3;
            }
        }
        bins
    })
}

fn table(shown: &[Shown]) -> String {
    let mut text = String::new();
    for Shown { told, kept, .. } in shown {
        // Writing to a string cannot fail; so everywhere below.
        let _ = writeln!(text, "\nrequests {told}");
        let _ = writeln!(
            text,
            "  {:<8} {:>14} {:>10} {:>14} {:>16}",
            "guest", "promised KB/s", "KB/s", "least second", "seconds missed"
        );
        for (place, (kept, rate)) in kept.iter().zip(RATES_KB).enumerate() {
            let mean = kept.bytes / kept.seconds.max(1) / 1000;
            let missed = format!("{} of {}", kept.below, kept.seconds);
            let _ = writeln!(text, "  vm{place:<6} {rate:>14} {mean:>10} {:>14} {missed:>16}", kept.least_bytes / 1000);
        }
        let all: u64 = kept.iter().map(|kept| kept.bytes / kept.seconds.max(1)).sum();
        let _ = writeln!(text, "  whole disk: {:.1} MB/s", all as f64 / 1e6);
    }
    text
}

fn page(shown: &[Shown], profile: &str) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Minerva: contracts of guests</title><style>\
         body{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;color:#222}pre{background:#f3f6f9;\
         padding:1rem;overflow-x:auto}svg{width:100%;height:auto}</style></head><body><h1>Contracts of four guests on one disk</h1>",
    );
    let _ = write!(
        page,
        "<p>Four stock Debian guests in QEMU, each with one program that reads 256 KiB at a time and waits for the answer, on an \
         emulated disk, profile <b>{profile}</b>. Solid: KB in each second. Dashed: what is promised.</p>"
    );
    let all = shown.iter().flat_map(|shown| shown.seconds_kb.iter().flatten()).copied();
    let most = all.fold(f64::from(RATES_KB[0]), f64::max) * 1.05;
    for Shown { told, seconds_kb, .. } in shown {
        let _ = write!(page, "<h2>Requests {told}</h2><svg viewBox=\"0 0 {WIDTH} {}\">", HEIGHT + 40.0);
        let x = |second: usize| 40.0 + (WIDTH - 60.0) * second as f64 / (SECONDS - 1) as f64;
        let y = |kb: f64| HEIGHT * (1.0 - kb / most) + 10.0;
        for (place, (series, rate)) in seconds_kb.iter().zip(RATES_KB).enumerate() {
            let points: Vec<String> =
                series.iter().enumerate().map(|(at, kb)| format!("{:.1},{:.1}", x(at), y(*kb))).collect();
            let (colour, level) = (COLOURS[place], y(f64::from(rate)));
            let _ = write!(
                page,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/><line x1=\"40\" x2=\"{}\" y1=\"{level:.1}\" \
                 y2=\"{level:.1}\" stroke=\"{colour}\" stroke-dasharray=\"5 4\"/><text x=\"{}\" y=\"{}\" fill=\"{colour}\">vm{place}: {rate} KB/s</text>",
                points.join(" "),
                WIDTH - 20.0,
                40 + 200 * place,
                HEIGHT + 35.0
            );
        }
        page.push_str("</svg>");
    }
    let _ = write!(page, "<pre>{}</pre></body></html>", table(shown));
    page
}
