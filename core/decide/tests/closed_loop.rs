//! The policy on a disk that obeys it: a fluid disk deals its bandwidth out by share, work-conserving and with jitter. This is
//! scene one of the demo, without a kernel: two scanners have been at it for some seconds when two short jobs arrive.

use minerva_decide::{DecideInput, Decider};
use minerva_model::{
    CgroupRef, DeviceId, EngineConfig, IoCounters, IoSignals, Nanos, Outlook, Reason, Signals, Tenant, TenantId,
    TenantKind,
};

const DISK: DeviceId = DeviceId { major: 7, minor: 0 };
const DISK_BYTES_PER_SECOND: f64 = 42e6;
/// What the four read: the short jobs 1 and 2, and the scanners 3 and 4 without end.
const SIZES: [f64; 4] = [25e6, 62e6, f64::INFINITY, f64::INFINITY];

struct World {
    decider: Decider,
    left: [f64; 4],
    done: [f64; 4],
    arrived: [bool; 4],
    seed: u64,
    now: Nanos,
    decisions: [usize; 4],
}

impl World {
    fn new(seed: u64) -> Self {
        Self::weighted(seed, [100; 4])
    }

    /// With the operator's weights, in percent.
    fn weighted(seed: u64, weights_percent: [u32; 4]) -> Self {
        let mut decider = Decider::default();
        decider.configure(Nanos::ZERO, &EngineConfig::default());
        let arrived = [false, false, true, true];
        let mut world =
            Self { decider, left: SIZES, done: [0.0; 4], arrived, seed, now: Nanos::ZERO, decisions: [0; 4] };
        (0..4).for_each(|number| {
            let tenant = Tenant {
                id: TenantId(number),
                name: format!("tenant-{}", number + 1),
                kind: TenantKind::Named,
                cgroup: CgroupRef { path: format!("t/{number}"), inode: number },
                group: None,
                weight_percent: weights_percent[number as usize],
                excluded: false,
                job: None,
                terms: minerva_model::Terms::default(),
                origin: minerva_model::Origin::default(),
            };
            world.decider.tenant_seen(Nanos::ZERO, &tenant, &[]);
        });
        world
    }

    fn share(&self, index: usize) -> f64 {
        self.decider.decision(TenantId(index as u64), DISK).map_or(100.0, |decision| f64::from(decision.share.get()))
    }

    fn group(&self, index: usize) -> u8 {
        match self.decider.decision(TenantId(index as u64), DISK).map(|decision| decision.factors[0].reason.clone()) {
            Some(Reason::Group { group, .. } | Reason::Holding { group, .. }) => group,
            _ => 0,
        }
    }

    /// Between 0.85 and 1.15: a real disk does not deal exactly.
    fn jitter(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        0.85 + 0.3 * (self.seed >> 40) as f64 / (1_u64 << 24) as f64
    }

    fn second(&mut self) {
        let claims: Vec<f64> =
            (0..4)
                .map(|index| {
                    if self.arrived[index] && self.left[index] > 0.0 { self.share(index) * self.jitter() } else { 0.0 }
                })
                .collect();
        // What a job that ends in this second leaves over goes to the others, in a second round.
        let mut given = [0.0_f64; 4];
        for _ in 0..2 {
            let rest = DISK_BYTES_PER_SECOND - given.iter().sum::<f64>();
            let wants =
                |index: usize, given: &[f64; 4]| if self.left[index] > given[index] { claims[index] } else { 0.0 };
            let sum: f64 = (0..4).map(|index| wants(index, &given)).sum();
            for index in 0..4 {
                let more = rest * wants(index, &given) / sum.max(1e-9);
                given[index] = (given[index] + more).min(self.left[index]);
            }
        }
        self.now += Nanos::SECOND;
        let mut io = Vec::new();
        for (index, bytes) in given.iter().enumerate() {
            self.left[index] -= bytes;
            self.done[index] += bytes;
            let transferred =
                IoCounters { read_bytes: *bytes as u64, read_ops: *bytes as u64 / 65_536, ..IoCounters::default() };
            let (tenant, active) = (TenantId(index as u64), transferred.read_ops > 0);
            io.push(IoSignals {
                tenant,
                device: DISK,
                elapsed: Nanos::SECOND,
                transferred,
                latency: None,
                active,
                served: None,
                disk_time: Nanos((bytes / DISK_BYTES_PER_SECOND * 1e9) as u64),
            });
        }
        let signals = Signals { io, ..Signals::default() };
        let input = DecideInput { signals: &signals, outlook: Outlook::default() };
        for decision in self.decider.slice(self.now, input).decisions {
            self.decisions[decision.tenant.0 as usize] += 1;
        }
    }
}

#[test]
fn short_jobs_stay_ahead_of_scanners_and_scanners_stay_equal() {
    for seed in 1..=40 {
        let mut world = World::new(seed);
        let head_start = 10 + seed % 11;
        (0..head_start).for_each(|_| world.second());
        assert!(world.group(2) >= 8 && world.group(3) >= 8, "seed {seed}");
        world.arrived = [true; 4];
        let mut seconds = 0;
        while world.left[0] > 0.0 || world.left[1] > 0.0 {
            world.second();
            seconds += 1;
            for short in [0, 1] {
                assert!(world.group(short) <= 2, "seed {seed}: group {} of a short job", world.group(short));
            }
            assert!(world.group(2) >= 8 && world.group(3) >= 8, "seed {seed}");
        }
        // 87 MB at 42 MB/s take 2.1 s if the scanners get nothing, and 4.1 s at equal weights.
        assert!(seconds <= 3, "seed {seed}: {seconds} s");

        (0..300).for_each(|_| world.second());
        let ratio = world.done[2] / world.done[3];
        assert!((0.9..1.12).contains(&ratio), "seed {seed}: one scanner got {ratio} times the other's");
        let told = world.decisions;
        assert!(told.iter().all(|count| *count <= 8), "seed {seed}: {told:?} decisions in five minutes");
        assert_eq!((world.group(0), world.group(1)), (0, 0), "who has paused is sparing again");
    }
}

#[test]
fn a_newcomer_that_does_not_stop_is_a_scanner_too_within_a_minute() {
    let mut world = World::new(7);
    world.left[0] = f64::INFINITY;
    (0..15).for_each(|_| world.second());
    world.arrived[0] = true;
    let mut groups = Vec::new();
    for _ in 0..60 {
        world.second();
        groups.push(world.group(0));
    }
    assert!(groups.is_sorted(), "it only sinks: {groups:?}");
    assert!(groups[2] <= 3 && groups[59] >= 8, "{groups:?}");
}

#[test]
fn history_does_not_undo_the_weight_that_the_operator_ordered() {
    let mut world = World::weighted(3, [100, 100, 800, 100]);
    (0..120).for_each(|_| world.second());
    let ratio = world.done[2] / world.done[3];
    assert!((7.0..9.0).contains(&ratio), "ordered 8:1, got {ratio}:1");
}
