//! A job on the real kernel: fio in real cgroups, a real elevator, the emulated disk under it.

use crate::fio::{Duration, Process};
use crate::host::{CONSTANT_US, Host};
use crate::job::{Elevator, Job, TenantJob, region};
use crate::log::{Report, outcome};
use crate::{Arm, fio};
use anyhow::Context as _;
use minerva_lab::disk::{Disk, DiskSpec};
use minerva_lab::scene::{FixedWeights, Steering as _, SteeringContext, TenantInScene};
use minerva_lab::workload::CgroupParent;

/// A disk that answers at once. What is measured above that, and above [`CONSTANT_US`], is the host's.
const INSTANT_US: f64 = 0.0;
/// Delays are kept at these parts of all requests: close together at the end, where they are far apart.
const PARTS: [f64; 17] = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 1.0];
/// Each of the three calibrations. The first requests of a process are slow, and there are too few others to hide them.
const CALIBRATION: Duration = Duration { ramp_ms: 300, counted_ms: 1500 };
/// The kernel's own spread is shown between windows of this length.
const WINDOW_MS: u64 = 10_000;
/// Before anything is counted of a job.
pub(crate) const RAMP_S: u64 = 2;

/// Says what the machine lacks for this arm, if anything.
pub fn check_machine() -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    let version = std::process::Command::new("fio").arg("--version").output();
    version.map(drop).context("the real arm needs fio: install it with `apt-get install fio`")
}

/// A job and what it takes, for its real arm.
pub struct Run {
    /// Prefix of everything made for it: disk and cgroups.
    pub prefix: String,
    /// How long to measure, in seconds, after a warm-up.
    pub seconds: u64,
}

impl Run {
    /// Runs `job`.
    pub fn job(&self, job: &Job) -> anyhow::Result<Arm> {
        let disk = self.disk(job.profile, job.elevator)?;
        let parent = CgroupParent::create(&self.prefix)?;
        let names: Vec<String> = (0..job.tenants.len()).map(|index| index.to_string()).collect();
        let groups = names.iter().map(|name| parent.tenant(name)).collect::<Result<Vec<_>, _>>()?;
        // Only BFQ has a file for weights.
        if job.elevator == Elevator::Bfq {
            let weights = job.tenants.iter().map(|tenant| tenant.weight).collect();
            let tenants = names.iter().map(|name| TenantInScene { name: name.clone(), weight_percent: 100 }).collect();
            FixedWeights(weights).start(&SteeringContext { disk: disk.info(), parent: &parent, tenants })?;
        }
        let processes: Vec<Process<'_>> = job
            .tenants
            .iter()
            .enumerate()
            .map(|(index, tenant)| {
                let (offset_bytes, region_bytes) = region(job, index, disk.info().size_bytes);
                let cgroup = Some(format!("{}/{index}", parent.relative_path()));
                Process { tenant, offset_bytes, region_bytes, cgroup }
            })
            .collect();
        let duration = Duration { ramp_ms: RAMP_S * 1000, counted_ms: self.seconds * 1000 };
        let (logs, whole) = fio::run(disk.device(), &processes, duration)?;
        drop(groups);
        let windows = whole.split(WINDOW_MS).map(|window| outcome(&logs, window)).collect();
        Ok(Arm { whole: outcome(&logs, whole), windows })
    }

    /// Measures what this host adds to a request.
    pub fn host(&self) -> anyhow::Result<Host> {
        let reader = |block_bytes, depth| TenantJob { weight: 100, random: true, write: false, block_bytes, depth };
        let period = |block_bytes, depth| -> anyhow::Result<f64> {
            Ok(1e9 / self.calibrate(INSTANT_US, &reader(block_bytes, depth))?.rate().max(1.0))
        };
        let (small_bytes, large_bytes) = (4096, 1 << 20);
        let (small_ns, large_ns) = (period(small_bytes, 32)?, period(large_bytes, 8)?);
        let station_ns_per_byte = ((large_ns - small_ns) / f64::from(large_bytes - small_bytes)).max(0.0);
        let station_ns = (small_ns - station_ns_per_byte * f64::from(small_bytes)).max(0.0);
        let constant = self.calibrate(CONSTANT_US, &reader(small_bytes, 1))?;
        let delay = |part| (constant.quantile_ns(part) - CONSTANT_US * 1e3 - small_ns).max(0.0);
        let delay_ns = PARTS.iter().map(|part| (*part, delay(*part))).collect();
        Ok(Host { station_ns, station_ns_per_byte, delay_ns })
    }

    /// Reads from a disk whose every request takes `constant_us`.
    fn calibrate(&self, constant_us: f64, tenant: &TenantJob) -> anyhow::Result<Report> {
        let folder = tempfile::tempdir().context("make a folder for a disk profile")?;
        let path = folder.path().join("constant.toml");
        std::fs::write(&path, constant_disk(constant_us)).with_context(|| format!("write {}", path.display()))?;
        let disk = self.disk(&path.to_string_lossy(), Elevator::None)?;
        let process = Process { tenant, offset_bytes: 0, region_bytes: disk.info().size_bytes, cgroup: None };
        let (logs, window) = fio::run(disk.device(), &[process], CALIBRATION)?;
        logs.first().map(|log| window.count(log)).context("fio reports nothing")
    }

    fn disk(&self, profile: &str, elevator: Elevator) -> anyhow::Result<Disk> {
        let mut spec = DiskSpec::new(self.prefix.clone(), profile);
        elevator.as_str().clone_into(&mut spec.elevator);
        Ok(Disk::create(&spec)?)
    }
}

/// A disk of 1 GiB that takes `constant_us` for each request of up to 1 MiB, whatever else it has to do.
fn constant_disk(constant_us: f64) -> String {
    let time = format!("first_page_us = {constant_us:.1}\nnext_page_us = 0.0\n");
    format!(
        "name = \"constant\"\nsource = \"none: it shows what the host adds\"\ncapacity_bytes = 1_073_741_824\n\
         queue_depth = 256\ninterface_mb_per_s = 1000000.0\n[media.ssd]\nchannels = 1024\npage_bytes = 4096\n\
         stripe_bytes = 1048576\ncommand_us = 0.0\n[media.ssd.read]\n{time}[media.ssd.write]\n{time}[media.ssd.discard]\n{time}\
         [media.ssd.flush]\n{time}"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_calibration_disk_is_a_disk() {
        let profile = minerva_sim_device::Profile::parse(&super::constant_disk(1000.0)).unwrap();
        assert_eq!(profile.capacity_bytes, 1 << 30);
    }
}
