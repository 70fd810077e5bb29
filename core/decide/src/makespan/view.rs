//! What people are told of jobs.

use super::position::{QueuePosition, Running};
use super::{RESTING, Rule, Sides};
use crate::characterise::phases;
use crate::jobs::{JobOnDisk, JobView, KnownJob};
use crate::shortest_first::Basis;
use minerva_model::{DeviceId, Nanos, Outlook, TenantId};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Tenants that a sentence names.
const NAMED_MAX: usize = 3;

impl Rule {
    /// All jobs, by tenant.
    pub(crate) fn views(&self, now: Nanos, outlook: &Outlook) -> Vec<JobView> {
        let by_name = self.names.iter().filter(|(_, name)| self.settings.jobs.contains_key(*name));
        let mut disks: BTreeMap<TenantId, Vec<(DeviceId, &Running)>> = BTreeMap::new();
        self.named.tenants().into_iter().chain(by_name.map(|(tenant, _)| *tenant)).for_each(|tenant| {
            disks.entry(tenant).or_default();
        });
        self.running.iter().for_each(|((device, tenant), running)| {
            disks.entry(*tenant).or_default().push((*device, running));
        });
        disks.into_iter().filter_map(|(tenant, disks)| self.view(now, (tenant, &disks), outlook)).collect()
    }

    fn view(
        &self,
        now: Nanos,
        (tenant, disks): (TenantId, &[(DeviceId, &Running)]),
        outlook: &Outlook,
    ) -> Option<JobView> {
        let job = self.job(tenant)?.clone();
        let on_disk = |(device, running): &(DeviceId, &Running)| {
            let position = self.places.get(&(*device, tenant));
            // As its place was found, and its reason says: one that never went first is reckoned with the rate of the fastest there.
            let remaining = position.map_or_else(
                || self.known(tenant, *device, running, now, outlook).remaining(),
                |position| position.remaining,
            );
            let rests = now.since(running.last_used) > RESTING;
            let reason = match position {
                Some(position) => self.explain((*device, tenant), position) + &self.explain_cap(position),
                None if rests => "it does not use the disk now".to_owned(),
                None => "no other job uses the disk, or the disk is not short".to_owned(),
            };
            JobOnDisk {
                device: *device,
                attained_bytes: running.attained_bytes,
                remaining_seconds: remaining.seconds,
                basis: remaining.basis.as_str(),
                certainty: remaining.certainty,
                order: position.map(|position| (position.place as u32 + 1, position.jobs as u32)),
                reason,
            }
        };
        Some(JobView {
            tenant,
            is_declared: self.named.has_declared(tenant),
            is_overrun: self.named.is_overrun(tenant),
            age: disks.iter().map(|(_, running)| now.since(running.since)).max().unwrap_or(Nanos::ZERO),
            phases: self.traces.get(&tenant).map(|trace| phases(trace.steps())).unwrap_or_default(),
            disks: disks.iter().map(on_disk).collect(),
            job,
        })
    }

    /// A job's number in the order, from 1, and how many jobs there are, on the disk where it waits for most; nothing while none goes
    /// before another.
    pub(crate) fn order(&self, tenant: TenantId) -> Option<(u32, u32)> {
        let places = self.lifting.keys().filter_map(|device| self.places.get(&(*device, tenant)));
        places.map(|position| (position.place as u32 + 1, position.jobs as u32)).max()
    }

    /// What each tenant is called.
    pub(crate) fn names(&self) -> impl Iterator<Item = (TenantId, &str)> {
        self.names.iter().map(|(tenant, name)| (*tenant, name.as_str()))
    }

    /// What is known of names, by name.
    pub(crate) fn known_jobs(&self) -> impl Iterator<Item = KnownJob> {
        self.runs.iter().map(|(name, runs)| KnownJob {
            name: name.clone(),
            runs: runs.count,
            mean_bytes: runs.mean_bytes,
            spread_bytes: runs.spread_bytes,
        })
    }

    /// The tenants that pay on a disk and those that are ahead, the next first, as far as people read.
    pub(super) fn sides(&self, device: DeviceId) -> Sides {
        let of_disk = (device, TenantId(0))..=(device, TenantId(u64::MAX));
        let places = self.places.range(of_disk).map(|((_, tenant), position)| (position, *tenant));
        let (ahead, payers): (Vec<_>, Vec<_>) = places.partition(|(position, _)| position.is_ahead());
        let named = |jobs: Vec<(&QueuePosition, TenantId)>| {
            let mut jobs: Vec<(usize, TenantId)> = jobs.iter().map(|(position, of)| (position.place, *of)).collect();
            jobs.sort_unstable();
            self.named(&jobs)
        };
        Sides { payers: named(payers), ahead: named(ahead) }
    }

    fn named(&self, jobs: &[(usize, TenantId)]) -> String {
        let name = |(_, tenant): &(usize, TenantId)| self.names.get(tenant).map_or("?", String::as_str);
        let mut named: Vec<String> = jobs.iter().take(NAMED_MAX).map(|of| name(of).to_owned()).collect();
        if let Some(more) = jobs.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            named.push(format!("{more} more"));
        }
        let last = named.pop().unwrap_or_default();
        if named.is_empty() { last } else { format!("{} and {last}", named.join(", ")) }
    }

    /// What a job that waits keeps, and by what.
    pub(super) fn explain_cap(&self, position: &QueuePosition) -> String {
        let Some(part) = position.waits_with().filter(|_| self.settings.caps_are_told) else { return String::new() };
        let capped = match self.cap_jobs {
            false => "",
            true if self.tells_turn(position) => ", by a cap too",
            true => ", by a cap where no weight acts",
        };
        format!("; it keeps {:.1} % of the disk's time{capped}", 100.0 * part)
    }

    /// Why a job has its place.
    pub(super) fn explain(&self, (device, tenant): (DeviceId, TenantId), position: &QueuePosition) -> String {
        let QueuePosition { place, jobs, remaining, .. } = position;
        let known = match remaining.basis {
            Basis::Attained => format!("size unknown, sorted by {}", remaining.basis.as_str()),
            basis => format!(
                "{} s left by {}, certainty {} %",
                remaining.seconds.round() as u64,
                basis.as_str(),
                (100.0 * remaining.certainty).round() as u64
            ),
        };
        let others = jobs - 1;
        // After a snapshot the places stand before the next slice puts jobs in order.
        let sides = || self.told.get(&device).map_or_else(|| Cow::Owned(self.sides(device)), Cow::Borrowed);
        let pays = match position {
            QueuePosition { place: 0, rests: true, .. } => "it rests, and holds up nobody".to_owned(),
            QueuePosition { place: 0, .. } if self.settings.payers_are_named => match sides().payers.as_str() {
                "" => "nobody pays".to_owned(),
                payers => format!("paid for by {payers}"),
            },
            QueuePosition { place: 0, .. } => format!("{others} other jobs pay"),
            _ if position.is_ahead() => "ahead too, as those before it leave of the slice".to_owned(),
            _ if self.settings.payers_are_named => {
                format!("it pays for {}", sides().ahead)
            }
            _ => "it pays for the first".to_owned(),
        };
        format!("job {} of {jobs}: {known}; {pays}{}", place + 1, self.explain_disbelief(tenant))
    }

    /// Why a size that was declared does not count, where one was.
    fn explain_disbelief(&self, tenant: TenantId) -> String {
        match self.job(tenant).and_then(|job| job.bytes) {
            Some(declared) if self.named.is_overrun(tenant) => {
                let moved = self.attained(tenant);
                format!("; declared were {declared} bytes, {moved} are done, so that counts no longer")
            }
            Some(declared) if self.named.is_of_overrun(tenant) => format!(
                "; declared were {declared} bytes, which do not count: less than an hour ago a job in another group of the same user \
                 moved more than twice what it declared"
            ),
            _ => String::new(),
        }
    }
}
