//! The end of a job's run, and what it teaches.

use super::Rule;
use crate::characterise::profile;
use minerva_model::{DeviceId, JobRun, TenantId};

impl Rule {
    /// Ends the run of a job that goes on as another by the operator's word. What it moved so far is a part of a run, and so is what follows.
    pub(super) fn cut(&mut self, tenant: TenantId) {
        let moves = self.left.contains_key(&tenant) || self.running.keys().any(|(_, of)| *of == tenant);
        let is_part = (moves || self.parts.contains(&tenant)) && self.settings.parts_teach_nothing;
        // What follows may be no more than the rest after it, which is to end as any does: else the next run would pass for the other part.
        let active = self.active.get(&tenant).copied().filter(|_| self.settings.whole_runs_teach);
        if is_part {
            self.parts.insert(tenant);
        }
        self.end(tenant);
        if is_part {
            self.parts.insert(tenant);
            self.active.extend(active.map(|at| (tenant, at)));
        }
    }

    /// Jobs leave a disk that is gone. What they moved there is of their runs all the same: a snapshot, a loop device or a disk on a cable often
    /// goes when the job on it is done.
    pub(super) fn leave(&mut self, device: DeviceId) {
        for ((_, tenant), running) in self.running.iter().filter(|((on, _), _)| *on == device) {
            if self.settings.whole_runs_teach {
                let (bytes, _) = self.left.entry(*tenant).or_insert((0, device));
                *bytes = bytes.saturating_add(running.attained_bytes);
            } else if self.settings.parts_teach_nothing {
                self.parts.insert(*tenant);
            }
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
        let mut attained: Vec<(u64, DeviceId)> = self.left.remove(&tenant).into_iter().collect();
        self.running.retain(|(device, of), running| {
            if *of == tenant {
                attained.push((running.attained_bytes, *device));
            }
            *of != tenant
        });
        self.places.retain(|(_, of), _| *of != tenant);
        self.told.clear();
        let (_, device) = attained.iter().max().copied()?;
        let job = job?;
        let bytes = attained.iter().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        if bytes == 0 {
            return None;
        }
        self.named.ended(tenant, bytes, self.settings.knowledge_fades);
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
