//! A database and a file server with contracts, beside a greedy guest without one: three guests on one disk. They only read.

use super::programs::Played;
use super::{GIB, Programs, arm, capacity_bytes};
use minerva_blocksched::{FlowParameters, Promise, SchedulerName, UNIT_BYTES};
use minerva_lab::figure::{Record, VmGuest, VmKept, VmPromise, VmReader, VmRun, judge_contract};
use minerva_lab::guest::Architecture;
use minerva_lab::workload::Access;
use minerva_model::Nanos;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Delay of both contracts.
const DELAY: Nanos = Nanos::from_millis(200);

/// A guest and its program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    access: Access,
    block: u32,
    depth: u32,
    think: Nanos,
    /// Bytes a second and burst in bytes.
    pub(crate) contract: Option<(u64, u32)>,
    /// Under the kernel's BFQ, and beyond its reservation under `mclock`.
    weight: u32,
    /// Bytes a second that QEMU lets it have; 0 for as many as it wants.
    limit: u64,
}

/// The three guests. The database reads a page and works on it, so that its contract is a matter of delay; the file server reads for
/// several clients all the time, so that its contract is a matter of rate.
pub(crate) const MEMBERS: [Member; 3] = [
    Member {
        name: "database",
        access: Access::RandomRead,
        block: 16 << 10,
        depth: 1,
        think: Nanos::from_millis(30),
        contract: Some((200_000, 32 << 10)),
        weight: 400,
        limit: 0,
    },
    Member {
        name: "files",
        access: Access::SequentialRead,
        block: 64 << 10,
        depth: 4,
        think: Nanos::ZERO,
        // At least 2 MB in each second: see `Member::judge`.
        contract: Some((2_600_000, 128 << 10)),
        weight: 400,
        limit: 0,
    },
    Member {
        name: "greedy",
        access: Access::SequentialRead,
        block: 256 << 10,
        depth: 8,
        think: Nanos::ZERO,
        contract: None,
        weight: 100,
        // QEMU knows nothing of the others' contracts: what is left where they have theirs, by the disk's speed.
        limit: 10_000_000,
    },
];

/// What a guest got in one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Had {
    /// Whether its contract was kept; none without a contract or a log of requests.
    pub(crate) kept: Option<VmKept>,
    pub(crate) bytes_per_second: f64,
    /// Latencies of its requests, ascending; empty without a log of requests.
    pub(crate) times: Vec<Nanos>,
}

impl Had {
    /// A percentile of its latencies, in milliseconds.
    pub(crate) fn milliseconds(&self, percent: usize) -> f64 {
        let at = self.times.get(self.times.len() * percent / 100).or(self.times.last());
        at.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

/// The guests on the disk `profile`, with the settings that `scheduler` takes.
pub(crate) fn guests(scheduler: &str, profile: &str) -> Vec<VmGuest> {
    let distance = (capacity_bytes(profile) / 2 / MEMBERS.len() as u64 / GIB).max(1) * GIB;
    (0..).zip(&MEMBERS).map(|(place, member)| member.guest(scheduler, distance * place, distance)).collect()
}

/// The same settings for a scheduler of the simulator.
pub(crate) fn parameters(scheduler: SchedulerName) -> Vec<FlowParameters> {
    let of = |member: &Member| {
        let contract = member.contract.filter(|_| scheduler.keeps(Promise::Contract));
        let contract =
            contract.map(|(rate, burst)| scheduler.contract(rate as f64, f64::from(burst), DELAY, UNIT_BYTES));
        let parameters = FlowParameters { contract, ..FlowParameters::default() };
        match member.contract.filter(|_| scheduler.keeps(Promise::Reservation)) {
            Some((rate, _)) => FlowParameters {
                weight: member.weight,
                reservation_per_second: rate as f64 / f64::from(UNIT_BYTES),
                ..parameters
            },
            None => parameters,
        }
    };
    MEMBERS.iter().map(of).collect()
}

/// Boots the guests and lets them read for some seconds on the disk `profile`.
pub(crate) fn play(
    programs: &Programs,
    name: &str,
    (profile, seconds): (&str, u64),
    log: Option<PathBuf>,
    interrupted: &AtomicBool,
) -> anyhow::Result<VmRun> {
    let (arm, guests) = (arm(name), guests(name, profile));
    programs.run(Played { arm, guests, device: String::new(), profile, seconds, log }, interrupted)
}

/// What each guest got, in the order of [`MEMBERS`].
pub(crate) fn judge(run: &VmRun) -> Vec<Had> {
    (0..MEMBERS.len()).map(|place| MEMBERS[place].judge(run, place)).collect()
}

impl Member {
    fn guest(&self, scheduler: &str, region_start: u64, region_bytes: u64) -> VmGuest {
        let served = match (scheduler, self.contract) {
            ("htbs" | "pclock", Some((rate, burst))) => {
                // pClock is measured even where it refuses the contracts.
                let force = if scheduler == "htbs" { "" } else { "force = true\n" };
                let access = if self.access == Access::RandomRead { "random" } else { "sequential" };
                let delay_ms = DELAY.0 / 1_000_000;
                format!(
                    "rate = {rate}\nburst = {burst}\ndelay = \"{delay_ms}ms\"\naccess = \"{access}\"\nrequest = {}\n{force}",
                    self.block
                )
            }
            ("mclock", Some((rate, _))) => format!("rate = {rate}\nweight = {}\n", self.weight),
            _ => String::new(),
        };
        let reader = VmReader {
            access: self.access,
            block_bytes: self.block,
            depth: self.depth,
            think: self.think,
            region_start,
            region_bytes,
            ioprio: None,
        };
        VmGuest {
            name: self.name.to_owned(),
            architecture: Architecture::HOST,
            served,
            bfq_weight: self.weight,
            limit_bytes_per_second: self.limit,
            elevator: "none",
            readers: vec![reader],
        }
    }

    fn judge(&self, run: &VmRun, place: usize) -> Had {
        let own: Vec<&Record> = run.records.iter().filter(|record| record.disk == self.name).collect();
        let within = |record: &&&Record| run.begin <= record.done && record.done < run.end;
        let mut times: Vec<Nanos> = own.iter().filter(within).map(|record| record.done.since(record.arrived)).collect();
        times.sort_unstable();
        let seconds = run.end.since(run.begin).as_secs_f64().max(1e-9);
        let bytes_per_second = match run.records.is_empty() {
            true => {
                let reported = super::reported_bytes(&run.guests[place], 0);
                reported.iter().sum::<u64>() as f64 / reported.len().max(1) as f64
            }
            false => own.iter().filter(within).map(|record| record.bytes).sum::<u64>() as f64 / seconds,
        };
        // A guest that the log does not know was never answered.
        let kept = self.contract.filter(|_| !run.records.is_empty()).map(|(rate, burst)| {
            let rate = rate as f64;
            let promise = VmPromise {
                // A service curve of rate and delay says nothing of the first `delay` of a second.
                bytes_per_second: rate * (1.0 - DELAY.as_secs_f64()) - f64::from(self.block),
                contract_bytes_per_second: rate,
                burst_bytes: f64::from(burst),
                delay: DELAY,
                think: self.think,
            };
            judge_contract(&own, &promise, run.begin, run.end)
        });
        Had { kept, bytes_per_second, times }
    }
}

#[cfg(test)]
mod tests {
    use super::{MEMBERS, judge};
    use minerva_lab::figure::{Record, VmProgress, VmRun, VmWaited};
    use minerva_model::Nanos;

    #[test]
    fn a_guest_that_was_never_answered_has_not_kept_its_contract() {
        let (begin, end) = (Nanos::from_secs(1), Nanos::from_secs(5));
        let other = |second| Record {
            disk: MEMBERS[1].name.to_owned(),
            tag: 0,
            bytes: 8 << 20,
            arrived: Nanos::from_secs(second),
            sent: Nanos::from_secs(second),
            done: Nanos::from_millis(second * 1000 + 999),
        };
        let guests = vec![VmProgress { begin, end, readers: vec![Vec::new()] }; MEMBERS.len()];
        let records = (0..5).map(other).collect();
        let had = judge(&VmRun { records, begin, end, guests, waited: VmWaited::default() });
        let kept = had[0].kept.as_ref().expect("a contract");
        assert_eq!((kept.asked, kept.missed, kept.late), (4, 4, 1));
        assert!(MEMBERS[0].contract.is_some() && had[1].kept.as_ref().is_some_and(|kept| kept.missed == 0));
    }
}
