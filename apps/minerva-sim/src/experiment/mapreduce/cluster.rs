//! What is assumed of the cluster, as numbers; docs/adr/0016 has the reasons. Bytes are decimal.

use minerva_model::Nanos;

/// Disks of a host, and VMs of a disk.
pub(super) const DISKS: usize = 4;
pub(super) const VMS_A_DISK: usize = 4;
/// VMs of a host.
pub(super) const VMS: usize = DISKS * VMS_A_DISK;
/// When the job and the ingest are launched: after what the models have seen, and half a minute of nothing.
pub(super) const LAUNCH_S: f64 = 1_230.0;
/// When what comes before must begin at the latest.
pub(super) const BEFORE_S: f64 = 1_100.0;
/// How long bytes flow at one rate.
pub(super) const STEP_S: f64 = 0.025;
/// The engine's slice.
pub(super) const SLICE: Nanos = Nanos::SECOND;
/// From one map task of a VM to its next.
pub(super) const BETWEEN_S: f64 = 1.0;
/// What a map task reads before it counts.
pub(super) const CHUNK_BYTES: f64 = 8e6;
/// A map task's input.
pub(super) const TASK_BYTES: f64 = 128e6;
/// What a map task writes, and a reduce reads, of its input; and what a reduce writes of the whole input.
pub(super) const INTERMEDIATE: f64 = 0.03;
pub(super) const RESULT: f64 = 0.01;
/// Standard deviation of the logarithm of how long counting takes.
pub(super) const COUNTING_SPREAD: f64 = 0.15;
/// Cores that an ingesting VM takes.
pub(super) const INGEST_CORES: f64 = 0.1;

/// The assumptions, of which one at a time is varied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cluster {
    /// Hosts of either kind.
    pub(crate) e5620_hosts: usize,
    pub(crate) e3_hosts: usize,
    /// Of a disk, in sequence.
    pub(crate) disk_bytes_per_second: f64,
    /// From one VM's data to another's, after a turn.
    pub(crate) seek_s: f64,
    pub(crate) turn_s: f64,
    /// Word count on a core of the E5620.
    pub(crate) core_bytes_per_second: f64,
    /// Of a host, both links.
    pub(crate) link_bytes_per_second: f64,
    /// VMs of each disk that run the job; the rest ingest.
    pub(crate) job_vms_a_disk: usize,
    /// Map tasks of a VM.
    pub(crate) map_tasks: usize,
    /// What a VM ingests.
    pub(crate) ingest_bytes: f64,
    /// What an ingesting VM holds that is not on its disk yet.
    pub(crate) buffer_bytes: f64,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            e5620_hosts: 45,
            e3_hosts: 30,
            disk_bytes_per_second: 90e6,
            seek_s: 0.013,
            turn_s: 0.1,
            core_bytes_per_second: 15e6,
            link_bytes_per_second: 234e6,
            job_vms_a_disk: 2,
            map_tasks: 26,
            ingest_bytes: 10e12 / 600.0,
            buffer_bytes: 256e6,
        }
    }
}

impl Cluster {
    /// All hosts.
    pub(crate) fn hosts(&self) -> usize {
        self.e5620_hosts + self.e3_hosts
    }

    /// With other parts of each disk's VMs in the job, and the same data in all.
    pub(crate) fn with_job_vms(self, job_vms_a_disk: usize) -> Self {
        let (before, ingesting) = (self.job_vms_a_disk as f64, (VMS_A_DISK - self.job_vms_a_disk) as f64);
        let (now, ingest_now) = (job_vms_a_disk as f64, (VMS_A_DISK - job_vms_a_disk) as f64);
        Self {
            job_vms_a_disk,
            map_tasks: (self.map_tasks as f64 * before / now).round() as usize,
            ingest_bytes: self.ingest_bytes * ingesting / ingest_now,
            ..self
        }
    }

    /// Speed of a core of a host, and how many cores' worth it has.
    pub(super) fn processors(&self, host: usize) -> (f64, f64) {
        if host < self.e5620_hosts {
            (self.core_bytes_per_second, 5.0)
        } else {
            (1.5 * self.core_bytes_per_second, 4.0)
        }
    }

    /// What a disk delivers to so many VMs.
    pub(super) fn disk_rate(&self, vms: usize) -> f64 {
        let share = if vms > 1 { self.turn_s / (self.turn_s + self.seek_s) } else { 1.0 };
        self.disk_bytes_per_second * share
    }
}
