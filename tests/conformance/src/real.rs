//! A job on the real kernel: fio in real cgroups, a real elevator, the emulated disk under it.

use crate::fio::Process;
use crate::host::{ABOVE_ELEVATOR, Host};
use crate::job::{Elevator, Job, TenantJob, region};
use crate::log::{Report, arm};
use crate::way::{Duration, WINDOW_MS, disk, with_profile};
use crate::{Arm, calibration, fio};
use anyhow::Context as _;
use minerva_lab::disk::Disk;
use minerva_lab::scene::{FixedWeights, Steering as _, SteeringContext, TenantInScene};
use minerva_lab::workload::CgroupParent;

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
                let (offset_bytes, region_bytes) = region(job.tenants.len(), index, disk.info().size_bytes);
                let cgroup = Some(format!("{}/{index}", parent.relative_path()));
                Process { tenant, offset_bytes, region_bytes, cgroup }
            })
            .collect();
        let (logs, whole) = fio::run(disk.device(), &processes, Duration::of_job(self.seconds))?;
        drop(groups);
        Ok(arm(&logs, whole, WINDOW_MS))
    }

    /// Measures what this host adds to a request.
    pub fn host(&self) -> anyhow::Result<Host> {
        calibration::measure(ABOVE_ELEVATOR, |profile, tenant| {
            with_profile(profile, |path| self.calibrate(path, tenant))
        })
    }

    fn calibrate(&self, profile: &str, tenant: &TenantJob) -> anyhow::Result<Report> {
        let disk = self.disk(profile, Elevator::None)?;
        let process = Process { tenant, offset_bytes: 0, region_bytes: disk.info().size_bytes, cgroup: None };
        let (logs, window) = fio::run(disk.device(), &[process], calibration::TIME)?;
        logs.first().map(|log| window.count(log)).context("fio reports nothing")
    }

    fn disk(&self, profile: &str, elevator: Elevator) -> anyhow::Result<Disk> {
        disk(&self.prefix, profile, elevator.as_str(), false)
    }
}
