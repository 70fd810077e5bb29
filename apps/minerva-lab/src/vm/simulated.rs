//! A run with guests in the simulator: the same programs and the same scheduler on the same disk's model, with no kernel, no QEMU and no
//! server in between. What comes of it has the form of a real run, so that the same code judges both.

use anyhow::Context as _;
use minerva_blk::tag::{Priority, TagBounds};
use minerva_blocksched::{
    BuildOptions, Class, Dispatch, FlowId, FlowParameters, GroupId, Request, Scheduler, SchedulerName,
};
use minerva_lab::figure::{Record, VmGuest, VmProgress, VmReader, VmRun, VmWaited};
use minerva_lab::workload::Progress;
use minerva_model::Nanos;
use minerva_sim_device::{Media, profile};
use minerva_sim_workload::{Generator, Loop, Pattern, Pause, Plan};
use minerva_sim_world::{GuestSetup, ProcessSetup, TenantSetup, World, WorldSetup};
use std::cell::RefCell;
use std::rc::Rc;

/// The first second is for learning how the disk is, as in a real run.
const WARM_UP: Nanos = Nanos::SECOND;
/// Requests that `minerva-blk` gives a disk at most.
const DEPTH: u32 = 32;
/// Requests that a guest's own elevator lets through: a queue of virtio.
const GUEST_DEPTH: u32 = 64;
/// Any request's tag is below this.
const ANY_TAG: TagBounds = TagBounds { default: 64, max: 254 };

/// What is simulated.
pub(crate) struct Simulation<'a> {
    pub(crate) profile: &'a str,
    pub(crate) guests: &'a [VmGuest],
    /// What the scheduler is told of each guest.
    pub(crate) parameters: Vec<FlowParameters>,
    pub(crate) scheduler: SchedulerName,
    /// The kernel's elevator orders, by the weights of guests, and not a server that knows their programs.
    pub(crate) is_kernel: bool,
    pub(crate) tag_depth: Option<u32>,
    /// How long a program takes to ask again.
    pub(crate) think: Nanos,
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
}

/// Runs it.
pub(crate) fn simulate(simulation: &Simulation<'_>) -> anyhow::Result<VmRun> {
    let Simulation { scheduler, is_kernel, seconds, seed, .. } = *simulation;
    let disk = profile(simulation.profile).with_context(|| format!("no disk profile `{}`", simulation.profile))?;
    let is_rotational = matches!(disk.media, Media::Hdd(_));
    let depth = if is_kernel { u32::MAX } else { DEPTH };
    let usual = if is_kernel { BuildOptions::for_disk } else { BuildOptions::for_images };
    let build = BuildOptions { tag_depth: simulation.tag_depth, ..usual(is_rotational, depth) };
    let log = Log::default();
    let host = Box::new(Logged { scheduler: scheduler.build(build), log: Rc::clone(&log) });
    let readers = || {
        simulation
            .guests
            .iter()
            .enumerate()
            .flat_map(|(number, guest)| guest.readers.iter().map(move |reader| (number, reader)))
    };
    let mut world = World::new(WorldSetup {
        device: disk.build(None, seed),
        host,
        depth: scheduler.depth(build).max(1),
        tenants: simulation.guests.iter().map(|guest| tenant(guest, is_kernel, is_rotational)).collect(),
        processes: readers()
            .enumerate()
            .map(|(index, (guest, reader))| process(simulation, index, guest, reader))
            .collect(),
        engine: None,
        bin: Nanos::SECOND,
    });
    let (begin, end) = (WARM_UP, WARM_UP + Nanos::from_secs(seconds));
    world.run(end);
    let mut own = world.report().processes.into_iter().map(|process| progress(&process.bins_bytes));
    let guests = simulation.guests.iter().map(|guest| {
        let readers = guest.readers.iter().map(|_| own.next().unwrap_or_default()).collect();
        VmProgress { begin, end, readers }
    });
    let guests = guests.collect();
    let of_flow: Vec<&str> = readers().map(|(guest, _)| simulation.guests[guest].name.as_str()).collect();
    let records = if is_kernel { Vec::new() } else { log.borrow().records(&of_flow) };
    Ok(VmRun { records, begin, end, guests, waited: VmWaited::default() })
}

fn tenant(guest: &VmGuest, is_kernel: bool, is_rotational: bool) -> TenantSetup {
    let own = GuestSetup {
        scheduler: SchedulerName::Bfq.build(BuildOptions::for_disk(is_rotational, GUEST_DEPTH)),
        depth: GUEST_DEPTH,
        parameters: FlowParameters::default(),
        passes_streams: false,
    };
    TenantSetup {
        name: guest.name.clone(),
        weight: if is_kernel { guest.bfq_weight } else { 100 },
        guest: (guest.elevator == "bfq").then_some(own),
    }
}

fn process(simulation: &Simulation<'_>, index: usize, guest: usize, reader: &VmReader) -> ProcessSetup {
    let level = reader.ioprio.map_or(4, |ioprio| (ioprio & 7) as u8);
    let tag = reader.ioprio.filter(|_| !simulation.is_kernel).map(|ioprio| Priority::of(ioprio, ANY_TAG).tag);
    let plan = Plan {
        pattern: if reader.access.is_random() { Pattern::Random } else { Pattern::Sequential },
        when: Loop::Closed { depth: reader.depth },
        block_bytes: reader.block_bytes,
        offset_bytes: reader.region_start,
        region_bytes: reader.region_bytes,
        // With several under way a program asks again while others are at the disk.
        pause: (reader.depth == 1).then_some(Pause { time: simulation.think + reader.think, every: 1 }),
        tag,
        ..Plan::default()
    };
    ProcessSetup {
        name: format!("{index}"),
        tenant: guest,
        source: Box::new(Generator::new(plan, simulation.seed << 8 | index as u64)),
        // Guests do not begin at one instant.
        starts_at: Nanos::from_millis(7 * index as u64),
        parameters: FlowParameters {
            // The kernel's BFQ weighs processes of a group by level.
            weight: if simulation.is_kernel {
                (8 - u32::from(level)) * 10
            } else {
                simulation.parameters[guest].weight
            },
            level,
            class: Class::BestEffort,
            ..simulation.parameters[guest]
        },
        promise: None,
    }
}

/// What a process had by the end of each second.
fn progress(bins: &[u64]) -> Vec<Progress> {
    let mut bytes = 0;
    let at_end = |(second, bin): (usize, &u64)| {
        bytes += bin;
        Progress { at: Nanos::from_secs(second as u64 + 1), bytes }
    };
    bins.iter().enumerate().map(at_end).collect()
}

/// What a server would log.
#[derive(Default)]
struct Sent {
    /// Instants of sending, by number of a request under way.
    sent: Vec<Nanos>,
    done: Vec<(Request, Nanos, Nanos)>,
}

type Log = Rc<RefCell<Sent>>;

impl Sent {
    /// In the order in which they came; `disks` by flow.
    fn records(&self, disks: &[&str]) -> Vec<Record> {
        let record = |(request, sent, done): &(Request, Nanos, Nanos)| Record {
            disk: disks.get(request.flow.index()).copied().unwrap_or_default().to_owned(),
            tag: request.tag.unwrap_or_default(),
            bytes: u64::from(request.length_bytes),
            arrived: request.arrived,
            sent: *sent,
            done: *done,
        };
        let mut records: Vec<Record> = self.done.iter().map(record).collect();
        records.sort_by_key(|record| record.arrived);
        records
    }
}

/// A scheduler whose every request is logged, as `minerva-blk --log-requests` does.
struct Logged {
    scheduler: Box<dyn Scheduler>,
    log: Log,
}

impl Scheduler for Logged {
    fn name(&self) -> &'static str {
        self.scheduler.name()
    }

    fn set_flow(&mut self, now: Nanos, flow: FlowId, parameters: FlowParameters) {
        self.scheduler.set_flow(now, flow, parameters);
    }

    fn remove_flow(&mut self, now: Nanos, flow: FlowId) {
        self.scheduler.remove_flow(now, flow);
    }

    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        self.scheduler.cancel(now, flow, cancelled);
    }

    fn set_group_weight(&mut self, now: Nanos, group: GroupId, weight: u32) {
        self.scheduler.set_group_weight(now, group, weight);
    }

    fn add(&mut self, now: Nanos, request: Request) {
        self.scheduler.add(now, request);
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        let answer = self.scheduler.next(now);
        if let Dispatch::Send(request) = &answer {
            let sent = &mut self.log.borrow_mut().sent;
            let number = request.id.0 as usize;
            sent.resize(sent.len().max(number + 1), Nanos::ZERO);
            sent[number] = now;
        }
        answer
    }

    fn complete(&mut self, now: Nanos, request: &Request) {
        let mut log = self.log.borrow_mut();
        let sent = log.sent.get(request.id.0 as usize).copied().unwrap_or_default();
        log.done.push((*request, sent, now));
        drop(log);
        self.scheduler.complete(now, request);
    }

    fn queued(&self) -> usize {
        self.scheduler.queued()
    }
}

#[cfg(test)]
mod tests {
    use super::{Simulation, simulate};
    use crate::vm::{contracts, mix, tags};
    use minerva_blocksched::SchedulerName;
    use minerva_lab::workload::Access;
    use minerva_model::Nanos;

    const PROFILE: &str = "sata7200-80g";

    #[test]
    fn contracts_are_kept_by_htbs_and_missed_by_who_does_not_wait() {
        let scene = contracts::Scene::four_jobs(256 << 10);
        let missed = |scheduler: SchedulerName| {
            let guests = scene.guests(scheduler.as_str(), PROFILE);
            let simulation = Simulation {
                profile: PROFILE,
                guests: &guests,
                parameters: scene.parameters(scheduler),
                scheduler,
                is_kernel: false,
                tag_depth: None,
                think: Nanos::from_micros(300),
                seconds: 20,
                seed: 1,
            };
            let run = simulate(&simulation).unwrap();
            assert_eq!(contracts::think(&run), Some(simulation.think), "the log has what programs do");
            scene.judge(&run).iter().map(|kept| kept.missed).sum::<u64>()
        };
        assert_eq!(missed(SchedulerName::Htbs), 0);
        assert!(missed(SchedulerName::Pclock) >= 20);
    }

    #[test]
    fn contracts_of_a_database_and_a_file_server_are_kept_beside_a_greedy_guest() {
        let broken = |scheduler: SchedulerName| {
            let guests = mix::guests(scheduler.as_str(), PROFILE);
            let run = simulate(&Simulation {
                profile: PROFILE,
                guests: &guests,
                parameters: mix::parameters(scheduler),
                scheduler,
                is_kernel: false,
                tag_depth: None,
                think: Nanos::from_micros(300),
                seconds: 20,
                seed: 1,
            });
            let had = mix::judge(&run.unwrap());
            let kept: Vec<_> = had.iter().filter_map(|had| had.kept.clone()).collect();
            assert!(kept.len() == 2 && kept.iter().all(|kept| kept.requests > 20), "{kept:?}");
            assert_eq!(kept[1].asked, 20, "the file server asks all the time");
            assert!(had[2].bytes_per_second > 10e6, "the greedy guest gets the rest: {had:?}");
            kept.iter().map(|kept| kept.late + kept.missed).sum::<u64>()
        };
        assert_eq!(broken(SchedulerName::Htbs), 0);
        assert!(broken(SchedulerName::Noop) > 0, "without an order they wait");
    }

    #[test]
    fn priorities_are_obeyed_by_tag_and_lost_where_guests_are_weighed_first() {
        let scene = tags::Scene::two_guests(Access::SequentialRead, 2, 256 << 10);
        let inverted = |name: &str, scheduler, is_kernel| {
            let guests = scene.guests(name, "slow-ssd");
            let simulation = Simulation {
                profile: "slow-ssd",
                guests: &guests,
                parameters: scene.parameters(),
                scheduler,
                is_kernel,
                tag_depth: None,
                think: Nanos::ZERO,
                seconds: 10,
                seed: 1,
            };
            let run = simulate(&simulation).unwrap();
            let programs = scene.programs(&run);
            assert!(programs.iter().all(|program| program.bytes > 0), "{programs:?}");
            tags::inverted(&programs).len()
        };
        assert_eq!(inverted("tag", SchedulerName::Tag, false), 0);
        assert!(inverted("kernel-bfq", SchedulerName::Bfq, true) > 0);
    }
}
