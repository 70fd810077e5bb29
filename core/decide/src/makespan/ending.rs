//! The end of a job's run, and what it teaches.

use super::Rule;
use crate::characterise::profile;
use minerva_model::{DeviceId, JobRun, TenantId};

impl Rule {
    /// Ends the run of a job that goes on as another by the operator's word. What it moved so far is a part of a run, and so is what follows.
    pub(super) fn cut(&mut self, tenant: TenantId) {
        let is_under_way = self.parts.contains(&tenant) || self.running.keys().any(|(_, of)| *of == tenant);
        let is_part = is_under_way && self.settings.parts_teach_nothing;
        if is_part {
            self.parts.insert(tenant);
        }
        self.end(tenant);
        if is_part {
            self.parts.insert(tenant);
        }
    }

    /// What a job moved in all is what its name does, if it is all.
    pub(super) fn end(&mut self, tenant: TenantId) -> Option<JobRun> {
        let job = self.job(tenant).cloned();
        let is_part = self.parts.remove(&tenant);
        let trace = self.traces.remove(&tenant);
        self.courses.remove(&tenant);
        self.attained.remove(&tenant);
        self.active.remove(&tenant);
        let mut attained: Vec<(u64, DeviceId)> = Vec::new();
        self.running.retain(|(device, of), running| {
            if *of == tenant {
                attained.push((running.attained_bytes, *device));
            }
            *of != tenant
        });
        self.places.retain(|(_, of), _| *of != tenant);
        let (_, device) = attained.iter().max().copied()?;
        let job = job?;
        let bytes = attained.iter().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        if bytes == 0 {
            return None;
        }
        self.named.ended(tenant, bytes);
        if is_part {
            return None;
        }
        let profile = trace.as_ref().and_then(profile);
        let phases = profile.as_ref().map_or(&[][..], |profile| &profile.phases);
        let owner = self.owners.get(&tenant).map(String::as_str);
        self.runs.learn(&job.name, owner, bytes as f64, phases);
        let profile = profile?;
        Some(JobRun { name: job.name, tenant, device, declared_bytes: job.bytes, profile })
    }
}
