//! `minerva-lab figure vm-tags`: six programs in three guests, with priorities 12 to 2 (Bai and Huang, Tag Scheduler).

use super::{Line, drawn_seed, in_guest, median};
use crate::cli::VmTagsArguments;
use crate::{binaries, signals};
use anyhow::Context as _;
use minerva_blk::tag::Priority;
use minerva_lab::figure::{
    VmArm, VmGuest, VmPlan, VmReader, VmRun, VmTagged, inversions, judge_tags, proportion_error, run_vms,
};
use minerva_lab::workload::Access;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// By guest, and by program of the guest.
const TAGS: [[u8; 2]; 3] = [[12, 6], [10, 4], [8, 2]];
const GIB: u64 = 1 << 30;
/// Shares are within this of their part.
const ERROR_MAX: f64 = 0.1;
/// Of what they get together when nobody orders.
const AGGREGATE_MIN: f64 = 0.98;
/// A program has something queued in so many of the moments in which something is chosen.
const EMPTY_MAX: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    /// `minerva-blk` with `tag`.
    Tag,
    /// `minerva-blk` with `noop`.
    None,
    /// Plain levels of best effort in the guests, the kernel's BFQ on the host.
    Ionice,
}

/// One run.
struct Fared {
    bytes: Vec<u64>,
    tagged: Vec<VmTagged>,
    bytes_per_second: f64,
    waited: f64,
}

pub(super) fn run(arguments: &VmTagsArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let server = binaries::minerva_blk(&arguments.output)?;
    let directory = tempfile::tempdir().context("failed to make a directory for the guests' program")?;
    let own = std::env::current_exe().context("failed to find this program")?;
    let reader = in_guest::stripped(&own, directory.path())?;
    let mut random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
    let mut arms = vec![(Arm::Tag, Vec::new()), (Arm::None, Vec::new())];
    if !arguments.no_kernel {
        arms.push((Arm::Ionice, Vec::new()));
    }
    for number in 1..=arguments.runs {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let (arm, runs) = &mut arms[index];
            eprintln!("run {number} of {}, {arm:?}: three guests boot", arguments.runs);
            let run = Fared::of(*arm, &measure(arguments, (*arm, number), (&server, &reader), &interrupted)?);
            eprintln!("  {:?} bytes, {} inversions", run.bytes, inversions(&run.bytes));
            runs.push(run);
        }
    }
    let none = median(arms[1].1.iter().map(|run| run.bytes_per_second));
    arms.iter().try_for_each(|(arm, runs)| line(arguments, *arm, runs, none).print(arguments.output.json))
}

fn measure(
    arguments: &VmTagsArguments,
    (arm, number): (Arm, u32),
    (server, reader): (&Path, &Path),
    interrupted: &AtomicBool,
) -> anyhow::Result<VmRun> {
    let block = u32::try_from(arguments.block).context("a block is shorter than 4 GiB")?;
    let profile = arguments.profile.clone();
    let capacity = minerva_lab::disk::profiles().into_iter().find(|known| known.name == profile);
    let region = (capacity.map_or(80 * GIB, |known| known.capacity_bytes) / 6).next_multiple_of(1 << 20) - (1 << 20);
    let guest = |(number, tags): (usize, &[u8; 2])| {
        let reader = |(program, tag): (usize, &u8)| VmReader {
            access: Access::RandomRead,
            block_bytes: block,
            depth: arguments.depth,
            region_start: region * (number * 2 + program) as u64,
            region_bytes: region,
            ioprio: ioprio(arm, program, *tag),
        };
        VmGuest {
            name: format!("vm{number}"),
            served: if arm == Arm::Tag { "tag_max = 254".to_owned() } else { String::new() },
            bfq_weight: 100,
            limit_bytes_per_second: 0,
            readers: tags.iter().enumerate().map(reader).collect(),
        }
    };
    let guests = TAGS.iter().enumerate().map(guest).collect();
    let log = arguments.logs.as_ref().map(|folder| folder.join(format!("{arm:?}-{number}.csv").to_lowercase()));
    let served = |scheduler: &str| VmArm::Served(scheduler.to_owned());
    let arm = match arm {
        Arm::Tag => served("tag"),
        Arm::None => served("noop"),
        Arm::Ionice => VmArm::KernelBfq,
    };
    let is_tag = arm == served("tag");
    let device =
        arguments.tag_depth.filter(|_| is_tag).map_or_else(String::new, |depth| format!("tag_depth = {depth}"));
    let plan = VmPlan { arm, guests, device, profile, seconds: arguments.seconds, server, reader, log };
    Ok(run_vms(&plan, interrupted)?)
}

/// What a program gives. Plain levels go from 0, the best, to 7, and six priorities fit.
fn ioprio(arm: Arm, program: usize, tag: u8) -> Option<u16> {
    const BEST_EFFORT: u16 = 2 << 13;
    match arm {
        Arm::Ionice => Some(BEST_EFFORT | u16::from(7 - tag / 2)),
        _ => Priority::encode(program as u8 + 1, tag),
    }
}

impl Fared {
    fn of(arm: Arm, run: &VmRun) -> Self {
        let tags: Vec<u8> = TAGS.concat();
        let tagged = judge_tags(&run.records, &tags, run.begin, run.end);
        let bytes = if arm == Arm::Ionice { reported(run) } else { tagged.iter().map(|one| one.bytes).collect() };
        let seconds = run.end.since(run.begin).as_secs_f64();
        let bytes_per_second = bytes.iter().sum::<u64>() as f64 / seconds.max(1e-9);
        Self { bytes, tagged, bytes_per_second, waited: run.waited.guests.iter().copied().fold(0.0, f64::max) }
    }
}

/// What each program had by its own account, the greatest priority first.
fn reported(run: &VmRun) -> Vec<u64> {
    let mut all = Vec::new();
    for (guest, tags) in run.guests.iter().zip(TAGS) {
        for (progress, tag) in guest.readers.iter().zip(tags) {
            let at = |instant| {
                let after = progress.partition_point(|report| report.at <= instant);
                after.checked_sub(1).map_or(0, |last| progress[last].bytes)
            };
            all.push((tag, at(guest.end).saturating_sub(at(guest.begin))));
        }
    }
    all.sort_by_key(|(tag, _)| std::cmp::Reverse(*tag));
    all.into_iter().map(|(_, bytes)| bytes).collect()
}

fn line(arguments: &VmTagsArguments, arm: Arm, runs: &[Fared], none: f64) -> Line {
    let count: usize = runs.iter().map(|run| inversions(&run.bytes)).sum();
    let pairs = runs.len() * TAGS.concat().len() * (TAGS.concat().len() - 1) / 2;
    let error = median(runs.iter().map(|run| proportion_error(&run.tagged)));
    let error_max = runs.iter().map(|run| proportion_error(&run.tagged)).fold(0.0, f64::max);
    let aggregate = median(runs.iter().map(|run| run.bytes_per_second));
    let empty = runs.iter().flat_map(|run| &run.tagged).map(|one| one.empty).fold(0.0, f64::max);
    let queued = runs.iter().flat_map(|run| &run.tagged).map(|one| one.queued_mean).fold(f64::INFINITY, f64::min);
    let waited = runs.iter().map(|run| run.waited).fold(0.0, f64::max);
    let (name, goal) = match arm {
        Arm::Tag => ("minerva-blk with `tag`", "0, shares within 10 %, 0.98 of none's"),
        Arm::None => ("minerva-blk with `noop`", "none: shown beside"),
        Arm::Ionice => ("plain ionice under the host's BFQ", "none: shown beside"),
    };
    let is_good = count == 0 && error_max <= ERROR_MAX && aggregate >= AGGREGATE_MIN * none && empty <= EMPTY_MAX;
    let shares = match arm {
        Arm::Ionice => String::new(),
        _ => format!(
            "; furthest from its part {:.1} % (median of the runs {:.1} %); queue at each decision {queued:.1} at least on average, empty in {:.2} % at most",
            error_max * 100.0,
            error * 100.0,
            empty * 100.0
        ),
    };
    Line {
        id: "vm-tags",
        value: count as f64,
        unit: "inversions",
        goal: goal.to_owned(),
        met: arm != Arm::Tag || is_good,
        detail: format!(
            "{name}: of {pairs} pairs in {} runs of {} s, six programs of {} requests of {} KiB at random in three guests on {}{shares}; {:.2} MB/s, {:.3} of none's; guests waited for a processor {:.1} % of the time at most",
            runs.len(),
            arguments.seconds,
            arguments.depth,
            arguments.block / 1024,
            arguments.profile,
            aggregate / 1e6,
            aggregate / none,
            waited * 100.0,
        ),
    }
}
