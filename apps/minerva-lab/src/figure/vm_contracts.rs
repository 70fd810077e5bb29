//! `minerva-lab figure vm-contracts`: four synchronous readers (Rocha and Bona, HTBS), each in a guest of its own.

use super::{Line, drawn_seed, in_guest};
use crate::cli::{Output, VmContractsArguments};
use crate::{binaries, signals};
use anyhow::Context as _;
use minerva_lab::figure::{VmArm, VmGuest, VmKept, VmPlan, VmPromise, VmReader, VmRun, judge_contract, run_vms};
use minerva_lab::workload::{Access, Progress};
use minerva_model::Nanos;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The seed's four jobs.
pub(crate) const RATES_KB: [u32; 4] = [8800, 4000, 2000, 800];
/// Within what time each request is to be done.
const DELAY: Nanos = Nanos::from_millis(200);
const GIB: u64 = 1 << 30;
/// BFQ's greatest weight is for the greatest rate.
const BFQ_WEIGHT_MAX: u32 = 1000;

/// What one arm did in all runs.
struct Fared {
    arm: String,
    kept: Vec<[VmKept; 4]>,
    waited: Vec<f64>,
    server_waited: f64,
    is_logged: bool,
}

pub(super) fn run(arguments: &VmContractsArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let bed = Bed::prepare(&arguments.output)?;
    let block = u32::try_from(arguments.block).context("a block is shorter than 4 GiB")?;
    let mut random = fastrand::Rng::with_seed(drawn_seed(arguments.seed));
    let mut all: Vec<Fared> = arguments.arm.iter().map(|arm| Fared::new(arm)).collect();
    for number in 1..=arguments.runs {
        let mut order: Vec<usize> = (0..all.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let fared = &mut all[index];
            eprintln!("run {number} of {}, {}: four guests boot", arguments.runs, fared.arm);
            let log = arguments.logs.as_ref().map(|folder| folder.join(format!("{}-{number}.csv", fared.arm)));
            fared.add(bed.run(&fared.arm, (&arguments.profile, arguments.seconds, block), log, &interrupted)?);
            eprintln!("  {}", fared.told_last());
        }
    }
    all.iter().try_for_each(|fared| fared.line(arguments).print(arguments.output.json))
}

/// The programs of a run.
pub(crate) struct Bed {
    server: PathBuf,
    reader: PathBuf,
    _directory: tempfile::TempDir,
}

impl Bed {
    /// Finds them, and makes the guests' one small.
    pub(crate) fn prepare(output: &Output) -> anyhow::Result<Self> {
        let server = binaries::minerva_blk(output)?;
        let directory = tempfile::tempdir().context("failed to make a directory for the guests' program")?;
        let own = std::env::current_exe().context("failed to find this program")?;
        let reader = in_guest::stripped(&own, directory.path())?;
        Ok(Self { server, reader, _directory: directory })
    }

    /// Four guests read for some seconds, on the disk `profile`, `block` bytes a request.
    pub(crate) fn run(
        &self,
        arm: &str,
        (profile, seconds, block): (&str, u64, u32),
        log: Option<PathBuf>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<VmRun> {
        let capacity = minerva_lab::disk::profiles().into_iter().find(|known| known.name == profile);
        let capacity = capacity.map_or(80 * GIB, |known| known.capacity_bytes);
        let guests = (0..RATES_KB.len()).map(|place| guest(place, arm, capacity, block)).collect();
        let arm = match arm {
            "kernel-bfq" => VmArm::KernelBfq,
            "qemu-throttle" => VmArm::QemuThrottle,
            scheduler => VmArm::Served(scheduler.to_owned()),
        };
        let (server, reader) = (&self.server, &self.reader);
        let (device, profile) = (String::new(), profile.to_owned());
        Ok(run_vms(&VmPlan { arm, guests, device, profile, seconds, server, reader, log }, interrupted)?)
    }
}

/// What a contract has to say so that its guest gets the rate in every second: a service curve of rate and delay says nothing of
/// the first `DELAY` of a second, and a request that straddles its end counts in the next.
fn contract_bytes_per_second(rate_kb: u32, block: u32) -> u64 {
    ((f64::from(rate_kb) * 1e3 + f64::from(block)) / (1.0 - DELAY.as_secs_f64())) as u64
}

fn guest(place: usize, arm: &str, capacity: u64, block: u32) -> VmGuest {
    let rate_kb = RATES_KB[place];
    let rate = contract_bytes_per_second(rate_kb, block);
    let served = match arm {
        "htbs" | "pclock" => format!("rate = {rate}\nburst = {block}\ndelay = \"{}ms\"", DELAY.0 / 1_000_000),
        "mclock" => format!("rate = {rate}\nweight = {}", rate_kb.div_ceil(10)),
        _ => String::new(),
    };
    // Files lie at equal distances over the outer half of the disk, as on a young file system.
    let distance = (capacity / 2 / RATES_KB.len() as u64 / GIB).max(1) * GIB;
    let reader = VmReader {
        access: Access::SequentialRead,
        block_bytes: block,
        depth: 1,
        region_start: distance * place as u64,
        region_bytes: distance,
        ioprio: None,
    };
    VmGuest {
        name: format!("vm{place}"),
        served,
        bfq_weight: (rate_kb * BFQ_WEIGHT_MAX / RATES_KB[0]).max(1),
        limit_bytes_per_second: u64::from(rate_kb) * 1000,
        readers: vec![reader],
    }
}

/// What each guest had, request by request from the server's log; where there is no server, second by second from what the
/// readers reported.
pub(crate) fn judge(run: &VmRun, block: u32) -> [VmKept; 4] {
    std::array::from_fn(|place| {
        let rate = f64::from(RATES_KB[place]) * 1e3;
        let contract_bytes_per_second = contract_bytes_per_second(RATES_KB[place], block) as f64;
        let promise = VmPromise {
            bytes_per_second: rate,
            contract_bytes_per_second,
            burst_bytes: f64::from(block),
            delay: DELAY,
        };
        let name = format!("vm{place}");
        let own: Vec<_> = run.records.iter().filter(|record| record.disk == name).collect();
        if own.is_empty() {
            return judge_progress(&run.guests[place].readers[0], run.guests[place].begin, run.guests[place].end, rate);
        }
        judge_contract(&own, &promise, run.begin, run.end)
    })
}

/// Second by second; whether the guest asked all the time is not known.
fn judge_progress(progress: &[Progress], begin: Nanos, end: Nanos, rate: f64) -> VmKept {
    let seconds = end.since(begin).0 / Nanos::SECOND.0;
    let at = |instant: Nanos| {
        let after = progress.partition_point(|report| report.at <= instant);
        after.checked_sub(1).map_or(0, |last| progress[last].bytes)
    };
    let of = |second: u64| {
        let from = begin + Nanos(second * Nanos::SECOND.0);
        at(from + Nanos::SECOND).saturating_sub(at(from))
    };
    let bytes: Vec<u64> = (0..seconds).map(of).collect();
    let below = bytes.iter().filter(|bytes| (**bytes as f64) < rate).count() as u64;
    VmKept {
        seconds,
        asked: seconds,
        missed: below,
        below,
        least_bytes: bytes.iter().copied().min().unwrap_or_default(),
        bytes: bytes.iter().sum(),
        ..VmKept::default()
    }
}

impl Fared {
    fn new(arm: &str) -> Self {
        Self { arm: arm.to_owned(), kept: Vec::new(), waited: Vec::new(), server_waited: 0.0, is_logged: false }
    }

    fn add(&mut self, run: VmRun) {
        self.is_logged = !run.records.is_empty();
        let block = run.records.iter().map(|record| record.bytes).max().unwrap_or_default();
        self.kept.push(judge(&run, u32::try_from(block).unwrap_or(u32::MAX)));
        self.waited.extend(run.waited.guests);
        self.server_waited = self.server_waited.max(run.waited.server);
    }

    fn sum(&self, of: impl Fn(&VmKept) -> u64) -> [u64; 4] {
        std::array::from_fn(|place| self.kept.iter().map(|run| of(&run[place])).sum())
    }

    /// MB a second of all guests together.
    fn aggregate(&self) -> f64 {
        let seconds: u64 = self.kept.iter().map(|run| run[0].seconds).sum();
        self.sum(|kept| kept.bytes).iter().sum::<u64>() as f64 / seconds.max(1) as f64 / 1e6
    }

    fn told_last(&self) -> String {
        let Some(last) = self.kept.last() else { return String::new() };
        let one = |kept: &VmKept| {
            format!(
                "{} of {} s missed, {} of {} requests late, least {} KB",
                kept.missed,
                kept.asked,
                kept.late,
                kept.requests,
                kept.least_bytes / 1000
            )
        };
        last.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    fn line(&self, arguments: &VmContractsArguments) -> Line {
        let (missed, asked) = (self.sum(|kept| kept.missed), self.sum(|kept| kept.asked));
        let (late, requests) = (self.sum(|kept| kept.late), self.sum(|kept| kept.requests));
        let (within_late, within) = (self.sum(|kept| kept.within_late), self.sum(|kept| kept.within));
        let below = self.sum(|kept| kept.below);
        let value = missed.iter().sum::<u64>() + late.iter().sum::<u64>();
        let least: [u64; 4] =
            std::array::from_fn(|place| self.kept.iter().map(|run| run[place].least_bytes / 1000).min().unwrap_or(0));
        let longest = self.kept.iter().flatten().map(|kept| kept.longest).max().unwrap_or_default();
        let seen = if self.is_logged {
            format!(
                "requests late {late:?} of {requests:?} (longest {:.0} ms of 200); if what was had beyond the contract is not counted against it, {within_late:?} of {within:?}",
                longest.as_secs_f64() * 1e3
            )
        } else {
            "by what the readers report".to_owned()
        };
        let (mut waited, is_htbs) = (self.waited.clone(), self.arm == "htbs");
        waited.sort_by(f64::total_cmp);
        let worst = waited.last().copied().unwrap_or_default();
        Line {
            id: "vm-contracts",
            value: value as f64,
            unit: "seconds missed and requests late",
            goal: if is_htbs { "0".to_owned() } else { "none: shown beside".to_owned() },
            met: !is_htbs || (value == 0 && asked.iter().all(|asked| *asked > 0)),
            detail: format!(
                "{}: readers at {RATES_KB:?} KB/s, {} KiB, {} runs of {} s on {}: seconds missed {missed:?} of {asked:?} asked in, below the rate for any reason {below:?}; {seen}; least second {least:?} KB; {:.1} MB/s in all; guests waited for a processor {:.1} % of the time at most, the server {:.1} %",
                self.arm,
                arguments.block / 1024,
                self.kept.len(),
                arguments.seconds,
                arguments.profile,
                self.aggregate(),
                worst * 100.0,
                self.server_waited * 100.0,
            ),
        }
    }
}
