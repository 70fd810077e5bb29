//! Guests with contracts (Rocha and Bona, HTBS): each has one program that reads a file in rows, as fast as it can.

use super::programs::Played;
use super::{GIB, Programs, arm, capacity_bytes, reported_bytes};
use minerva_blocksched::{FlowParameters, Promise, SchedulerName, UNIT_BYTES};
use minerva_lab::figure::{Record, VmArm, VmGuest, VmKept, VmPromise, VmReader, VmRun, judge_contract};
use minerva_lab::guest::Architecture;
use minerva_lab::workload::Access;
use minerva_model::Nanos;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The paper's four jobs.
pub(crate) const RATES_KB: [u32; 4] = [8800, 4000, 2000, 800];
/// Within what time each of their requests is to be done.
const DELAY: Nanos = Nanos::from_millis(200);
/// What equal readers are promised together, and by how much each more of them may be served later, as `minerva-sim reproduce htbs`
/// has it.
const READERS_KB: u32 = 8000;
const READERS_DELAY: Nanos = Nanos::from_millis(150);
/// BFQ's greatest weight is for the greatest rate.
const BFQ_WEIGHT_MAX: u32 = 1000;

/// Readers, each in a guest of its own, on one disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scene {
    /// KB a second that each is promised.
    pub(crate) rates_kb: Vec<u32>,
    /// Bytes a request.
    pub(crate) block: u32,
    /// Within what time each request is to be done.
    pub(crate) delay: Nanos,
    /// The rate is promised for every second; else it is the contract's.
    pub(crate) is_every_second: bool,
}

impl Scene {
    /// The paper's four synchronous jobs.
    pub(crate) fn four_jobs(block: u32) -> Self {
        Self { rates_kb: RATES_KB.to_vec(), block, delay: DELAY, is_every_second: true }
    }

    /// `count` readers with equal contracts.
    pub(crate) fn equal_readers(count: u32, block: u32) -> Self {
        let rates_kb = vec![READERS_KB / count.max(1); count as usize];
        Self { rates_kb, block, delay: Nanos(READERS_DELAY.0 * u64::from(count)), is_every_second: false }
    }

    /// What a contract has to say so that its guest gets the rate in every second: a service curve of rate and delay says nothing of
    /// the first `delay` of a second, and a request that straddles its end counts in the next.
    fn contract_bytes_per_second(&self, place: usize) -> u64 {
        let rate = f64::from(self.rates_kb[place]) * 1e3;
        match self.is_every_second {
            true => ((rate + f64::from(self.block)) / (1.0 - self.delay.as_secs_f64())) as u64,
            false => rate as u64,
        }
    }

    /// The guests, as `scheduler` is told of them, on the disk `profile`.
    pub(crate) fn guests(&self, scheduler: &str, profile: &str) -> Vec<VmGuest> {
        (0..self.rates_kb.len()).map(|place| self.guest(place, scheduler, capacity_bytes(profile))).collect()
    }

    fn guest(&self, place: usize, scheduler: &str, capacity: u64) -> VmGuest {
        let (rate_kb, block) = (self.rates_kb[place], self.block);
        let rate = self.contract_bytes_per_second(place);
        // Shown is also what comes of contracts that cannot be kept, as pClock's, and what equal readers get together.
        let is_kept = self.is_every_second && scheduler == "htbs";
        let force = if is_kept { "" } else { "\nforce = true" };
        let served = match scheduler {
            "htbs" | "pclock" => {
                format!("rate = {rate}\nburst = {block}\ndelay = \"{}ms\"{force}", self.delay.0 / 1_000_000)
            }
            "mclock" => format!("rate = {rate}\nweight = {}", rate_kb.div_ceil(10)),
            _ => String::new(),
        };
        // Files lie at equal distances over the outer half of the disk, as on a young file system.
        let distance = (capacity / 2 / self.rates_kb.len() as u64 / GIB).max(1) * GIB;
        let reader = VmReader {
            access: Access::SequentialRead,
            block_bytes: block,
            depth: 1,
            think: Nanos::ZERO,
            region_start: distance * place as u64,
            region_bytes: distance,
            ioprio: None,
        };
        VmGuest {
            name: name(place),
            architecture: Architecture::HOST,
            served,
            bfq_weight: (rate_kb * BFQ_WEIGHT_MAX / self.rates_kb[0]).max(1),
            limit_bytes_per_second: u64::from(rate_kb) * 1000,
            elevator: "none",
            readers: vec![reader],
        }
    }

    /// What the text of [`Scene::guests`] is to a scheduler.
    pub(crate) fn parameters(&self, scheduler: SchedulerName) -> Vec<FlowParameters> {
        let of = |place: usize| {
            let rate = self.contract_bytes_per_second(place) as f64;
            let contract = scheduler.contract(rate, f64::from(self.block), self.delay, UNIT_BYTES);
            let is_reserved = scheduler.keeps(Promise::Reservation);
            FlowParameters {
                weight: if is_reserved { self.rates_kb[place].div_ceil(10) } else { 100 },
                contract: scheduler.keeps(Promise::Contract).then_some(contract),
                reservation_per_second: if is_reserved { rate / f64::from(UNIT_BYTES) } else { 0.0 },
                ..FlowParameters::default()
            }
        };
        (0..self.rates_kb.len()).map(of).collect()
    }

    /// The guests boot, and read for some seconds, on the disk `profile`.
    pub(crate) fn play(
        &self,
        programs: &Programs,
        name: &str,
        (profile, seconds): (&str, u64),
        log: Option<PathBuf>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<VmRun> {
        let (arm, guests) = (arm(name), self.guests(name, profile));
        programs.run(Played { arm, guests, device: String::new(), profile, seconds, log }, interrupted)
    }

    /// What each guest had, request by request from the log of requests; where there is none, second by second from what the
    /// readers reported.
    pub(crate) fn judge(&self, run: &VmRun) -> Vec<VmKept> {
        (0..self.rates_kb.len()).map(|place| self.judge_one(run, place)).collect()
    }

    fn judge_one(&self, run: &VmRun, place: usize) -> VmKept {
        let bytes_per_second = f64::from(self.rates_kb[place]) * 1e3;
        let promise = VmPromise {
            bytes_per_second,
            contract_bytes_per_second: self.contract_bytes_per_second(place) as f64,
            burst_bytes: f64::from(self.block),
            delay: self.delay,
            think: Nanos::ZERO,
        };
        let own = records(run, place);
        // A guest that the log does not know was never answered.
        match run.records.is_empty() {
            true => judge_progress(&reported_bytes(&run.guests[place], 0), bytes_per_second),
            false => judge_contract(&own, &promise, run.begin, run.end),
        }
    }
}

fn name(place: usize) -> String {
    format!("vm{place}")
}

fn records(run: &VmRun, place: usize) -> Vec<&Record> {
    let name = name(place);
    run.records.iter().filter(|record| record.disk == name).collect()
}

/// What a guest had in each whole second, in KB.
pub(crate) fn seconds_kb(run: &VmRun, place: usize) -> Vec<f64> {
    let own = records(run, place);
    if own.is_empty() {
        return reported_bytes(&run.guests[place], 0).into_iter().map(|bytes| bytes as f64 / 1e3).collect();
    }
    let mut bins = vec![0.0; (run.end.since(run.begin).0 / Nanos::SECOND.0) as usize];
    for record in own.into_iter().filter(|record| record.done >= run.begin) {
        if let Some(bin) = bins.get_mut((record.done.since(run.begin).0 / Nanos::SECOND.0) as usize) {
            *bin += record.bytes as f64 / 1e3;
        }
    }
    bins
}

/// How long the programs took to ask again, as the log has it: the median of all guests. None where there is no log.
pub(crate) fn think(run: &VmRun) -> Option<Nanos> {
    let mut thoughts: Vec<Nanos> = Vec::new();
    for place in 0..run.guests.len() {
        let own = records(run, place);
        thoughts.extend(own.windows(2).map(|pair| pair[1].arrived.since(pair[0].done)));
    }
    thoughts.sort_unstable();
    thoughts.get(thoughts.len() / 2).copied()
}

/// Second by second; whether the guest asked all the time is not known.
fn judge_progress(bytes: &[u64], rate: f64) -> VmKept {
    let seconds = bytes.len() as u64;
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

/// Whether the simulator has such an arm, and which scheduler it is there.
pub(crate) fn simulated(name: &str) -> Option<SchedulerName> {
    match arm(name) {
        VmArm::Served(scheduler) => scheduler.parse().ok(),
        VmArm::KernelBfq => Some(SchedulerName::Bfq),
        VmArm::QemuThrottle => None,
    }
}
