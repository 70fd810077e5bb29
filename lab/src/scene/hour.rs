//! Sessions that come one after the other, each in a cgroup of its own that goes when it is done: what a daemon has seen before a scene.

use super::run::{BEAT, job};
use super::{Stage, Steering, SteeringContext, TenantInScene, TenantPlan};
use crate::disk::{Disk, DiskSpec};
use crate::error::{LabError, Result};
use crate::workload::{CgroupParent, TenantCgroup, Worker};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A group stays for so long after its work, so that the daemon sees how much it was: more than two slices.
const LINGERS: Duration = Duration::from_millis(2500);

/// Sessions, the first first.
#[derive(Clone, Debug, PartialEq)]
pub struct Hour {
    /// What each does; when it begins does not count.
    pub sessions: Vec<TenantPlan>,
    /// So many are under way at once.
    pub at_once: usize,
}

/// A session under way.
struct UnderWay {
    worker: Worker,
    group: TenantCgroup,
}

/// Plays all sessions under a controller, which is then ended in order. `watch` is told how many are done.
pub fn play_hour(hour: &Hour, steering: &dyn Steering, stage: &Stage<'_>, watch: &mut dyn FnMut(usize)) -> Result<()> {
    let disk = Disk::create(&DiskSpec::new(format!("hour-{}", std::process::id()), stage.profile))?;
    let parent = CgroupParent::create("minerva-lab-hour")?;
    let tenants = hour.sessions.iter().map(|plan| TenantInScene { name: plan.name.clone(), weight_percent: 100 });
    let context = SteeringContext { disk: disk.info(), parent: &parent, tenants: tenants.collect() };
    let mut steered = steering.start(&context)?;
    let mut waiting: VecDeque<&TenantPlan> = hour.sessions.iter().collect();
    let mut under_way: Vec<UnderWay> = Vec::new();
    let mut lingering: VecDeque<(Instant, TenantCgroup)> = VecDeque::new();
    while !(waiting.is_empty() && under_way.is_empty() && lingering.is_empty()) {
        if stage.interrupted.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        steered.check()?;
        while under_way.len() < hour.at_once.max(1)
            && let Some(plan) = waiting.pop_front()
        {
            let group = parent.tenant(&plan.name)?;
            let mut worker = Worker::spawn(stage.program, &job(plan, &disk, None, None), Some(&group))?;
            worker.start()?;
            under_way.push(UnderWay { worker, group });
        }
        for UnderWay { worker, group } in under_way.extract_if(.., |session| session.worker.is_done()) {
            worker.wait()?;
            lingering.push_back((Instant::now(), group));
        }
        while lingering.front().is_some_and(|(since, _)| since.elapsed() >= LINGERS) {
            lingering.pop_front();
        }
        watch(hour.sessions.len() - waiting.len() - under_way.len());
        std::thread::sleep(BEAT);
    }
    // So that the last ones are seen to have gone.
    std::thread::sleep(LINGERS);
    steered.end()
}
