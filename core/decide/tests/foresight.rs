//! What acting on forecasts may cost and what it gains, on a fluid disk that deals its bandwidth by share.

#![expect(clippy::unwrap_used, reason = "a world that lacks what it is asked for is a failed test")]

mod fluid;

use fluid::{DISK, Fluid, forecast};
use minerva_decide::{DecideInput, Decider};
use minerva_model::{
    Burst, Decision, EngineConfig, Horizon, IoCounters, IoSignals, JobSettings, Nanos, Outlook, PHASES, Phases,
    PolicyName, Signals, TenantId,
};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

const MEGABYTE: f64 = 1e6;
/// The four jobs of Malensek et al. 2016, section 3.3.
const SIZES: [f64; 4] = [200.0 * MEGABYTE, 500.0 * MEGABYTE, 3_000.0 * MEGABYTE, 12_000.0 * MEGABYTE];

fn sessions(fluid: &Fluid, skill: f64) -> Outlook {
    let rows = fluid.jobs.iter().enumerate().filter(|(_, job)| job.left > 0.0);
    Outlook::new(rows.map(|(id, job)| forecast(id as u64, Horizon::Session, job.left, skill, fluid.now)).collect())
}

/// Seconds after which each of the four is done, when all start together.
fn four(skill: Option<f64>) -> Vec<f64> {
    let mut fluid = Fluid::new(&SIZES);
    while fluid.jobs.iter().any(|job| job.left > 0.0) {
        let outlook = skill.map_or_else(Outlook::default, |skill| sessions(&fluid, skill));
        fluid.slice(outlook);
    }
    fluid.jobs.iter().map(|job| job.done_at.unwrap()).collect()
}

#[test]
fn the_short_go_first_although_all_start_together_and_the_long_are_not_late() {
    let without = four(None);
    let mut before = without.clone();
    for (skill, first, second) in [(0.4, 0.35, 0.2), (0.6, 0.5, 0.3), (1.0, 0.6, 0.4)] {
        let with = four(Some(skill));
        let sooner = |index: usize| 1.0 - with[index] / without[index];
        assert!(sooner(0) > first && sooner(1) > second, "{skill}: {with:?} against {without:?}");
        assert!(sooner(2) > 0.0 && sooner(3) > -0.01, "{skill}: {with:?} against {without:?}");
        assert!(
            with.iter().zip(&before).take(3).all(|(with, before)| with < before),
            "more skill, more gain: {with:?}"
        );
        before = with;
    }
    assert_eq!(four(Some(0.0)), without);
    assert_eq!(four(Some(-1.0)), without);
}

/// Seconds after which three honest tenants are done beside one that reads for ever. `says` is what is foreseen of each, by its
/// number and what it has left.
fn beside_a_liar(says: &dyn Fn(u64, f64) -> Option<f64>) -> Vec<f64> {
    let mut fluid = Fluid::new(&[SIZES[0], SIZES[1], SIZES[2], 1e15]);
    while fluid.jobs[..3].iter().any(|job| job.left > 0.0) {
        let busy = fluid.jobs.iter().enumerate().filter(|(_, job)| job.left > 0.0);
        let row = |(id, job): (usize, &fluid::Job)| {
            let left = says(id as u64, job.left)?;
            Some(forecast(id as u64, Horizon::Session, left, 0.9, fluid.now))
        };
        let outlook = Outlook::new(busy.filter_map(row).collect());
        fluid.slice(outlook);
    }
    fluid.jobs[..3].iter().map(|job| job.done_at.unwrap()).collect()
}

#[test]
fn who_opens_small_files_to_look_short_and_reads_for_ever_loses_its_place() {
    let without = beside_a_liar(&|_, _| None);
    let honest = beside_a_liar(&|_, left| Some(left));
    let unforeseen = beside_a_liar(&|id, left| (id < 3).then_some(left));
    assert!(unforeseen[0] < 0.6 * without[0], "who is not foreseen takes nothing: {unforeseen:?}, {without:?}");
    for small in [0.0, 1.0, 10.0, 60.0] {
        let lied = beside_a_liar(&|id, left| Some(if id < 3 { left } else { small * MEGABYTE }));
        for index in 0..3 {
            // It gains what its files look like, and then what it has had counts, as it does for every newcomer.
            assert!(lied[index] < 2.2 * honest[index], "{small} MB: {lied:?} beside a liar, {honest:?} without");
            assert!(lied[index] < 1.1 * without[index], "{small} MB: {lied:?}, without any forecast {without:?}");
        }
    }
}

/// Two that read and compute in turns, from the same moment, for ten minutes: bytes of each, and cycles.
fn alternating(is_foreseen: bool, compute: u32) -> ([f64; 2], [u32; 2]) {
    let (burst, seconds) = (400.0 * MEGABYTE, 600);
    let mut fluid = Fluid::new(&[burst, burst]);
    let (mut waits, mut cycles) = ([0_u32; 2], [0_u32; 2]);
    for _ in 0..seconds {
        let phases = |id: usize| {
            // As a forecaster that knows the cycle has it, when the other is not there.
            let busy = |ahead: u32| if waits[id] > 0 { ahead >= waits[id] } else { ahead % (4 + compute) < 4 };
            let busy_permille = std::array::from_fn(|ahead| if busy(ahead as u32) { 900 } else { 100 });
            Phases {
                tenant: TenantId(id as u64),
                device: DISK,
                busy_permille,
                skill: 0.8,
                burst: Burst::default(),
                made_at: fluid.next(),
            }
        };
        let outlook = if is_foreseen { vec![phases(0), phases(1)] } else { Vec::new() };
        fluid.slice(Outlook::default().with_phases(outlook));
        for id in 0..2 {
            if fluid.jobs[id].left <= 0.0 {
                waits[id] += 1;
                if waits[id] > compute {
                    (waits[id], cycles[id]) = (0, cycles[id] + 1);
                    fluid.jobs[id].left = burst;
                }
            }
        }
    }
    ([0, 1].map(|id| fluid.jobs[id].moved), cycles)
}

#[test]
fn bursts_take_turns_so_that_one_computes_while_the_other_reads() {
    for compute in [3, 5, 8] {
        let (without, cycles_without) = alternating(false, compute);
        let (with, cycles) = alternating(true, compute);
        let gain = with.iter().sum::<f64>() / without.iter().sum::<f64>();
        assert!(gain > 1.1, "{compute} s of computing: {gain}, {cycles:?} against {cycles_without:?}");
        assert!(cycles[0] >= cycles_without[0] && cycles[1] >= cycles_without[1], "{cycles:?}, {cycles_without:?}");
        let ratio = with[0] / with[1];
        assert!((0.9..1.1).contains(&ratio), "{compute} s of computing: one has {ratio} of the other");
    }
}

/// The same, told by bursts that are alike and by nothing else.
#[test]
fn bursts_that_are_alike_take_turns_although_nobody_knows_when_they_come() {
    let run = |certainty: f64| {
        let (burst, compute) = (400.0 * MEGABYTE, 4);
        let mut fluid = Fluid::new(&[burst, burst]);
        let mut waits = [0_u32; 2];
        for _ in 0..600 {
            let phases = |id: u64| Phases {
                tenant: TenantId(id),
                device: DISK,
                busy_permille: [500; PHASES],
                skill: 0.0,
                burst: Burst { bytes: burst, certainty, by_runs: false },
                made_at: fluid.next(),
            };
            fluid.slice(Outlook::default().with_phases(vec![phases(0), phases(1)]));
            for (job, wait) in fluid.jobs.iter_mut().zip(&mut waits) {
                *wait += u32::from(job.left <= 0.0);
                if *wait > compute {
                    (*wait, job.left) = (0, burst);
                }
            }
        }
        [0, 1].map(|id| fluid.jobs[id].moved)
    };
    let (with, without) = (run(0.9), run(0.0));
    let gain = with.iter().sum::<f64>() / without.iter().sum::<f64>();
    assert!(gain > 1.1 && (0.9..1.1).contains(&(with[0] / with[1])), "{gain}: {with:?}, {without:?}");
}

/// A job that is run again and again, each time as a tenant of which nothing is known, beside one that is known to alternate:
/// bytes of both in the last run. `last` is what it does there; before it did as the other does, so that both have the same past.
fn runs_again(runs: usize, is_told: bool, last: &dyn Fn(u32) -> (f64, u32)) -> [f64; 2] {
    let (burst, compute) = (400.0 * MEGABYTE, 4);
    let mut fluid = Fluid::new(&[burst, 0.0]);
    let mut moved = [0.0; 2];
    for run in 0..=runs {
        let job = JobSettings { name: "batch".to_owned(), bytes: None };
        fluid.decider.job_declared(TenantId(1), Some(job));
        let before = [0, 1].map(|id: usize| fluid.jobs[id].moved);
        // Both begin at once.
        fluid.jobs[0].left = burst;
        fluid.jobs[1].left = if run == runs { last(0).0 } else { burst };
        let (mut number, mut waits) = (1, [0_u32; 2]);
        for _ in 0..90 {
            let own = |tenant: u64, burst: Burst| Phases {
                tenant: TenantId(tenant),
                device: DISK,
                busy_permille: [500; PHASES],
                skill: 0.0,
                burst,
                made_at: fluid.next(),
            };
            let mut phases = vec![own(0, Burst { bytes: burst, certainty: 0.9, by_runs: false })];
            // In the runs before nobody is told, so that both arms have the same past.
            let told = fluid.decider.job_bursts().into_iter().filter(|_| is_told && run == runs);
            phases.extend(told.map(|(tenant, _, burst)| own(tenant.0, burst)));
            fluid.slice(Outlook::default().with_phases(phases));
            for (id, (wait, job)) in waits.iter_mut().zip(&mut fluid.jobs).enumerate() {
                *wait += u32::from(job.left <= 0.0);
                let (bytes, rest) = if id == 1 && run == runs { last(number) } else { (burst, compute) };
                if *wait > rest {
                    (*wait, job.left) = (0, bytes);
                    number += u32::from(id == 1);
                }
            }
        }
        moved = [0, 1].map(|id: usize| fluid.jobs[id].moved - before[id]);
        fluid.jobs[1].left = 0.0;
        fluid.decider.job_declared(TenantId(1), None);
    }
    moved
}

#[test]
fn a_job_that_is_run_again_takes_turns_from_its_first_bursts_on_by_what_its_runs_did() {
    let repeated = |runs, is_told| runs_again(runs, is_told, &|_| (400.0 * MEGABYTE, 4));
    let (with, without) = (repeated(4, true), repeated(4, false));
    let gain = with.iter().sum::<f64>() / without.iter().sum::<f64>();
    assert!(gain > 1.05, "{gain}: {with:?}, {without:?}");
    assert!(with.iter().zip(&without).all(|(with, without)| *with > 0.98 * without), "{with:?}, {without:?}");
    assert_eq!(repeated(0, true), repeated(0, false), "a name of which nothing is known");
}

#[test]
fn a_job_that_does_not_what_its_runs_did_costs_others_a_burst_at_most() {
    let lies = [("scans on and on", (1e15, 0)), ("bursts four times as long", (1600.0 * MEGABYTE, 4))];
    for (what, lie) in lies {
        let (with, without) = (runs_again(4, true, &|_| lie), runs_again(4, false, &|_| lie));
        // Before it differs it is believed: that costs the other one burst of nine, once.
        assert!(with[0] > 0.85 * without[0], "{what}: {with:?}, {without:?}");
        assert!(with.iter().sum::<f64>() > 0.9 * without.iter().sum::<f64>(), "{what}: {with:?}, {without:?}");
    }
}

#[derive(Clone, Debug)]
struct Told {
    bytes: Vec<u64>,
    left: Vec<f64>,
    skills: Vec<f64>,
    busy: Vec<u16>,
}

fn any_told(tenants: usize) -> impl Strategy<Value = Told> {
    let bytes = prop_oneof![1 => 0..1_u64, 3 => 1..50_000_000_u64];
    let left = prop_oneof![4 => 0.0..1e11_f64, 1 => any::<f64>()];
    let skill = prop_oneof![4 => 0.0..=1.0_f64, 1 => any::<f64>()];
    (vec(bytes, tenants), vec(left, tenants), vec(skill, tenants), vec(0..=1_000_u16, tenants * PHASES))
        .prop_map(|(bytes, left, skills, busy)| Told { bytes, left, skills, busy })
}

impl Told {
    fn signals(&self) -> Signals {
        let row = |(index, bytes): (usize, &u64)| IoSignals {
            tenant: TenantId(index as u64),
            device: DISK,
            elapsed: Nanos::SECOND,
            transferred: IoCounters { read_bytes: *bytes, read_ops: u64::from(*bytes > 0), ..IoCounters::default() },
            latency: None,
            served: None,
            disk_time: Nanos::ZERO,
            active: *bytes > 0,
        };
        Signals { io: self.bytes.iter().enumerate().map(row).collect(), ..Signals::default() }
    }

    /// The first tenant is not foreseen.
    fn outlook(&self, now: Nanos, skill_max: f64) -> Outlook {
        let (mut forecasts, mut phases) = (Vec::new(), Vec::new());
        for (id, (left, skill)) in self.left.iter().zip(&self.skills).enumerate().skip(1) {
            let (tenant, skill) = (id as u64, skill.min(skill_max));
            forecasts.push(forecast(tenant, Horizon::Session, *left, skill, now));
            forecasts.push(forecast(tenant, Horizon::NextSlice, left / 10.0, skill / 2.0, now));
            let busy_permille = std::array::from_fn(|ahead| self.busy[id * PHASES + ahead]);
            phases.push(Phases {
                tenant: TenantId(tenant),
                device: DISK,
                busy_permille,
                skill,
                burst: Burst::default(),
                made_at: now,
            });
        }
        Outlook::new(forecasts).with_phases(phases)
    }
}

fn decider(tenants: usize, waiting_take_part: bool) -> Decider {
    let mut decider = Decider::default();
    let mut config = EngineConfig::default();
    config.forecast.waiting_take_part = waiting_take_part;
    decider.configure(Nanos::ZERO, &config);
    for id in 0..tenants {
        decider.tenant_seen(Nanos::ZERO, &fluid::tenant(id), &[]);
    }
    decider
}

/// The share before it is rounded, raised and kept above the floor; with forecasts, and without.
fn shares(decision: &Decision) -> (f64, f64) {
    let by_forecast = [PolicyName::FORESIGHT, PolicyName::INTERLEAVE];
    let product = |wanted: &dyn Fn(&PolicyName) -> bool| {
        decision.factors.iter().filter(|factor| wanted(&factor.policy)).map(|factor| factor.value).product::<f64>()
    };
    let without = product(&|policy| *policy == PolicyName::FENNEL);
    (without * product(&|policy| by_forecast.contains(policy)), without)
}

fn any_run() -> impl Strategy<Value = Vec<Told>> {
    (2..6_usize).prop_flat_map(|tenants| vec(any_told(tenants), 1..40))
}

proptest! {
    /// Whatever is foreseen: shares move no further than skill allows, none is made or lost, and nobody else is touched.
    #[test]
    fn shares_move_no_further_than_skill_has_earned(
        run in any_run(),
        skill_max in 0.0..=1.0_f64,
        waiting_take_part in any::<bool>(),
    ) {
        let mut decider = decider(run[0].bytes.len(), waiting_take_part);
        for (slice, told) in run.iter().enumerate() {
            let now = Nanos::from_secs(slice as u64 + 1);
            let signals = told.signals();
            decider.slice(now, DecideInput { signals: &signals, outlook: told.outlook(now, skill_max) });
            let decisions: Vec<Decision> = decider.decisions().collect();
            let present = |decision: &&Decision| told.bytes[decision.tenant.0 as usize] > 0;
            let sum = |of: &dyn Fn(&Decision) -> f64| decisions.iter().filter(present).map(of).sum::<f64>();
            let (with, without) = (sum(&|decision| shares(decision).0), sum(&|decision| shares(decision).1));
            // Who waits has a part of it too, and is not among those who were served.
            prop_assert!(waiting_take_part || (with - without).abs() <= 1e-4 * without, "{with} of {without}");
            for decision in &decisions {
                let (with, without) = shares(decision);
                // Two policies, each no more than skill allows, and the one that goes by sessions twice.
                let kept = (1.0 - skill_max.min(0.9)).powi(3);
                prop_assert!(with >= (kept - 1e-5) * without, "{decision}");
                prop_assert!((1..=10_000).contains(&decision.share.get()));
                if decision.tenant.0 == 0 {
                    prop_assert!((with - without).abs() < 1e-9 * without, "{decision}");
                }
            }
        }
    }

    #[test]
    fn forecasts_without_skill_and_stale_ones_leave_every_share_as_it_is(run in any_run(), stale in any::<bool>()) {
        let (mut with, mut without) = (decider(run[0].bytes.len(), true), decider(run[0].bytes.len(), true));
        for (slice, told) in run.iter().enumerate() {
            let now = Nanos::from_secs(slice as u64 + 5);
            let signals = told.signals();
            let outlook = if stale { told.outlook(Nanos::SECOND, 1.0) } else { told.outlook(now, 0.0) };
            let foreseen = with.slice(now, DecideInput { signals: &signals, outlook });
            let blind = without.slice(now, DecideInput { signals: &signals, outlook: Outlook::default() });
            prop_assert_eq!(foreseen.decisions, blind.decisions);
        }
    }
}
