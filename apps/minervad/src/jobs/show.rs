//! Batch jobs as operators see them.

use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_engine::{JobOnDisk, JobView, KnownJob};
use minerva_operator_server::job_runs::phase;

impl Driver {
    /// All jobs, for operators.
    pub(crate) fn show_jobs(&self) -> v1::JobsResponse {
        let known = |known: KnownJob| v1::KnownJob {
            name: known.name,
            runs: known.runs,
            mean_bytes: known.mean_bytes,
            spread_bytes: known.spread_bytes,
        };
        v1::JobsResponse {
            jobs: self.engine.jobs().into_iter().map(|view| self.shown_job(view)).collect(),
            known: self.engine.known_jobs().map(known).collect(),
        }
    }

    fn shown_job(&self, view: JobView) -> v1::Job {
        let tenant = self.tenants.get(&view.tenant).map_or_else(String::new, |tenant| tenant.name.clone());
        v1::Job {
            name: view.job.name,
            tenant,
            tenant_id: view.tenant.to_string(),
            declared_bytes: view.job.bytes,
            declared_by: if view.is_declared { "itself" } else { "operator" }.to_owned(),
            overrun: view.is_overrun,
            age_ns: view.age.0,
            phases: view.phases.iter().map(phase).collect(),
            disks: view.disks.into_iter().map(|disk| self.shown_disk(disk)).collect(),
        }
    }

    fn shown_disk(&self, disk: JobOnDisk) -> v1::JobOnDisk {
        let (place, jobs) = disk.order.unwrap_or((0, 0));
        v1::JobOnDisk {
            device: self.disk_called(disk.device),
            moved_bytes: disk.attained_bytes,
            left_seconds: disk.remaining_seconds,
            basis: disk.basis.to_owned(),
            certainty_permille: (disk.certainty.clamp(0.0, 1.0) * 1000.0).round() as u32,
            place,
            jobs,
            reason: disk.reason,
        }
    }
}
