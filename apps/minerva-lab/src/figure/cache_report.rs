//! A burst by each way, as a table for the terminal and as a page with plots.

use super::cache_loss::{Loss, WAYS};
use super::median;
use anyhow::Context as _;
use minerva_lab::figure::{MigrationPlan, MigrationRun, NEIGHBOURS};
use std::fmt::Write as _;
use std::path::Path;

const COLOURS: [&str; 2] = ["#0072b2", "#d55e00"];
const BURST_COLOUR: &str = "#009e73";
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 220.0;
/// Of a point of the curves.
const BIN_S: f64 = 0.5;

/// What each way cost, as text.
pub(crate) fn table(plan: &MigrationPlan, rounds: &[Vec<MigrationRun>]) -> String {
    let mut text = String::new();
    let row = |text: &mut String, name: &str, values: [String; 3]| {
        // Writing to a string cannot fail; so everywhere below.
        let _ = writeln!(text, "  {name:<44} {:>12} {:>12} {:>12}", values[0], values[1], values[2]);
    };
    let _ = writeln!(text, "a burst of {} MB beside two busy neighbours on one disk", plan.burst_bytes / 1_000_000);
    row(&mut text, "", WAYS.map(|(_, name)| name.to_owned()));
    let of = |value: &dyn Fn(&MigrationRun) -> Option<f64>| {
        WAYS.map(|(arm, _)| format!("{:.1} s", median(rounds.iter().filter_map(|round| value(&round[arm])))))
    };
    row(&mut text, "the program is done after", of(&MigrationRun::done_s));
    row(
        &mut text,
        "all files at their destination after",
        of(&|run| run.burst_s.map(|[began, _, placed]| placed - began)),
    );
    row(&mut text, "of that, after the neighbours stopped", of(&MigrationRun::placed_after_quiet_s));
    for (stretch, pausing) in [("never pausing", false), ("pausing", true)] {
        for (place, (neighbour, ..)) in NEIGHBOURS.iter().enumerate() {
            let losses =
                WAYS.map(|(arm, _)| Loss::of(rounds, arm, place, |run| if pausing { &run.pausing } else { &run.busy }));
            let loses = losses.each_ref().map(|loss| format!("{:+.1} %", -loss.throughput));
            row(&mut text, &format!("{neighbour}, {stretch}: MB/s"), loses);
            row(&mut text, "  p99", losses.map(|loss| format!("{:+.0} %", loss.p99_percent)));
        }
    }
    text
}

/// Writes the page.
pub(crate) fn write(path: &Path, plan: &MigrationPlan, rounds: &[Vec<MigrationRun>]) -> anyhow::Result<()> {
    std::fs::write(path, page(plan, rounds))
        .with_context(|| format!("failed to write {}; choose another file with --report", path.display()))
}

fn page(plan: &MigrationPlan, rounds: &[Vec<MigrationRun>]) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Minerva: a burst through the pool</title><style>\
         body{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;color:#222}pre{background:#f3f6f9;\
         padding:1rem;overflow-x:auto}svg{width:100%;height:auto}</style></head><body><h1>A burst beside busy neighbours</h1>",
    );
    let _ = write!(
        page,
        "<p>Two neighbours read from an emulated disk, profile <b>{}</b>, elevator <b>{}</b>: without a pause at first, then in bursts. \
         Two seconds after them a tenant writes {} MB as files, and syncs each: directly to that disk, to a fast disk ({}) from which <code>cp</code> copies them back at once, and through the pool on that fast disk, from which <code>minerva-fs</code> moves them \
         while nobody else uses the disk.</p><pre>{}</pre>",
        plan.profile,
        plan.elevator,
        plan.burst_bytes / 1_000_000,
        plan.pool_profile,
        table(plan, rounds)
    );
    if let Some(round) = rounds.first() {
        let most = round.iter().flat_map(|run| run.series.iter().flatten()).copied().fold(1.0, f64::max) * 1.05;
        let ends = round.iter().map(|run| run.burst_s.map_or(0.0, |[.., placed]| placed));
        let worked = round.iter().map(|run| run.worked_s.last().map_or(0.0, |[_, until]| *until));
        let longest = ends.chain(worked).fold(1.0, f64::max);
        for (run, told) in
            round.iter().zip(["No burst", "Straight", "To a fast disk and back at once", "Through the pool"])
        {
            let _ = write!(page, "<h2>{told}</h2>");
            plot(&mut page, run, most, longest);
        }
    }
    page.push_str(
        "<p>Curves: MB/s of each neighbour. Green: the tenant writes (dark), then its files are still being moved \
         (pale).</p></body></html>\n",
    );
    page
}

fn plot(page: &mut String, run: &MigrationRun, most: f64, longest: f64) {
    let x = |second: f64| 40.0 + (WIDTH - 60.0) * second / longest;
    let y = |rate: f64| 10.0 + HEIGHT * (1.0 - rate / most);
    let _ = write!(page, "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">", HEIGHT + 60.0);
    if let Some([began, done, placed]) = run.burst_s {
        for (from, until, opacity) in [(began, done, 0.45), (done, placed, 0.15)] {
            let _ = write!(
                page,
                "<rect x=\"{:.1}\" y=\"10\" width=\"{:.1}\" height=\"{HEIGHT}\" fill=\"{BURST_COLOUR}\" fill-opacity=\"{opacity}\"/>",
                x(from),
                (x(until) - x(from)).max(1.0)
            );
        }
    }
    for (place, series) in run.series.iter().enumerate() {
        let point = |(bin, rate): (usize, &f64)| format!("{:.1},{:.1}", x((bin as f64 + 0.5) * BIN_S), y(*rate));
        let points: Vec<String> = series.iter().enumerate().map(point).collect();
        let (colour, name) = (COLOURS[place % COLOURS.len()], NEIGHBOURS[place].0);
        let _ = write!(
            page,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/><text x=\"{}\" y=\"{}\" fill=\"{colour}\">{name}</text>",
            points.join(" "),
            40 + 260 * place,
            HEIGHT + 55.0
        );
    }
    let _ = write!(page, "<text x=\"0\" y=\"20\">{most:.0}</text><text x=\"0\" y=\"{}\">MB/s</text>", HEIGHT + 10.0);
    for part in 0..=4 {
        let second = longest * f64::from(part) / 4.0;
        let _ = write!(page, "<text x=\"{:.1}\" y=\"{}\">{second:.0} s</text>", x(second) - 10.0, HEIGHT + 30.0);
    }
    page.push_str("</svg>");
}

#[cfg(test)]
mod tests {
    use super::{page, table};
    use minerva_lab::figure::{MigrationArm, MigrationPlan, MigrationRun, NeighbourRun};
    use minerva_model::Nanos;

    #[test]
    fn every_way_is_in_the_table_and_has_a_plot() {
        let plan = MigrationPlan {
            profile: "p".to_owned(),
            elevator: "e".to_owned(),
            pool_profile: "s".to_owned(),
            burst_bytes: 64_000_000,
            busy: Nanos::SECOND,
            bursts: 1,
            rounds: 1,
            seed: 1,
            service: "s".into(),
            daemon: None,
        };
        let run = |arm| MigrationRun {
            arm,
            burst_s: (arm != MigrationArm::Nobody).then_some([2.0, 3.0, 25.0]),
            busy: vec![NeighbourRun { mb_per_s: 2.0, ..NeighbourRun::default() }; 2],
            pausing: vec![NeighbourRun { mb_per_s: 2.0, ..NeighbourRun::default() }; 2],
            worked_s: vec![[0.0, 20.0]],
            moved_pausing: 0,
            series: vec![vec![1.0, 2.0], vec![3.0, 0.0]],
        };
        let rounds = [MigrationArm::ALL.map(run).to_vec()];
        let text = table(&plan, &rounds);
        assert!(text.contains("64 MB") && text.contains("1.0 s") && text.contains("5.0 s"), "{text}");
        let page = page(&plan, &rounds);
        assert_eq!((page.matches("<svg").count(), page.matches("<polyline").count()), (4, 8));
        assert!(page.ends_with("</html>\n"));
    }
}
