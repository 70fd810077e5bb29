//! Bai and Huang: priorities of guest applications across VMs.

use super::client::is_rotational;
use crate::scheduler::{Name, UNIT_BYTES};
use minerva_blocksched::{BuildOptions, Class, Cost, FlowParameters, GroupId, Noop, Scheduler, Tag, TagOptions};
use minerva_model::Nanos;
use minerva_sim_device::Profile;
use minerva_sim_workload::{Generator, Pattern, Pause, Plan};
use minerva_sim_world::{GuestSetup, ProcessSetup, Report, TenantSetup, World, WorldSetup};

/// The paper's six priorities, two a VM.
pub(crate) const PRIORITIES: [u8; 6] = [12, 10, 8, 6, 4, 2];
/// The paper's processes read files of 1 GB with a stride of 256 KB.
const STRIDE_BYTES: u32 = 256 * 1024;
const FILE_BYTES: u64 = 3 << 30;
/// Requests that a virtio queue holds.
const VIRTIO_DEPTH: u32 = 64;

/// A process of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) vm: usize,
    pub(crate) priority: u8,
}

/// The paper's Fig. 8: three VMs with two processes each.
pub(crate) fn fig8() -> Vec<Stream> {
    PRIORITIES.iter().enumerate().map(|(index, priority)| Stream { vm: index / 2, priority: *priority }).collect()
}

/// The paper's Fig. 7: two VMs with three processes each, at priorities 6, 4 and 2 in both.
pub(crate) fn fig7() -> Vec<Stream> {
    (0..6).map(|index| Stream { vm: index / 3, priority: [6, 4, 2][index % 3] }).collect()
}

/// The priorities of the two VMs of Fig. 7, 2 and 5, as weights of their groups on the host.
pub(crate) const FIG7_WEIGHTS: [u32; 3] = [200, 500, 500];

/// How the stack is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stack {
    /// Noop in the guests, this on the host, and every request carries its process's priority.
    Passed(Name),
    /// The same, the Tag Scheduler with these options.
    Tagged(TagOptions),
    /// CFQ in the guests, by the processes' priorities, and on the host, which knows only the VMs, by these weights.
    CfqOverCfq([u32; 3]),
    /// The same without any priority, as in the paper's Fig. 8.
    PlainCfqOverCfq,
}

impl Stack {
    fn host(self, rotational: bool) -> Box<dyn Scheduler> {
        match self {
            Self::Passed(name) => name.build(BuildOptions::for_disk(rotational, 1)),
            Self::Tagged(options) => Box::new(Tag::new(options)),
            Self::CfqOverCfq(_) | Self::PlainCfqOverCfq => Name::Cfq.build(BuildOptions::for_disk(rotational, 1)),
        }
    }
}

/// The Tag Scheduler as we set it for an SSD, and with each of its two means against decay alone.
pub(crate) fn tag_options(plug: bool, bounded: bool) -> TagOptions {
    let depth = if bounded { 2 } else { 32 };
    let plug = if plug { TagOptions::default().plug } else { Nanos::ZERO };
    TagOptions { cost: Cost::PerBytes(UNIT_BYTES), depth, plug, ..TagOptions::default() }
}

/// Reads in a hundred requests: the paper's, and what its future work asks for (section 6, item 1).
pub(crate) const READ_PERCENTS: [u8; 3] = [100, 50, 0];

/// Runs the processes for a while. The seed of the run sets where they read, how long they think and when they start.
pub(crate) fn run(
    profile: &Profile,
    stack: Stack,
    streams: &[Stream],
    read_percent: u8,
    seed: u64,
    until: Nanos,
) -> Report {
    let vms = streams.iter().map(|stream| stream.vm + 1).max().unwrap_or(1);
    let tenants = (0..vms).map(|vm| {
        let parameters = FlowParameters { group: GroupId(vm as u32), ..FlowParameters::default() };
        let cfq = || Name::Cfq.build(BuildOptions::for_disk(is_rotational(profile), 1));
        let (weight, scheduler, passes_streams): (_, Box<dyn Scheduler>, _) = match stack {
            Stack::CfqOverCfq(weights) => (weights[vm.min(2)], cfq(), false),
            Stack::PlainCfqOverCfq => (500, cfq(), false),
            Stack::Passed(_) | Stack::Tagged(_) => (100, Box::new(Noop::new()), true),
        };
        TenantSetup {
            name: format!("VM {}", vm + 1),
            weight,
            guest: Some(GuestSetup { scheduler, depth: VIRTIO_DEPTH, parameters, passes_streams }),
        }
    });
    let processes = streams.iter().enumerate().map(|(index, stream)| {
        let mix = mix(seed, index as u64);
        let plan = Plan {
            pattern: Pattern::Sequential,
            read_percent,
            block_bytes: STRIDE_BYTES,
            offset_bytes: FILE_BYTES * index as u64,
            region_bytes: FILE_BYTES,
            pause: Some(Pause { time: Nanos::from_micros(20 + mix % 61), every: 1 }),
            tag: Some(stream.priority),
            ..Plan::default()
        };
        // CFQ has eight levels, 0 the best.
        let level = match stack {
            Stack::PlainCfqOverCfq => FlowParameters::default().level,
            _ => 7 - (stream.priority / 2).min(7),
        };
        ProcessSetup {
            name: format!("VM {} p{}", stream.vm + 1, stream.priority),
            tenant: stream.vm,
            source: Box::new(Generator::new(plan, mix)),
            starts_at: Nanos::from_micros((mix >> 8) % 50_000),
            parameters: FlowParameters { level, class: Class::BestEffort, ..FlowParameters::default() },
            promise: None,
        }
    });
    let mut world = World::new(WorldSetup {
        device: profile.build(None, seed),
        host: stack.host(is_rotational(profile)),
        depth: VIRTIO_DEPTH,
        tenants: tenants.collect(),
        processes: processes.collect(),
        engine: None,
        bin: Nanos::SECOND,
    });
    world.run(until);
    world.report()
}

/// A number that differs from seed to seed and process to process.
fn mix(seed: u64, index: u64) -> u64 {
    let mixed = (seed << 8 | index).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// Pairs of processes in different VMs of which the one with the lesser priority got more (Bai and Huang, section 1).
pub(crate) fn inversions(streams: &[Stream], report: &Report) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for (high, better) in streams.iter().zip(&report.processes) {
        for (low, worse) in streams.iter().zip(&report.processes) {
            if high.priority > low.priority && high.vm != low.vm && worse.bytes > better.bytes {
                pairs.push((worse.name.clone(), better.name.clone()));
            }
        }
    }
    pairs
}

/// How far the worst process is from the throughput that its priority stands for, as a part of it.
pub(crate) fn proportion_error(streams: &[Stream], report: &Report) -> f64 {
    let sum: f64 = streams.iter().map(|stream| f64::from(stream.priority)).sum();
    let total: u64 = report.processes.iter().map(|process| process.bytes).sum();
    let errors = streams.iter().zip(&report.processes).map(|(stream, process)| {
        let due = total as f64 * f64::from(stream.priority) / sum;
        (process.bytes as f64 / due - 1.0).abs()
    });
    errors.fold(0.0, f64::max)
}
