//! A host: its disks and processors dealt among its VMs step by step, and its engine, which sets their weights each slice.

use super::Dealing;
use super::cluster::{Cluster, DISKS, INGEST_CORES, LAUNCH_S, SLICE, STEP_S, VMS, VMS_A_DISK};
use super::draw;
use super::vm::{Role, Vm};
use minerva_model::Nanos;
use minerva_sim_workload::ProcessUsage;
use minerva_sim_world::{Counters, Disks, Steering};
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

/// Slices in a row in which the ingest must be held back.
const HELD_SLICES: u32 = 5;
/// Nothing lasts longer: a run that does is a fault.
const END_S: f64 = 100_000.0;

/// How far a host runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    /// Until its map tasks are done.
    Maps,
    /// To the end, with the reduces from when all hosts' map tasks are done.
    Rest { reduces_from_s: f64 },
}

/// How long the ingest of a disk has been held back.
#[derive(Clone, Copy, Debug, Default)]
struct Detection {
    slices: u32,
    since_s: f64,
    found_s: Option<f64>,
}

/// See the file's documentation.
#[derive(Debug)]
pub(super) struct Host {
    cluster: Cluster,
    number: usize,
    vms: Vec<Vm>,
    is_job_first: bool,
    steering: Option<Steering>,
    /// Steps that are over.
    steps: u64,
    busy_s: [f64; DISKS],
    detections: [Detection; DISKS],
    maps_ended_s: Option<f64>,
}

impl Host {
    pub(super) fn new(cluster: &Cluster, number: usize, dealing: Dealing, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed ^ ((number as u64 + 1) << 40));
        let vm = |index: usize| Vm {
            disk: index / VMS_A_DISK,
            role: if index % VMS_A_DISK < cluster.job_vms_a_disk {
                Role::Worker(draw::worker(cluster, &mut random))
            } else {
                Role::Ingest(draw::ingest(cluster, &mut random))
            },
            weight: 100.0,
            read_bytes: 0.0,
            write_bytes: 0.0,
            cpu_s: 0.0,
        };
        let vms: Vec<Vm> = (0..VMS).map(vm).collect();
        let setup = if let Dealing::By(arm) = dealing { arm.engine(true) } else { None };
        let steering = setup.map(|setup| {
            let names: Vec<String> = (0..VMS).map(|index| format!("vm-{}", number * VMS + index)).collect();
            let of_tenants: Vec<usize> = vms.iter().map(|vm| vm.disk).collect();
            Steering::new(
                setup,
                &Disks { elevator: "bfq", size_bytes: 1_000_000_000_000, of_tenants: &of_tenants },
                &names,
            )
        });
        Self {
            cluster: *cluster,
            number,
            vms,
            is_job_first: dealing == Dealing::JobFirst,
            steering,
            steps: 0,
            busy_s: [0.0; DISKS],
            detections: [Detection::default(); DISKS],
            maps_ended_s: None,
        }
    }

    /// Goes on to the end of the stage.
    pub(super) fn run(&mut self, stage: Stage) {
        let barrier_s = if let Stage::Rest { reduces_from_s } = stage { Some(reduces_from_s) } else { None };
        while self.steps as f64 * STEP_S < END_S {
            if stage == Stage::Maps && self.workers().all(|worker| worker.tasks.0 as usize == self.cluster.map_tasks) {
                self.maps_ended_s = Some(self.steps as f64 * STEP_S);
                return;
            }
            let ingest_ended = || self.ingests().all(|ingest| ingest.ended_s.is_some());
            if stage != Stage::Maps && self.workers().all(|worker| worker.ended_s.is_some()) && ingest_ended() {
                return;
            }
            self.step(barrier_s);
        }
    }

    fn step(&mut self, barrier_s: Option<f64>) {
        let from_s = self.steps as f64 * STEP_S;
        let rates = self.disk_rates();
        let (core_rate, cores) = self.cluster.processors(self.number);
        let counting = self.vms.iter().filter(|vm| vm.is_counting()).count().max(1) as f64;
        let ingesting = self.vms.iter().filter(|vm| vm.is_ingesting()).count() as f64;
        let counting_rate = core_rate * ((cores - INGEST_CORES * ingesting) / counting).min(1.0);
        let came = self.came();
        for ((vm, rate), came) in self.vms.iter_mut().zip(rates).zip(came) {
            vm.work(from_s, STEP_S, rate, (counting_rate, core_rate), barrier_s);
            vm.ingest(from_s, STEP_S, came, rate, INGEST_CORES);
        }
        self.steps += 1;
        let now = Nanos((self.steps as f64 * STEP_S * 1e9).round() as u64);
        if now.0.is_multiple_of(SLICE.0) {
            self.slice(now);
        }
    }

    /// What each VM's disk gives it: in proportion to weights, and what one does not ask for goes to the others.
    fn disk_rates(&mut self) -> [f64; VMS] {
        let mut rates = [0.0; VMS];
        for disk in 0..DISKS {
            let mut asks: Vec<(usize, f64)> = (disk * VMS_A_DISK..(disk + 1) * VMS_A_DISK)
                .map(|index| (index, self.vms[index].wants(f64::INFINITY) / STEP_S))
                .filter(|(_, rate)| *rate > 0.0)
                .collect();
            let is_of_job = |(index, _): &(usize, f64)| matches!(self.vms[*index].role, Role::Worker(_));
            if self.is_job_first && asks.iter().any(is_of_job) {
                asks.retain(is_of_job);
            }
            if asks.is_empty() {
                continue;
            }
            self.busy_s[disk] += STEP_S;
            let mut left = self.cluster.disk_rate(asks.len());
            // Whoever asks for less than its part is served whole, and the parts of the others grow.
            loop {
                let weights: f64 = asks.iter().map(|(index, _)| self.vms[*index].weight).sum();
                let part = |index: usize| left * self.vms[index].weight / weights;
                let Some(at) = asks.iter().position(|(index, rate)| *rate < part(*index)) else {
                    asks.iter().for_each(|(index, _)| rates[*index] = part(*index));
                    break;
                };
                let (index, rate) = asks.remove(at);
                rates[index] = rate;
                left -= rate;
            }
        }
        rates
    }

    /// What comes in for each VM: the links in equal parts among those whose source has data and who have room.
    fn came(&self) -> [f64; VMS] {
        let room = |vm: &Vm| match &vm.role {
            Role::Ingest(ingest) => ingest.at_source.min(self.cluster.buffer_bytes - ingest.buffered).max(0.0),
            Role::Worker(_) => 0.0,
        };
        let takers = self.vms.iter().filter(|vm| room(vm) > 0.0).count().max(1) as f64;
        let part = self.cluster.link_bytes_per_second * STEP_S / takers;
        std::array::from_fn(|index| room(&self.vms[index]).min(part))
    }

    fn slice(&mut self, now: Nanos) {
        let Some(steering) = &mut self.steering else { return };
        let busy = self.busy_s.map(|seconds| Nanos((seconds * 1e9) as u64));
        let counters: Vec<Counters> = self.vms.iter().map(Vm::counters).collect();
        let usage: Vec<Option<ProcessUsage>> = self.vms.iter().map(|vm| Some(process(vm))).collect();
        for (index, weight) in steering.slice(now, &busy, &counters, &usage) {
            self.vms[index].weight = f64::from(weight);
        }
        self.detect(now.as_secs_f64());
    }

    fn detect(&mut self, now_s: f64) {
        for (vms, detection) in self.vms.chunks(VMS_A_DISK).zip(&mut self.detections) {
            let wrote_s = vms.iter().filter_map(|vm| match &vm.role {
                Role::Ingest(ingest) => Some(ingest.wrote_s.unwrap_or(f64::INFINITY)),
                Role::Worker(_) => None,
            });
            let all_write_s = wrote_s.fold(0.0, f64::max);
            let of = |is_worker: bool| {
                vms.iter().filter(move |vm| matches!(vm.role, Role::Worker(_)) == is_worker).map(|vm| vm.weight)
            };
            let is_held = of(false).fold(0.0, f64::max) <= 0.5 * of(true).fold(f64::INFINITY, f64::min);
            if !is_held || now_s < all_write_s {
                detection.slices = 0;
                continue;
            }
            if detection.slices == 0 {
                detection.since_s = now_s - all_write_s;
            }
            detection.slices += 1;
            if detection.slices == HELD_SLICES {
                detection.found_s.get_or_insert(detection.since_s);
            }
        }
    }

    fn workers(&self) -> impl Iterator<Item = &super::vm::Worker> {
        self.vms.iter().filter_map(|vm| if let Role::Worker(worker) = &vm.role { Some(worker) } else { None })
    }

    fn ingests(&self) -> impl Iterator<Item = &super::vm::Ingest> {
        self.vms.iter().filter_map(|vm| if let Role::Ingest(ingest) = &vm.role { Some(ingest) } else { None })
    }

    pub(super) fn maps_ended_s(&self) -> f64 {
        self.maps_ended_s.unwrap_or(f64::INFINITY)
    }

    /// Map tasks and their seconds together.
    pub(super) fn tasks(&self) -> (u32, f64) {
        self.workers().map(|worker| worker.tasks).fold((0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }

    pub(super) fn job_s(&self) -> f64 {
        self.workers().map(|worker| worker.ended_s.unwrap_or(f64::INFINITY) - LAUNCH_S).fold(0.0, f64::max)
    }

    pub(super) fn ingest_s(&self) -> f64 {
        self.ingests().map(|ingest| ingest.ended_s.unwrap_or(f64::INFINITY) - LAUNCH_S).fold(0.0, f64::max)
    }

    pub(super) fn detected_s(&self) -> impl Iterator<Item = Option<f64>> {
        self.detections.iter().map(|detection| detection.found_s)
    }
}

/// What the host sees of a VM's process: one image, and memory that never changes.
fn process(vm: &Vm) -> ProcessUsage {
    ProcessUsage {
        cpu_ns: (vm.cpu_s * 1e9) as u64,
        memory_bytes: 1_000_000_000,
        open_files: 40,
        open_sockets: 0,
        open_file_bytes: 200_000_000_000,
        under_way: None,
    }
}
