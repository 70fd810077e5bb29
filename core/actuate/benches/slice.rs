//! What one slice costs the actuator: everything quiet, one tenant in a hundred with a new share, and the very first slice.
//! The budget of a whole engine tick is in docs/ARCHITECTURE.md, section 6. Answers come from the text that was written, so
//! that the cost is the actuator's alone.

use criterion::measurement::{Measurement, WallTime};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use minerva_actuate::Actuator;
use minerva_model::{
    CgroupRef, CgroupVersion, Decision, Device, DeviceFacts, DeviceId, Effect, EngineConfig, IoCounters, IoSignals,
    KnobTarget, KnobWrite, Mode, Nanos, Outcome, Share, Signals, Tenant, TenantId, TenantKind,
};
use std::collections::BTreeMap;
use std::time::Duration;

const DISKS: u32 = 4;

fn disk(index: u32) -> DeviceId {
    DeviceId { major: 8, minor: 16 * index }
}

fn actuator(tenants: u64) -> Actuator {
    let mut actuator = Actuator::new();
    actuator.configure(&EngineConfig { mode: Mode::Enforce, ..EngineConfig::default() });
    for index in 0..DISKS {
        let facts = DeviceFacts {
            cgroup: CgroupVersion::V2,
            controller_enabled: true,
            writeback_attributed: true,
            elevator: Some("bfq".to_owned()),
            elevators_available: vec!["bfq".to_owned()],
            bfq_low_latency: Some(false),
            bfq_strict_guarantees: None,
            iocost_available: true,
            iocost_enabled: false,
            iocost_model_guessed: false,
            throttle_available: true,
            multi_queue: true,
            rotational: true,
            stacked_on: Vec::new(),
            size_bytes: 1 << 40,
            back_end_forced: None,
        };
        actuator.device_seen(&Device { id: disk(index), name: format!("sd{index}"), facts });
    }
    for id in 0..tenants {
        let path = format!("kubepods.slice/kubepods-pod{}.slice/cri-containerd-{id:032}.scope", id / 4);
        actuator.tenant_seen(&Tenant {
            id: TenantId(id),
            name: path.clone(),
            kind: TenantKind::Container,
            cgroup: CgroupRef { path, inode: id + 1 },
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: minerva_model::Terms::default(),
            origin: minerva_model::Origin::default(),
        });
    }
    actuator
}

fn decisions(tenants: u64, every: usize, share: u32) -> Vec<Decision> {
    let pairs = (0..tenants).step_by(every).flat_map(|tenant| (0..DISKS).map(move |index| (tenant, index)));
    let decide = |(tenant, index)| {
        let (tenant, device, share) = (TenantId(tenant), disk(index), Share::new(share + (tenant % 7) as u32));
        Decision { tenant, device, share, factors: Vec::new() }
    };
    pairs.map(decide).collect()
}

/// Every second tenant is active.
fn signals(tenants: u64) -> Signals {
    let pairs = (0..tenants).flat_map(|tenant| (0..DISKS).map(move |index| (tenant, index)));
    let transferred = IoCounters { read_bytes: 1 << 20, read_ops: 1, ..IoCounters::default() };
    let row = |(tenant, index)| IoSignals {
        tenant: TenantId(tenant),
        device: disk(index),
        elapsed: Nanos::SECOND,
        transferred,
        latency: None,
        active: tenant % 2 == 0,
        served: None,
        disk_time: Nanos::ZERO,
    };
    Signals { io: pairs.map(row).collect(), ..Signals::default() }
}

/// The line that stands in a knob.
type Written = BTreeMap<(String, DeviceId), String>;

/// Answers everything as a kernel in which nobody else writes would.
fn settle(actuator: &mut Actuator, now: Nanos, written: &mut Written) {
    while let Some(effect) = actuator.poll_effect() {
        let (id, place) = match &effect {
            Effect::Inspect(one) => (one.id, (place(&one.target), one.device)),
            Effect::Write(KnobWrite { id, target, device, text, .. }) => {
                written.insert((place(target), *device), text.clone());
                (*id, (place(target), *device))
            }
            _ => continue,
        };
        let text = format!("default 100\n{}\n", written.get(&place).map_or("", String::as_str));
        actuator.answered(now, id, &Outcome::Text(text));
    }
}

fn place(target: &KnobTarget) -> String {
    match target {
        KnobTarget::Cgroup { cgroup, .. } => cgroup.path.clone(),
        KnobTarget::Disk { name } => name.clone(),
        KnobTarget::Server { disk, .. } => disk.clone(),
    }
}

fn slice(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("slice");
    group.sample_size(20);
    for tenants in [10, 1_200, 10_000] {
        let signals = signals(tenants);
        let (all, few) = (decisions(tenants, 1, 5), [decisions(tenants, 100, 20), decisions(tenants, 100, 5)]);
        group.bench_function(BenchmarkId::new("first", tenants), |bencher| {
            let prepare = || actuator(tenants);
            bencher.iter_batched_ref(prepare, |one| one.plan(Nanos::SECOND, &all, &signals), BatchSize::PerIteration);
        });
        let mut one = actuator(tenants);
        let (mut now, mut written) = (Nanos::SECOND, Written::new());
        one.plan(now, &all, &signals);
        settle(&mut one, now, &mut written);
        for (name, few) in [("quiet", None), ("one in a hundred", Some(&few))] {
            let mut turn = 0;
            group.bench_function(BenchmarkId::new(name, tenants), |bencher| {
                bencher.iter_custom(|rounds| {
                    let timer = WallTime;
                    let mut total = Duration::ZERO;
                    for _ in 0..rounds {
                        turn += 1;
                        now += Nanos::SECOND;
                        let decisions = few.map_or(&[][..], |few| &few[turn % 2]);
                        let start = timer.start();
                        one.plan(now, decisions, &signals);
                        total += timer.end(start);
                        settle(&mut one, now, &mut written);
                    }
                    total
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, slice);
criterion_main!(benches);
