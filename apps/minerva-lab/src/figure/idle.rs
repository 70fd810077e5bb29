//! `minerva-lab figure idle`

use super::{Line, drawn_seed, in_guest, median};
use crate::cli::IdleArguments;
use crate::{binaries, output, signals};
use minerva_lab::figure::{Alone, Beside, IdlePlan, idle};
use minerva_lab::workload::{Latency, WorkerProgram, blkio_version};
use minerva_model::{CgroupVersion, Nanos};
use std::time::Duration;

const PROFILES: [&str; 2] = ["sata7200-80g", "sata-ssd"];
/// Processors are emulated there, so the disk is one that is slow beside them.
const PROFILE_IN_GUEST: &str = PROFILES[0];
/// For a guest to boot; and in each window, what stands around it counted in.
const BOOT: Duration = Duration::from_secs(240);
const AROUND_A_WINDOW: u64 = 15;
const WINDOWS_A_ROUND: u64 = 12;

/// What others may lose beside a tenant at `idle`, in percent of their throughput and of their p99.
const LOSS_PERCENT_MAX: f64 = 3.0;
const P99_PERCENT_MAX: f64 = 10.0;
/// What it gets of a disk that nobody else uses, in percent.
const ALONE_PERCENT_MIN: f64 = 90.0;
/// So many pairs of windows are asked for: fewer meet no goal.
const ROUNDS_MIN: usize = 5;

pub(super) fn run(arguments: &IdleArguments) -> anyhow::Result<()> {
    let seed = drawn_seed(arguments.seed);
    if arguments.guest {
        return measure_in_guest(arguments, seed);
    }
    measure(arguments, seed)?;
    match blkio_version() {
        CgroupVersion::V1 if !arguments.no_guest => measure_in_guest(arguments, seed),
        _ => Ok(()),
    }
}

fn measure(arguments: &IdleArguments, seed: u64) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let profiles = match arguments.profile.is_empty() {
        true => PROFILES.map(str::to_owned).to_vec(),
        false => arguments.profile.clone(),
    };
    for profile in &profiles {
        for elevator in &arguments.elevator {
            let plan = IdlePlan {
                profile: profile.clone(),
                elevator: elevator.clone(),
                window: Nanos::from_secs(arguments.seconds.max(1)),
                rounds: arguments.rounds,
                seed,
                daemon: binaries::minervad(&arguments.output)?,
            };
            let result = idle(&plan, &program, &interrupted)?;
            let disk = format!("{profile}, {elevator}, cgroup {:?}", blkio_version());
            result.beside.iter().try_for_each(|beside| lost(&disk, beside).print(arguments.output.json))?;
            result.alone.iter().try_for_each(|alone| got(&disk, alone).print(arguments.output.json))?;
        }
    }
    Ok(())
}

/// The same in a guest, whose kernel has the io controller of cgroup v2.
fn measure_in_guest(arguments: &IdleArguments, seed: u64) -> anyhow::Result<()> {
    let IdleArguments { rounds, seconds, elevator, profile, .. } = arguments;
    let profile = if profile.is_empty() { PROFILE_IN_GUEST.to_owned() } else { profile.join(",") };
    let disks = (profile.split(',').count() * elevator.len().max(1)) as u64;
    let elevator = elevator.join(",");
    let figure =
        format!("idle --profile {profile} --elevator {elevator} --rounds {rounds} --seconds {seconds} --seed {seed}");
    let windows = disks * WINDOWS_A_ROUND * u64::from(*rounds).saturating_add(1);
    let patience = BOOT + Duration::from_secs(windows * (seconds + AROUND_A_WINDOW));
    match in_guest::figure(&figure, &arguments.output, patience)? {
        Ok(lines) => output::line(lines),
        Err(why) => {
            let (detail, goal) = (format!("not measured on cgroup v2: {why}"), "as on cgroup v1".to_owned());
            Line { id: "idle", value: f64::NAN, unit: "% lost", goal, met: false, detail }.print(arguments.output.json)
        }
    }
}

/// What another tenant loses: in each pair of windows of its throughput, over all of its p99.
fn lost(disk: &str, beside: &Beside) -> Line {
    let losses: Vec<f64> =
        beside.pairs.iter().map(|[with, without]| (1.0 - ratio(with.mb_per_s, without.mb_per_s)) * 100.0).collect();
    let loss = median(losses.iter().copied());
    let [with, without] = [0, 1].map(|index| {
        let latency = Latency::merged(beside.pairs.iter().map(|pair| &pair[index].latency));
        (latency.quantile(0.99).unwrap_or_default().as_secs_f64() * 1e3, latency.count())
    });
    let longer = (ratio(with.0, without.0) - 1.0) * 100.0;
    let rate = |index: usize| median(beside.pairs.iter().map(|pair| pair[index].mb_per_s));
    Line {
        id: "idle",
        value: loss,
        unit: "% lost",
        goal: format!("at most {LOSS_PERCENT_MAX}, and p99 at most {P99_PERCENT_MAX} % longer, in {ROUNDS_MIN} pairs"),
        met: beside.pairs.len() >= ROUNDS_MIN && loss <= LOSS_PERCENT_MAX && longer <= P99_PERCENT_MAX,
        detail: format!(
            "{disk}, {}: {:.2} MB/s for {:.2} ({} pairs, {}); p99 {longer:+.1} % ({:.2} ms for {:.2}, of {} and {} requests); in its \
             first two seconds {:.2} MB/s for {:.2}; the one at idle completed {:.2} requests a second",
            beside.words,
            rate(0),
            rate(1),
            beside.pairs.len(),
            spread(&losses, "% lost"),
            with.0,
            without.0,
            with.1,
            without.1,
            beside.arrival_mb_per_s[0],
            beside.arrival_mb_per_s[1],
            beside.idle_requests_per_s,
        ),
    }
}

/// What a tenant at `idle` gets of a disk that nobody else uses.
fn got(disk: &str, alone: &Alone) -> Line {
    let parts: Vec<f64> = alone.mb_per_s.iter().map(|[idle, normal]| ratio(*idle, *normal) * 100.0).collect();
    let part = median(parts.iter().copied());
    let rate = |index: usize| median(alone.mb_per_s.iter().map(|pair| pair[index]));
    Line {
        id: "idle",
        value: part,
        unit: "% of the idle disk",
        goal: format!("at least {ALONE_PERCENT_MIN} in {ROUNDS_MIN} pairs"),
        met: parts.len() >= ROUNDS_MIN && part >= ALONE_PERCENT_MIN,
        detail: format!(
            "{disk}, {} alone: {:.2} MB/s at idle for {:.2} at normal ({} pairs, {})",
            alone.words,
            rate(0),
            rate(1),
            parts.len(),
            spread(&parts, "%"),
        ),
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    part / whole.max(f64::MIN_POSITIVE)
}

fn spread(values: &[f64], unit: &str) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.1} to {most:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{got, lost};
    use minerva_lab::figure::{Alone, Beside, Window};
    use minerva_lab::workload::Latency;

    #[test]
    fn too_few_pairs_meet_no_goal() {
        let met = |pairs: usize| {
            let window = || Window { mb_per_s: 10.0, latency: Latency::default() };
            let beside = Beside {
                words: String::new(),
                pairs: (0..pairs).map(|_| [window(), window()]).collect(),
                arrival_mb_per_s: [10.0; 2],
                idle_requests_per_s: 1.0,
            };
            let alone = Alone { words: String::new(), mb_per_s: vec![[9.5, 10.0]; pairs] };
            [lost("d", &beside).met, got("d", &alone).met]
        };
        assert_eq!([met(5), met(4)], [[true; 2], [false; 2]]);
    }
}
