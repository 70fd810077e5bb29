//! `minerva-lab demo data-path`: four guests with contracts on one disk, without anybody who keeps them and with `minerva-blk`.

use crate::cli::DemoArguments;
use crate::vm::Programs;
use crate::vm::contracts::{RATES_KB, Scene, seconds_kb};
use crate::vm::plot::{Series, head, over_time};
use crate::{output, signals};
use minerva_lab::figure::VmKept;
use std::fmt::Write as _;
use std::path::Path;

/// Seconds measured with each, after the first.
const SECONDS: u64 = 20;
const BLOCK: u32 = 256 << 10;
/// Who orders, and what a reader of the report is told of it.
const ARMS: [(&str, &str); 2] = [("noop", "in order of arrival"), ("htbs", "by contract (htbs)")];

/// What came of one of them.
struct Shown {
    told: &'static str,
    kept: Vec<VmKept>,
    /// By guest: KB in each second.
    seconds_kb: Vec<Vec<f64>>,
}

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let interrupted = signals::interrupt_flag()?;
    let programs = Programs::prepare(&arguments.output)?;
    let scene = Scene::four_jobs(BLOCK);
    let mut shown = Vec::new();
    for (arm, told) in ARMS {
        eprintln!("requests {told}: four guests boot, about 10 s, then read for {SECONDS} s");
        let run = scene.play(&programs, arm, (&arguments.profile, SECONDS), None, &interrupted)?;
        let seconds_kb = (0..RATES_KB.len()).map(|place| seconds_kb(&run, place)).collect();
        shown.push(Shown { told, kept: scene.judge(&run), seconds_kb });
    }
    if arguments.output.json {
        let one = |shown: &Shown| serde_json::json!({ "order": shown.told, "promised_kb": RATES_KB, "seconds_kb": shown.seconds_kb });
        output::line(serde_json::json!({ "runs": shown.iter().map(one).collect::<Vec<_>>() }))?;
    } else {
        output::line(table(&shown))?;
    }
    std::fs::write(&arguments.report, page(&shown, &arguments.profile)).map_err(|error| {
        anyhow::anyhow!("failed to write {}: {error}; choose another file with --report", arguments.report.display())
    })?;
    eprintln!("report with plots: {}", Path::display(&arguments.report));
    Ok(())
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
    text + &conclusion(shown)
}

/// What the tables show, in a sentence for each.
fn conclusion(shown: &[Shown]) -> String {
    let mut text = String::from("\nsummary\n");
    for Shown { told, kept, .. } in shown {
        let below: u64 = kept.iter().map(|kept| kept.below).sum();
        let seconds: u64 = kept.iter().map(|kept| kept.seconds).sum();
        let _ = match below {
            0 => writeln!(
                text,
                "  requests {told}: every guest got its promised rate in all {seconds} seconds (all guests added)"
            ),
            _ => writeln!(
                text,
                "  requests {told}: guests got less than promised in {below} of {seconds} seconds (all guests added)"
            ),
        };
    }
    text
}

fn page(shown: &[Shown], profile: &str) -> String {
    let mut page = head("Contracts of four guests on one disk");
    let _ = write!(
        page,
        "<p>Four stock Debian guests in QEMU, each with one program that reads 256 KiB at a time and waits for the answer, on an \
         emulated disk, profile <b>{profile}</b>. Solid: KB in each second. Dashed: the contract.</p>"
    );
    let all = shown.iter().flat_map(|shown| shown.seconds_kb.iter().flatten()).copied();
    let most = all.fold(f64::from(RATES_KB[0]), f64::max) * 1.05;
    for Shown { told, seconds_kb, .. } in shown {
        let line = |(place, (values, rate)): (usize, (&Vec<f64>, u32))| Series {
            name: format!("vm{place}: {rate} KB/s"),
            values: values.clone(),
            level: Some(f64::from(rate)),
        };
        let series: Vec<Series> = seconds_kb.iter().zip(RATES_KB).enumerate().map(line).collect();
        let _ = write!(page, "<h2>Requests {told}</h2>{}", over_time(&series, most));
    }
    let _ = write!(page, "<pre>{}</pre></body></html>", table(shown));
    page
}

#[cfg(test)]
mod tests {
    use super::{Shown, table};
    use minerva_lab::figure::VmKept;

    #[test]
    fn the_tables_end_with_a_summary() {
        let kept = |below| VmKept { seconds: 20, below, bytes: 20 << 20, least_bytes: 1 << 20, ..VmKept::default() };
        let shown = |told, below: [u64; 4]| Shown { told, kept: below.map(kept).to_vec(), seconds_kb: Vec::new() };
        let text = table(&[shown("in order of arrival", [20, 3, 0, 0]), shown("by contract", [0; 4])]);
        assert!(text.contains("20 of 20"), "{text}");
        assert!(text.contains("in order of arrival: guests got less than promised in 23 of 80 seconds"), "{text}");
        assert!(text.contains("by contract: every guest got its promised rate in all 80 seconds"), "{text}");
    }
}
