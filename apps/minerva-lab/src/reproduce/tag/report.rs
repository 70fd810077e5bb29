//! The paper's figures, the simulator's and the guests', as a table and as a page with plots.

use super::plays::{Play, Plays};
use crate::figure::median;
use crate::reproduce::beside::{Beside, By};
use crate::vm::plot::{bars, head};
use std::fmt::Write as _;
use std::ops::Range;

/// Programs of Fig. 8.
const PROGRAMS: f64 = 6.0;
/// Equal priorities that are further apart are not treated alike.
const EQUALS_APART: f64 = 1.2;
/// What passes for the throughput that nobody's order costs.
const NEAR: Range<f64> = 0.9..1.1;

/// What people call an arm.
const fn name(arm: &str) -> &str {
    // The paper's is CFQ in the guests and on the host, which no kernel has any more.
    match arm.as_bytes() {
        b"kernel-bfq" => "BFQ over BFQ",
        _ => arm,
    }
}

/// In numbers.
pub(super) fn table(all: &Plays<'_>) -> String {
    let mut text = String::from("MB/s of each program, by guest and priority\n");
    for play in all.0 {
        let by = play.by.told();
        // Writing into a string cannot fail; so everywhere below.
        let _ = write!(text, "  Fig. {} {:<12} {by:<10}", play.figure, name(play.arm));
        for program in &play.programs {
            let _ = write!(text, " vm{} p{}: {:.2} ", program.guest, program.tag, program.mb_per_second);
        }
        let _ = writeln!(
            text,
            " {:.2} MB/s in total, {} inversions, at most {:.1} % from proportional",
            play.mb_per_second,
            play.inversions.len(),
            play.off * 100.0
        );
    }
    let waited = all.0.iter().map(|play| play.waited).fold(0.0, f64::max);
    let _ = writeln!(text, "Guests waited for a processor at most {:.1} % of the time.", waited * 100.0);
    text
}

/// Figure by figure.
pub(super) fn besides(all: &Plays<'_>) -> Vec<Beside> {
    vec![seventh(all), eighth(all), throughput(all)]
}

fn inversions(all: &Plays<'_>, figure: u8, arm: &str, by: By) -> String {
    let text = |play: &&Play| match play.inversions.is_empty() {
        true => "none".to_owned(),
        false => format!("{} ({})", play.inversions.len(), play.inversions.join(", ")),
    };
    all.of(figure, arm, by).iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Whether these arms of a figure were played.
fn has_all(all: &Plays<'_>, figure: u8, arms: &[&str]) -> bool {
    arms.iter().all(|arm| !all.of(figure, arm, By::Guests).is_empty())
}

/// Whether no guests' program was served before one of greater priority, in any round.
fn has_none(all: &Plays<'_>, figure: u8, arm: &str) -> bool {
    all.of(figure, arm, By::Guests).iter().all(|play| play.inversions.is_empty())
}

/// Programs of one priority in different guests, at most so far apart in any round.
fn apart(all: &Plays<'_>, arm: &str, by: By) -> f64 {
    all.of(7, arm, by).iter().map(|play| play.apart).fold(1.0, f64::max)
}

fn seventh(all: &Plays<'_>) -> Beside {
    let (is_played, nested) = (has_all(all, 7, &["kernel-bfq", "tag"]), "kernel-bfq");
    let one = |arm: &str, by| format!("{}, equals {:.2} times apart", inversions(all, 7, arm, by), apart(all, arm, by));
    let told = |by| is_played.then(|| format!("BFQ over BFQ {}; with `tag` {}", one(nested, by), one("tag", by)));
    let is_unfair = |arm: &str| !has_none(all, 7, arm) || apart(all, arm, By::Guests) > EQUALS_APART;
    Beside {
        figure: "Fig. 7: inversions with CFQ in the guests and on the host",
        paper: "two: the processes of VM 1 at 6 and 4 get less than those of VM 2 at the same priorities",
        simulator: told(By::Simulator),
        guests: told(By::Guests),
        agrees: is_played.then(|| is_unfair(nested) && !is_unfair("tag")),
        remark: "The paper's kernels had CFQ, ours have BFQ: in the guests with `ionice` levels, on the host with weights of \
                 200 and 500 for the VMs' priorities 2 and 5. The host divides the disk among VMs before a guest's priorities \
                 count. An inversion is a pair in which the higher priority got less; how far processes of equal priority \
                 differ is shown beside them.",
    }
}

fn eighth(all: &Plays<'_>) -> Beside {
    let told = |by| {
        let off: Vec<String> = all.of(8, "tag", by).iter().map(|play| format!("{:.1} %", play.off * 100.0)).collect();
        let (tag, noop) = (inversions(all, 8, "tag", by), inversions(all, 8, "noop", by));
        let beside = if noop.is_empty() { "not played" } else { noop.as_str() };
        has_all(all, 8, &["tag"]).then(|| format!("`tag` inversions: {tag}, {} off; noop: {beside}", off.join(", ")))
    };
    Beside {
        figure: "Fig. 8: throughput by priority",
        paper: "in the order of the priorities, in one of the best runs",
        simulator: told(By::Simulator),
        guests: told(By::Guests),
        agrees: has_all(all, 8, &["tag"]).then(|| has_none(all, 8, "tag")),
        remark: "In Figs. 9 and 10 the order is lost in some runs. Compare with how often `tag` inverts here, and how far \
                 each program is from its part.",
    }
}

fn throughput(all: &Plays<'_>) -> Beside {
    let of_noop = |arm, by| all.throughput(arm, by) / all.throughput("noop", by);
    let told = |by| {
        let noop = all.throughput("noop", by) / PROGRAMS;
        let (bfq, tag) = (of_noop("kernel-bfq", by), of_noop("tag", by));
        has_all(all, 8, &["noop", "tag"])
            .then(|| format!("noop {noop:.2} MB/s, BFQ over BFQ {bfq:.3} and Tag {tag:.3} of noop's"))
    };
    Beside {
        figure: "Fig. 8 and 5.2: throughput of a process on average",
        paper: "noop 62.9 MB/s, CFQ 59.5, Tag 61.1: CFQ 0.946 and Tag 0.971 of noop's",
        simulator: told(By::Simulator),
        guests: told(By::Guests),
        agrees: has_all(all, 8, &["noop", "tag"]).then(|| NEAR.contains(&of_noop("tag", By::Guests))),
        remark: "The disk is only as fast as processors that are emulated in software allow, so compare the ratios. We call \
                 it agreement if they differ by at most a tenth of noop's.",
    }
}

/// With plots.
pub(super) fn page(all: &Plays<'_>, profile: &str, text: &str) -> String {
    let mut page = head("Priorities of programs in real guests");
    let _ = write!(
        page,
        "<p>Stock Debian guests in QEMU on an emulated disk, profile <b>{profile}</b>, and the same programs in the \
         simulator. The table shows MB/s of each program, the median of the rounds.</p>"
    );
    for (figure, arms) in [(7, &["kernel-bfq", "tag"][..]), (8, &["noop", "kernel-bfq", "tag"])] {
        let names = all.0.iter().find(|play| play.figure == figure).map_or_else(Vec::new, |play| {
            play.programs.iter().map(|program| format!("vm{} p{}", program.guest, program.tag)).collect()
        });
        for by in [By::Guests, By::Simulator] {
            let series: Vec<(String, Vec<f64>)> = arms
                .iter()
                .map(|arm| {
                    let plays = all.of(figure, arm, by);
                    let one = |place: usize| median(plays.iter().map(|play| play.programs[place].mb_per_second));
                    (name(arm).to_owned(), (0..names.len()).map(one).collect())
                })
                .collect();
            let _ = write!(page, "<h2>Fig. {figure}, {}</h2>{}", by.told(), bars(&names, &series));
        }
    }
    let _ = write!(page, "<pre>{text}</pre></body></html>");
    page
}
